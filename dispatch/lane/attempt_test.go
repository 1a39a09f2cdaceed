package lane

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
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

// idle returns a lane of partner 7 with a lease, nothing to do and no PostgreSQL, whose breaker admits this many POSTs.
func (f *fixture) idle(permits int) *Lane {
	f.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.certificates)
	l := New(&Shared{
		Leases: leasesOf(5), Concurrency: permits, Slots: make(chan struct{}, permits), Timing: Specified(), Roots: roots,
		Guard: f.resolvingAt(enginetest.NameServer(f.T)), Metrics: NewMetrics(prometheus.NewRegistry()),
		Log: slog.New(slog.DiscardHandler),
	}, 7)
	f.take(l)
	l.breaker, l.version, l.url = newBreaker(l.shared.Timing, permits), 3, here
	return l
}

// TestAttempt follows one attempt from its slot to its record: the request, the stored result, the breaker and the
// slot.
func TestAttempt(t *testing.T) {
	sequence := int64(12)
	for _, c := range []struct {
		what    string
		status  int
		probe   bool
		held    bool // whether the fence holds at the record
		row     db.DueDeliveriesRow
		verdict Verdict // a Wait of 1 s represents any retry
		change  change
	}{
		{"accepted", 204, false, true, db.DueDeliveriesRow{Sequence: &sequence, Attempts: 1},
			Verdict{State: registry.Delivered, Attempts: 2, Finished: true}, unchanged},
		{"rejected", 500, false, true, db.DueDeliveriesRow{Sequence: &sequence},
			Verdict{State: registry.Pending, Attempts: 1, Wait: time.Second}, unchanged},
		{"last attempt of a test event", 500, false, true, db.DueDeliveriesRow{Attempts: 3},
			Verdict{State: registry.Failed, Attempts: 4, Finished: true}, unchanged},
		{"last attempt", 500, false, true, db.DueDeliveriesRow{Sequence: &sequence, Attempts: 3},
			Verdict{State: registry.Failed, Attempts: 4, Finished: true}, unchanged},
		{"last attempt, another owner by now", 500, false, false,
			db.DueDeliveriesRow{Sequence: &sequence, Attempts: 3},
			Verdict{State: registry.Failed, Attempts: 4, Finished: true}, unchanged},
		{"a rejected probe", 503, true, true, db.DueDeliveriesRow{Sequence: &sequence, Attempts: 2},
			Verdict{State: registry.Parked, Attempts: 2}, opened},
		{"an accepted probe", 200, true, true, db.DueDeliveriesRow{Sequence: &sequence, Attempts: 2},
			Verdict{State: registry.Delivered, Attempts: 3, Finished: true}, closed},
		{"another owner by now", 200, false, false, db.DueDeliveriesRow{Sequence: &sequence},
			Verdict{State: registry.Delivered, Attempts: 1, Finished: true}, unchanged},
	} {
		f := &fixture{T: t}
		requests := make(chan http.Header, 1)
		r := f.receiver(func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "{}" {
				t.Errorf("%s: the body is %q, %v", c.what, body, err)
			}
			requests <- r.Header
			w.WriteHeader(c.status)
		})
		l := f.idle(2)
		e := Endpoint{Version: 3, URL: r.URL, Secret: testSecret}
		l.shared.Endpoint = func(context.Context, int64) (Endpoint, bool, error) { return e, true, nil }
		recorded := make(chan Attempt, 1)
		l.shared.Record = func(_ context.Context, a Attempt) bool {
			if len(l.shared.Slots) != 0 {
				t.Errorf("%s: the slot is taken until the result is written", c.what)
			}
			recorded <- a
			return c.held
		}
		if c.probe {
			l.breaker.open(time.Minute, time.Millisecond)
			untilHalfOpen(t, l.breaker)
		}
		row := c.row
		row.EventID, row.Type, row.Body, row.Revision = uuid.New(), "deposit.referral", []byte("{}"), 4
		l.queue, l.read = []db.DueDeliveriesRow{row, {EventID: uuid.New()}}, time.Now()
		l.shared.Slots <- struct{}{}
		ended, end := context.WithCancel(t.Context())
		end() // must not cut off a POST in flight
		l.send(ended)
		if _, under := l.inFlight[row.EventID]; !under || len(l.queue) != 1 || (l.unsaved == probing) != c.probe {
			t.Errorf("%s: in flight %v, %d queued, breaker %s", c.what, l.inFlight, len(l.queue), l.unsaved)
		}
		flown := <-l.ended
		a := <-recorded
		wait := a.Verdict.Wait
		if a.Verdict.Wait -= c.verdict.Wait; a.Verdict.Wait >= 0 && wait <= c.verdict.Wait*6/5 {
			a.Verdict.Wait = c.verdict.Wait
		}
		if a.Partner != 7 || a.Fence != 5 || a.Delivery.EventID != row.EventID || a.Delivery.Revision != 4 ||
			a.Endpoint != e || a.Result.Status != c.status || a.Verdict != c.verdict {
			t.Errorf("%s: recorded as %+v", c.what, a)
		}
		change := flown.done(a.Result)
		if flown.breaker != l.breaker || flown.probe != c.probe || change != c.change || flown.fenced == c.held {
			t.Errorf("%s: ended as %+v, breaker %s", c.what, flown, change)
		}
		h := <-requests
		want := map[bool]string{true: "12"}[row.Sequence != nil]
		if h.Get("X-Service-Event-Id") != row.EventID.String() || h.Get("X-Service-Event-Type") != row.Type ||
			h.Get("X-Service-Sequence") != want {
			t.Errorf("%s: sent with %v", c.what, h)
		}
		if n := testutil.ToFloat64(l.shared.Metrics.Attempts.WithLabelValues(a.Result.Outcome)); n != 1 {
			t.Errorf("%s: counted %v times", c.what, n)
		}
		failed := map[bool]float64{true: 1}[c.what == "last attempt"]
		if n := testutil.ToFloat64(l.shared.Metrics.failed); n != failed {
			t.Errorf("%s: %v events have failed, want %v", c.what, n, failed)
		}
	}
}

