package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// probeCmd is the health check of a container that has no shell and no curl.
type probeCmd struct {
	URL string `arg:"" help:"Address of a /readyz."`
}

// Run fails unless the address answers 200 within 4 seconds.
func (cmd probeCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cmd.URL, nil)
	if err != nil {
		return fmt.Errorf("probe %q: %w", cmd.URL, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer response.Body.Close()
	reason, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("probe: read the answer of %s: %w", cmd.URL, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d: %s", cmd.URL, response.StatusCode, reason)
	}
	return nil
}
