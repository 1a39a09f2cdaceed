package readmodel

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
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
