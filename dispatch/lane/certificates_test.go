package lane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
	"github.com/navlog/navlog/schemas/registry/db"
)

// pinned parses certificates, as dispatch does.
func (f *fixture) pinned(texts certs.Texts) *certs.Pinned {
	f.Helper()
	p, err := texts.Parse()
	f.check(err)
	return &p
}

// mutual is a receiver that demands client certificates of an authority, and whose own certificate is from it. seen has
// the name of the client of each request, made the number of its connections so far, and open that of the open ones.
type mutual struct {
	*httptest.Server
	seen chan string
	made atomic.Int64
	open atomic.Int64
}

func (f *fixture) mutual(ca *certstest.Authority, change func(*tls.Config)) *mutual {
	f.Helper()
	m := &mutual{seen: make(chan string, 10)}
	m.Server = f.receiverWith(func(w http.ResponseWriter, r *http.Request) {
		m.seen <- r.TLS.PeerCertificates[0].Subject.CommonName
		w.WriteHeader(http.StatusNoContent)
	}, func(s *httptest.Server) {
		s.TLS = ca.Server()
		if change != nil {
			change(s.TLS)
		}
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				m.made.Add(1)
				m.open.Add(1)
			case http.StateClosed:
				m.open.Add(-1)
			}
		}
	})
	return m
}

// A receiver with a private authority that demands a client certificate gets events if both are set for its URL.
// Otherwise the stored error names what is missing or wrong.
func TestCertificatesOfTheURL(t *testing.T) {
	f := newFixture(t)
	ours, theirs := certstest.New(t), certstest.New(t)
	hour := time.Now().Add(-time.Hour)
	late, err := ours.IssueUntil("late", hour.Add(-time.Hour), hour)
	f.check(err)
	old, err := ours.IssueUntil("old server", hour.Add(-time.Hour), hour)
	f.check(err)
	both := ours.Texts(ours.Client("acme"))
	foreign := theirs.Texts(theirs.Client("foreign"))
	foreign.Authorities = both.Authorities
	strict := f.mutual(ours, nil)
	older := f.mutual(ours, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	expired := f.mutual(ours, func(c *tls.Config) { c.Certificates = []tls.Certificate{old} })
	system := x509.NewCertPool() // stands for the system's authorities: it does not have ours

	for what, c := range map[string]struct {
		receiver *mutual
		texts    certs.Texts
		want     string // part of the error; empty: accepted
	}{
		"both":    {strict, both, ""},
		"TLS 1.2": {older, both, ""},
		"no certificates": {strict, certs.Texts{},
			"the receiver's certificate is signed by an unknown authority"},
		"another authority": {strict, theirs.Texts(theirs.Client("x")),
			"the receiver's certificate is signed by an unknown authority"},
		"no client certificate": {strict, certs.Texts{Authorities: both.Authorities},
			"client certificate, and navlog has none for this URL"},
		"no client certificate, 1.2": {older, certs.Texts{Authorities: both.Authorities},
			"client certificate, and navlog has none for this URL"},
		"another authority's":      {strict, foreign, "client certificate"},
		"another authority's, 1.2": {older, foreign, "client certificate"},
		"an expired certificate": {strict, ours.Texts(late),
			`the certificate of "CN=late" expired at ` + hour.UTC().Format(time.RFC3339)},
		"an expired certificate, 1.2": {older, ours.Texts(late),
			`the certificate of "CN=late" expired at ` + hour.UTC().Format(time.RFC3339)},
		"an expired receiver": {expired, both,
			`cannot be verified: the certificate of "CN=old server" expired at ` + hour.UTC().Format(time.RFC3339)},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPoster(f.resolvingAt(enginetest.NameServer(t)), system, f.pinned(c.texts), 1, time.Minute)
			t.Cleanup(p.transport.CloseIdleConnections)
			e := Endpoint{URL: c.receiver.URL + "/hook?token=" + urlToken, Secret: testSecret}
			r := p.post(t.Context(), e, newEvent())
			if r.accepted() != (c.want == "") || !strings.Contains(r.Err, c.want) || strings.Contains(r.Err, urlToken) {
				t.Errorf("%s: %q, want %q; the cause is %v", r.Outcome, r.Err, c.want, r.Cause)
			}
			if c.want == "" {
				if client := <-c.receiver.seen; client != "acme" {
					t.Errorf("the client is %q", client)
				}
			}
		})
	}
}

