package dispatch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry"
)

// stealIntake gives the lease of the intake to another owner, for an hour.
func (f *fixture) stealIntake() {
	f.Helper()
	f.exec("UPDATE job_lease SET owner = $1, fence = fence + 1, until = now() + interval '1 hour' WHERE kind = 'intake'",
		uuid.New())
}

// One of several dispatchers reads the topics and backfills new partners. The others are ready, send, and measure what
// is not read. When it stops, another one takes over at once.
func TestOneDispatcherReadsForAll(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	first := f.dispatcher(nil)
	stop := f.run(first)
	f.eventually("the first one reads", func() bool { return first.Ready() == nil && first.Status().Intake })
	second := f.start(nil)
	f.eventually("the second one is ready", func() bool { return second.Ready() == nil })
	f.deposits(7, 0, 50)
	f.deposits(8, 50, 60)
	f.eventually("delivered", f.in(registry.Delivered, 50))
	f.eventually("those of the unknown partner are skipped",
		func() bool { return first.recordCount(recordUnclaimed) == 10 })
	f.partner(8, "")
	f.eventually("backfilled",
		func() bool { return f.in(registry.NoEndpoint, 10)() && f.number("SELECT count(*) FROM adopted") == 2 })
	if n := first.recordCount(recordInserted); n != 50 || second.recordCount(recordInserted) != 0 ||
		second.Status().Intake {
		t.Errorf("%v inserted by the first one, %v by the second", n, second.recordCount(recordInserted))
	}
	stop()
	f.deposits(7, 100, 150)
	f.eventually("delivered by the second one", f.in(registry.Delivered, 100))
	if !second.Status().Intake || second.Ready() != nil {
		t.Errorf("the second one reads: %v; %v", second.Status().Intake, second.Ready())
	}
	if n := len(r.got()); n != 100 {
		t.Errorf("%d requests for 100 events", n)
	}
}

// A dispatcher that does not read the topics measures what is not read, and is not ready if it could not read.
func TestStandbyOfTheIntake(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	d := f.dispatcher(nil)
	_, err := d.intakes.Take(t.Context(), 0)
	f.check(err)
	f.stealIntake()
	f.deposits(7, 0, 20) // with as many of an aborted transaction, and two markers
	f.run(d)
	f.eventually("ready, with a lag", func() bool { return d.Ready() == nil && d.Status().LagRecords == 42 })
	f.exec("ALTER TABLE position RENAME TO elsewhere")
	f.eventually("not ready", func() bool { return strings.Contains(d.Status().Reason, "create the positions of") })
	f.exec("ALTER TABLE elsewhere RENAME TO position")
	f.eventually("ready again", func() bool { return d.Ready() == nil })
	f.exec("UPDATE job_lease SET until = now() WHERE kind = 'intake'") // its holder died
	f.eventually("all is read", func() bool { return d.recordCount(recordUnclaimed) == 20 && d.Status().LagRecords == 0 })
}

// A dispatcher whose lease was taken stops reading, without a fault.
func TestIntakeThatAnotherTookOver(t *testing.T) {
	f := newFixture(t)
	d := f.start(func(d *Dispatch) { d.intakes.Period = 300 * time.Millisecond })
	f.eventually("it reads", func() bool { return d.Ready() == nil && d.Status().Intake })
	before := len(f.logged.String()) // the first attempts to take a lease as short as this may fail
	f.stealIntake()
	f.eventually("it no longer reads", func() bool { return !d.Status().Intake })
	f.eventually("it stands by", func() bool {
		return strings.Contains(f.logged.String(), "another dispatcher reads the referral topics")
	})
	f.deposits(7, 0, 5)
	f.eventually("it measures what is not read", func() bool { return d.Status().LagRecords > 0 && d.Ready() == nil })
	if d.recordCount(recordUnclaimed) != 0 ||
		strings.Contains(f.logged.String()[before:], "cannot read the referral topics") {
		t.Errorf("%v records were read; %s", d.recordCount(recordUnclaimed), f.logged)
	}
}

