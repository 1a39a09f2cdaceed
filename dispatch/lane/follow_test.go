package lane

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

const (
	here  = "https://receiver.invalid/hook"
	there = "https://elsewhere.invalid/hook"
)

// What becomes of a breaker is written under the lane's fence, once, and is what the next lane of the partner begins with.
func TestBreakerIsSavedAndRestored(t *testing.T) {
	f := newFixture(t).withPostgres()
	l := f.planned()
	rows := func(where string) int64 {
		t.Helper()
		return f.number("SELECT count(*) FROM breaker WHERE partner_id = 7 AND endpoint_version = 1 AND url = $1 AND "+where, here)
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
		t.Error("what did not change is written")
	}
	save(opened)
	const as = "state = 'open' AND open_ms = 3600000 AND refusing AND open_until BETWEEN now() + interval '55 minutes' AND now() + interval '1 hour'"
	if rows(as) != 1 {
		t.Error("the opening is not written")
	}
	f.exec("UPDATE lease SET until = now()")
	next := f.planned()
	if permits, wait := next.breaker.permits(); permits != 0 || wait < 55*time.Minute || next.breaker.openTime() != time.Hour || !next.breaker.refuses() {
		t.Errorf("the next lane's is open for %s of %s, refusing: %v", wait, next.breaker.openTime(), next.breaker.refuses())
	}
	for _, late := range []change{probing, closed} { // the older lane's
		save(late)
		if rows(as) != 1 {
			t.Errorf("%s: written by a lane whose lease is another's", late)
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
		t.Error("the one that closed is still written, or another's is not")
	}
}

// A breaker is that of its URL: another version of the endpoint with the same keeps it, with what is to be written of it;
// another URL begins anew, and what is written of the older one goes, but not where the lease is another's.
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
			t.Errorf("version %d: version %d and URL %s are followed, the same breaker: %v, to be written: %s", version+1, l.version, l.url, l.breaker == first, l.unsaved)
		}
	}
	if permits, _ := l.breaker.permits(); permits != l.shared.Concurrency {
		t.Errorf("%d permits at a new URL", permits)
	}
	l.breaker.open(time.Hour, time.Hour)
	l.unsaved = opened
	f.check(l.save(t.Context()))
	f.exec("UPDATE lease SET fence = fence + 1")
	f.check(l.follow(t.Context(), Endpoint{Version: 4, URL: here, Secret: testSecret}))
	if f.number("SELECT count(*) FROM breaker WHERE url = $1 AND endpoint_version = 3", there) != 1 {
		t.Error("what another lane may have written is gone")
	}
}

// A registration says that the receiver may be elsewhere: a connection that is kept goes with it, and only then.
func TestAnotherVersionClosesConnections(t *testing.T) {
	f := &fixture{T: t}
	states := make(chan http.ConnState, 10)
	r := f.receiverWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
	})
	l := f.idle(1)
	l.poster.transport.IdleConnTimeout = 0 // the transport itself would keep it for ever
	e := Endpoint{Version: l.version, URL: r.URL, Secret: testSecret}
	l.url = r.URL
	post := func(first http.ConnState) {
		t.Helper()
		if got := l.poster.post(t.Context(), e, message{}); !got.accepted() {
			t.Fatalf("%s: %v", got.Outcome, got.Cause)
		}
		if got := <-states; got != first {
			t.Errorf("the connection is %s, and not %s", got, first)
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
			t.Errorf("the connection to where the receiver was is %s", got)
		}
	case <-time.After(time.Minute): // nothing else closes it
		t.Error("the connection to where the receiver was is kept")
	}
}
