package dispatch

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry/db"
)

// takeLease takes the lease of partner 7 for an owner; 0 means that another owner has it.
func (f *fixture) takeLease(owner uuid.UUID) int64 {
	f.Helper()
	fence, err := f.queries.TakeLease(f.Context(), db.TakeLeaseParams{PartnerID: 7, Owner: owner, Milliseconds: 60_000})
	if !errors.Is(err, pgx.ErrNoRows) {
		f.check(err)
	}
	return fence
}

// A fence names one lease: no operation with an older fence, however late, affects a newer
// lease of the same owner.
func TestFenceNamesOneLease(t *testing.T) {
	f := newFixture(t)
	one, two := uuid.New(), uuid.New()
	drop := func(fence int64) {
		t.Helper()
		f.check(f.queries.DropLease(t.Context(), db.DropLeaseParams{Owner: one, PartnerID: 7, Fence: fence}))
	}
	renewed := func(fence int64) bool {
		t.Helper()
		kept, err := f.queries.RenewLeases(
			t.Context(), db.RenewLeasesParams{Owner: one, PartnerIds: []int64{7}, Fences: []int64{fence}, Milliseconds: 60_000},
		)
		f.check(err)
		return len(kept) == 1
	}
	first, second := f.takeLease(one), f.takeLease(one)
	if second <= first {
		t.Fatalf("the fence is %d, and then %d for the next lease", first, second)
	}
	drop(first)
	if f.takeLease(two) != 0 {
		t.Fatal("dropping the first lease dropped the second")
	}
	if renewed(first) || !renewed(second) {
		t.Error("the first lease is renewed instead of the second")
	}
	drop(second)
	if renewed(second) {
		t.Error("a dropped lease is renewed")
	}
	if third := f.takeLease(two); third <= second {
		t.Errorf("the fence is %d, and then %d for the next owner", second, third)
	}
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

// The leases are renewed while a lane drops its own: the dropped lease stays free for other
// dispatchers, and no lease counts as lost.
func TestLateRenewLeavesADroppedLease(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	old := f.lane7(d)
	seen := d.allLanes()
	d.retire(old, true)
	old.Drop(t.Context())
	f.check(d.renewLeases(t.Context(), seen))
	if n := testutil.ToFloat64(d.shared.Metrics.LostLeases); n != 0 {
		t.Errorf("%v leases were lost", n)
	}
	if f.takeLease(uuid.New()) == 0 {
		t.Error("no lane sends to the partner, and no other dispatcher can")
	}
}

// A failed request for a lease makes the dispatcher unready only until a request succeeds,
// even if another dispatcher has that lease.
func TestLeaseOfAnotherIsNoFault(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	d.health.prove(time.Now())
	f.exec("INSERT INTO lease (partner_id, owner, fence, until) VALUES (7, gen_random_uuid(), 1, now() + interval '1 hour')")
	f.exec("ALTER TABLE lease RENAME TO lease_elsewhere")
	if d.take(t.Context(), lane.New(d.shared, 7)) || d.Ready() == nil {
		t.Errorf("without a table of leases: %v", d.Ready())
	}
	f.exec("ALTER TABLE lease_elsewhere RENAME TO lease")
	if d.take(t.Context(), lane.New(d.shared, 7)) || d.Ready() != nil {
		t.Errorf("while another has the lease: %v", d.Ready())
	}
}

// A dispatcher without partners has no lease to take or renew, so earlier failures no longer
// count: it reads, and is ready.
func TestReadyWithNothingToOwn(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	d.health.prove(time.Now())
	l := f.lane7(d)
	f.exec("ALTER TABLE lease RENAME TO lease_elsewhere")
	d.renew(t.Context())
	if d.take(t.Context(), lane.New(d.shared, 8)) {
		t.Fatal("a lease was taken without a table of leases")
	}
	for _, f := range []fault{{"take leases", "8"}, {what: "renew leases"}} {
		if d.health.faults[f] == nil {
			t.Errorf("no fault reports that it cannot %s", f.what)
		}
	}
	f.exec("ALTER TABLE lease_elsewhere RENAME TO lease")
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

// A partner that was given away is left to the other dispatchers for only one lease period, since they may be gone.
func TestGivenAwayForTheTimeOfALease(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	l := f.lane7(d)
	d.giveAway(l)
	d.retire(l, true)
	d.wake(7)
	if until := d.yielded[7]; len(d.allLanes()) != 0 || until.Before(time.Now()) || until.After(time.Now().Add(d.shared.Lease)) {
		t.Errorf("%d lanes, and the partner is left to others until %s", len(d.allLanes()), until)
	}
	d.yielded[7] = time.Now().Add(-time.Millisecond)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.givenAway(7) || len(d.yielded) != 0 {
		t.Errorf("still given away: %v", d.yielded)
	}
}
