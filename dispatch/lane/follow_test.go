package lane

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

const (
	here  = "https://receiver.invalid/hook"
	there = "https://elsewhere.invalid/hook"
)

// A change of the breaker is saved once, under the lane's fence, and the partner's next lane starts with it.
func TestBreakerIsSavedAndRestored(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	rows := func(where string) int64 {
		t.Helper()
		return f.number(
			"SELECT count(*) FROM breaker WHERE partner_id = 7 AND endpoint_version = 1 AND url = $1 AND "+where, here,
		)
	}
	save := func(what change) {
		t.Helper()
		l.unsaved = what
		f.check(l.save(t.Context()))
		if l.unsaved != unchanged {
			t.Errorf("%s: it would be written again", what)
		}
	}
	l.breaker.open(time.Hour, time.Hour)
	l.breaker.refusing = true
	save(unchanged)
	if rows("true") != 0 {
		t.Error("an unchanged breaker is written")
	}
	save(opened)
	const as = "state = 'open' AND open_ms = 3600000 AND refusing AND open_until BETWEEN now() + interval '55 minutes' AND now() + interval '1 hour'"
	if rows(as) != 1 {
		t.Error("the opening is not written")
	}
	f.exec("UPDATE job_lease SET until = now() WHERE kind = 'partner'")
	next := f.planned()
	if permits, wait := next.breaker.permits(); permits != 0 || wait < 55*time.Minute || next.breaker.openFor != time.Hour || !next.breaker.refusing {
		t.Errorf(
			"the next lane's breaker is open for %s of %s, refusing: %v", wait, next.breaker.openFor, next.breaker.refusing,
		)
	}
	for _, late := range []change{probing, closed} { // of the older lane
		save(late)
		if rows(as) != 1 {
			t.Errorf("%s: written by a lane that lost its lease", late)
		}
	}
	l = next
	f.exec("UPDATE breaker SET url = $1", there)
	save(probing)
	if rows("true") != 0 || f.number("SELECT count(*) FROM breaker WHERE state = 'open'") != 1 {
		t.Error("the breaker of another URL is probed")
	}
	f.exec("UPDATE breaker SET url = $1", here)
	save(probing)
	if rows("state = 'half-open' AND open_ms = 3600000") != 1 {
		t.Error("the probe is not written")
	}
	f.exec("INSERT INTO breaker (partner_id, endpoint_version, url, state, opened_at, open_until, open_ms, refusing) SELECT 8, endpoint_version, url, state, opened_at, open_until, open_ms, refusing FROM breaker")
	save(closed)
	if f.number("SELECT count(*) FROM breaker WHERE partner_id = 7") != 0 || f.number("SELECT count(*) FROM breaker") != 1 {
		t.Error("the closed breaker is still stored, or another partner's is not")
	}
}

// A breaker belongs to its URL: a new version of the endpoint with the same URL keeps it and its unsaved change.
// Another URL starts with a new breaker, and the stored one is deleted unless another owner has the lease.
func TestBreakerFollowsItsURL(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	first := l.breaker
	first.open(time.Hour, time.Hour)
	l.unsaved = opened
	f.check(l.save(t.Context()))
	l.unsaved = probing
	for version, url := range []string{here, here, there} {
		f.check(l.follow(t.Context(), Endpoint{Version: int64(version + 1), URL: url, Secret: testSecret}))
		same := url == here
		if l.version != int64(version+1) || l.url != url || (l.breaker == first) != same || (l.unsaved == probing) != same || (f.number("SELECT count(*) FROM breaker") == 1) != same {
			t.Errorf(
				"version %d: the lane has version %d and URL %s, the same breaker: %v, unsaved: %s", version+1, l.version, l.url,
				l.breaker == first, l.unsaved,
			)
		}
	}
	if permits, _ := l.breaker.permits(); permits != l.shared.Concurrency {
		t.Errorf("%d permits at a new URL", permits)
	}
	l.breaker.open(time.Hour, time.Hour)
	l.unsaved = opened
	f.check(l.save(t.Context()))
	f.exec("UPDATE job_lease SET fence = fence + 1 WHERE kind = 'partner'")
	f.check(l.follow(t.Context(), Endpoint{Version: 4, URL: here, Secret: testSecret}))
	if f.number("SELECT count(*) FROM breaker WHERE url = $1 AND endpoint_version = 3", there) != 1 {
		t.Error("a breaker that another lane may have stored is deleted")
	}
}

// After a registration the receiver may be elsewhere, so idle connections are closed then, and only then.
func TestAnotherVersionClosesConnections(t *testing.T) {
	f := &fixture{T: t}
	states := make(chan http.ConnState, 10)
	r := f.receiverWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
	})
	l := f.idle(1)
	l.poster.transport.IdleConnTimeout = 0 // the transport itself would keep it forever
	e := Endpoint{Version: l.version, URL: r.URL, Secret: testSecret}
	l.url = r.URL
	post := func(first http.ConnState) {
		t.Helper()
		if got := l.poster.post(t.Context(), e, message{}); !got.accepted() {
			t.Fatalf("%s: %v", got.Outcome, got.Cause)
		}
		if got := <-states; got != first {
			t.Errorf("the connection is %s, want %s", got, first)
		}
		for <-states != http.StateIdle {
		}
	}
	post(http.StateNew)
	f.check(l.follow(t.Context(), e))
	post(http.StateActive) // the same one
	e.Version++
	f.check(l.follow(t.Context(), e))
	select {
	case got := <-states:
		if got != http.StateClosed {
			t.Errorf("the connection to the old address is %s", got)
		}
	case <-time.After(time.Minute): // nothing else closes it
		t.Error("the connection to the old address is kept")
	}
}

// A connection in use at a registration may lead to the old address too: no later attempt uses it, and it is closed
// when its attempt has ended.
func TestAnotherVersionClosesConnectionsInUse(t *testing.T) {
	f := &fixture{T: t}
	from, release, closed := make(chan string, 1), make(chan struct{}), make(chan string, 10)
	var requests atomic.Int64
	r := f.receiverWith(func(w http.ResponseWriter, r *http.Request) {
		from <- r.RemoteAddr
		if requests.Add(1) == 1 {
			<-release
		}
		w.WriteHeader(http.StatusNoContent)
	}, func(s *httptest.Server) {
		s.Config.ConnState = func(c net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed <- c.RemoteAddr().String()
			}
		}
	})
	l := f.idle(4)
	l.url = r.URL
	e := Endpoint{Version: l.version, URL: r.URL, Secret: testSecret}
	post := func(p *poster) {
		if got := p.post(t.Context(), e, message{}); !got.accepted() {
			t.Errorf("%s: %v", got.Outcome, got.Cause)
		}
	}
	earlier := flight{poster: l.poster, attempt: Attempt{Verdict: Verdict{Finished: true}}, done: leaves(unchanged)}
	ended := make(chan struct{})
	go func() { post(earlier.poster); close(ended) }()
	old := <-from

	e.Version++
	f.check(l.follow(t.Context(), e))
	post(l.poster) // while the earlier attempt is in flight
	next := <-from
	close(release)
	<-ended
	l.finish(earlier)
	post(l.poster)
	if again := <-from; next == old || again != next {
		t.Errorf("the attempts of the new version came from %s and %s, the earlier one from %s", next, again, old)
	}
	select {
	case got := <-closed:
		if got != old {
			t.Errorf("the connection from %s is closed, want that from %s", got, old)
		}
	case <-time.After(20 * time.Second): // before the transport itself closes it
		t.Error("the connection to the old address is kept")
	}
}
