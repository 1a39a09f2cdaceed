package write

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/registry"
)

func newPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pg := registry.DefaultConfig()
	pg.URL = enginetest.Postgres(t)
	pool, err := registry.Open(t.Context(), pg)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// TestLease: one writer has the lease of a generation, another one stands by until
// it is given back, and whoever loses the connection hears of it.
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

// TestLeaseOfALostHost: PostgreSQL gives up the session of a host that is gone,
// and with it the lease, within seconds.
func TestLeaseOfALostHost(t *testing.T) {
	t.Parallel()
	l, err := Acquire(t.Context(), newPool(t), 99, func() {})
	must(t, err)
	defer l.Release()
	for setting, want := range map[string]string{"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "20000"} {
		var got string
		must(t, l.conn.QueryRow(t.Context(), "SHOW "+setting).Scan(&got))
		if got != want { // all are 0 where it is not TCP
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}
