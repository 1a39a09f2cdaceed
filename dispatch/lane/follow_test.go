package lane

import (
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines/enginetest"
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
			t.Errorf("%s: the change would be written again", what)
		}
	}
	l.breaker.open(time.Hour, time.Hour)
	l.breaker.refusing = true
	save(unchanged)
	if rows("true") != 0 {
		t.Error("an unchanged breaker is written")
	}
	save(opened)
	const as = "state = 'open' AND open_ms = 3600000 AND refusing AND open_until BETWEEN now() + interval '55 minutes' " +
		"AND now() + interval '1 hour'"
	if rows(as) != 1 {
		t.Error("the opening is not written")
	}
	f.exec("UPDATE job_lease SET until = now() WHERE kind = 'partner'")
	next := f.planned()
	if permits, wait := next.breaker.permits(); permits != 0 || wait < 55*time.Minute ||
		next.breaker.openFor != time.Hour || !next.breaker.refusing {
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
	f.exec("INSERT INTO breaker (partner_id, endpoint_version, url, state, opened_at, open_until, open_ms, refusing) " +
		"SELECT 8, endpoint_version, url, state, opened_at, open_until, open_ms, refusing FROM breaker")
	save(closed)
	if f.number("SELECT count(*) FROM breaker WHERE partner_id = 7") != 0 ||
		f.number("SELECT count(*) FROM breaker") != 1 {
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
		if l.version != int64(version+1) || l.url != url || (l.breaker == first) != same || (l.unsaved == probing) != same ||
			(f.number("SELECT count(*) FROM breaker") == 1) != same {
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

// A receiver's name leads to another address while a connection to the old one is open and works. With steady traffic
// the connection is never idle, but it is used only for a while. The breaker stays.
func TestConnectionsAreUsedForAWhile(t *testing.T) {
	f := newFixture(t).withPostgres()
	names := enginetest.NameServer(t)
	got, port := "", "0"
	for _, addr := range []string{"127.0.0.1", "127.0.0.3"} {
		listener, err := net.Listen("tcp", net.JoinHostPort(addr, port))
		f.check(err)
		_, port, _ = net.SplitHostPort(listener.Addr().String())
		f.receiverWith(func(http.ResponseWriter, *http.Request) { got = addr }, func(s *httptest.Server) {
			s.Listener.Close()
			s.Listener = listener
		})
	}
	l := f.lane7()
	l.shared.Guard, l.shared.Roots = f.resolvingAt(names), x509.NewCertPool()
	l.shared.Roots.AppendCertsFromPEM(f.certificates)
	e := Endpoint{Version: 1, URL: "https://" + testName + ":" + port + "/hook", Secret: testSecret}
	post := func(what, want string) {
		t.Helper()
		f.check(l.follow(t.Context(), e))
		if r := l.poster.post(t.Context(), e, newEvent()); !r.accepted() || got != want {
			t.Errorf("%s: %s by %s, want %s: %v", what, r.Outcome, got, want, r.Cause)
		}
	}
	names.SetAddrs("127.0.0.1")
	post("at first", "127.0.0.1")
	breaker := l.breaker
	names.SetAddrs("127.0.0.3")
	post("on the connection", "127.0.0.1")
	l.poster.made = l.poster.made.Add(-connectionAge)
	post("after a while", "127.0.0.3")
	if l.breaker != breaker {
		t.Error("the breaker is a new one")
	}
}
