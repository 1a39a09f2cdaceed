package dispatch

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry"
)

// However often an event is replayed, only its last attempts are kept; their numbering continues.
func TestAttemptsOfAnEventAreBounded(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(func(w http.ResponseWriter, _, _ int) {
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte(strings.Repeat("x", 3*lane.MaxResponseKept)))
	})
	f.start(nil)
	f.deposits(7, 1, 2)
	f.eventually("delivered", f.in(registry.Delivered, 1))
	const replays = attemptsKept + 5
	for n := range replays {
		f.replay(7, deliveryID(t))
		f.eventually("delivered again", func() bool { return f.in(registry.Delivered, 1)() && len(r.got()) == n+2 })
	}
	if n := f.number("SELECT count(*) FROM attempt"); n != attemptsKept {
		t.Errorf("%d attempts are kept, want %d", n, attemptsKept)
	}
	if first, last := f.number("SELECT min(number) FROM attempt"),
		f.number("SELECT max(number) FROM attempt"); last != replays+1 || first != last-attemptsKept+1 {
		t.Errorf("attempts %d to %d are kept of %d", first, last, replays+1)
	}
	if n := f.number("SELECT sum(octet_length(response)) FROM attempt"); n > attemptsKept*lane.MaxResponseKept {
		t.Errorf("%d bytes of responses are kept", n)
	}
}

// A receiver that responds to each POST and accepts none costs no more than one that is down: new events wait until a
// probe is accepted, and are delivered then.
func TestReceiverThatNeverAccepts(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(status(http.StatusNotFound))
	d := f.start(func(d *Dispatch) { d.shared.Timing.OpenMin, d.shared.Timing.OpenMax = time.Hour, time.Hour })
	const events = 400
	f.deposits(7, 0, events)
	f.eventually("all have failed or are parked",
		func() bool { s := f.states(); return s[registry.Failed]+s[registry.Parked] == events })
	const refusals = 200                    // consecutive rejections that open a breaker
	most := refusals + d.shared.Concurrency // plus those in flight when it opens
	if n := len(r.got()); n > most {
		t.Errorf("%d requests, want at most %d", n, most)
	}
	f.deposits(7, events, 2*events)
	f.eventually("new events wait too",
		func() bool { s := f.states(); return s[registry.Failed]+s[registry.Parked] == 2*events })
	if n := len(r.got()); n > most {
		t.Errorf("%d requests, want at most %d", n, most)
	}
	if n := f.number("SELECT count(*) FROM breaker WHERE refusing AND state = 'open'"); n != 1 {
		t.Error("the breaker is not stored as refusing")
	}
	// The open time is over, and the receiver accepts everything.
	f.exec("UPDATE breaker SET open_until = now()")
	failed := f.states()[registry.Failed]
	// the lane starts again
	f.exec("UPDATE job_lease SET fence = fence + 1, owner = gen_random_uuid(), until = now() WHERE kind = 'partner'")
	r.script(ok)
	f.eventually("delivered", f.in(registry.Delivered, 2*events-failed))
}

// Details past the retention are pruned, except the events themselves and the last attempts
// of each, which lose their response bodies.
func TestRetention(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "")
	now := time.Now()
	event := func(sequence any, finished string, attempts int, age time.Duration) uuid.UUID {
		id := uuid.New()
		f.exec("INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, finished_at) VALUES ($1, 7, $2, "+
			"'t', 'b', 'delivered', "+finished+")", id, sequence)
		for n := range attempts {
			f.exec(`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status, response, first_byte_us)
				VALUES ($1, $2, 'u', 1, $3, 5, 200, 'hello', 7)`, id, n+1, now.Add(-age+time.Duration(n)*time.Minute))
		}
		return id
	}
	const day = 24 * time.Hour
	old := event(1, "now() - interval '100 days'", 9, 100*day)
	few := event(2, "now() - interval '100 days'", 2, 100*day)
	young := event(3, "now()", 9, 80*day)
	oldTest := event(nil, "now() - interval '100 days'", 2, 100*day)
	youngTest := event(nil, "now() - interval '80 days'", 2, 80*day)
	openTest := event(nil, "NULL", 2, 100*day)
	f.exec("UPDATE delivery SET state = 'pending' WHERE event_id = $1", openTest)
	for _, done := range []string{"now() - interval '100 days'", "now() - interval '80 days'", "NULL"} {
		f.exec("INSERT INTO command (partner_id, kind, done_at) VALUES (7, 'test', " + done + ")")
	}
	f.exec("UPDATE retention SET until = now() - interval '120 days'")
	first, second := f.dispatcher(nil), f.dispatcher(nil)
	f.run(first)
	f.run(second)
	f.eventually("all attempts are checked", func() bool {
		return f.number("SELECT count(*) FROM retention WHERE until > now() - interval '91 days'") == 1
	})
	f.eventually("old tests and commands are pruned", func() bool {
		return f.number("SELECT count(*) FROM delivery WHERE event_id = $1", oldTest) == 0 &&
			f.number("SELECT count(*) FROM command") == 2
	})
	for id, want := range map[uuid.UUID][3]int64{old: {1, 4, 0}, few: {1, 2, 0}, young: {1, 9, 9}, oldTest: {0, 0, 0},
		youngTest: {1, 2, 2}, openTest: {1, 2, 0}} {
		got := [3]int64{
			f.number("SELECT count(*) FROM delivery WHERE event_id = $1 AND body = 'b'", id), f.number(
				"SELECT count(*) FROM attempt WHERE event_id = $1", id,
			),
			f.number(
				"SELECT count(*) FROM attempt WHERE event_id = $1 AND response IS NOT NULL AND first_byte_us IS NOT NULL", id,
			),
		}
		if got != want {
			t.Errorf("event, attempts, and those with all details: %v, want %v", got, want)
		}
	}
	if n := f.number("SELECT min(number) FROM attempt WHERE event_id = $1", old); n != 6 {
		t.Errorf("the oldest attempt kept is %d", n)
	}
}

