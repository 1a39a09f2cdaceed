package serve

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// Conns limits the connections of a server, in total and per address. An idle connection takes 9 KiB and a file
// descriptor; without descriptors a server cannot accept connections.
//
// A connection without a request is kept open only to save its client time, so it is closed when another client needs
// its place. The order is: connections that have been idle longer than a limit, which shrinks from IdleTimeout to
// zero while the second half of the places fills; then the one that has been idle longest; then the one that has been
// sending the header of its request for the longest time. A connection whose request is being handled stays open.
type Conns struct {
	// Trusted reports whether an address is that of a trusted proxy, whose connections come from many clients. Only
	// the total limit applies to them.
	Trusted func(netip.Addr) bool
	// IdleTimeout is how long a connection may be idle while enough places are free.
	IdleTimeout time.Duration

	most, perAddress int
	open             prometheus.Gauge
	closed           *prometheus.CounterVec // label: why

	mu      sync.Mutex
	all     map[*conn]struct{}
	of      map[netip.Prefix]int
	idle    list.List // of *conn waiting for a request, oldest first
	reading list.List // of *conn that have begun to send one, oldest first
}

// connsOf is how many times perAddress connections a prefix may have.
var connsOf = Widths{1, 2, 2, 4}

// NewConns limits connections to most in total and perAddress per address.
func NewConns(most, perAddress int, reg prometheus.Registerer) *Conns {
	c := &Conns{
		most: most, perAddress: perAddress, Trusted: func(netip.Addr) bool { return false },
		all: make(map[*conn]struct{}), of: make(map[netip.Prefix]int),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "navlog_query_connections",
			Help: "Open connections of clients."}),
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "navlog_query_connections_closed_total",
			Help: "Connections that were closed to make room (idle, header) or not accepted (full, address).",
		}, []string{"why"}),
	}
	for _, why := range []string{"idle", "header", "full", "address"} {
		c.closed.WithLabelValues(why)
	}
	reg.MustRegister(c.open, c.closed)
	return c
}

type conn struct {
	net.Conn
	conns    *Conns
	prefixes []netip.Prefix // that it counts against
	since    time.Time      // when it became idle, or began to send a request
	place    *list.Element  // in list; nil: a request is being handled
	list     *list.List
	idle     atomic.Bool // it is in the list of idle connections
	gone     bool
}

// Read implements net.Conn. net/http reports a request only after it has read the whole header, so the beginning of a
// slowly sent request is noticed here.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.idle.Load() {
		c.move(&c.conns.reading)
	}
	return n, err
}

func (c *conn) Close() error {
	c.conns.mu.Lock()
	c.conns.forget(c)
	c.conns.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets net/http close a connection gracefully, as it does with a *net.TCPConn: the last bytes sent are
// lost if a connection with unread bytes is closed at once.
func (c *conn) CloseWrite() error {
	if tcp, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return nil
}

// Listen wraps a listener so that it only accepts connections within the limits.
func (c *Conns) Listen(l net.Listener) net.Listener { return boundedListener{l, c} }

type boundedListener struct {
	net.Listener
	conns *Conns
}

func (l boundedListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		limitUnsent(raw)
		if taken := l.conns.take(raw); taken != nil {
			return taken, nil
		}
		_ = raw.Close()
	}
}