// The errors with which TLS stacks reject a client certificate: an alert, in TLS 1.3 after the handshake, or nothing
// but a closed connection.
func TestClientCertificateErrors(t *testing.T) {
	ca := certstest.New(t)
	client := []*x509.Certificate{ca.Client("acme").Leaf}
	now := time.Now()
	alert := func(text string) error { return &net.OpError{Op: "remote error", Err: errors.New("tls: " + text)} }
	closed := &net.OpError{Op: "read", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 443}, Err: syscall.ECONNRESET}
	for _, c := range []struct {
		err  error
		auth clientAuth
		at   time.Time
		want string
	}{
		{alert("certificate required"), clientAuth{}, now,
			"the receiver demands a client certificate, and navlog has none for this URL"},
		{alert("handshake failure"), clientAuth{}, now, "remote error: tls: handshake failure"},
		{alert("handshake failure"), clientAuth{asked: true}, now,
			"remote error: tls: handshake failure; the receiver asked for a client certificate, and navlog has none for this " +
				"URL"},
		{alert("unknown certificate authority"), clientAuth{asked: true, sent: client}, now,
			"the receiver rejected navlog's client certificate: tls: unknown certificate authority"},
		{alert("expired certificate"), clientAuth{asked: true, sent: client}, now.Add(2 * time.Hour),
			`remote error: tls: expired certificate; the receiver asked for a client certificate, and the certificate of "CN=acme" expired at ` + client[0].NotAfter.UTC().Format(time.RFC3339)},
		{closed, clientAuth{asked: true, sent: client}, now,
			"192.0.2.7:443 reset the connection; the receiver had asked for a client certificate and got one"},
		{closed, clientAuth{sent: client}, now, "192.0.2.7:443 reset the connection"},
	} {
		if got := c.auth.explain(c.err, c.at); got != c.want {
			t.Errorf("%v is explained as %q, want %q", c.err, got, c.want)
		}
	}
}

// Other certificates, and every new version of the endpoint, since the receiver may be elsewhere after a registration,
// take effect with the next attempt: on a separate connection with a separate TLS session. The earlier connections
// are closed then and only then, those in use when their attempt has ended. Only the lane closes them here.
func TestCertificatesChange(t *testing.T) {
	f := newFixture(t).withPostgres()
	ca := certstest.New(t)
	r := f.mutual(ca, nil)
	l := f.lane7()
	e := Endpoint{Version: 1, URL: r.URL, Secret: testSecret, Certificates: f.pinned(ca.Texts(ca.Client("first")))}
	l.shared.Endpoint = func(context.Context, int64) (Endpoint, bool, error) { return e, true, nil }
	l.shared.Record = func(context.Context, Attempt) bool { return true }
	l.shared.Timing.Scan = time.Hour // the queue is not read again
	follow := func() {
		t.Helper()
		before := l.poster
		f.check(l.follow(t.Context(), e))
		if l.poster != before {
			l.poster.transport.IdleConnTimeout = 0
		}
	}
	send := func() flight {
		t.Helper()
		follow()
		l.queue, l.read = []db.DueDeliveriesRow{{EventID: uuid.New(), Type: "t", Body: []byte("{}")}},
			time.Now()
		l.shared.Slots <- struct{}{}
		l.send(t.Context())
		if len(l.inFlight) != 1 {
			t.Fatal("nothing was sent")
		}
		return <-l.ended
	}
	names := func(want string) {
		t.Helper()
		if got := <-r.seen; got != want {
			t.Errorf("the client is %q, want %q", got, want)
		}
	}
	l.finish(send())
	names("first")
	held := send() // has ended, but its lane has not handled that yet
	names("first")
	if n := r.open.Load(); n != 1 {
		t.Errorf("%d connections for two attempts, one after the other", n)
	}

	e.Version, e.Certificates = 2, f.pinned(ca.Texts(ca.Client("second")))
	before := l.poster
	follow()
	if l.poster == before || l.poster.transport.TLSClientConfig.ClientSessionCache == before.transport.TLSClientConfig.ClientSessionCache {
		t.Error("the new certificates share connections or TLS sessions with the earlier ones")
	}
	// An attempt that began before the change opens its connection only now.
	if got := held.poster.post(t.Context(), held.attempt.Endpoint,
		newEvent()); !got.accepted() {
		t.Errorf("the earlier attempt ended with %s: %s", got.Outcome, got.Err)
	}
	names("first")
	l.finish(held)
	f.until(func() bool { return r.open.Load() == 0 })
	l.finish(send())
	names("second")

	// The same certificates under another version, as after a rotation of the secret. The version may be a
	// registration, so its attempts share one new connection, which costs one handshake, and the earlier connection is
	// closed.
	e.Version = 3
	made := r.made.Load()
	for range 2 {
		l.finish(send())
		names("second")
	}
	if n := r.made.Load() - made; n != 1 {
		t.Errorf("%d connections for two attempts of a new version, one after the other", n)
	}
	f.until(func() bool { return r.open.Load() == 1 })
	l.Close() // as when a lane has ended
	f.until(func() bool { return r.open.Load() == 0 })

	// They were removed.
	e.Version, e.Certificates = 4, nil
	ended := send()
	if want := "the receiver's certificate is signed by an unknown authority"; ended.attempt.Result.Err != want {
		t.Errorf("without certificates: %q", ended.attempt.Result.Err)
	}
	l.finish(ended)
	f.until(func() bool { return r.open.Load() == 0 })
}

// until waits for a condition.
func (f *fixture) until(holds func() bool) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	f.check(wait.Poll(ctx, 5*time.Millisecond, func() (bool, error) { return holds(), nil }))
}
