package main

import (
	"context"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/wiring"
)

// probeCmd is the health check of a container that has no shell and no curl.
type probeCmd struct {
	URL string `arg:"" help:"Address of a /readyz."`
}

// Run fails unless the address answers 200 within 4 seconds.
// Health checks know no other codes than 0 and 1.
func (cmd probeCmd) Run(ctx context.Context) error {
	return cli.Failed.With(wiring.Probe(ctx, cmd.URL))
}
