package access

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/local/localtest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// registered is a registry with partner 7, and a time.
func registered(t *testing.T) (*pgxpool.Pool, time.Time) {
	t.Helper()
	pool, err := registry.Open(t.Context(), registry.Config{URL: localtest.Postgres(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := db.New(pool).CreatePartnerWithID(t.Context(), db.CreatePartnerWithIDParams{ID: 7, Name: "Seven"}); err != nil {
		t.Fatal(err)
	}
	return pool, time.Now()
}

// TestLargeLimitsAreLeased: two instances under many clients at one moment
// grant the limit and not one more.
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
		t.Errorf("%d granted of %d", n, limit)
	}
	// What was drawn and not used in time is not granted later.
	now = now.Add(time.Second)
	use, err := instances[0].spend(t.Context(), rateKey{7, "partner"}, limit)
	if err != nil || !use.ok || use.remaining != limit/60-1 {
		t.Errorf("%+v, %v", use, err)
	}
	now = now.Add(leaseFor)
	if _, ok := instances[0].leases.use(rateKey{7, "partner"}, limit, now); ok {
		t.Error("an old lease is used")
	}
}

// TestBucketsAreDrawnInOneStatement: the same against a count by hand.
func TestBucketsAreDrawnInOneStatement(t *testing.T) {
	pool, _ := registered(t)
	q := db.New(pool)
	if err := q.CreateBucket(t.Context(), db.CreateBucketParams{PartnerID: 7, Policy: "partner"}); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct{ at, want, tokens, full int64 }{{100, 4, 4, 140}, {100, 4, 4, 180}, {100, 4, 2, 200}, {100, 4, 0, 200}, {119, 1, 1, 210}, {119, 1, 0, 210}, {1000, 99, 10, 1100}} {
		got, err := q.DrawTokens(t.Context(), db.DrawTokensParams{At: step.at, PartnerID: 7, Policy: "partner", Want: step.want, BurstNs: 100, IntervalNs: 10})
		if err != nil || got.Tokens != step.tokens || got.FullAt != step.full {
			t.Errorf("step %d: %+v, %v; should be %+v", i, got, err, step)
		}
	}
}
