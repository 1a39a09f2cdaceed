package write

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/registry"
)

func newPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return openPool(t, registryOf(t))
}

// registryOf returns the configuration of a database of the test's own.
func registryOf(t *testing.T) registry.Config {
	t.Helper()
	pg := registry.DefaultConfig()
	pg.URL = enginetest.Postgres(t)
	return pg
}

func openPool(t *testing.T, pg registry.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := registry.Open(t.Context(), pg)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// TestLease: one writer has the lease of a generation, another one stands by until it is released, and a holder that
// loses its connection gets an error.
func TestLease(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	first, err := Acquire(t.Context(), pool, 1, func() { t.Error("somebody has a lease that nobody asked for") })
	must(t, err)
	other, err := Acquire(t.Context(), pool, 2, func() { t.Error("generation 2 has a lease of its own") })
	must(t, err)
	other.Release()
	standby := make(chan struct{}, 10)
	got := make(chan *Lease, 1)
	go func() {
		l, err := Acquire(t.Context(), pool, 1, func() { standby <- struct{}{} })
		if err != nil {
			t.Errorf("the second writer: %v", err)
		}
		got <- l
	}()
	<-standby
	asked := map[string]bool{}
	eventually(t, "the standby asks again and again", func() bool {
		asked[standbys(t, pool, "max(query_start)::text")] = true
		return len(asked) > 2
	})
	select {
	case <-got:
		t.Fatal("two writers have the lease")
	default:
	}
	first.Release()
	second := <-got
	if len(standby) > 0 {
		t.Error("the standby was told more than once")
	}
	defer second.Release()
	lost := make(chan error, 1)
	go func() { lost <- second.Watch(t.Context()) }()
	pings := map[string]bool{}
	eventually(t, "its holder looks again and again", func() bool {
		var at string
		must(t, pool.QueryRow(t.Context(), "SELECT coalesce(max(query_start)::text, '') FROM pg_stat_activity WHERE datname = current_database() AND query = '-- ping'").Scan(&at))
		pings[at] = true
		return len(pings) > 3 || len(lost) > 0 // an empty string counts as an error
	})
	if len(lost) > 0 {
		t.Fatalf("a lease that is held counts as lost: %v", <-lost)
	}
	_, err = pool.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = $1 AND objid = 1 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())", int64(leaseClass))
	must(t, err)
	if err := <-lost; !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the session ended, and its holder hears %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.Watch(ended); err != nil {
		t.Errorf("a program that ends hears %v", err)
	}
}

// standbys queries the PostgreSQL sessions that last requested a lease and did not get it.
func standbys(t *testing.T, pool *pgxpool.Pool, what string) (answer string) {
	t.Helper()
	must(t, pool.QueryRow(t.Context(), "SELECT coalesce("+what+", '') FROM pg_stat_activity a WHERE datname = current_database() AND query LIKE 'SELECT pg_try_advisory_lock%'"+
		" AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND locktype = 'advisory' AND granted)").Scan(&answer))
	return answer
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for started := time.Now(); !holds(); {
		if time.Since(started) > patience {
			t.Fatalf("never happened: %s", what)
		}
		must(t, pause(t.Context(), 10*time.Millisecond))
	}
}

// TestNoLease: a standby that is stopped, or that loses PostgreSQL, gets an error and no lease, and leaves no session
// that could get the lease.
func TestNoLease(t *testing.T) {
	t.Parallel()
	for want, end := range map[string]func(pool *pgxpool.Pool, cancel func()){
		"context canceled": func(_ *pgxpool.Pool, cancel func()) { cancel() },
		"ask PostgreSQL for the lease of generation 1": func(pool *pgxpool.Pool, _ func()) {
			standbys(t, pool, "bool_and(pg_terminate_backend(pid))::text")
		},
	} {
		t.Run(want, func(t *testing.T) {
			pool := newPool(t)
			first, err := Acquire(t.Context(), pool, 1, func() {})
			must(t, err)
			defer first.Release()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l, err := Acquire(ctx, pool, 1, func() { end(pool, cancel) })
			if l != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Fatalf("a lease: %v; %v", l != nil, err)
			}
			eventually(t, "its session ends", func() bool { return standbys(t, pool, "nullif(count(*), 0)::text") == "" })
		})
	}
	pooled := registryOf(t)
	openPool(t, pooled) // creates the tables, which is not possible through a pooler
	pooled.Pooled = true
	if l, err := Acquire(t.Context(), openPool(t, pooled), 1, func() {}); l != nil || err == nil || !strings.Contains(err.Error(), "no postgres.pooled") {
		t.Errorf("behind a pooler: %v, %v", l != nil, err)
	}
	pool := newPool(t)
	pool.Close()
	if l, err := Acquire(t.Context(), pool, 1, func() {}); l != nil || err == nil || !strings.HasPrefix(err.Error(), "connect to PostgreSQL for the lease of generation 1: ") {
		t.Errorf("without PostgreSQL: %v, %v", l != nil, err)
	}
}

// TestLeaseOfALostHost: PostgreSQL ends the session of a host that is gone, and with it the lease, within seconds.
func TestLeaseOfALostHost(t *testing.T) {
	t.Parallel()
	l, err := Acquire(t.Context(), newPool(t), 99, func() {})
	must(t, err)
	defer l.Release()
	for setting, want := range map[string]string{"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "20000"} {
		var got string
		must(t, l.conn.QueryRow(t.Context(), "SHOW "+setting).Scan(&got))
		if got != want { // all are 0 if the connection is not TCP
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}
