package main

import (
	"context"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/wiring"
)

// probeCmd is the health check of a container without a shell and curl.
type probeCmd struct {
	URL string `arg:"" help:"Address of a /readyz."`
}

// Run fails unless the URL responds with 200 within 4 seconds. Health checks only know the exit codes 0 and 1.
func (cmd probeCmd) Run(ctx context.Context) error {
	return cli.Failed.With(wiring.Probe(ctx, cmd.URL))
}
