package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
)

// blocked starts a dispatcher's backfill of partner 7, which waits for a lock until release.
func (f *fixture) blocked(d *Dispatch) (done chan error, release func()) {
	f.Helper()
	before := f.dispatcher(nil)
	stop := f.run(before)
	f.deposits(7, 0, 50)
	f.eventually("all are skipped", func() bool { return before.recordsWere(recordUnclaimed) == 50 })
	stop()
	f.partner(7, "")
	holder := f.hold("LOCK TABLE stream IN SHARE ROW EXCLUSIVE MODE")
	done = make(chan error, 1)
	go func() { done <- d.backfillUnderLease(f.Context()) }()
	f.eventually("the backfill waits", func() bool {
		return f.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'stream'::regclass") > 0
	})
	return done, func() { f.check(holder.Rollback(f.Context())) }
}

// Only one of several dispatchers reads the topics for a new partner, however long that takes. The others read
// nothing, even afterwards.
func TestBackfillIsDoneByOneDispatcher(t *testing.T) {
	f := newFixture(t)
	d, other := f.dispatcher(func(d *Dispatch) { d.shared.Lease = 300 * time.Millisecond }), f.dispatcher(nil)
	d.timing.database = time.Minute
	done, release := f.blocked(d)
	until := f.text("SELECT until::text FROM backfill_lease")
	f.eventually("the lease is renewed past its first end", func() bool {
		return f.number("SELECT count(*) FROM backfill_lease WHERE now() > $1::timestamptz AND until > now()", until) == 1
	})
	other.config.ChainID = 1 // whose topics do not exist, so that reading them fails
	f.check(other.backfillUnderLease(t.Context()))
	release()
	f.check(<-done)
	f.check(other.backfillUnderLease(t.Context()))
	if n := f.states()[registry.NoEndpoint]; n != 50 || f.number("SELECT count(*) FROM adopted") != 1 {
		t.Errorf("%d earlier events", n)
	}
	if n := f.number("SELECT count(*) FROM backfill_lease"); n != 0 {
		t.Error("the lease was not dropped after the backfill")
	}
}

// A dispatcher that lost the lease stops reading without a fault; the new holder does the rest.
func TestBackfillThatAnotherTookOver(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(func(d *Dispatch) { d.shared.Lease = 300 * time.Millisecond })
	d.timing.database = time.Minute
	done, release := f.blocked(d)
	f.exec("UPDATE backfill_lease SET owner = $1, until = now() + interval '1 hour'", uuid.New())
	f.check(<-done)
	release()
	if f.number("SELECT count(*) FROM adopted") != 0 || f.number("SELECT count(*) FROM backfill_lease") != 1 {
		t.Error("the partner is backfilled, or the other dispatcher lost its lease")
	}
	f.exec("UPDATE backfill_lease SET until = now()") // the other dispatcher died
	f.check(d.backfillUnderLease(t.Context()))
	if n := f.states()[registry.NoEndpoint]; n != 50 {
		t.Errorf("%d earlier events", n)
	}
}

// A dispatcher that cannot do the backfill drops the lease at once, so that another one can.
func TestBackfillThatFailsIsLeftToOthers(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	f.partner(7, "")
	f.deposits(7, 0, 5)
	lost, sound := f.dispatcher(nil), f.dispatcher(nil)
	f.readUpTo(sound, 1000)
	lost.config.ChainID = 1
	if err := lost.backfillUnderLease(t.Context()); err == nil || !strings.Contains(err.Error(), "does not exist yet") {
		t.Errorf("without topics: %v", err)
	}
	f.check(sound.backfillUnderLease(t.Context()))
	if n := f.states()[registry.NoEndpoint]; n != 5 {
		t.Errorf("%d earlier events", n)
	}
	f.exec("ALTER TABLE backfill_lease RENAME TO elsewhere")
	f.exec("DELETE FROM adopted")
	if err := sound.backfillUnderLease(t.Context()); err == nil || !strings.Contains(err.Error(), "take the lease of the backfill") {
		t.Errorf("without the lease's table: %v", err)
	}
}
