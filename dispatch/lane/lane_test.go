package lane

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// POSTs from before the breaker opened are still in flight when its open time is over, and take
// the permit of the probe, which is sent when they have ended.
func TestOldPostsTakeThePermitOfTheProbe(t *testing.T) {
	f := newFixture(t).withPostgres()
	f.deliveries(1, registry.Pending, "0")
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
		t.Fatalf("while the breaker is open %d are queued", len(l.queue))
	}
	l.breaker.open(time.Millisecond, time.Millisecond)
	untilHalfOpen(t, l.breaker)
	if plan(); len(l.queue) > 0 {
		t.Fatal("a probe could be sent during an older POST")
	}
	delete(l.inFlight, old)
	if plan(); len(l.queue) != 1 {
		t.Error("nothing is probed")
	}
}

// A slot is released if nothing can be sent by the time the lane gets it, and the due
// deliveries stay queued.
func TestSlotIsReleasedIfNothingIsSent(t *testing.T) {
	for what, change := range map[string]func(l *Lane, e *Endpoint, known *bool, err *error){
		"the endpoint cannot be read":    func(_ *Lane, _ *Endpoint, _ *bool, err *error) { *err = errors.New("down") },
		"the partner has no URL":         func(_ *Lane, _ *Endpoint, known *bool, _ *error) { *known = false },
		"an operator parked the partner": func(_ *Lane, e *Endpoint, _ *bool, _ *error) { e.Held = true },
		"the endpoint has a new version": func(_ *Lane, e *Endpoint, _ *bool, _ *error) { e.Version++ },
		"the lease has expired": func(l *Lane, _ *Endpoint, _ *bool, _ *error) {
			l.shared.Leases.Period = 0
			_,
				_ = l.Take(t.Context())
		},
		"another dispatcher has the lease": func(l *Lane, _ *Endpoint, _ *bool, _ *error) { l.lease.Load().Lose() },
		"the breaker has opened": func(l *Lane, _ *Endpoint, _ *bool,
			_ *error) {
			l.breaker.open(time.Hour, time.Hour)
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t).withPostgres()
			f.deliveries(1, registry.Pending, "0")
			l := f.lane7()
			_, err := l.plan(t.Context())
			f.check(err)
			if !l.canSend() {
				t.Fatal("nothing can be sent before the change: the test proves nothing")
			}
			e, known, failure := Endpoint{Version: l.version, URL: l.url, Secret: testSecret}, true, error(nil)
			change(l, &e, &known, &failure)
			l.shared.Endpoint = func(context.Context, int64) (Endpoint, bool, error) { return e, known, failure }
			l.shared.Slots <- struct{}{}
			l.send(t.Context())
			if len(l.shared.Slots) != 0 || len(l.queue) != 1 || len(l.inFlight) != 0 {
				t.Errorf(
					"%d slots are taken, %d deliveries are queued, %d are in flight", len(l.shared.Slots), len(l.queue),
					len(l.inFlight),
				)
			}
		})
	}
}

// plan reports errors of PostgreSQL, with the operation and the partner; once PostgreSQL works
// again, the operation succeeds.
func TestPlanReportsErrors(t *testing.T) {
	shut := func(l *Lane) { l.breaker.open(time.Hour, time.Hour) }
	gone := func(l *Lane) {
		l.shared.Endpoint = func(context.Context, int64) (Endpoint, bool, error) { return Endpoint{}, false, nil }
	}
	for _, c := range []struct {
		table, want string
		change      func(*Lane) // to a lane that has planned before; nil: a new lane
		state       string      // of the delivery in the end
	}{
		{"breaker", "read the breaker of partner 7", nil, registry.Pending},
		{"job_lease", "delete the breaker of partner 7", nil, registry.Pending},
		{"breaker", "write the breaker of partner 7", func(l *Lane) { shut(l); l.unsaved = opened }, registry.Parked},
		{"delivery", "read the due deliveries of partner 7", func(l *Lane) { l.queue = nil }, registry.Pending},
		{"delivery", "park the deliveries of partner 7", shut, registry.Parked},
		{"endpoint", "end the deliveries of partner 7", gone, registry.NoEndpoint},
		{"delivery", "end the deliveries of partner 7", gone, registry.NoEndpoint},
	} {
		t.Run(c.want+" without "+c.table, func(t *testing.T) {
			f := newFixture(t).withPostgres()
			f.deliveries(1, registry.Pending, "0")
			l := f.lane7()
			if c.change != nil {
				_, err := l.plan(t.Context())
				f.check(err)
				c.change(l)
				l.nextFetch = time.Now()
			}
			var logged bytes.Buffer
			l.shared.Log = slog.New(slog.NewTextHandler(&logged, nil))
			f.exec("ALTER TABLE " + c.table + " RENAME TO elsewhere")
			if wait, err := l.planOrRetry(t.Context()); err == nil || !strings.HasPrefix(err.Error(), c.want) ||
				wait != l.shared.Timing.Scan {
				t.Errorf("for %s: %v", wait, err)
			}
			if _, err := l.planOrRetry(t.Context()); err == nil || strings.Count(logged.String(), "cannot send to a partner") != 1 {
				t.Errorf("%v, and in the log: %s", err, logged.String())
			}
			if l.canSend() {
				t.Error("a POST could start")
			}
			f.exec("ALTER TABLE elsewhere RENAME TO " + c.table)
			_, err := l.planOrRetry(t.Context())
			f.check(err)
			if n := f.number(
				"SELECT count(*) FROM delivery WHERE state = $1", c.state,
			); n != 1 || l.canSend() != (c.state == registry.Pending) {
				t.Errorf("%d are %s, and a POST could start: %v", n, c.state, l.canSend())
			}
		})
	}
}

