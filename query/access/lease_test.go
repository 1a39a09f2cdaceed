package access

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// registered returns a registry that contains partner 7, and a time.
func registered(t *testing.T) (*pgxpool.Pool, time.Time) {
	t.Helper()
	pool, err := registry.Open(t.Context(), registry.Config{URL: registrytest.Postgres(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := partners.Make(t.Context(), pool, 7, "Seven", ""); err != nil {
		t.Fatal(err)
	}
	return pool, time.Now()
}

// TestLargeLimitsAreLeased: two instances under concurrent load grant exactly the limit.
func TestLargeLimitsAreLeased(t *testing.T) {
	pool, now := registered(t)
	var instances []*Access
	for range 2 {
		a := New(pool, 120, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
		a.Now = func() time.Time { return now }
		instances = append(instances, a)
	}
	const limit = 30_000
	var granted atomic.Int64
	var group sync.WaitGroup
	for _, i := range instances {
		for range 3 {
			group.Go(func() {
				for range limit {
					use, err := i.spend(t.Context(), rateKey{7, "partner"}, limit)
					if err != nil {
						t.Error(err)
						return
					}
					if !use.ok {
						if use.retry <= 0 || use.remaining != 0 {
							t.Errorf("%+v", use)
						}
						return
					}
					granted.Add(1)
				}
			})
		}
	}
	group.Wait()
	if n := granted.Load(); n != limit {
		t.Errorf("%d of %d granted", n, limit)
	}
	// Later in the same minute nothing is granted either; the next minute has the full limit again. Requests that
	// were drawn and not used in time are not granted later.
	now = now.Add(59 * time.Second)
	use, err := instances[1].spend(t.Context(), rateKey{7, "partner"}, limit)
	if err != nil || use.ok || use.retry != time.Second {
		t.Errorf("%+v, %v", use, err)
	}
	now = now.Add(time.Second)
	use, err = instances[0].spend(t.Context(), rateKey{7, "partner"}, limit)
	if err != nil || !use.ok || use.remaining != limit-1 || use.reset != time.Minute {
		t.Errorf("%+v, %v", use, err)
	}
	now = now.Add(leaseFor)
	if _, ok := instances[0].leases.take(rateKey{7, "partner"}, limit, now); ok {
		t.Error("an old lease is used")
	}
}

// TestLeaseEndsWithItsWindow: requests drawn in one window are not granted in the next, which has the full limit
// again.
func TestLeaseEndsWithItsWindow(t *testing.T) {
	pool, now := registered(t)
	a := New(pool, 120, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	a.Now = func() time.Time { return now }
	const limit = 6000
	spend := func() quota {
		t.Helper()
		use, err := a.spend(t.Context(), rateKey{7, "partner"}, limit)
		if err != nil {
			t.Fatal(err)
		}
		return use
	}
	spend()
	now = now.Add(window - leaseFor/2)
	for range 2 { // the second is granted from what the first has drawn
		if use := spend(); !use.ok || use.reset != leaseFor/2 {
			t.Errorf("%+v", use)
		}
	}
	now = now.Add(leaseFor / 2)
	granted := 0
	for spend().ok {
		granted++
	}
	if granted != limit {
		t.Errorf("%d of %d granted", granted, limit)
	}
}

// TestBucketsAreDrawnInOneStatement compares the SQL statement with a count by hand, also for instances whose clocks
// are behind or ahead.
func TestBucketsAreDrawnInOneStatement(t *testing.T) {
	pool, _ := registered(t)
	q := db.New(pool)
	if err := q.CreateBucket(t.Context(), db.CreateBucketParams{PartnerID: 7, Policy: "partner"}); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct{ at, want, quota, tokens, used, end int64 }{
		{1000, 4, 10, 4, 4, 1100}, {1000, 4, 10, 4, 8, 1100}, {1099, 4, 10, 2, 10, 1100}, {1099, 4, 10, 0, 10, 1100},
		{1099, 4, 12, 2, 12, 1100}, {1099, 1, 3, 0, 12, 1100},
		{1100, 4, 10, 4, 4, 1200}, {1050, 4, 10, 4, 8, 1150}, {9000, 1, 10, 1, 1, 9100}, {1160, 1, 10, 1, 2, 1260},
		{1260, 1, 10, 1, 1, 1360},
	} {
		got, err := q.DrawTokens(t.Context(),
			db.DrawTokensParams{At: step.at, PartnerID: 7, Policy: "partner", Want: step.want, Quota: step.quota, WindowNs: 100})
		if err != nil || got.Tokens != step.tokens || got.Used != step.used || got.WindowEnd != step.end {
			t.Errorf("step %d: %+v, %v; should be %+v", i, got, err, step)
		}
	}
}

// draws counts the statements that draw tokens from PostgreSQL.
type draws struct{ n atomic.Int64 }

func (d *draws) TraceQueryStart(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	if strings.Contains(query.SQL, "name: DrawTokens ") {
		d.n.Add(1)
	}
	return ctx
}
func (d *draws) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestRefusalsAreRemembered: requests over a limit draw at most once a second, however many there are, and occupy one
// connection at most; a new limit applies at once.
func TestRefusalsAreRemembered(t *testing.T) {
	pool, now := registered(t)
	var drawn draws
	config := pool.Config()
	config.ConnConfig.Tracer = &drawn
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	a := New(pool, 120, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	a.Now = func() time.Time { return now }
	const limit = 3
	spend := func(limit int) bool {
		use, err := a.spend(t.Context(), rateKey{7, "partner"}, limit)
		if err != nil {
			t.Error(err)
		}
		if !use.ok && (use.remaining != 0 || use.retry != use.reset || use.retry <= 0) {
			t.Errorf("%+v", use)
		}
		return use.ok
	}
	granted := func(limit, of int) int {
		var n atomic.Int64
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				for range of / 10 {
					if spend(limit) {
						n.Add(1)
					}
				}
			})
		}
		group.Wait()
		return int(n.Load())
	}
	for second, want := range []struct{ granted, draws int }{{limit, 1 + limit + 1}, {0, 1}, {0, 1}, {0, 1}} {
		// the first finds no bucket
		drawn.n.Store(0)
		if n := granted(limit, 1000); n != want.granted || drawn.n.Load() != int64(want.draws) {
			t.Errorf("second %d: %d granted of 1,000, after %d draws", second, n, drawn.n.Load())
		}
		now = now.Add(leaseFor)
	}
	if !spend(limit + 1) {
		t.Error("a higher limit does not apply at once")
	}
	now = now.Add(window - 4*leaseFor - leaseFor/2)
	if spend(limit) {
		t.Error("a request is granted at the end of the window")
	}
	if until := a.leases.held[rateKey{7, "partner"}].until; !strings.Contains(until.String(), " m=") {
		t.Errorf("a refusal lasts until %s, a time that changes with the machine's clock", until)
	}
	now = now.Add(leaseFor / 2)
	if !spend(limit) {
		t.Error("a refusal lasts longer than its window")
	}
}
