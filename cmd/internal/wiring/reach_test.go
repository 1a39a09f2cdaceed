package wiring

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
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
	kafka := "Kafka at kafka:9092 has been failing since 2026-01-02T03:04:05Z (connection refused): check kafka.brokers"
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

// TestReadOnlyPostgresIsAnOutage: a PostgreSQL that responds and rejects writes is reported with what to do, until it is
// writable again.
func TestReadOnlyPostgresIsAnOutage(t *testing.T) {
	pool, err := registry.Open(t.Context(), registry.Config{URL: registrytest.Postgres(t), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	d := &Deps{Config: config.Default(), Pool: pool}
	d.Config.Kafka.Brokers = []string{"127.0.0.1:1"}
	r, err := d.newReach(map[string]Program{"ingest": nil})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e := r.engines[len(r.engines)-1]
	if err := e.ping(t.Context()); e.name != "PostgreSQL" || err != nil {
		t.Fatalf("%s: %v", e.name, err)
	}
	r.engines = []*engine{e}
	set := func(sql string) {
		t.Helper()
		database := pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()
		if _, err := pool.Exec(t.Context(), "SET default_transaction_read_only = off; ALTER DATABASE "+database+" "+sql+
			"; RESET default_transaction_read_only"); err != nil {
			t.Fatal(err)
		}
		pool.Reset()
	}
	set("SET default_transaction_read_only = on")
	e.note(e.ping(t.Context()), time.Now())
	if got := r.Outages(); len(got) != 1 || !strings.Contains(got[0], "let postgres.url lead to the primary") {
		t.Errorf("a read-only PostgreSQL: %q", got)
	}
}
