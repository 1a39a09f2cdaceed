package readmodel

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// The embedded ClickHouse of development and tests ends, all of it, when a client's
// connection is reset while it reads from it ("Terminate called for uncaught
// exception ... Connection reset by peer", see deploy/engines). A socket that is
// closed before all of an answer was read is reset by the kernel, and a question
// whose context ends is closed like that. So a connection here is ended as a whole
// answer would end it: the sending side is closed, and what still comes is read and
// thrown away.

// drainTime bounds how long an answer that nobody waits for is read.
const drainTime = time.Minute

// dial connects so that closing never resets.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &drainedConn{TCPConn: tcp}, nil
	}
	return conn, nil
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
// background until the server has closed its side too.
func (c *drainedConn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	err := c.CloseWrite()
	_ = c.TCPConn.SetReadDeadline(time.Unix(1, 0)) // wakes a Read that waits
	go func() {
		c.reading.Lock()
		defer c.reading.Unlock()
		_ = c.TCPConn.SetReadDeadline(time.Now().Add(drainTime))
		_, _ = io.Copy(io.Discard, c.TCPConn) // whatever ends it, the connection is over
		_ = c.TCPConn.Close()
	}()
	return err
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
