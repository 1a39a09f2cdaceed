package lane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// What the transport must not do, and could only be seen doing with proxies and
// packers on real hosts: net/http takes no proxy to loopback.
func TestTransport(t *testing.T) {
	f := newFixture(t)
	p := newPoster(f.asking(enginetest.NameServer(t)), nil, 4, time.Second)
	if p.transport.Proxy != nil {
		t.Error("a proxy would hide the address from the guard")
	}
	if !p.transport.DisableCompression || p.transport.TLSClientConfig.MinVersion != tls.VersionTLS12 {
		t.Error("answers are unpacked, or old TLS is allowed")
	}
}

// net/http would go on with a connection that nobody waits for any more: with the
// look-up of the name beyond the deadline, with the handshake for ever.
func TestOpeningEndsWithTheAttempt(t *testing.T) {
	f := newFixture(t)
	lookups := make(chan error, 100)
	silent, err := guard.New(guard.Config{Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		lookups <- ctx.Err()
		return nil, ctx.Err()
	}}})
	f.check(err)
	p := newPoster(silent, nil, 4, time.Second)
	if r := p.post(t.Context(), Endpoint{URL: "https://" + testName, Secret: testSecret}, message{}); r.Outcome != outcomeTimeout {
		t.Errorf("a name server that says nothing: %s, %s", r.Outcome, r.Err)
	}
	if err := <-lookups; !errors.Is(err, context.Canceled) {
		t.Errorf("the look-up was ended by the resolver's own patience: %v", err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	f.check(err)
	defer listener.Close()
	closed := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		closed <- err
	}()
	p = newPoster(f.asking(enginetest.NameServer(t)), nil, 4, time.Second)
	if r := p.post(t.Context(), Endpoint{URL: "https://" + listener.Addr().String(), Secret: testSecret}, message{}); r.Outcome != outcomeTimeout {
		t.Errorf("a receiver that says nothing: %s, %s", r.Outcome, r.Err)
	}
	<-closed // the test's time is over where it is not
}

// A lane that ended closes what it kept open, and leaves that to nobody.
func TestCloseEndsConnections(t *testing.T) {
	f := newFixture(t)
	states := make(chan http.ConnState, 10)
	r := f.receiverWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		func(s *httptest.Server) {
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
		})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.certificates)
	l := New(&Shared{Concurrency: 1, Timing: Specified(), Guard: f.asking(enginetest.NameServer(t)), Roots: roots}, 7)
	l.poster.transport.IdleConnTimeout = 0 // the transport itself would keep it for ever
	if got := l.poster.post(t.Context(), Endpoint{URL: r.URL, Secret: testSecret}, message{}); !got.accepted() {
		t.Fatalf("%s: %v", got.Outcome, got.Cause)
	}
	for <-states != http.StateIdle {
	}
	l.Close()
	select {
	case state := <-states:
		if state != http.StateClosed {
			t.Errorf("the connection is %s", state)
		}
	case <-time.After(time.Minute): // nothing else closes it
		t.Error("the connection is kept")
	}
}

// What a stopwatch was never told did not happen.
func TestStopwatchWithoutNews(t *testing.T) {
	var s stopwatch
	s.watch(t.Context())
	if got := s.read(); got != NoPhases() {
		t.Errorf("%+v", got)
	}
}

// Each part of a POST has a time of its own, where it happened: over a new connection to a name all of them, over a kept one
// only the wait for the answer. Of several addresses that are tried, the first one's start counts.
func TestPhases(t *testing.T) {
	var s stopwatch
	trace := httptrace.ContextClientTrace(s.watch(t.Context()))
	const each = 2 * time.Millisecond
	pause := func() { <-time.After(each) } // it takes longer on a busy machine, and is not held to more
	trace.DNSStart(httptrace.DNSStartInfo{})
	pause()
	trace.DNSDone(httptrace.DNSDoneInfo{})
	trace.ConnectStart("tcp", "192.0.2.1:443")
	pause()
	trace.ConnectStart("tcp", "192.0.2.2:443")
	pause()
	trace.ConnectDone("tcp", "192.0.2.2:443", nil)
	trace.TLSHandshakeStart()
	pause()
	trace.TLSHandshakeDone(tls.ConnectionState{}, nil)
	pause()
	trace.GotFirstResponseByte()
	took := time.Since(s.started)
	got := s.read()
	if got.DNS < each || got.Connect < 2*each || got.TLS < each || got.FirstByte < got.DNS+got.Connect+got.TLS+each || got.FirstByte > took {
		t.Errorf("%+v of %s", got, took)
	}
	trace = httptrace.ContextClientTrace(s.watch(t.Context()))
	trace.GotFirstResponseByte()
	if got := s.read(); got.DNS != -1 || got.Connect != -1 || got.TLS != -1 || got.FirstByte < 0 {
		t.Errorf("over a kept connection: %+v", got)
	}
}
