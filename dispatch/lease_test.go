package dispatch

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry"
)

// takeLease takes the lease of partner 7 for an owner; 0 means that another owner has it.
func (f *fixture) takeLease(owner uuid.UUID) int64 {
	f.Helper()
	leases := registry.Leases{Queries: f.queries, Kind: registry.PartnerLease, Owner: owner, Period: time.Minute}
	l, err := leases.Take(f.Context(), 7)
	f.check(err)
	if l == nil {
		return 0
	}
	return l.Fence()
}

// lane7 returns a lane of partner 7 that has its lease and does not run.
func (f *fixture) lane7(d *Dispatch) *lane.Lane {
	f.Helper()
	l := lane.New(d.shared, 7)
	d.lanes[7] = l
	if !d.take(f.Context(), l) {
		f.Fatal("another owner has the lease")
	}
	return l
}

// A partner is woken after its last lane was retired and before that lane dropped its
// lease: the new lane keeps its own lease.
func TestLateDropLeavesTheNextLane(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	old := f.lane7(d)
	d.retire(old, true)
	next := f.lane7(d)
	old.Drop(t.Context())
	if f.takeLease(uuid.New()) != 0 {
		t.Error("another dispatcher can take a partner whose lane runs here")
	}
	d.renew(t.Context())
	if !next.Safe() || testutil.ToFloat64(d.shared.Metrics.LostLeases) != 0 {
		t.Error("the new lane has lost its lease")
	}
}

// A failed request for a lease makes the dispatcher unready only until a request succeeds,
// even if another dispatcher has that lease.
func TestLeaseOfAnotherIsNoFault(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	d.health.setProven(time.Now())
	f.exec("INSERT INTO job_lease (kind, key, owner, fence, until) VALUES ('partner', 7, gen_random_uuid(), 1, now() + " +
		"interval '1 hour')")
	f.exec("ALTER TABLE job_lease RENAME TO elsewhere")
	if d.take(t.Context(), lane.New(d.shared, 7)) || d.Ready() == nil {
		t.Errorf("without a table of leases: %v", d.Ready())
	}
	f.exec("ALTER TABLE elsewhere RENAME TO job_lease")
	if d.take(t.Context(), lane.New(d.shared, 7)) || d.Ready() != nil {
		t.Errorf("while another has the lease: %v", d.Ready())
	}
}

// A dispatcher without partners has no lease to take or renew, so earlier failures no longer
// count: it reads, and is ready.
func TestReadyWithNothingToOwn(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	d.health.setProven(time.Now())
	l := f.lane7(d)
	f.exec("ALTER TABLE job_lease RENAME TO elsewhere")
	d.renew(t.Context())
	if d.take(t.Context(), lane.New(d.shared, 8)) {
		t.Fatal("a lease was taken without a table of leases")
	}
	for _, f := range []fault{{"take leases", "8"}, {what: "renew leases"}} {
		if d.health.faults[f] == nil {
			t.Errorf("no fault reports that it cannot %s", f.what)
		}
	}
	f.exec("ALTER TABLE elsewhere RENAME TO job_lease")
	d.retire(l, true)
	d.findWork(t.Context())
	d.renew(t.Context())
	if err := d.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
}

// An idle lane that is woken before it is retired runs on; a lane that has ended does not,
// even if it was woken.
func TestIdleLaneThatIsWokenRunsOn(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	l := f.lane7(d)
	l.Wake()
	if d.retire(l, false) || len(d.allLanes()) != 1 {
		t.Error("a woken lane is retired")
	}
	if !d.retire(l, true) || len(d.allLanes()) != 0 {
		t.Error("a lane that has ended is not retired")
	}
}

// A partner that was released is left to the other dispatchers for only one lease period, since they may be gone.
func TestGivenAwayForTheTimeOfALease(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	l := f.lane7(d)
	d.release(l)
	d.retire(l, true)
	d.wake(7)
	if until := d.released[7]; len(d.allLanes()) != 0 || until.Before(time.Now()) ||
		until.After(time.Now().Add(d.shared.Leases.Period)) {
		t.Errorf("%d lanes, and the partner is left to others until %s", len(d.allLanes()), until)
	}
	d.released[7] = time.Now().Add(-time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wasReleased(7) || len(d.released) != 0 {
		t.Errorf("still released: %v", d.released)
	}
}
