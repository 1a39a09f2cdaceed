package readmodel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// tlsDoor ends TLS before the engine. It gives the connections that it took, in order.
func tlsDoor(t *testing.T, engine string, certificates []tls.Certificate) (addr string, taken <-chan *tls.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	all := make(chan *tls.Conn, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			outside := tls.Server(conn, &tls.Config{Certificates: certificates})
			inside, err := net.Dial("tcp", engine)
			if err != nil {
				outside.Close()
				return
			}
			all <- outside
			go func() {
				_, _ = io.Copy(inside, outside)
				_ = inside.(*net.TCPConn).CloseWrite()
			}()
			go func() {
				_, _ = io.Copy(outside, inside)
				_, _ = io.Copy(io.Discard, inside) // the engine does not survive a connection that is reset
				inside.Close()
				outside.Close()
			}()
		}
	}()
	return listener.Addr().String(), all
}

// TestSecureConnectionEnds: a connection with TLS that the server, or who stands before it, has
// ended while nobody asked is not asked again, whether its end was told or not.
func TestSecureConnectionEnds(t *testing.T) {
	trusted := httptest.NewTLSServer(nil) // for its certificate, of 127.0.0.1
	defer trusted.Close()
	roots := x509.NewCertPool()
	roots.AddCert(trusted.Certificate())
	for name, end := range map[string]func(*tls.Conn) error{
		"told":     func(c *tls.Conn) error { return c.Close() },
		"not told": func(c *tls.Conn) error { return c.NetConn().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			addr, taken := tlsDoor(t, enginetest.ClickHouse(t), trusted.TLS.Certificates)
			conn, err := clickhouse.Open(&clickhouse.Options{
				Addr:         []string{addr},
				MaxOpenConns: 1,
				DialContext: func(ctx context.Context, addr string) (net.Conn, error) {
					return dial(ctx, addr, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for i := range 4 {
				var n uint64
				if err := conn.QueryRow(t.Context(), "SELECT count() FROM numbers(7)").Scan(&n); err != nil || n != 7 {
					t.Fatalf("question %d: %d, %v", i, n, err)
				}
				if i%2 == 0 {
					continue // the second question comes by the same connection
				}
				if len(taken) != 1 {
					t.Fatalf("%d connections were made for two questions", len(taken))
				}
				if err := end(<-taken); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
