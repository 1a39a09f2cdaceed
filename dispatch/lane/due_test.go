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

// deliveries makes some of partner 7, due at a time from now, and gives their ids.
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

// planned is lane7 after its first turn, when nothing was due.
func (f *fixture) planned() *Lane {
	f.Helper()
	l := f.lane7()
	_, err := l.plan(f.Context())
	f.check(err)
	return l
}

// When a lane looks at its deliveries: when their time has come, and not while some wait already or all permits are taken.
func TestWhenALaneLooks(t *testing.T) {
	f := &fixture{T: t}
	const longest = time.Minute
	for _, c := range []struct {
		what   string
		change func(*Lane)
		due    bool
		next   func(time.Duration) bool
	}{
		{"nothing waits", func(l *Lane) { l.look = time.Time{} }, false, func(d time.Duration) bool { return d == longest }},
		{"something is due", func(l *Lane) { l.look = time.Now().Add(-time.Hour) }, true, func(d time.Duration) bool { return d == 0 }},
		{"something will be soon", func(l *Lane) { l.look = time.Now().Add(longest / 2) }, false, func(d time.Duration) bool { return d > 0 && d <= longest/2 }},
		{"something will be", func(l *Lane) { l.look = time.Now().Add(time.Hour) }, false, func(d time.Duration) bool { return d == longest }},
		{"some are read", func(l *Lane) { l.queue = make([]db.DueDeliveriesRow, 1) }, true, func(d time.Duration) bool { return d == longest }},
		{"all permits are taken", func(l *Lane) { l.inFlight[uuid.New()], l.inFlight[uuid.New()] = struct{}{}, struct{}{} }, true, func(d time.Duration) bool { return d == longest }},
		{"a permit is left", func(l *Lane) { l.inFlight[uuid.New()] = struct{}{} }, true, func(d time.Duration) bool { return d == 0 }},
	} {
		l := f.idle(2)
		c.change(l)
		if due, next := l.due(), l.untilNext(longest); due != c.due || !c.next(next) {
			t.Errorf("%s: due %v, next in %s", c.what, due, next)
		}
	}
}

// A lane reads what is due and not under way, as many for each permit, and when the next will be.
func TestFetchReadsWhatIsDue(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	fetch := func(what string, want []uuid.UUID, look func(time.Duration) bool) {
		t.Helper()
		l.queue, l.look = nil, time.Now()
		f.check(l.fetchDue(t.Context()))
		var got []uuid.UUID
		for _, row := range l.queue {
			got = append(got, row.EventID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d are read, want %d", what, len(got), len(want))
		}
		if wait := time.Until(l.look); l.look.IsZero() != (look == nil) || look != nil && !look(wait) {
			t.Errorf("%s: the next look is in %s", what, wait)
		}
	}
	soon := func(d time.Duration) bool { return d > 9*time.Minute && d <= 10*time.Minute+time.Second }
	now := func(d time.Duration) bool { return d <= 0 }
	fetch("nothing waits", nil, nil)
	later := f.deliveries(1, registry.Parked, "20 minutes")
	l.inFlight[f.deliveries(1, registry.Pending, "10 minutes")[0]] = struct{}{}
	fetch("one is under way, and one waits", nil, func(d time.Duration) bool { return d > 19*time.Minute && d <= 20*time.Minute+time.Second })
	clear(l.inFlight)
	fetch("two wait", nil, soon)
	first := f.deliveries(1, registry.Parked, "-2 hours")
	rest := f.deliveries(l.permits()*fetchPerPermit-1, registry.Pending, "-1 hour")
	fetch("a part is due", slices.Concat(first, rest), now) // there may be more
	l.inFlight[rest[0]] = struct{}{}
	fetch("one of them is under way", slices.Concat(first, rest[1:]), soon)
	clear(l.inFlight)
	f.deliveries(1, registry.Pending, "-1 minute")
	fetch("one more than a part is due", slices.Concat(first, rest), now)
	l.queue, l.look, l.aside = nil, time.Time{}, true // it was shut, and looks for nothing
	if f.check(l.fetchDue(t.Context())); len(l.queue) != len(rest)+1 || !l.due() {
		t.Errorf("of more than a part that was put aside %d are read, and the next look is at %s", len(l.queue), l.look)
	}
	f.exec("UPDATE delivery SET due_at = now() WHERE event_id <> $1", later[0])
	f.exec("UPDATE delivery SET state = 'delivered' WHERE event_id <> $1", first[0])
	fetch("one is due, and the others are told", first, nil)
}

// What was read ahead long ago is read anew before it is sent, as it may have been corrected; what was read a moment ago
// is not, and costs PostgreSQL nothing. What cannot be read anew is not sent, and waits for the next turn.
func TestOldQueueIsReadAnew(t *testing.T) {
	for _, c := range []struct {
		what string
		old  bool
		then string // after the read-ahead
		sent string // empty: nothing
		left int
	}{
		{"corrected, and read long ago", true, `UPDATE delivery SET body = '{"now":2}', revision = 1`, `{"now":2}`, 1},
		{"corrected, and read a moment ago", false, `UPDATE delivery SET body = '{"now":2}', revision = 1`, `{}`, 1},
		{"nothing is asked for what was just read", false, "ALTER TABLE delivery RENAME TO elsewhere", `{}`, 1},
		{"it cannot be read anew", true, "ALTER TABLE delivery RENAME TO elsewhere", "", 0},
		{"none waits any more", true, "UPDATE delivery SET state = 'delivered'", "", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := newFixture(t).withPostgres()
			l := f.lane7()
			var tried []Attempt
			l.shared.Record = func(_ context.Context, a Attempt) bool { tried = append(tried, a); return true }
			l.shared.Timing.Scan = time.Hour
			f.deliveries(2, registry.Pending, "-1 hour")
			if _, err := l.plan(t.Context()); err != nil || len(l.queue) != 2 {
				t.Fatalf("%d are read ahead: %v", len(l.queue), err)
			}
			if f.exec(c.then); c.old {
				l.read = l.read.Add(-l.shared.Timing.Scan)
			}
			l.shared.Slots <- struct{}{}
			l.send(t.Context())
			if c.sent != "" {
				l.finish(<-l.ended)
			}
			if len(tried) != min(len(c.sent), 1) || c.sent != "" && string(tried[0].Delivery.Body) != c.sent || len(l.queue) != c.left {
				t.Errorf("%d are left, and tried was %+v", len(l.queue), tried)
			}
			if len(l.shared.Slots) != 0 || len(l.inFlight) != 0 || c.sent == "" && l.canSend() {
				t.Errorf("%d slots are taken, %d are under way", len(l.shared.Slots), len(l.inFlight))
			}
			if _, err := l.turn(t.Context()); (err != nil) != (c.what == "it cannot be read anew") {
				t.Errorf("the next turn says %v", err)
			}
		})
	}
}

