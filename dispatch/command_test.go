package dispatch

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

func (f *fixture) done(command int64) func() bool {
	return func() bool {
		return f.number("SELECT count(*) FROM command WHERE id = $1 AND done_at IS NOT NULL", command) == 1
	}
}

// command inserts a command as query does: with the id of a new event for a test, and
// with the id of the partner's first event for a replay.
func (f *fixture) command(partner int64, kind string) int64 {
	f.Helper()
	return f.number(`INSERT INTO command (partner_id, kind, event_id) SELECT $1, $2, CASE $2 WHEN 'test' THEN gen_random_uuid()
		ELSE (SELECT event_id FROM delivery WHERE partner_id = $1 ORDER BY sequence LIMIT 1) END RETURNING id`, partner, kind)
}

// While a replay fails because another transaction holds its delivery, neither the
// commands of other partners nor later ones of the same partner wait for it. It is
// retried with pauses, and succeeds once the lock is gone.
func TestFailingCommandDoesNotBlockOthers(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	f.partner(8, r.url)
	d := f.start(func(d *Dispatch) { d.timing.command = 200 * time.Millisecond })
	f.deposits(7, 0, 1)
	f.deposits(8, 1, 2)
	f.eventually("delivered", f.in(registry.Delivered, 2))
	holder := f.hold("SELECT FROM delivery WHERE partner_id = 7 FOR UPDATE")

	stuck := f.command(7, "replay")
	f.eventually("the command fails", func() bool { return testutil.ToFloat64(d.metrics.failedTurns) >= 1 })
	f.eventually("its retry is scheduled", func() bool {
		return f.number(
			"SELECT count(*) FROM command WHERE id = $1 AND due_at >= created_at + interval '1 second'", stuck,
		) == 1
	})
	f.exec("UPDATE command SET due_at = created_at") // it is always due first
	for _, c := range []int64{f.command(8, "replay"), f.command(7, "test")} {
		f.eventually("another partner's command is done", f.done(c))
	}
	f.eventually("both are sent", func() bool { return len(r.got()) == 4 })
	f.eventually("ready", func() bool { return d.Ready() == nil })
	if f.done(stuck)() {
		t.Error("the failing command counts as done")
	}
	if !strings.Contains(f.logged.String(), "statement timeout") {
		t.Errorf("the server did not end the statement, so it may still have run when it was postponed:\n%s", f.logged)
	}

	f.check(holder.Rollback(t.Context()))
	f.eventually("the command is done", f.done(stuck))
	f.eventually("the command's event is sent", func() bool { return len(r.got()) == 5 })
}

// After a partner's command failed, its other commands wait for the next round, because
// they may fail as slowly. Those of other partners do not.
func TestFailingCommandDelaysItsPartner(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "")
	f.partner(8, "")
	f.refuse("INSERT ON delivery", "NEW.partner_id = 7")
	fails, waits, other := f.command(7, "test"), f.command(7, "test"), f.command(8, "test")
	d := f.dispatcher(nil)
	d.stopping = true // without lanes
	f.check(d.runDueCommands(t.Context()))
	if n := testutil.ToFloat64(d.metrics.failedTurns); n != 1 {
		t.Errorf("%v runs failed in one round", n)
	}
	if n := f.number("SELECT count(*) FROM command WHERE id = $1 AND due_at > now()", fails); n != 1 {
		t.Error("the failed command is not postponed")
	}
	if n := f.number("SELECT count(*) FROM command WHERE id = $1 AND due_at <= now()", waits); n != 1 || !f.done(other)() {
		t.Errorf("the same partner's next command waits: %v, another partner's is done: %v", n == 1, f.done(other)())
	}
}

