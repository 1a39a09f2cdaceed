package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/bench"
)

// A part during which the chain ends is an error, even if all questions were answered. The error names the part, and no
// later part runs.
func TestPartWithoutItsChain(t *testing.T) {
	w := &world{failed: make(chan error, 1)}
	gone := errors.New("the chain is gone")
	var ran []string
	part := func(name string, ends bool) measurement {
		return func(context.Context, options) ([]bench.Bar, error) {
			ran = append(ran, name)
			if ends {
				w.fail(gone)
			}
			return []bench.Bar{{Name: name}}, nil
		}
	}
	of := map[string]measurement{"alone": part("alone", false), "cold": part("cold", true), "start": part("start", false)}
	if bars, err := w.measure(t.Context(), options{Only: []string{"alone", "start"}}, of); err != nil || len(bars) != 2 {
		t.Errorf("while the chain advances: %v, %v", bars, err)
	}
	ran = nil
	bars, err := w.measure(t.Context(), options{Only: []string{"alone", "cold", "start"}}, of)
	if !errors.Is(err, gone) || !strings.HasPrefix(err.Error(), "cold: ") || len(bars) != 0 || len(ran) != 2 {
		t.Errorf("the chain ends in cold: %v, %v after %v", bars, err, ran)
	}
}