// Nothing is read where something waits already, all permits are taken or nothing is due, but after the lane was held
// or shut what was put aside is.
func TestFetchOnlyWhereThereIsRoom(t *testing.T) {
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
		{"nothing is due, as far as it knows", func() { l.look = time.Time{} }, 0, false},
		{"some wait", func() { l.queue = make([]db.DueDeliveriesRow, 1) }, 1, false},
		{"all permits are taken", full, 0, false},
		{"all are taken by older ones", func() { full(); l.aside = true }, 0, true},
		{"it was shut", func() { l.look, l.aside = time.Time{}, true }, 3, false},
		{"some are due", func() {}, 3, false},
	} {
		l.queue, l.look, l.aside = nil, time.Now(), false
		clear(l.inFlight)
		c.change()
		f.check(l.fetchDue(t.Context()))
		if len(l.queue) != c.queue || l.aside != c.aside {
			t.Errorf("%s: %d wait, and some are still put aside: %v", c.what, len(l.queue), l.aside)
		}
	}
}

// What waits is put aside, but not what is under way: a part in each turn, and the next at once. So does what has nowhere
// to go end.
func TestPutAsideInParts(t *testing.T) {
	for state, put := range map[string]func(*Lane, context.Context, bool) error{registry.Parked: (*Lane).park, registry.NoEndpoint: (*Lane).giveUp} {
		t.Run(state, func(t *testing.T) {
			f := newFixture(t).withPostgres()
			l := f.planned()
			ids := f.deliveries(asidePart+2, registry.Pending, "0")
			l.inFlight[ids[0]] = struct{}{}
			for _, want := range []struct {
				put   int
				woken bool
			}{{asidePart, true}, {asidePart + 1, false}} {
				l.queue, l.look, l.woken = make([]db.DueDeliveriesRow, 1), time.Now(), make(chan struct{}, 1)
				f.check(put(l, t.Context(), true))
				if n := f.in(state); n != want.put || l.Woken() != want.woken || len(l.queue) != 0 || !l.look.IsZero() || l.aside != (state == registry.Parked) {
					t.Errorf("%d are %s, woken: %v; %d are to be sent, looked for at %s, aside: %v", n, state, l.Woken(), len(l.queue), l.look, l.aside)
				}
			}
			if n := f.number("SELECT count(*) FROM delivery WHERE state = 'pending' AND event_id = $1", ids[0]); n != 1 {
				t.Errorf("what is under way is %s too", state)
			}
			f.deliveries(1, registry.Pending, "0")
			f.exec("UPDATE lease SET fence = fence + 1")
			f.check(put(l, t.Context(), true))
			if n := f.in(registry.Pending); n != 2 {
				t.Error("what is another's now was put aside")
			}
		})
	}
}

// Where nothing is due nothing is asked of PostgreSQL, and what was read before is not sent: it waits where it was.
func TestPutAsideWhereNothingIsDue(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	f.deliveries(1, registry.Pending, "0")
	f.exec("ALTER TABLE delivery RENAME TO elsewhere")
	f.exec("ALTER TABLE endpoint RENAME TO elsewhere_too")
	look := time.Now().Add(time.Hour)
	l.queue, l.look = make([]db.DueDeliveriesRow, 1), look
	f.check(l.park(t.Context(), false))
	if len(l.queue) != 0 || !l.aside || !l.look.Equal(look) {
		t.Errorf("%d are to be sent, aside: %v, looked for at %s", len(l.queue), l.aside, l.look)
	}
	f.check(l.giveUp(t.Context(), false))
	if !l.aside || !l.look.Equal(look) {
		t.Errorf("aside: %v, looked for at %s", l.aside, l.look)
	}
	l.queue = make([]db.DueDeliveriesRow, 1)
	if l.giveUp(t.Context(), false) == nil {
		t.Error("what was read and has nowhere to go does not end")
	}
}

// A URL that is registered and not known here yet: nothing is given up, and it is looked at again at once.
func TestGiveUpAsksFirst(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	f.deliveries(1, registry.Pending, "0")
	f.exec("INSERT INTO partner (id, name) VALUES (7, 'partner 7')")
	f.exec("INSERT INTO endpoint (partner_id, url, secret) VALUES (7, 'https://receiver.invalid/hook', '')")
	expired := 0
	l.shared.Expire = func() { expired++ }
	f.check(l.giveUp(t.Context(), true))
	if f.in(registry.Pending) != 1 || expired != 1 || !l.Woken() {
		t.Errorf("%d still wait, read anew %d times, woken: %v", f.in(registry.Pending), expired, l.Woken())
	}
}