// Commands that together take longer than the deadline of one are all run, because each has
// its own deadline.
func TestCommandsTogetherBeyondTheDeadline(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(ok)
	const commands = 20
	f.partner(7, r.url)
	d := f.start(func(d *Dispatch) { d.timing.command = 500 * time.Millisecond })
	f.delivers(0, commands)
	f.exec(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END $$`)
	f.exec("CREATE TRIGGER slow BEFORE UPDATE ON delivery FOR EACH ROW WHEN (OLD.state = 'delivered') EXECUTE FUNCTION " +
		"slow()")
	f.exec(`INSERT INTO command (partner_id, kind, first_sequence, last_sequence) SELECT 7, 'replay-range', n, n FROM generate_series(1, $1::bigint) n`, commands)
	f.eventually("done", func() bool { return f.number("SELECT count(*) FROM command WHERE done_at IS NULL") == 0 })
	f.eventually("sent again",
		func() bool { return len(r.got()) == 2*commands && f.states()[registry.Delivered] == commands })
	if n := f.number("SELECT sum(deliveries) FROM command"); n != commands {
		t.Errorf("the commands report %d deliveries", n)
	}
	if n := testutil.ToFloat64(d.metrics.failedTurns); n > commands/2 {
		t.Errorf("%v runs failed", n)
	}
}

// A partner whose receiver is down may have only so many unfinished test events, which stay until the receiver
// responds. A command beyond them is done and makes none. Test events that are finished, and those of other partners,
// do not count.
func TestUnfinishedTestsAreBounded(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	f.partner(8, r.url)
	f.exec(`INSERT INTO breaker (partner_id, endpoint_version, url, state, opened_at, open_until, open_ms)
		VALUES (7, 1, $1, 'open', now(), now() + interval '1 hour', 3600000)`, r.url)
	f.exec(`INSERT INTO delivery (event_id, partner_id, type, body, state, finished_at)
		SELECT gen_random_uuid(), 7, 'webhook.test', '{}', 'failed', now() FROM generate_series(1, $1)`, 2*unfinishedTests)
	f.exec("INSERT INTO command (partner_id, kind, event_id) SELECT 7, 'test', gen_random_uuid() FROM "+
		"generate_series(1, $1)", unfinishedTests+1)
	f.start(nil)
	f.eventually("all commands are done",
		func() bool { return f.number("SELECT count(*) FROM command WHERE done_at IS NULL") == 0 })
	if n := f.number("SELECT sum(deliveries) FROM command"); n != unfinishedTests {
		t.Errorf("the commands report %d deliveries", n)
	}
	f.eventually("all test events are parked", f.in(registry.Parked, unfinishedTests))
	other := f.command(8, "test")
	f.eventually("another partner's test is delivered", f.in(registry.Delivered, 1))
	f.exec("UPDATE delivery SET state = 'failed', finished_at = now() WHERE event_id = (SELECT event_id FROM delivery " +
		"WHERE state = 'parked' LIMIT 1)")
	next := f.command(7, "test")
	f.eventually("its next test is made", f.done(next))
	if n := f.number("SELECT sum(deliveries) FROM command WHERE id IN ($1, $2)", other, next); n != 2 ||
		len(r.got()) != 1 {
		t.Errorf("after one has finished, %d deliveries of 2 commands, and %d requests", n, len(r.got()))
	}
	f.eventually("the new test event is parked too", f.in(registry.Parked, unfinishedTests))
}

// history inserts failed deliveries of a partner.
func (f *fixture) history(partner int64, events int) {
	f.Helper()
	f.exec("INSERT INTO stream (partner_id, last_sequence) VALUES ($1, $2)", partner, events)
	f.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, finished_at)
		SELECT gen_random_uuid(), $1, n, 'deposit.referral', '{}', 'failed', now() FROM generate_series(1, $2::bigint) n`,
		partner, events)
}

// A long range replays one part per turn, and commands that came after it do not wait for
// its end.
func TestCommandsTakeTurns(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "")
	f.partner(8, "")
	f.history(7, 2*rangePart+1)
	long, err := f.queries.CreateReplayRange(
		t.Context(), db.CreateReplayRangeParams{PartnerID: 7, FirstSequence: 1, LastSequence: 1 << 40},
	)
	f.check(err)
	own, other := f.command(7, "test"), f.command(8, "test")
	d := f.dispatcher(nil)
	d.stopping = true // without lanes
	for turn := range int64(3) {
		f.check(d.runDueCommands(t.Context()))
		if !f.done(own)() || !f.done(other)() {
			t.Errorf("after turn %d the short commands are not done", turn+1)
		}
		if n := f.number("SELECT deliveries FROM command WHERE id = $1", long); n != min((turn+1)*rangePart, 2*rangePart+1) {
			t.Errorf("after turn %d %d are replayed", turn+1, n)
		}
		if f.done(long)() != (turn == 2) {
			t.Errorf("after turn %d the range is done: %v", turn+1, turn != 2)
		}
	}
}

