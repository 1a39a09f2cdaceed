package main

import (
	"context"
	"errors"
	"testing"

	"github.com/navlog/navlog/deploy/bench"
)

// A part during which the chain ends is an error, even if all questions were answered.
func TestPartWithoutItsChain(t *testing.T) {
	w := &world{failed: make(chan error, 1)}
	gone := errors.New("the chain is gone")
	part := w.part(options{},
		func(context.Context, options) ([]bench.Bar, error) { return []bench.Bar{{Name: "figure"}}, nil })
	if bars, err := part(t.Context()); err != nil || len(bars) != 1 {
		t.Errorf("while the chain advances: %v, %v", bars, err)
	}
	w.fail(gone)
	if _, err := part(t.Context()); !errors.Is(err, gone) {
		t.Errorf("the chain has ended: %v", err)
	}
}
