package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/registry"
)

// It is not enough that nothing is pending: every event must have been delivered and have arrived.
func TestDelivered(t *testing.T) {
	c := registry.DefaultConfig()
	c.URL = enginetest.Postgres(t)
	pool, err := registry.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	b := &benchmark{world: &partners.World{Stack: stack.Stack{Pool: pool}},
		receiver: &receiver{expected: map[uuid.UUID]*expectation{}}}
	const id, n = 1, 3
	if _, err := partners.Make(t.Context(), pool, id, "partner", "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if err := b.park(t.Context(), id, n, "now()"); err != nil {
		t.Fatal(err)
	}
	if err := b.expectParked(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for _, e := range b.receiver.expected {
		if len(e.body) != 700 || e.appended.After(time.Now()) {
			t.Errorf("the expected events are %+v", e)
		}
	}
	if len(b.receiver.expected) != n {
		t.Errorf("%d events are expected, want %d", len(b.receiver.expected), n)
	}
	b.receiver.seen.n = n
	is := func(state, want string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), "UPDATE delivery SET state = $1", state); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
		defer cancel()
		if err := b.delivered(ctx, id, n); (want == "") != (err == nil) || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("all are %s: %v, want %q", state, err, want)
		}
	}
	is(registry.Delivered, "")
	is(registry.Failed, "of 3 events that waited 0 are delivered")
	is(registry.NoEndpoint, "of 3 events that waited 0 are delivered")
	b.receiver.seen.n = n - 1
	is(registry.Delivered, "2 arrived")
	b.receiver.seen.n, b.receiver.fault = n, errors.New("it has another body")
	is(registry.Delivered, "it has another body")
	is(registry.Parked, "it has another body")
}
