package dispatch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// raw is a receiver below TLS. It does something with each connection and closes
// it.
func (f *fixture) raw(do func(*net.TCPConn)) (address string) {
	f.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	f.check(err)
	f.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				do(conn.(*net.TCPConn))
			}()
		}
	}()
	return listener.Addr().String()
}

// asking is a guard that lets loopback pass and looks names up at an address.
func (f *fixture) asking(nameServer string) *guard.Guard {
	f.Helper()
	g, err := guard.New(guard.Config{AllowNetworks: []string{"127.0.0.0/8"}, Resolver: &net.Resolver{PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "udp", nameServer)
		}}})
	f.check(err)
	return g
}

// nobody is an address where nobody listens.
func (f *fixture) nobody() string {
	f.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	f.check(err)
	defer conn.Close()
	return conn.LocalAddr().String()
}

// reset ends a connection with RST instead of FIN.
func reset(conn *net.TCPConn) { _ = conn.SetLinger(0) }

// What is stored of a POST without an answer is the kind of failure and the
// partner's own name or address: not who was asked for the name, and not where we
// are.
func TestFailuresNameOnlyThePartner(t *testing.T) {
	f := newFixture(t)
	names, _ := f.nameServer()
	names.say() // no such name
	inside, _ := f.nameServer()
	inside.say("10.0.0.1")
	trusted := f.receiver(func(w http.ResponseWriter, _, _ int) {
		conn, _, err := w.(http.Hijacker).Hijack()
		f.check(err)
		below := conn.(*tls.Conn).NetConn().(*net.TCPConn) // whose end TLS does not announce
		reset(below)
		below.Close()
	})
	old := f.receiverWith(ok, func(s *httptest.Server) { s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11} })
	demanding := f.receiverWith(ok, func(s *httptest.Server) { s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert} })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.caFiles)
	stranger := httptest.NewTLSServer(nil)
	stranger.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(stranger.Close)
	strange := x509.NewCertPool()
	own := f.nobody()
	hello := func(conn *net.TCPConn) { _, _ = conn.Read(make([]byte, 1)) }
	resets := f.raw(func(conn *net.TCPConn) { hello(conn); reset(conn) })
	closes := f.raw(func(conn *net.TCPConn) { hello(conn); _ = conn.CloseWrite(); _, _ = io.Copy(io.Discard, conn) })
	plain := f.raw(func(conn *net.TCPConn) { _, _ = conn.Write([]byte("220 mail.example.com ESMTP\r\n")); hello(conn) })
	silent := f.raw(func(conn *net.TCPConn) { _, _ = io.Copy(io.Discard, conn) })

	for what, c := range map[string]struct {
		nameServer, host string
		roots            *x509.CertPool
		outcome, want    string
	}{
		"no such name":        {names.conn.LocalAddr().String(), testName, roots, outcomeNetwork, "the name " + testName + " has no address"},
		"no name server":      {f.nobody(), testName, roots, outcomeNetwork, "the name " + testName + " cannot be looked up"},
		"nobody listens":      {own, own, roots, outcomeNetwork, own + " refused the connection"},
		"reset in handshake":  {own, resets, roots, outcomeNetwork, resets + " reset the connection"},
		"reset after request": {own, trusted.Listener.Addr().String(), roots, outcomeNetwork, trusted.Listener.Addr().String() + " reset the connection"},
		"closed in handshake": {own, closes, roots, outcomeNetwork, "the connection was closed before an answer"},
		"unknown certificate": {own, stranger.Listener.Addr().String(), strange, outcomeNetwork, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"old TLS":             {own, old.Listener.Addr().String(), roots, outcomeNetwork, "remote error: tls: protocol version not supported"},
		"client certificate":  {own, demanding.Listener.Addr().String(), roots, outcomeNetwork, "remote error: tls: certificate required"},
		"no TLS":              {own, plain, roots, outcomeNetwork, "tls: first record does not look like a TLS handshake"},
		"no answer":           {own, silent, roots, outcomeTimeout, "no answer in time"},
		"an address inside":   {own, "10.0.0.1", roots, outcomeForbidden, "address 10.0.0.1 is not a public one"},
		"a name inside":       {inside.conn.LocalAddr().String(), testName, roots, outcomeForbidden, "host " + testName + " has an address that is not public"},
	} {
		t.Run(what, func(t *testing.T) {
			deadline := time.Minute
			if c.outcome == outcomeTimeout {
				deadline = time.Second
			}
			p := newPoster(f.asking(c.nameServer), c.roots, 1, deadline)
			t.Cleanup(p.transport.CloseIdleConnections)
			r := p.post(t.Context(), endpoint{url: "https://" + c.host + "/hook?token=" + urlToken, secret: testSecret}, message{event: uuid.New(), body: []byte("{}")})
			if r.outcome != c.outcome || r.err != c.want {
				t.Errorf("%s: %q, want %q; the cause is %v", r.outcome, r.err, c.want, r.cause)
			}
			if r.cause == nil || strings.Contains(r.cause.Error(), urlToken) {
				t.Errorf("the cause is %v", r.cause)
			}
		})
	}
}

func TestPrintable(t *testing.T) {
	if got := printable("a\x00b\xffc" + strings.Repeat("é", 300)); !strings.HasPrefix(got, "a?b?cé") || len(got) > 500 || !utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
}

// The partner's log says that the name cannot be looked up; who was asked for it
// is in the program's log, for the operator.
func TestFailureInTheLogs(t *testing.T) {
	f := newFixture(t)
	resolver := f.nobody()
	f.partner(7, "https://"+testName+"/hook?token="+urlToken)
	f.start(func(d *Dispatch) {
		d.shared.guard, d.shared.timing.retries = f.asking(resolver), nil
		d.shared.log = slog.New(slog.NewTextHandler(f.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	f.deposits(7, 0, 1)
	f.eventually("failed", f.in(registry.Failed, 1))
	if got, want := f.text("SELECT error FROM attempt"), "the name "+testName+" cannot be looked up"; got != want {
		t.Errorf("stored %q, want %q", got, want)
	}
	if !strings.Contains(f.logged.String(), resolver) {
		t.Errorf("the log does not name the resolver %s:\n%s", resolver, f.logged)
	}
}
