package readmodel

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The embedded ClickHouse of development and tests exits when a client's connection is reset while the server reads
// from it ("Terminate called for uncaught exception ... Connection reset by peer", see deploy/engines). The kernel
// resets a socket that is closed before the whole response was read, and the driver closes a connection like that when
// a query's context ends. So a connection here is closed as after a complete response: the sending side is closed, and
// the remaining data is read and discarded.
//
// Also, Close never returns an error. The driver waits for the reader of a response before it releases the connection,
// unless Close returns an error: then the reader sends the next block to a closed channel, and the whole program panics
// (clickhouse-go 2.49, conn.go, close; its issue 1677).

// drainTime is how long the rest of an abandoned response is read at most.
const drainTime = time.Minute

// dial connects such that closing never resets and never fails; with TLS if secure is not nil.
func dial(ctx context.Context, addr string, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	plain, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	conn := &drainedConn{TCPConn: plain.(*net.TCPConn)}
	if secure == nil {
		return conn, nil
	}
	secure = secure.Clone()
	if secure.ServerName, _, err = net.SplitHostPort(addr); err != nil {
		conn.Close()
		return nil, err
	}
	encrypted := secureConn{tls.Client(conn, secure), conn}
	if err := encrypted.HandshakeContext(ctx); err != nil {
		encrypted.Close()
		return nil, err
	}
	return encrypted, nil
}

type secureConn struct {
	*tls.Conn
	socket *drainedConn
}

// SyscallConn returns the socket's connection. The driver checks it before a query, and without it would treat every
// connection as usable, even one that the server closed long ago.
func (c secureConn) SyscallConn() (syscall.RawConn, error) { return c.socket.SyscallConn() }

// Close never fails.
func (c secureConn) Close() error {
	_ = c.Conn.Close()
	return nil
}

type drainedConn struct {
	*net.TCPConn
	reading sync.Mutex
	closed  atomic.Bool
}

// Read returns net.ErrClosed after Close, like any connection.
func (c *drainedConn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := c.TCPConn.Read(p)
	if err != nil && c.closed.Load() {
		err = net.ErrClosed
	}
	return n, err
}

// Close closes the sending side at once and returns. The rest is read in the background until the server has closed its
// side too. It never fails.
func (c *drainedConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	_ = c.CloseWrite()                             // the server may be gone
	_ = c.TCPConn.SetReadDeadline(time.Unix(1, 0)) // wakes a blocked Read
	go func() {
		c.reading.Lock()
		defer c.reading.Unlock()
		_ = c.TCPConn.SetReadDeadline(time.Now().Add(drainTime))
		_, _ = io.Copy(io.Discard, c.TCPConn) // however it ends, the connection is done
		_ = c.TCPConn.Close()
	}()
	return nil
}

// SetDeadline does nothing after Close.
func (c *drainedConn) SetDeadline(t time.Time) error {
	if c.closed.Load() {
		return net.ErrClosed
	}
	return c.TCPConn.SetDeadline(t)
}

// SetReadDeadline does nothing after Close.
func (c *drainedConn) SetReadDeadline(t time.Time) error {
	if c.closed.Load() {
		return net.ErrClosed
	}
	return c.TCPConn.SetReadDeadline(t)
}