// The attempts that were kept of an event go when those of a later replay are old too: the last ones of the event are
// kept, and not the last ones of each round.
func TestRetentionOfAReplayedEvent(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "")
	d := f.dispatcher(nil)
	before, id := time.Now().AddDate(0, 0, -90).Truncate(time.Microsecond), uuid.New()
	f.exec("INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, finished_at) VALUES ($1, 7, 1, "+
		"'t', 'b', 'delivered', now())", id)
	f.exec("UPDATE retention SET until = $1", before.AddDate(0, 0, -1))
	for _, round := range []struct {
		first, last int // its attempts
		age         time.Duration
		kept        string
	}{{1, 4, 2 * time.Hour, "1 2 3 4"}, {5, 6, time.Hour, "3 4 5 6"}, {7, 9, -time.Hour, "3 4 5 6 7 8 9"}} {
		f.exec(`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status)
			SELECT $1, n, 'u', 1, $2, 5, 200 FROM generate_series($3::int, $4::int) n`, id, before.Add(-round.age), round.first,
			round.last)
		f.check(d.pruneUntil(t.Context(), before))
		if got := f.text("SELECT string_agg(number::text, ' ' ORDER BY number) FROM attempt"); got != round.kept {
			t.Errorf("after attempt %d, these are kept: %s, want %s", round.last, got, round.kept)
		}
		f.exec("UPDATE retention SET until = $1", before.Add(-round.age+time.Minute))
	}
}

// A dispatcher whose clock is a year ahead of PostgreSQL's prunes nothing early, and does not move the time up to which
// attempts are pruned into the future, where later ones would be passed over.
func TestRetentionIgnoresTheMachinesClock(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "")
	f.postgresClock("-1 year")
	d := f.dispatcher(nil)
	f.exec(`INSERT INTO delivery (event_id, partner_id, type, body, state, finished_at)
		VALUES (gen_random_uuid(), 7, 'webhook.test', '{}', 'delivered', now() - interval '1 year 1 hour')`)
	f.exec("INSERT INTO command (partner_id, kind, done_at) VALUES (7, 'test', now() - interval '1 year 1 hour')")
	f.exec("UPDATE retention SET until = now() - interval '1 year 90 days 30 minutes'")
	d.prune(t.Context())
	if n := f.number("SELECT (SELECT count(*) FROM delivery) + (SELECT count(*) FROM command)"); n != 2 {
		t.Errorf("%d of two rows are left that are an hour old by PostgreSQL's clock", n)
	}
	if n := f.number("SELECT count(*) FROM retention WHERE until BETWEEN now() - interval '1 year 91 days' AND now() - " +
		"interval '1 year 89 days'"); n != 1 {
		t.Errorf("attempts are pruned up to %s", f.text("SELECT until::text FROM retention"))
	}
}