// take makes room for a connection, or returns nil if there is none.
func (c *Conns) take(raw net.Conn) net.Conn {
	in := &conn{Conn: raw, conns: c, prefixes: c.counted(raw.RemoteAddr())}
	var closing []*conn
	defer func() {
		for _, old := range closing {
			_ = old.Conn.Close()
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	drop := func(old *conn, why string) {
		c.closed.WithLabelValues(why).Inc()
		c.forget(old)
		closing = append(closing, old)
	}
	timeout := c.idleTimeout()
	for e := c.idle.Front(); e != nil && time.Since(e.Value.(*conn).since) > timeout; e = c.idle.Front() {
		drop(e.Value.(*conn), "idle")
	}
	for _, prefix := range in.prefixes {
		if c.of[prefix] < c.perAddress*connsOf.Of(prefix) {
			continue
		}
		old, why := c.oldest(func(other *conn) bool { return slices.Contains(other.prefixes, prefix) })
		if old == nil {
			c.closed.WithLabelValues("address").Inc()
			return nil
		}
		drop(old, why)
	}
	if len(c.all) >= c.most {
		old, why := c.oldest(func(*conn) bool { return true })
		if old == nil {
			c.closed.WithLabelValues("full").Inc()
			return nil
		}
		drop(old, why)
	}
	c.all[in] = struct{}{}
	c.open.Set(float64(len(c.all)))
	for _, prefix := range in.prefixes {
		c.of[prefix]++
	}
	c.wait(in, &c.idle)
	return in
}

// idleTimeout shrinks while the second half of the places fills. c.mu is held.
func (c *Conns) idleTimeout() time.Duration {
	left := c.most - len(c.all)
	if c.most < 2 || left > c.most/2 {
		return c.IdleTimeout
	}
	return c.IdleTimeout * time.Duration(max(0, left)) / time.Duration(c.most/2)
}

// counted returns the prefixes that an address counts against; none for a trusted proxy.
func (c *Conns) counted(addr net.Addr) []netip.Prefix {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil || c.perAddress == 0 || c.Trusted(at.Addr().Unmap()) {
		return nil
	}
	return Prefixes(at.Addr().Unmap())
}

// oldest returns the connection to close first among those without a request being handled, or nil if there is none.
// c.mu is held.
func (c *Conns) oldest(which func(*conn) bool) (old *conn, why string) {
	for e := c.idle.Front(); e != nil; e = e.Next() {
		if which(e.Value.(*conn)) {
			return e.Value.(*conn), "idle"
		}
	}
	for e := c.reading.Front(); e != nil; e = e.Next() {
		if which(e.Value.(*conn)) {
			return e.Value.(*conn), "header"
		}
	}
	return nil, ""
}

// wait moves a connection to the end of a list; nil means no list. c.mu is held.
func (c *Conns) wait(in *conn, at *list.List) {
	if in.place != nil {
		in.list.Remove(in.place)
		in.place, in.list = nil, nil
	}
	in.idle.Store(at == &c.idle)
	if at != nil {
		in.since, in.list = time.Now(), at
		in.place = at.PushBack(in)
	}
}

// forget removes a connection from all lists and counts. c.mu is held.
func (c *Conns) forget(old *conn) {
	if old.gone {
		return
	}
	old.gone = true
	c.wait(old, nil)
	delete(c.all, old)
	c.open.Set(float64(len(c.all)))
	for _, prefix := range old.prefixes {
		if c.of[prefix]--; c.of[prefix] == 0 {
			delete(c.of, prefix)
		}
	}
}

// State is for http.Server.ConnState.
func (c *Conns) State(at net.Conn, state http.ConnState) {
	if in, ok := at.(*conn); ok && state == http.StateIdle {
		in.move(&c.idle)
	}
}

// answering keeps a request's connection open until its response is sent.
func answering(ctx context.Context) {
	if in, ok := ctx.Value(connKey{}).(*conn); ok {
		in.move(nil)
	}
}

// move moves an open connection to the end of a list; nil means no list. Only an idle one begins to send a request.
func (c *conn) move(at *list.List) {
	c.conns.mu.Lock()
	defer c.conns.mu.Unlock()
	if !c.gone && (at != &c.conns.reading || c.list == &c.conns.idle) {
		c.conns.wait(c, at)
	}
}

// maxUnsent is how many bytes the operating system accepts for a client beyond those that it can send. By default these
// are megabytes: then it accepts nothing for minutes, whether or not the client reads.
const maxUnsent = 2 * StreamChunk

// limitUnsent makes the operating system accept bytes for a connection as the client receives them.
func limitUnsent(c net.Conn) {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil { // the pace of a closed connection does not matter
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT,
				maxUnsent)
		})
	}
}
