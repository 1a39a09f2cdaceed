package lane

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// deliveries inserts n deliveries of partner 7, due at a time relative to now, and returns their ids.
func (f *fixture) deliveries(n int, state, due string) (ids []uuid.UUID) {
	f.Helper()
	before := f.number("SELECT count(*) FROM delivery")
	for range n {
		ids = append(ids, uuid.New())
	}
	f.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, due_at)
		SELECT id, 7, $4 + n, 'deposit.referral', '{}', $2, now() + $3::text::interval FROM unnest($1::uuid[]) WITH ORDINALITY AS given (id, n)`, ids, state, due, before)
	return ids
}

func (f *fixture) in(state string) int {
	f.Helper()
	return int(f.number("SELECT count(*) FROM delivery WHERE state = $1", state))
}

// planned returns lane7 after its first turn, in which nothing was due.
func (f *fixture) planned() *Lane {
	f.Helper()
	l := f.lane7()
	_, err := l.plan(f.Context())
	f.check(err)
	return l
}

// A lane reads deliveries when they are due, but not while some are queued or all permits are taken.
func TestWhenALaneLooks(t *testing.T) {
	f := &fixture{T: t}
	const longest = time.Minute
	for _, c := range []struct {
		what   string
		change func(*Lane)
		due    bool
		next   func(time.Duration) bool
	}{
		{"nothing is pending", func(l *Lane) { l.nextFetch = time.Time{} }, false,
			func(d time.Duration) bool { return d == longest }},
		{"something is due", func(l *Lane) { l.nextFetch = time.Now().Add(-time.Hour) }, true,
			func(d time.Duration) bool { return d == 0 }},
		{"something will be due soon", func(l *Lane) { l.nextFetch = time.Now().Add(longest / 2) }, false,
			func(d time.Duration) bool { return d > 0 && d <= longest/2 }},
		{"something will be due", func(l *Lane) { l.nextFetch = time.Now().Add(time.Hour) }, false,
			func(d time.Duration) bool { return d == longest }},
		{"some are queued", func(l *Lane) { l.queue = make([]db.DueDeliveriesRow, 1) }, true,
			func(d time.Duration) bool { return d == longest }},
		{"all permits are taken", func(l *Lane) { l.inFlight[uuid.New()], l.inFlight[uuid.New()] = struct{}{}, struct{}{} },
			true, func(d time.Duration) bool { return d == longest }},
		{"a permit is left", func(l *Lane) { l.inFlight[uuid.New()] = struct{}{} }, true,
			func(d time.Duration) bool { return d == 0 }},
	} {
		l := f.idle(2)
		c.change(l)
		if due, next := l.due(), l.untilNext(longest); due != c.due || !c.next(next) {
			t.Errorf("%s: due %v, next in %s", c.what, due, next)
		}
	}
}

// fetch reads the deliveries that are due and not in flight, a number per permit, and the time of the next.
func TestFetchReadsWhatIsDue(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	fetch := func(what string, want []uuid.UUID, look func(time.Duration) bool) {
		t.Helper()
		l.queue, l.nextFetch = nil, time.Now()
		f.check(l.fetchDue(t.Context()))
		var got []uuid.UUID
		for _, row := range l.queue {
			got = append(got, row.EventID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d read, want %d", what, len(got), len(want))
		}
		if wait := time.Until(l.nextFetch); l.nextFetch.IsZero() != (look == nil) || look != nil && !look(wait) {
			t.Errorf("%s: the next read is in %s", what, wait)
		}
	}
	soon := func(d time.Duration) bool { return d > 9*time.Minute && d <= 10*time.Minute+time.Second }
	now := func(d time.Duration) bool { return d <= 0 }
	fetch("nothing is pending", nil, nil)
	later := f.deliveries(1, registry.Parked, "20 minutes")
	l.inFlight[f.deliveries(1, registry.Pending, "10 minutes")[0]] = struct{}{}
	fetch("one is in flight, and one is due later", nil,
		func(d time.Duration) bool { return d > 19*time.Minute && d <= 20*time.Minute+time.Second })
	clear(l.inFlight)
	fetch("two are due later", nil, soon)
	first := f.deliveries(1, registry.Parked, "-2 hours")
	rest := f.deliveries(l.permits()*fetchPerPermit-1, registry.Pending, "-1 hour")
	fetch("a part is due", slices.Concat(first, rest), now) // there may be more
	l.inFlight[rest[0]] = struct{}{}
	fetch("one of them is in flight", slices.Concat(first, rest[1:]), soon)
	clear(l.inFlight)
	f.deliveries(1, registry.Pending, "-1 minute")
	fetch("one more than a part is due", slices.Concat(first, rest), now)
	l.queue, l.nextFetch, l.aside = nil, time.Time{}, true // the lane was shut and scheduled no read
	if f.check(l.fetchDue(t.Context())); len(l.queue) != len(rest)+1 || !l.due() {
		t.Errorf("with more than one part of parked deliveries, %d are read, and the next read is at %s", len(l.queue),
			l.nextFetch)
	}
	f.exec("UPDATE delivery SET due_at = now() WHERE event_id <> $1", later[0])
	f.exec("UPDATE delivery SET state = 'delivered' WHERE event_id <> $1", first[0])
	fetch("one is due, and the others are delivered", first, nil)
}

// A queue that was prefetched long ago is read again before it is sent, because an event may have been corrected; a
// fresh one is not, which saves a query. If the second read fails, nothing is sent until the next turn.
func TestOldQueueIsReadAgain(t *testing.T) {
	for _, c := range []struct {
		what string
		old  bool
		then string // statement after the prefetch
		sent string // empty: nothing
		left int
	}{
		{"corrected, and read long ago", true, `UPDATE delivery SET body = '{"now":2}', revision = 1`, `{"now":2}`, 1},
		{"corrected, and read a moment ago", false, `UPDATE delivery SET body = '{"now":2}', revision = 1`, `{}`, 1},
		{"no query for a fresh queue", false, "ALTER TABLE delivery RENAME TO elsewhere", `{}`, 1},
		{"the second read fails", true, "ALTER TABLE delivery RENAME TO elsewhere", "", 0},
		{"nothing is pending any more", true, "UPDATE delivery SET state = 'delivered'", "", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := newFixture(t).withPostgres()
			l := f.lane7()
			var tried []Attempt
			l.shared.Record = func(_ context.Context, a Attempt) bool { tried = append(tried, a); return true }
			l.shared.Timing.Scan = time.Hour
			f.deliveries(2, registry.Pending, "-1 hour")
			if _, err := l.plan(t.Context()); err != nil || len(l.queue) != 2 {
				t.Fatalf("%d are prefetched: %v", len(l.queue), err)
			}
			if f.exec(c.then); c.old {
				l.read = l.read.Add(-l.shared.Timing.Scan)
			}
			l.shared.Slots <- struct{}{}
			l.send(t.Context())
			if c.sent != "" {
				l.finish(<-l.ended)
			}
			if len(tried) != min(len(c.sent), 1) || c.sent != "" && string(tried[0].Delivery.Body) != c.sent ||
				len(l.queue) != c.left {
				t.Errorf("%d are left, and the attempt was %+v", len(l.queue), tried)
			}
			if len(l.shared.Slots) != 0 || len(l.inFlight) != 0 || c.sent == "" && l.canSend() {
				t.Errorf("%d slots are taken, %d are in flight", len(l.shared.Slots), len(l.inFlight))
			}
			if _, err := l.planOrRetry(t.Context()); (err != nil) != (c.what == "the second read fails") {
				t.Errorf("the next turn returns %v", err)
			}
		})
	}
}

// Nothing is read while some are queued, all permits are taken or nothing is due, except the parked deliveries after
// the lane was held or shut.
func TestFetchOnlyWithRoom(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	f.deliveries(3, registry.Parked, "-1 hour")
	full := func() {
		for range l.permits() {
			l.inFlight[uuid.New()] = struct{}{}
		}
	}
	for _, c := range []struct {
		what   string
		change func()
		queue  int
		aside  bool
	}{
		{"nothing is due in the lane's memory", func() { l.nextFetch = time.Time{} }, 0, false},
		{"some are queued", func() { l.queue = make([]db.DueDeliveriesRow, 1) }, 1, false},
		{"all permits are taken", full, 0, false},
		{"older POSTs take all permits", func() { full(); l.aside = true }, 0, true},
		{"the lane was shut", func() { l.nextFetch, l.aside = time.Time{}, true }, 3, false},
		{"some are due", func() {}, 3, false},
	} {
		l.queue, l.nextFetch, l.aside = nil, time.Now(), false
		clear(l.inFlight)
		c.change()
		f.check(l.fetchDue(t.Context()))
		if len(l.queue) != c.queue || l.aside != c.aside {
			t.Errorf("%s: %d are queued, and some are still parked: %v", c.what, len(l.queue), l.aside)
		}
	}
}

// Pending deliveries that are not in flight are parked, and parked ones too end without an endpoint, one part per turn,
// so that no statement takes long. The next turn follows at once.
func TestParkInParts(t *testing.T) {
	for state, put := range map[string]func(*Lane, context.Context, bool) error{registry.Parked: (*Lane).park,
		registry.NoEndpoint: (*Lane).giveUp} {
		t.Run(state, func(t *testing.T) {
			f := newFixture(t).withPostgres()
			l := f.planned()
			ids := f.deliveries(asidePart+2, registry.Pending, "0")
			if state == registry.NoEndpoint {
				f.exec("UPDATE delivery SET state = 'parked' WHERE sequence > 2")
			}
			l.inFlight[ids[0]] = struct{}{}
			for _, want := range []struct {
				put   int
				woken bool
			}{{asidePart, true}, {asidePart + 1, false}} {
				l.queue, l.nextFetch, l.woken = make([]db.DueDeliveriesRow, 1), time.Now(), make(chan struct{}, 1)
				f.check(put(l, t.Context(), true))
				if n := f.in(state); n != want.put || l.Woken() != want.woken || len(l.queue) != 0 || !l.nextFetch.IsZero() ||
					l.aside != (state == registry.Parked) {
					t.Errorf(
						"%d are %s, woken: %v; %d are queued, the next read is at %s, aside: %v", n, state, l.Woken(), len(l.queue),
						l.nextFetch, l.aside,
					)
				}
			}
			if n := f.number("SELECT count(*) FROM delivery WHERE state = 'pending' AND event_id = $1", ids[0]); n != 1 {
				t.Errorf("a delivery in flight is %s too", state)
			}
			f.deliveries(1, registry.Pending, "0")
			f.exec("UPDATE job_lease SET fence = fence + 1 WHERE kind = 'partner'")
			f.check(put(l, t.Context(), true))
			if n := f.in(registry.Pending); n != 2 {
				t.Error("a delivery of another owner was parked")
			}
		})
	}
}

// If nothing is due, PostgreSQL is not queried, and the queue is dropped: its deliveries keep their state.
func TestParkWhenNothingIsDue(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	f.deliveries(1, registry.Pending, "0")
	f.exec("ALTER TABLE delivery RENAME TO elsewhere")
	f.exec("ALTER TABLE endpoint RENAME TO elsewhere_too")
	look := time.Now().Add(time.Hour)
	l.queue, l.nextFetch = make([]db.DueDeliveriesRow, 1), look
	f.check(l.park(t.Context(), false))
	if len(l.queue) != 0 || !l.aside || !l.nextFetch.Equal(look) {
		t.Errorf("%d are queued, aside: %v, the next read is at %s", len(l.queue), l.aside, l.nextFetch)
	}
	f.check(l.giveUp(t.Context(), false))
	if !l.aside || !l.nextFetch.Equal(look) {
		t.Errorf("aside: %v, the next read is at %s", l.aside, l.nextFetch)
	}
	l.queue = make([]db.DueDeliveriesRow, 1)
	if l.giveUp(t.Context(), false) == nil {
		t.Error("a queued delivery without an endpoint does not end")
	}
}

// If a URL is registered that the lane has not read yet, no delivery ends, and the lane reads its deliveries again.
func TestGiveUpChecksFirst(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	f.deliveries(1, registry.Pending, "0")
	f.exec("INSERT INTO partner (id, name) VALUES (7, 'partner 7')")
	f.exec("INSERT INTO endpoint (partner_id, url, secret) VALUES (7, 'https://receiver.invalid/hook', '')")
	l.queue, l.nextFetch = make([]db.DueDeliveriesRow, 1), time.Time{} // the only one that is pending
	f.check(l.giveUp(t.Context(), false))
	if f.in(registry.Pending) != 1 || !l.due() {
		t.Errorf("%d are still pending, due: %v", f.in(registry.Pending), l.due())
	}
}

// A partner registers its first URL, and an event is accepted for it, at the moment at which its deliveries would end:
// none ends. PostgreSQL's lock holds the statement back until both are committed.
func TestGiveUpDuringARegistration(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	f.exec("INSERT INTO partner (id, name) VALUES (7, 'partner 7')")
	f.exec("INSERT INTO endpoint (partner_id, url, secret) VALUES (7, NULL, '')")
	f.deliveries(1, registry.Pending, "0") // a test event
	tx, err := f.pool.Begin(t.Context())
	f.check(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), "LOCK TABLE delivery IN EXCLUSIVE MODE")
	f.check(err)
	ended := make(chan error, 1)
	go func() { ended <- l.giveUp(t.Context(), true) }()
	f.until(func() bool {
		return f.number("SELECT count(*) FROM pg_locks WHERE relation = 'delivery'::regclass AND NOT granted") == 1
	})
	for _, statement := range []string{
		"UPDATE endpoint SET url = 'https://receiver.invalid/hook', version = version + 1",
		"INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES (gen_random_uuid(), 7, 2, " +
			"'deposit.referral', '{}', 'pending')",
	} {
		_, err := tx.Exec(t.Context(), statement)
		f.check(err)
	}
	f.check(tx.Commit(t.Context()))
	f.check(<-ended)
	if f.in(registry.Pending) != 2 || !l.due() {
		t.Errorf("%d are still pending, due: %v", f.in(registry.Pending), l.due())
	}
}
