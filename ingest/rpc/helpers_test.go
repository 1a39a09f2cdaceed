package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// patience is how long a test waits for a condition.
const patience = 60 * time.Second

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

// noPool returns a pool for a single node, which is not compared with others.
func noPool(c clock) *Pool { return &Pool{clock: c, metrics: newCallMetrics(newRegistry())} }

// contextDone returns a context that has ended.
func contextDone(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}

// at returns an element of a list, or a sentence if the list is shorter.
func at[T any](list []T, i int) any {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}
