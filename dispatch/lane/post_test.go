package lane

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// TestTransport checks settings whose effect only shows with proxies and compressing servers on
// real hosts: net/http uses no proxy for loopback.
func TestTransport(t *testing.T) {
	f := newFixture(t)
	p := newPoster(f.resolvingAt(enginetest.NameServer(t)), nil, nil, 4, time.Second)
	if p.transport.Proxy != nil {
		t.Error("a proxy would hide the address from the guard")
	}
	if !p.transport.DisableCompression || p.transport.TLSClientConfig.MinVersion != tls.VersionTLS12 {
		t.Error("responses are decompressed, or old TLS is allowed")
	}
}

// net/http would continue to open a connection that no request waits for any more: resolving the name beyond the
// deadline, and in the handshake forever.
func TestOpeningEndsWithTheAttempt(t *testing.T) {
	f := newFixture(t)
	lookups := make(chan error, 100)
	silent, err := guard.New(guard.Config{Resolver: &net.Resolver{PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			lookups <- ctx.Err()
			return nil, ctx.Err()
		}}})
	f.check(err)
	p := newPoster(silent, nil, nil, 4, time.Second)
	if r := p.post(
		t.Context(), Endpoint{URL: "https://" + testName, Secret: testSecret}, newEvent(),
	); r.Outcome != outcomeTimeout {
		t.Errorf("a silent name server: %s, %s", r.Outcome, r.Err)
	}
	if err := <-lookups; !errors.Is(err, context.Canceled) {
		t.Errorf("the resolver's own timeout ended the lookup: %v", err)
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
	p = newPoster(f.resolvingAt(enginetest.NameServer(t)), nil, nil, 4, time.Second)
	if r := p.post(
		t.Context(), Endpoint{URL: "https://" + listener.Addr().String(), Secret: testSecret}, newEvent(),
	); r.Outcome != outcomeTimeout {
		t.Errorf("a silent receiver: %s, %s", r.Outcome, r.Err)
	}
	<-closed // otherwise the test times out
}

// A status below 100 is none: an attempt with status 0 would have neither a status nor the reason why it has none.
func TestStatusThatIsNone(t *testing.T) {
	f := newFixture(t)
	for _, status := range []string{"000", "099"} {
		r := f.receiver(func(w http.ResponseWriter,
			_ *http.Request) {
			closeConn(f, w, "HTTP/1.1 "+status+" Fine\r\n\r\n", false)
		})
		got := f.posterTo(enginetest.NameServer(t)).post(t.Context(), Endpoint{URL: r.URL, Secret: testSecret}, newEvent())
		if want := `malformed HTTP status code "` + status + ` Fine"`; got.Outcome != outcomeNetwork || got.Status != 0 ||
			got.Err != want {
			t.Errorf("%s: %s with status %d: %s", status, got.Outcome, got.Status, got.Err)
		}
	}
}

// A phase that was not reported to the stopwatch did not happen.
func TestStopwatchWithoutReports(t *testing.T) {
	var s stopwatch
	s.watch(t.Context())
	if got := s.read(); got != NoPhases() {
		t.Errorf("%+v", got)
	}
}

// Each phase of a POST that happened has its own time: all of them on a new connection to a name, only the first byte
// on a reused one. If several addresses are tried, the start of the first one counts.
func TestPhases(t *testing.T) {
	var s stopwatch
	trace := httptrace.ContextClientTrace(s.watch(t.Context()))
	const each = 2 * time.Millisecond
	pause := func() { <-time.After(each) } // may take longer on a busy machine; only a minimum is checked
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
	if got.DNS < each || got.Connect < 2*each || got.TLS < each || got.FirstByte < got.DNS+got.Connect+got.TLS+each ||
		got.FirstByte > took {
		t.Errorf("%+v of %s", got, took)
	}
	trace = httptrace.ContextClientTrace(s.watch(t.Context()))
	trace.GotFirstResponseByte()
	if got := s.read(); got.DNS != -1 || got.Connect != -1 || got.TLS != -1 || got.FirstByte < 0 {
		t.Errorf("on a reused connection: %+v", got)
	}
}
