// Package wait is how tests wait: for a condition, never for a time.
package wait

import (
	"context"
	"errors"
	"testing"
	"time"
)

const (
	// Patience is how long a test waits before it fails: far longer than anything takes, for a busy machine is no fault.
	Patience = 2 * time.Minute
	every    = 10 * time.Millisecond
)

// Until asks until a condition holds, or fails the test with what it said last.
func Until(t testing.TB, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still not so after %s: %v", Patience, err)
		case <-tick.C:
		}
	}
}

// For is Until for a condition that has nothing to say but what it is.
func For(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Until(t, func() error {
		if !holds() {
			return errors.New(what)
		}
		return nil
	})
}
