package readmodel

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// dial connects to a server; with TLS if secure is not nil.
//
// Close of these connections never returns an error. The driver waits for the reader of a response before it releases a
// connection, unless Close returns an error: then the reader sends the next block to a closed channel, and the whole
// program panics (clickhouse-go 2.49, conn.go, close; its issue 1677).
func dial(ctx context.Context, addr string, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	plain, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	conn := plainConn{plain.(*net.TCPConn)}
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

// connect dials a server with options.DialContext and greets it. The driver greets without the context, for up to
// dialTimeout, and leaves a connection open whose greeting fails (clickhouse-go 2.49, conn.go, dial): connect closes it
// then, and as soon as the context is cancelled.
func connect(
	ctx context.Context, id int, options *clickhouse.Options, greet clickhouse.Dial,
) (clickhouse.DialResult, error) {
	own := *options
	var conn net.Conn
	watched := func() bool { return true }
	own.DialContext = func(ctx context.Context, addr string) (_ net.Conn, err error) {
		if conn, err = options.DialContext(ctx, addr); err == nil {
			watched = context.AfterFunc(ctx, func() {
				if errors.Is(ctx.Err(), context.Canceled) { // not a deadline: the driver sets one itself, and handles it
					conn.Close()
				}
			})
		}
		return conn, err
	}
	result, err := clickhouse.DefaultDialStrategy(ctx, id, &own, greet)
	if !watched() && errors.Is(ctx.Err(), context.Canceled) {
		err = ctx.Err()
	}
	if err != nil && conn != nil {
		conn.Close()
	}
	return result, err
}

type plainConn struct{ *net.TCPConn }

// Close never fails.
func (c plainConn) Close() error {
	_ = c.TCPConn.Close()
	return nil
}

type secureConn struct {
	*tls.Conn
	socket plainConn
}

// SyscallConn returns the socket's connection. The driver checks it before a query, and without it would treat every
// connection as usable, even one that the server closed long ago.
func (c secureConn) SyscallConn() (syscall.RawConn, error) { return c.socket.SyscallConn() }

// Close never fails.
func (c secureConn) Close() error {
	_ = c.Conn.Close()
	return nil
}
