package wiring

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/registry"
)

// TestOutages: an outage names the engine, since when, why and what to do, from the first ping that fails to the next
// one that succeeds. deploy/check/e2e tests it with all programs and engines.
func TestOutages(t *testing.T) {
	var away atomic.Bool
	r := &Reach{}
	r.add("Kafka", "kafka:9092", "check kafka.brokers", func(context.Context) error {
		if away.Load() {
			return errors.New("connection\n\trefused")
		}
		return nil
	})
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r.nodes = func() []registry.EndpointStatus {
		return []registry.EndpointStatus{{Name: "https://a", LastError: "over"},
			{Name: "https://b", LastError: "no route", FailingSince: &since}}
	}
	node := "the node at https://b has been failing since 2026-01-02T03:04:05Z (no route): check chain.rpc and that " +
		"the node is up"
	if got := r.Outages(); !slices.Equal(got, []string{node}) {
		t.Errorf("before the first ping: %q", got)
	}
	e := r.engines[0]
	e.note(nil, since)
	for range 2 { // the time is that of the last response, not of the last ping
		e.note(errors.New("connection\n\trefused"), since.Add(time.Hour))
	}
	kafka := "Kafka at kafka:9092 has not responded since 2026-01-02T03:04:05Z (connection refused): check kafka.brokers"
	if got := r.Outages(); !slices.Equal(got, []string{kafka, node}) {
		t.Errorf("an engine and a node that do not respond: %q", got)
	}

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	named := func() bool { return strings.HasPrefix(r.Outages()[0], "Kafka at ") }
	wait.For(t, "the engine responds", func() bool { return !named() })
	away.Store(true)
	wait.For(t, "the engine does not respond", named)
	away.Store(false)
	wait.For(t, "the engine responds again", func() bool { return !named() })
	stop()
	<-done
	r.Close()
}
