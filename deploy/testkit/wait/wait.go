// Package wait is how tests wait: for a condition, never for a fixed time.
package wait

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/poll"
)

const (
	// Patience is how long a test waits before it fails: much longer than anything takes, because a busy machine is not
	// a fault.
	Patience = 3 * time.Minute
	every    = 10 * time.Millisecond
)

// Until checks repeatedly until a condition holds, or fails the test with the last error.
func Until(t testing.TB, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience) // not the test's context, which has ended when a cleanup waits
	defer cancel()
	var last error
	if poll.Until(ctx, every, func() (bool, error) { last = holds(); return last == nil, nil }) != nil {
		t.Fatalf("still not so after %s: %v", Patience, last)
	}
}

// For is Until for a condition that has no error but a description.
func For(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Until(t, func() error {
		if !holds() {
			return errors.New(what)
		}
		return nil
	})
}
