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

// The embedded ClickHouse of development and tests ends, all of it, when a client's
// connection is reset while it reads from it ("Terminate called for uncaught
// exception ... Connection reset by peer", see deploy/engines). A socket that is
// closed before all of an answer was read is reset by the kernel, and a question
// whose context ends is closed like that. So a connection here is ended as a whole
// answer would end it: the sending side is closed, and what still comes is read and
// thrown away.
//
// And no connection says that it could not be closed well. The driver waits for who
// reads an answer before it lets go of the connection, but not where Close gives an
// error: who reads then hands the next block to a channel that is closed, and that
// ends the whole program (clickhouse-go 2.49, conn.go, close; its issue 1677).

// drainTime bounds how long an answer that nobody waits for is read.
const drainTime = time.Minute

// dial connects so that closing never resets and never fails; with TLS where secure is given.
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

// SyscallConn is that of the socket. The driver looks at it before it asks, and takes a
// connection that has none for good, also one that the server ended long ago.
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

// Read gives net.ErrClosed after Close, like any connection.
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

// Close ends the sending side at once and returns. The rest is read in the
// background until the server has closed its side too. It never fails.
func (c *drainedConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	_ = c.CloseWrite()                             // the server may be gone
	_ = c.TCPConn.SetReadDeadline(time.Unix(1, 0)) // wakes a Read that waits
	go func() {
		c.reading.Lock()
		defer c.reading.Unlock()
		_ = c.TCPConn.SetReadDeadline(time.Now().Add(drainTime))
		_, _ = io.Copy(io.Discard, c.TCPConn) // whatever ends it, the connection is over
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