// One run prunes everything that is old, in parts: one transaction prunes a limited number of attempts, up to the
// retention and not further, while no other dispatcher prunes.
func TestPruneInParts(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "")
	d := f.dispatcher(nil)
	before := time.Now().AddDate(0, 0, -90).Truncate(time.Microsecond)
	old, id := before.Add(-time.Hour), uuid.New()
	f.exec("INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, finished_at) VALUES ($1, 7, 1, "+
		"'t', 'b', 'delivered', now())", id)
	for n, at := range []time.Duration{-80, -80, -80, -20, -20, -20, 0, 10, 10} { // in minutes
		f.exec(`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status, response, first_byte_us)
			VALUES ($1, $2, 'u', 1, $3, 5, 200, 'hello', 7)`, id, n+1, before.Add(at*time.Minute))
	}
	// A busy hour: more attempts than a part has, each of another event. The last ones of the part have one time with
	// two more.
	f.exec(`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status)
		SELECT gen_random_uuid(), 1, 'busy', 1, $1::timestamptz + least(n, $2::int) * interval '1 second' + greatest(n - $2::int - 12, 0) * interval '1 second', 5, 200
		FROM generate_series(1, $2::int + 500) n`, before.Add(-80*time.Minute), retentionRows-3-10)
	f.exec("UPDATE retention SET until = $1", before.Add(-90*time.Minute))
	prune := func(what string, more bool, until time.Duration, left, whole int64) {
		t.Helper()
		got, err := d.pruneAttempts(t.Context(), before)
		f.check(err)
		n, details := f.number("SELECT count(*) FROM attempt WHERE event_id = $1", id),
			f.number("SELECT count(*) FROM attempt WHERE response IS NOT NULL")
		if got != more || n != left || details != whole ||
			f.number("SELECT count(*) FROM retention WHERE until = $1", before.Add(until)) != 1 {
			t.Errorf(
				"%s: more: %v; %d attempts are left, %d of them with details; all are checked up to %s", what, got, n, details,
				f.text("SELECT until::text FROM retention"),
			)
		}
	}
	tx, err := f.pool.Begin(t.Context())
	f.check(err)
	_, err = tx.Exec(t.Context(), "SELECT FROM retention FOR UPDATE")
	f.check(err)
	prune("while another dispatcher prunes", false, -90*time.Minute, 9, 9)
	f.check(tx.Rollback(t.Context()))
	const first = -80*time.Minute + (retentionRows-3-10)*time.Second + time.Microsecond
	prune("the first attempts, and those of the time of the last one", true, first, 6, 6)
	prune("the rest", false, 0, 4, 3)
	prune("again", false, 0, 4, 3)

	for _, table := range []string{"attempt", "command", "delivery", "retention"} {
		f.exec("UPDATE retention SET until = $1", before.Add(-3*time.Hour))
		f.exec("INSERT INTO command (partner_id, kind, done_at) VALUES (7, 'test', $1)", old)
		f.exec("ALTER TABLE " + table + " RENAME TO elsewhere")
		if d.pruneUntil(t.Context(), before) == nil {
			t.Errorf("no error without %s", table)
		}
		f.exec("ALTER TABLE elsewhere RENAME TO " + table)
		commands, attempts := f.number("SELECT count(*) FROM command"),
			f.number("SELECT count(*) FROM retention WHERE until = $1", before)
		if table != "command" && commands != 0 || table != "attempt" && table != "retention" && attempts != 1 {
			t.Errorf("without %s, the others are not pruned: %d commands, attempts up to %s", table, commands,
				f.text("SELECT until::text FROM retention"))
		}
		f.exec("DELETE FROM command")
	}
	f.exec("UPDATE retention SET until = $1", before.Add(-3*time.Hour))

	// Each kind is pruned independently.
	const rows = retentionRows + 1
	for what, c := range map[string]struct{ make, left string }{
		"attempts": {"UPDATE retention SET until = $1::timestamptz - interval '3 hours' WHERE $2::int > 0",
			"SELECT count(*) FROM retention WHERE until <= $1::timestamptz"},
		"tests": {"INSERT INTO delivery (event_id, partner_id, type, body, state, finished_at) SELECT " +
			"gen_random_uuid(), 7, 't', 'b', 'delivered', $1::timestamptz FROM generate_series(1, $2::int)",
			"SELECT count(*) FROM delivery WHERE finished_at <= $1::timestamptz"},
		"commands": {"INSERT INTO command (partner_id, kind, done_at) SELECT 7, 'test', $1::timestamptz FROM " +
			"generate_series(1, $2::int)", "SELECT count(*) FROM command WHERE done_at <= $1::timestamptz"},
	} {
		f.exec("UPDATE retention SET until = $1", before)
		f.exec(c.make, old, rows)
		f.pruneAll(d, before)
		if n := f.number(c.left, old); n != 0 || f.number("SELECT count(*) FROM retention WHERE until = $1", before) != 1 {
			t.Errorf("%s: %d are left, and attempts are checked up to %s", what, n, f.text("SELECT until::text FROM retention"))
		}
	}
	f.exec("UPDATE retention SET until = $1", before.Add(time.Hour))
	prune("after the retention was extended", false, time.Hour, 4, 3)
	for what, want := range map[string]float64{"attempt": 5, "attempt-detail": 1, "test": rows, "command": rows + 3} {
		if n := testutil.ToFloat64(d.metrics.pruned.WithLabelValues(what)); n != want {
			t.Errorf("the metric is %v for %s, want %v", n, what, want)
		}
	}
}

// pruneAll runs once, or again if the run used all of its time, as it may on a busy machine.
func (f *fixture) pruneAll(d *Dispatch, before time.Time) {
	f.Helper()
	for {
		started := time.Now()
		f.check(d.pruneUntil(f.Context(), before))
		if time.Since(started) < retentionTurn {
			return
		}
	}
}