// The operator's log has the cause of a missing response, with the resolver, and nothing if there was a response.
func TestCauseIsLogged(t *testing.T) {
	f := &fixture{T: t}
	r := f.receiver(func(http.ResponseWriter, *http.Request) {})
	l := f.idle(1)
	var logged strings.Builder
	l.shared.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l.shared.Record = func(context.Context, Attempt) bool { return true }
	for _, url := range []string{r.URL, here} {
		l.shared.Slots <- struct{}{}
		row := db.DueDeliveriesRow{EventID: uuid.New()}
		l.shared.try(t.Context(), flight{
			poster:  l.poster,
			attempt: Attempt{Partner: 7, Delivery: row, Endpoint: Endpoint{URL: url, Secret: testSecret}},
		})
		if found := strings.Contains(logged.String(), "no response to a webhook") &&
			strings.Contains(logged.String(), "lookup receiver.invalid. on "); found != (url == here) {
			t.Errorf("the log after a POST to %s: %s", url, logged.String())
		}
	}
}

// doneWith returns the done function of an attempt that changes its breaker in this way.
func doneWith(c change) func(Result) change { return func(Result) change { return c } }

// TestFinish checks how a lane changes when an attempt has ended.
func TestFinish(t *testing.T) {
	f := &fixture{T: t}
	refused := func(wait time.Duration) flight {
		return flight{attempt: Attempt{Verdict: Verdict{Wait: wait}}, done: doneWith(unchanged)}
	}
	delivered := flight{attempt: Attempt{Verdict: Verdict{Finished: true}}, done: doneWith(unchanged)}
	with := func(f flight, change func(*flight)) flight { change(&f); return f }
	for _, c := range []struct {
		what    string
		unsaved change
		look    time.Duration // from now; 0: nothing is pending
		f       flight
		older   bool // an older breaker admitted it
		want    change
		next    time.Duration
		lost    bool
	}{
		{"delivered", unchanged, 0, delivered, false, unchanged, 0, false},
		{"delivered, and more is pending", unchanged, time.Hour, delivered, false, unchanged, time.Hour, false},
		{"rejected", unchanged, 0, refused(time.Minute), false, unchanged, time.Minute, false},
		{"rejected, and more is pending for later", unchanged, time.Hour, refused(time.Minute), false, unchanged, time.Minute,
			false},
		{"rejected, and more is due before", unchanged, time.Second, refused(time.Minute), false, unchanged, time.Second,
			false},
		{"opens the breaker", unchanged, 0, with(delivered, func(f *flight) { f.done = doneWith(opened) }), false, opened, 0,
			false},
		{"closed before that was written", opened, 0, with(delivered, func(f *flight) { f.done = doneWith(closed) }), false,
			closed, 0, false},
		{"after the opening", opened, 0, delivered, false, opened, 0, false},
		{"opens an older breaker", unchanged, 0, with(delivered, func(f *flight) { f.done = doneWith(opened) }), true,
			unchanged, 0, false},
		{"the partner has another owner", unchanged, 0, with(refused(time.Minute), func(f *flight) { f.fenced = true }),
			false, unchanged, time.Minute, true},
	} {
		l := f.idle(1)
		now := time.Now()
		l.busy, l.nextFetch, l.unsaved = now.Add(-time.Hour), time.Time{}, c.unsaved
		if c.look > 0 {
			l.nextFetch = now.Add(c.look)
		}
		c.f.attempt.Delivery.EventID, c.f.breaker, c.f.poster = uuid.New(), l.breaker, l.poster
		if c.older {
			c.f.breaker = newBreaker(l.shared.Timing, 1)
		}
		l.inFlight[c.f.attempt.Delivery.EventID] = struct{}{}
		l.finish(c.f)
		if len(l.inFlight) != 0 || l.busy.Before(now) || l.unsaved != c.want || l.Leased() == c.lost {
			t.Errorf(
				"%s: %d in flight, busy %s ago, unsaved change %s, lost: %v", c.what, len(l.inFlight), time.Since(l.busy),
				l.unsaved, !l.Leased(),
			)
		}
		// Not before the retry is due by PostgreSQL's clock.
		if wait := l.nextFetch.Sub(now); l.nextFetch.IsZero() != (c.next == 0) || c.next > 0 &&
			(wait < c.next || c.look != c.next && wait == c.next || wait > c.next+time.Minute/2) {
			t.Errorf("%s: the next read is in %s", c.what, wait)
		}
	}
}

// A lane that must end waits for its POSTs, and saves the last change of its breaker.
func TestRunLetsPostsFinish(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	ended, end := context.WithCancel(t.Context())
	end()
	l.breaker.open(time.Hour, time.Hour)
	for n := range 2 {
		a := flight{poster: l.poster, attempt: Attempt{
			Delivery: db.DueDeliveriesRow{EventID: eventID(n)}, Verdict: Verdict{Finished: true},
		}, breaker: l.breaker, done: doneWith(unchanged)}
		if n == 1 {
			a.done = doneWith(opened)
		}
		l.inFlight[eventID(n)] = struct{}{}
		go func() { l.ended <- a }()
	}
	if !l.Run(ended) || len(l.inFlight) != 0 || l.unsaved != unchanged ||
		f.number("SELECT count(*) FROM breaker WHERE state = 'open'") != 1 {
		t.Errorf("%d POSTs are in flight, and the change %s of the breaker is unsaved", len(l.inFlight), l.unsaved)
	}
}
