package dispatch

import (
	"net/http"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// TestBehindPgBouncer lets two dispatchers share a few PostgreSQL sessions that change hands
// after each transaction. Every event is delivered, including retries and replays.
func TestBehindPgBouncer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PgBouncer")
	}
	f := newFixture(t)
	url := enginetest.PgBouncer(t, f.url)
	r := f.receiver(func(w http.ResponseWriter, n, ofEvent int) {
		if ofEvent == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	const each = 20
	for id := int64(7); id < 10; id++ {
		f.partner(id, r.url)
		f.deposits(uint32(id), 0, each)
	}
	for range 2 {
		f.start(func(d *Dispatch) {
			pool, err := registry.Open(f.Context(), registry.Config{URL: url, MaxConns: 10, Pooled: true})
			f.check(err)
			f.Cleanup(pool.Close)
			d.connect(pool)
		})
	}
	f.eventually("all are delivered", f.in(registry.Delivered, 3*each))
	_, err := f.queries.CreateReplayRange(
		f.Context(), db.CreateReplayRangeParams{PartnerID: 7, FirstSequence: 1, LastSequence: each},
	)
	f.check(err)
	f.eventually("partner 7 gets its events again", func() bool { return len(r.got()) >= 7*each })
	f.eventually("all are delivered again", f.in(registry.Delivered, 3*each))
	if n := f.number("SELECT count(*) FROM delivery WHERE sequence IS NULL OR sequence > $1", each); n != 0 {
		t.Errorf("%d deliveries have no sequence in their partner's stream", n)
	}
}
