package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// callers is a listener whose connections the test creates.
type callers struct {
	in  chan net.Conn
	end chan struct{}
}

func (l callers) Accept() (net.Conn, error) {
	select {
	case c := <-l.in:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}
func (l callers) Close() error   { close(l.end); return nil }
func (l callers) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection from an address.
type from struct {
	net.Conn
	addr string
}

func (c from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.addr), 1))
}

// exchange is a server with limited connections that responds to requests for /wait when the test lets it.
type exchange struct {
	t      *testing.T
	conns  *Conns
	l      callers
	answer chan struct{}
}

func newExchange(t *testing.T, most, perAddress int) *exchange {
	e := &exchange{t: t, conns: NewConns(most, perAddress, prometheus.NewRegistry()),
		l: callers{make(chan net.Conn), make(chan struct{})}, answer: make(chan struct{})}
	e.conns.IdleTimeout = 2 * time.Minute
	e.conns.Trusted = func(ip netip.Addr) bool { return ip.String() == "10.0.0.1" }
	server := &http.Server{IdleTimeout: 2 * time.Minute, ReadHeaderTimeout: 10 * time.Second, ConnContext: ConnContext,
		ConnState: e.conns.State,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			answering(r.Context())
			if r.URL.Path == "/wait" {
				<-e.answer
			}
		})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(e.conns.Listen(e.l)) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	return e
}

// client is the client's end of a connection.
type client struct {
	net.Conn
	closed chan struct{} // closed once the server has closed the connection
}

func (e *exchange) connect(addr string) *client {
	e.t.Helper()
	ours, theirs := net.Pipe()
	e.l.in <- from{theirs, addr}
	c := &client{ours, make(chan struct{})}
	go func() {
		defer close(c.closed)
		_, _ = io.Copy(io.Discard, ours)
	}()
	e.t.Cleanup(func() { _ = ours.Close() })
	synctest.Wait()
	return c
}

func (c *client) send(text string) {
	_, _ = io.WriteString(c, text)
	synctest.Wait()
}

func (c *client) gone() bool {
	synctest.Wait()
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

func (e *exchange) closedFor(why string) float64 {
	return testutil.ToFloat64(e.conns.closed.WithLabelValues(why))
}

// TestConnectionsAreBounded: new connections replace idle ones, oldest first, then those that send their header
// slowly; a connection whose request is being handled stays.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExchange(t, 4, 0)
		busy, slow, first, second := e.connect("192.0.2.1"), e.connect("192.0.2.2"), e.connect("192.0.2.3"),
			e.connect("192.0.2.4")
		busy.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
		slow.send("GET / HTTP/1.1\r\nHost:")
		first.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n") // idle again afterwards, later than the second
		third := e.connect("192.0.2.5")
		if !second.gone() || first.gone() || third.gone() {
			t.Errorf("the oldest idle connection is closed: %t, a newer one: %t, the new one: %t", second.gone(), first.gone(),
				third.gone())
		}
		third.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
		fourth := e.connect("192.0.2.6")
		fourth.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
		if !first.gone() || slow.gone() {
			t.Error("a connection with a slow header is closed before an idle one")
		}
		fifth := e.connect("192.0.2.7")
		fifth.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
		if !slow.gone() || e.closedFor("header") != 1 {
			t.Error("a slow header blocks a new connection")
		}
		if sixth := e.connect("192.0.2.8"); !sixth.gone() || e.closedFor("full") != 1 {
			t.Error("a connection beyond the limit is accepted")
		}
		if busy.gone() || third.gone() || fourth.gone() || fifth.gone() || testutil.ToFloat64(e.conns.open) != 4 {
			t.Error("a connection whose request is being handled is closed")
		}
		close(e.answer)
		synctest.Wait()
		if seventh := e.connect("192.0.2.9"); seventh.gone() {
			t.Error("a new connection is rejected although idle ones exist")
		}
	})
}

// TestConnectionsOfAnAddress: an address displaces only its own connections, and so does a prefix; those of a trusted
// proxy are not counted.
func TestConnectionsOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExchange(t, 100, 2)
		other := e.connect("192.0.2.1")
		first, second := e.connect("198.51.100.7"), e.connect("198.51.100.7")
		if third := e.connect("198.51.100.7"); third.gone() || !first.gone() || second.gone() || other.gone() {
			t.Error("an address with too many connections keeps its newest one, or displaces those of others")
		}
		for n := range 20 {
			e.connect(fmt.Sprintf("2001:db8:1:%x::1", n*256))
		}
		if n := e.conns.of[netip.MustParsePrefix("2001:db8:1::/48")]; n != 4 {
			t.Errorf("a /48 has %d connections", n)
		}
		for n := range 20 {
			e.connect(fmt.Sprintf("203.0.113.%d", n))
		}
		if n := e.conns.of[netip.MustParsePrefix("203.0.113.0/24")]; n != 8 {
			t.Errorf("a /24 has %d connections", n)
		}
		before := len(e.conns.all)
		for range 20 {
			e.connect("10.0.0.1")
		}
		if n := len(e.conns.all) - before; n != 20 {
			t.Errorf("a proxy has %d of 20 connections", n)
		}
		if other.gone() {
			t.Error("another address lost its connection")
		}
	})
}

// TestIdleTimeShrinks: the fewer places are free, the shorter a connection may be idle.
func TestIdleTimeShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExchange(t, 100, 0)
		early := e.connect("192.0.2.1")
		<-time.After(time.Second)
		for n := range 89 {
			e.connect(fmt.Sprintf("192.0.2.%d", 2+n))
		}
		if early.gone() {
			t.Error("with 10 of 100 places left, one second of idling closes a connection")
		}
		<-time.After(30 * time.Second)
		if last := e.connect("198.51.100.1"); !early.gone() || last.gone() {
			t.Error("with 10 of 100 places left, half a minute of idling closes no connection")
		}
		if n := len(e.conns.all); n >= 50 {
			t.Errorf("%d connections are open", n)
		}
	})
}

// TestUnsentBytesAreFew: what a real connection accepts for a client that reads nothing is little more than what the
// client's own buffers hold, and it accepts more as soon as the client reads.
func TestUnsentBytesAreFew(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	theirs, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	const theirBuffer = 64 << 10
	if err := theirs.(*net.TCPConn).SetReadBuffer(theirBuffer); err != nil {
		t.Fatal(err)
	}
	ours, err := NewConns(10, 10, prometheus.NewRegistry()).Listen(listener).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	// fill writes what is accepted: at least so many bytes, however long that takes on a busy machine.
	fill := func(least int) (written int) {
		t.Helper()
		for wait := 10 * time.Second; ; wait = 200 * time.Millisecond {
			if err := ours.SetWriteDeadline(time.Now().Add(wait)); err != nil {
				t.Fatal(err)
			}
			n, err := ours.Write(make([]byte, max(StreamChunk, least-written)))
			switch written += n; {
			case err != nil && written < least:
				t.Fatalf("%d bytes are accepted, want %d: %v", written, least, err)
			case err != nil:
				return written
			}
		}
	}
	if written := fill(StreamChunk); written > 2*theirBuffer+2*maxUnsent+StreamChunk {
		t.Fatalf("%d bytes are accepted", written)
	}
	if _, err := io.CopyN(io.Discard, theirs, maxUnsent); err != nil {
		t.Fatal(err)
	}
	if more := fill(maxUnsent / 2); more > 2*maxUnsent+StreamChunk {
		t.Errorf("%d bytes are accepted after the client has read %d", more, maxUnsent)
	}
}
