package query

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/schemas/registry/db"
)

// another is a second instance on the same engines and with the same clock.
func (w *world) another() *world {
	w.t.Helper()
	other := *w
	other.reg = prometheus.NewRegistry()
	other.Query = New(w.cfg, w.chainID, w.readModel, w.pool, acceptHTTPS, other.reg, other.reg, slog.New(slog.NewTextHandler(w.log, nil)))
	other.Query.now = w.clock.now
	other.handle = other.Handler()
	other.look()
	return &other
}

// TestLimitHoldsOverInstances: a partner's requests count together, wherever
// they arrive, and the headers say so.
func TestLimitHoldsOverInstances(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.PartnerRateLimit = 5 })
	instances := []*world{w, w.another()}
	key := w.partner(7, "Seven")
	const path = "/api/v1/partner/router"
	for n := 4; n >= 0; n-- {
		r := instances[n%2].get(path, "x-api-key", key)
		r.data(t)
		same(t, "remaining", r.Header().Get("X-RateLimit-Remaining"), fmt.Sprint(n))
		same(t, "RateLimit", r.Header().Get("RateLimit"), fmt.Sprintf(`"partner";r=%d;t=%d`, n, 12*(5-n)))
	}
	for _, i := range instances {
		r := i.get(path, "x-api-key", key)
		r.failed(t, 429, "RATE_LIMITED")
		same(t, "Retry-After", r.Header().Get("Retry-After"), "12")
	}
	w.clock.add(12 * time.Second)
	instances[1].get(path, "x-api-key", key).data(t)
	instances[0].get(path, "x-api-key", key).failed(t, 429, "RATE_LIMITED")

	// What changes an endpoint has a limit of its own, shared likewise.
	w.exec(`UPDATE partner SET rate_limit = 1000 WHERE id = 7`)
	w.clock.add(time.Minute)
	for n := range webhookPostsPerMinute + 1 {
		r := instances[n%2].do("POST", webhooksPath+"/test", nil, "x-api-key", key)
		if n < webhookPostsPerMinute {
			r.failed(t, 404, "NOT_FOUND") // there is no URL yet
		} else {
			r.failed(t, 429, "RATE_LIMITED")
		}
	}
}

// TestRevocationReachesEveryInstance within a second of each one's clock.
func TestRevocationReachesEveryInstance(t *testing.T) {
	w := newFixture(t)
	instances := []*world{w, w.another()}
	key := w.partner(7, "Seven")
	for _, i := range instances {
		i.get("/api/v1/partner/router", "x-api-key", key).data(t)
	}
	w.exec(`UPDATE api_key SET revoked_at = now() WHERE partner_id = 7`)
	w.clock.add(time.Second)
	for _, i := range instances {
		i.get("/api/v1/partner/router", "x-api-key", key).failed(t, 401, "UNAUTHORIZED")
	}
}

// TestLargeLimitsAreLeased: two instances under many clients at one moment
// grant the limit and not one more.
func TestLargeLimitsAreLeased(t *testing.T) {
	w := newFixture(t)
	w.partner(7, "Seven")
	const limit = 30_000
	var granted atomic.Int64
	var group sync.WaitGroup
	for _, i := range []*world{w, w.another()} {
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
	w.clock.add(time.Second)
	use, err := w.spend(t.Context(), rateKey{7, "partner"}, limit)
	if err != nil || !use.ok || use.remaining != limit/60-1 {
		t.Errorf("%+v, %v", use, err)
	}
	w.clock.add(leaseFor)
	if _, ok := w.leases.use(rateKey{7, "partner"}, limit, w.clock.now()); ok {
		t.Error("an old lease is used")
	}
}

// TestBucketsAreDrawnInOneStatement: the same against a count by hand.
func TestBucketsAreDrawnInOneStatement(t *testing.T) {
	w := newFixture(t)
	w.partner(7, "Seven")
	q := db.New(w.pool)
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
