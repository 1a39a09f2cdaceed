package lane

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// raw is a receiver below TLS. It calls do with each connection and then closes it.
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

// resolvingAt returns a guard that allows loopback and resolves names at a name server.
func (f *fixture) resolvingAt(names *enginetest.Names) *guard.Guard {
	f.Helper()
	g, err := guard.New(guard.Config{AllowNetworks: []string{partners.Network}, Resolver: names.Resolver()})
	f.check(err)
	return g
}

// reset ends a connection with RST instead of FIN.
func reset(conn *net.TCPConn) { _ = conn.SetLinger(0) }

// The stored error of a POST without a response is the kind of failure and the partner's own name or address, but never
// the resolver or navlog's address.
func TestFailuresNameOnlyThePartner(t *testing.T) {
	f := newFixture(t)
	names := enginetest.NameServer(t) // has no name
	inside := enginetest.NameServer(t)
	inside.SetAddrs("10.0.0.1")
	none := enginetest.NameServer(t)
	none.Close()
	trusted := f.receiver(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		f.check(err)
		below := conn.(*tls.Conn).NetConn().(*net.TCPConn) // closing it sends no TLS alert
		reset(below)
		below.Close()
	})
	old := f.receiverWith(nil, func(s *httptest.Server) { s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11} })
	other := f.receiver(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		f.check(err)
		_, err = conn.Write([]byte("220 mail.example.com ESMTP\r\n"))
		f.check(err)
		conn.Close()
	})
	demanding := f.receiverWith(nil,
		func(s *httptest.Server) { s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert} })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.certificates)
	untrusted := httptest.NewTLSServer(nil)
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(untrusted.Close)
	otherRoots := x509.NewCertPool()
	unused := none.Addr() // no server listens there
	hello := func(conn *net.TCPConn) { _, _ = conn.Read(make([]byte, 1)) }
	resets := f.raw(func(conn *net.TCPConn) { hello(conn); reset(conn) })
	closes := f.raw(func(conn *net.TCPConn) { hello(conn); _ = conn.CloseWrite(); _, _ = io.Copy(io.Discard, conn) })
	plain := f.raw(func(conn *net.TCPConn) { _, _ = conn.Write([]byte("220 mail.example.com ESMTP\r\n")); hello(conn) })
	silent := f.raw(func(conn *net.TCPConn) { _, _ = io.Copy(io.Discard, conn) })

	for what, c := range map[string]struct {
		nameServer    *enginetest.Names
		host          string
		roots         *x509.CertPool
		outcome, want string
	}{
		"no such name":       {names, testName, roots, outcomeNetwork, guard.NotPublic(testName)},
		"no name server":     {none, testName, roots, outcomeNetwork, "the name " + testName + " cannot be looked up"},
		"nothing listens":    {none, unused, roots, outcomeNetwork, unused + " refused the connection"},
		"reset in handshake": {none, resets, roots, outcomeNetwork, resets + " reset the connection"},
		"reset after request": {none, trusted.Listener.Addr().String(), roots, outcomeNetwork,
			trusted.Listener.Addr().String() + " reset the connection"},
		"closed in handshake": {none, closes, roots, outcomeNetwork, "the connection was closed before a response"},
		"unknown certificate": {none, untrusted.Listener.Addr().String(), otherRoots, outcomeNetwork,
			"the receiver's certificate is signed by an unknown authority"},
		"old TLS": {none, old.Listener.Addr().String(), roots, outcomeNetwork,
			"remote error: tls: protocol version not supported"},
		"client certificate": {none, demanding.Listener.Addr().String(), roots, outcomeNetwork,
			"the receiver demands a client certificate, and navlog has none for this URL"},
		"no TLS": {none, plain, roots, outcomeNetwork, "tls: first record does not look like a TLS handshake"},
		"no HTTP": {none, other.Listener.Addr().String(), roots, outcomeNetwork,
			`malformed HTTP status code "mail.example.com"`},
		"no response":      {none, silent, roots, outcomeTimeout, "no response in time"},
		"internal address": {none, "10.0.0.1", roots, outcomeForbidden, "address 10.0.0.1 is not a public one"},
		"internal name":    {inside, testName, roots, outcomeForbidden, guard.NotPublic(testName)},
	} {
		t.Run(what, func(t *testing.T) {
			deadline := time.Minute
			if c.outcome == outcomeTimeout {
				deadline = time.Second
			}
			p := newPoster(f.resolvingAt(c.nameServer), c.roots, nil, 1, deadline)
			t.Cleanup(p.transport.CloseIdleConnections)
			e := Endpoint{URL: "https://" + c.host + "/hook?token=" + urlToken, Secret: testSecret}
			r := p.post(t.Context(), e, newEvent())
			if r.Outcome != c.outcome || r.Err != c.want {
				t.Errorf("%s: %q, want %q; the cause is %v", r.Outcome, r.Err, c.want, r.Cause)
			}
			if r.Cause == nil || strings.Contains(r.Cause.Error(), urlToken) {
				t.Errorf("the cause is %v", r.Cause)
			}
		})
	}
}

// A partner's name may become an alias of any other name. What its delivery log stores does not show whether navlog's
// resolver knows that one.
func TestFailuresDoNotShowWhichNamesExist(t *testing.T) {
	f := newFixture(t)
	stored := func(addresses ...string) string {
		t.Helper()
		names := enginetest.NameServer(t)
		names.SetAddrs(addresses...)
		p := newPoster(f.resolvingAt(names), nil, nil, 1, time.Minute)
		t.Cleanup(p.transport.CloseIdleConnections)
		r := p.post(t.Context(), Endpoint{URL: "https://" + testName + "/hook", Secret: testSecret},
			newEvent())
		return fmt.Sprintf("status %d, %q, %q, a connection %t, TLS %t, a response %t", r.Status, r.Err, r.Response,
			r.Phases.Connect >= 0, r.Phases.TLS >= 0, r.Phases.FirstByte >= 0)
	}
	if none, inside := stored(), stored("10.0.0.1"); none != inside {
		t.Errorf("for a name that does not exist: %s\nfor one inside: %s", none, inside)
	}
}

// Errors are stored and shown to the partner, and a receiver may put any bytes into them.
func TestFailureIsPrintable(t *testing.T) {
	got := failure(errors.New("a\x00b\xffc\x1b[2J\u202e"+strings.Repeat("é", 300)), clientAuth{}).Err
	if !strings.HasPrefix(got, "a\ufffdb\ufffdc\ufffd[2J\ufffdé") || len(got) > printable.Sentence ||
		!utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
}

// TestDisconnected checks that the other network errors differ by whether there was a connection.
func TestDisconnected(t *testing.T) {
	to := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 443}
	for err, want := range map[*net.OpError]string{
		{Op: "dial", Addr: to, Err: syscall.EHOSTUNREACH}: "192.0.2.7:443 cannot be reached",
		{Op: "read", Addr: to, Err: syscall.ETIMEDOUT}:    "192.0.2.7:443 lost the connection",
		{Op: "dial", Addr: to, Err: syscall.ECONNREFUSED}: "192.0.2.7:443 refused the connection",
		{Op: "write", Addr: to, Err: syscall.EPIPE}:       "192.0.2.7:443 reset the connection",
	} {
		if got := reason(err); got != want {
			t.Errorf("%v is described as %q, want %q", err, got, want)
		}
	}
}
