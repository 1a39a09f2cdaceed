// Package wait is how tests (Until, For) and programs (Poll) wait: for a condition, never for a fixed time.
package wait

import (
	"context"
	"errors"
	"time"
)

const (
	// Patience is how long a test waits before it fails: much longer than anything takes, because a busy machine is not
	// a fault.
	Patience = 3 * time.Minute
	every    = 10 * time.Millisecond
)

// T is the part of a testing.TB that a wait needs, so that programs that use Poll do not link package testing.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Until checks repeatedly until a condition holds, or fails the test with the last error.
func Until(t T, holds func() error) {
	t.Helper()
	// not the test's context, which has ended when a cleanup waits
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	var last error
	if Poll(ctx, every, func() (bool, error) { last = holds(); return last == nil, nil }) != nil {
		t.Fatalf("still not so after %s: %v", Patience, last)
	}
}

// For is Until for a condition that has no error but a description.
func For(t T, what string, holds func() bool) {
	t.Helper()
	Until(t, func() error {
		if !holds() {
			return errors.New(what)
		}
		return nil
	})
}