// A dispatcher that was suspended for longer than its lease, with records that it has read, and then accepts them,
// writes nothing: its successor has moved the position in the same transaction as its deliveries.
func TestSuspendedIntake(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	f.partner(7, "")
	f.deposits(7, 0, 20)
	suspended, successor := f.dispatcher(nil), f.dispatcher(nil)
	suspended.intakes.Period = time.Millisecond
	old, err := suspended.intakes.Take(t.Context(), 0)
	f.check(err)
	r := f.reader(suspended)
	var batches []readBatch
	f.eventually("records are read", func() bool {
		var err error
		batches, err = r.batches(r.client.PollRecords(t.Context(), pollRecords))
		f.check(err)
		return len(batches) > 0
	})
	f.run(successor)
	f.eventually("the successor has read all", func() bool { return successor.recordCount(recordInserted) == 20 })
	if old.Safe() {
		t.Error("the lease of the suspended dispatcher still counts as held")
	}
	if err := suspended.accept(t.Context(), batches); !errors.Is(err, errMoved) {
		t.Errorf("the suspended dispatcher resumes: %v", err)
	}
	if err := old.Watch(t.Context()); !errors.Is(err, registry.ErrLeaseLost) {
		t.Errorf("after the lost lease: %v", err)
	}
	old.Drop(t.Context())
	f.contiguous(7, 20)
	if n := f.number("SELECT count(*) FROM job_lease WHERE kind = 'intake' AND owner = $1 AND until > now()",
		successor.owner); n != 1 {
		t.Error("the successor has lost its lease")
	}
}

// A dispatcher that cannot read the topics drops the lease, so that one that can takes it.
func TestIntakeThatFailsIsLeftToOthers(t *testing.T) {
	f := newFixture(t)
	f.deposits(7, 0, 5)
	lost := f.start(func(d *Dispatch) { d.config.ChainID = 1 }) // whose topics do not exist
	f.eventually("it cannot read", func() bool { return strings.Contains(lost.Status().Reason, "does not exist yet") })
	sound := f.start(nil)
	f.eventually("the other one reads",
		func() bool { return sound.recordCount(recordUnclaimed) == 5 && sound.Ready() == nil })
	if lost.Ready() == nil {
		t.Error("ready without topics")
	}
}

// A broker that does not respond is a failure after a while, so that the lease is dropped.
func TestIntakeThatHangs(t *testing.T) {
	t.Parallel()
	f, broker := newFixtureWithBroker(t)
	r := f.reader(f.dispatcher(nil))
	broker.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		return nil, errors.New("away"), true
	})
	r.d.timing.database = 100 * time.Millisecond
	if _, err := r.findTopics(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "list the referral topics: ") {
		t.Errorf("topics of a broker that does not respond: %v", err)
	}
}

// A lane sends at once what another dispatcher has inserted: it does not wait for the next scan.
func TestLaneOfAnotherDispatcherIsWoken(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	rare := func(d *Dispatch) { d.timing.scan, d.shared.Timing.Scan = time.Hour, time.Hour }
	sender := f.dispatcher(rare)
	_, err := sender.intakes.Take(t.Context(), 0)
	f.check(err)
	f.stealIntake()
	f.exec("INSERT INTO delivery (event_id, partner_id, type, body, state) VALUES (gen_random_uuid(), 7, " +
		"'webhook.test', '{}', 'pending')")
	f.run(sender)
	f.eventually("its lane has sent something", f.in(registry.Delivered, 1))
	f.eventually("it listens", func() bool {
		return f.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'") == 1
	})
	reader := f.dispatcher(nil)
	reader.lanes[7] = lane.New(reader.shared, 7) // which does not run
	f.check(reader.accept(t.Context(), []readBatch{f.batch(0, encode(t, deposit(t, 7, 0)))}))
	f.eventually("the other dispatcher sends it", f.in(registry.Delivered, 2))
	if n := f.number("SELECT count(*) FROM job_lease WHERE kind = 'partner' AND owner = $1", sender.owner); n != 1 {
		t.Error("the partner has changed hands")
	}
}