// While one part of a range is being sent the next part waits, so that a new event queues
// behind one part and not behind the whole range.
func TestNewEventsDoNotWaitForAWholeRange(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "")
	f.history(7, 3*rangePart)
	f.exec("INSERT INTO job_lease (kind, key, owner, fence, until) VALUES ('partner', 7, gen_random_uuid(), 1, now() + " +
		"interval '1 hour')")
	long, err := f.queries.CreateReplayRange(
		t.Context(), db.CreateReplayRangeParams{PartnerID: 7, FirstSequence: 1, LastSequence: 3 * rangePart},
	)
	f.check(err)
	d := f.dispatcher(nil)
	d.stopping = true // without lanes: the test sends
	look := func() {
		t.Helper()
		f.exec("UPDATE command SET due_at = now()")
		f.check(d.runDueCommands(t.Context()))
	}
	waiting := func(when string, want int) {
		t.Helper()
		if n := f.states()[registry.Pending]; n != want {
			t.Errorf("%s %d are pending, want %d", when, n, want)
		}
	}
	for range 3 {
		look()
	}
	waiting("while nothing was sent yet", rangePart)
	if n := f.number("SELECT count(*) FROM command WHERE done_at IS NULL AND due_at > now()"); n != 1 {
		t.Error("the command is due again at once")
	}
	f.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES (gen_random_uuid(), 7, $1, 'deposit.referral', '{}', 'pending')`, 3*rangePart+1)
	f.exec("UPDATE delivery SET state = 'delivered' WHERE state = 'pending' AND sequence < $1", rangePart)
	look()
	waiting("with one delivery of the part and a new one left,", 2)
	f.exec("UPDATE delivery SET due_at = now() + interval '1 hour' WHERE state = 'pending' AND sequence = $1", rangePart)
	look()
	waiting("when the last one has failed for the first time", rangePart+2)
	if n := f.number(`SELECT count(*) FROM delivery d, delivery new WHERE new.sequence = $1 AND d.state = 'pending' AND d.due_at < new.due_at`, 3*rangePart+1); n != 0 {
		t.Errorf("%d are due before the new event", n)
	}
	f.exec("UPDATE delivery SET state = 'parked' WHERE state = 'pending'")
	look()
	if f.done(long)() || f.states()[registry.Pending] != 0 {
		t.Errorf("the last part is replayed while the previous one is parked: %v", f.states())
	}
	again, err := f.queries.CreateReplayRange(
		t.Context(), db.CreateReplayRangeParams{PartnerID: 7, FirstSequence: 1, LastSequence: 3 * rangePart},
	)
	f.check(err)
	look()
	if n := f.number("SELECT deliveries FROM command WHERE id = $1", again); n != 0 {
		t.Errorf("%d are replayed for a second range during the first", n)
	}
	f.exec("UPDATE delivery SET state = 'delivered' WHERE state = 'parked'")
	look()
	if !f.done(long)() || f.states()[registry.Pending] != rangePart {
		t.Errorf("the last part is not replayed after the previous one was sent: %v", f.states())
	}
}

// If a partner has no endpoint, its range is replayed completely. If its receiver is down,
// one part is parked, and the rest follows once the receiver is back.
func TestReplayRangeToUnreachablePartners(t *testing.T) {
	f := newFixture(t)
	var back atomic.Bool
	down := f.receiver(func(w http.ResponseWriter, _, _ int) {
		if !back.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	f.partner(7, "")
	f.partner(8, down.url)
	d := f.start(nil)
	replay := func(partner int64) int64 {
		f.history(partner, 2*rangePart+1)
		f.exec("ANALYZE delivery") // so that the statistics show no pending delivery
		long, err := f.queries.CreateReplayRange(
			t.Context(), db.CreateReplayRangeParams{PartnerID: partner, FirstSequence: 1, LastSequence: 2*rangePart + 1},
		)
		f.check(err)
		return long
	}
	nowhere := replay(7)
	f.eventually("the range is replayed", f.done(nowhere))
	f.eventually("the range ends without an endpoint",
		func() bool { return f.states()[registry.NoEndpoint] > 2*rangePart-20 })
	// A part waits for the previous one while a dispatcher has the partner.
	f.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES (gen_random_uuid(), 8, $1, 'deposit.referral', '{}', 'pending')`, 3*rangePart)
	f.eventually("a dispatcher has the partner", func() bool {
		return f.number("SELECT count(*) FROM job_lease WHERE kind = 'partner' AND key = 8 AND until > now()") == 1
	})
	long := replay(8)
	f.eventually("the rest of the part is parked", func() bool { return f.states()[registry.Parked] > rangePart-20 })
	if n := f.states()[registry.Parked]; n > rangePart+1 || f.done(long)() {
		t.Errorf("%d of a range are parked for a receiver that is down", n)
	}
	f.eventually("ready", func() bool { return d.Ready() == nil })
	back.Store(true)
	f.eventually("events are delivered to the recovered receiver",
		func() bool { return f.states()[registry.Delivered] > 0 })
	f.eventually("the range is replayed once the parked part was sent", func() bool {
		// the test marks most as sent, because ten thousand POSTs take long
		f.exec("UPDATE delivery SET state = 'delivered', finished_at = now() WHERE partner_id = 8 AND state IN " +
			"('pending', 'parked')")
		return f.done(long)()
	})
}
