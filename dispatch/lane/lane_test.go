package lane

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
)

// POSTs from before the breaker opened are still under way when its time is over, and
// take the place of the probe: it comes when they have ended.
func TestOldPostsTakeThePlaceOfTheProbe(t *testing.T) {
	f := newFixture(t).withPostgres()
	f.exec("INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES (gen_random_uuid(), 7, 1, 'deposit.referral', '{}', 'pending')")
	l := f.lane7()
	plan := func() {
		t.Helper()
		_, err := l.plan(t.Context())
		f.check(err)
	}
	plan()
	l.breaker.open(time.Millisecond, time.Hour)
	old := uuid.New()
	l.inFlight[old] = struct{}{}
	if plan(); len(l.queue) > 0 || f.number("SELECT count(*) FROM delivery WHERE state = $1", registry.Parked) != 1 {
		t.Fatalf("while the breaker is open %d are to be sent", len(l.queue))
	}
	l.breaker.open(time.Millisecond, time.Millisecond)
	untilHalfOpen(t, l.breaker)
	if plan(); len(l.queue) > 0 {
		t.Fatal("a probe would go out beside an older POST")
	}
	delete(l.inFlight, old)
	if plan(); len(l.queue) != 1 {
		t.Error("nothing is probed")
	}
}