// A lane is over only when nothing has been pending for long: each pending thing by itself keeps
// it running.
func TestOverWhenNothingIsPending(t *testing.T) {
	for what, change := range map[string]func(*Lane){
		"":                           func(*Lane) {},
		"a delivery is due":          func(l *Lane) { l.queue = make([]db.DueDeliveriesRow, 1) },
		"a POST is in flight":        func(l *Lane) { l.inFlight[uuid.New()] = struct{}{} },
		"a delivery will be due":     func(l *Lane) { l.nextFetch = time.Now().Add(time.Hour) },
		"the breaker is not written": func(l *Lane) { l.unsaved = opened },
		"deliveries are parked":      func(l *Lane) { l.aside = true },
	} {
		f := &fixture{T: t}
		l := New(&Shared{Concurrency: 1, Timing: Specified(), Guard: f.resolvingAt(enginetest.NameServer(t))}, 7)
		l.nextFetch, l.busy = time.Time{}, time.Now().Add(-l.shared.Timing.Idle)
		change(l)
		if over := l.idleLongEnough(); over != (what == "") {
			t.Errorf("%q: over: %v", what, over)
		}
		if what != "" && time.Since(l.busy) >= l.shared.Timing.Idle {
			t.Errorf("%q: the lane counts as idle for long", what)
		}
	}
}

// A situation lasts by itself until the breaker's opening ends, and at most until the endpoint
// is read again, also while a probe is in flight.
func TestHowLongASituationLasts(t *testing.T) {
	f := &fixture{T: t}
	scan := Specified().Scan
	for _, c := range []struct {
		what   string
		change func(*breaker)
		open   bool
		lasts  func(time.Duration) bool
	}{
		{"healthy", func(*breaker) {}, true, func(d time.Duration) bool { return d == scan }},
		{"open for long", func(b *breaker) { b.open(time.Hour, time.Hour) }, false,
			func(d time.Duration) bool { return d == scan }},
		{"open for a moment", func(b *breaker) { b.open(time.Hour, scan/2) }, false,
			func(d time.Duration) bool { return d > 0 && d <= scan/2 }},
		{"probed", func(b *breaker) {
			b.open(time.Hour, time.Millisecond)
			untilHalfOpen(t, b)
			if _, probe := b.start(uuid.New()); !probe {
				t.Fatal("not a probe")
			}
		}, false, func(d time.Duration) bool { return d == scan }},
	} {
		l := New(&Shared{Concurrency: 1, Timing: Specified(), Guard: f.resolvingAt(enginetest.NameServer(t))}, 7)
		l.breaker = newBreaker(l.shared.Timing, 1)
		c.change(l.breaker)
		if open, lasts := l.permits() > 0, l.maxWait(); open != c.open || !c.lasts(lasts) {
			t.Errorf("%s: open: %v, for %s", c.what, open, lasts)
		}
	}
}

// A lane that has lost its partner, or yields it, ends at once. A lost lane sends nothing
// more, and its loss is counted once.
func TestLoseAndYieldEndALane(t *testing.T) {
	f := &fixture{T: t}
	s := &Shared{
		Leases: leasesOf(1), Concurrency: 1, Timing: Specified(), Guard: f.resolvingAt(enginetest.NameServer(t)),
		Metrics: NewMetrics(prometheus.NewRegistry()),
	}
	lost, yielded := New(s, 7), New(s, 8)
	for _, l := range []*Lane{lost, yielded} {
		f.take(l)
		if l.Woken() || !l.Safe() || l.mustEnd(t.Context()) {
			t.Fatal("the test proves nothing")
		}
	}
	yielded.Yield()
	lost.lease.Load().Lose()
	lost.lease.Load().Lose()
	ended := lost.Run(t.Context())
	if n := testutil.ToFloat64(s.Metrics.LostLeases); n != 1 || !ended || lost.Safe() || lost.Leased() {
		t.Errorf("%v losses; ended %v, safe %v, leased %v", n, ended, lost.Safe(), lost.Leased())
	}
	if !yielded.Woken() || !yielded.Safe() || !yielded.Leased() || !yielded.mustEnd(t.Context()) {
		t.Errorf("yielded: woken %v, safe %v, leased %v", yielded.Woken(), yielded.Safe(), yielded.Leased())
	}
}
