package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// patience is how long a test waits for a condition.
const patience = 60 * time.Second

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

// counterValue reads a counter or gauge.
func counterValue(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	return testutil.ToFloat64(c)
}

// contextDone is a context that has ended.
func contextDone(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}

// at is an element of a list, or a sentence where it is shorter.
func at[T any](list []T, i int) any {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}
