package readmodel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
)

// tlsDoor terminates TLS in front of the engine. It returns its connections, in order.
func tlsDoor(t *testing.T, engine string, door *tls.Config) (addr string, taken <-chan *tls.Conn) {
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
			outside := tls.Server(conn, door)
			if outside.Handshake() != nil {
				outside.Close()
				continue
			}
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
				_, _ = io.Copy(io.Discard, inside) // the engine exits if a connection is reset
				inside.Close()
				outside.Close()
			}()
		}
	}()
	return listener.Addr().String(), all
}

// TestSecureConnectionEnds checks that an idle TLS connection that the server, or a proxy in front of it, has closed is
// not used again, whether it was closed properly or not.
func TestSecureConnectionEnds(t *testing.T) {
	trusted := httptest.NewTLSServer(nil) // for its certificate for 127.0.0.1
	defer trusted.Close()
	roots := x509.NewCertPool()
	roots.AddCert(trusted.Certificate())
	for name, end := range map[string]func(*tls.Conn) error{
		"closed":  func(c *tls.Conn) error { return c.Close() },
		"cut off": func(c *tls.Conn) error { return c.NetConn().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			addr, taken := tlsDoor(t, enginetest.ClickHouse(t), &tls.Config{Certificates: trusted.TLS.Certificates})
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
					t.Fatalf("query %d: %d, %v", i, n, err)
				}
				// The driver frees the place of a connection before it keeps the connection for the next query.
				wait.For(t, "the connection is idle", func() bool { return conn.Stats().Idle == 1 })
				if i%2 == 0 {
					continue // the second query uses the same connection
				}
				if len(taken) != 1 {
					t.Fatalf("%d connections were made for two queries", len(taken))
				}
				if err := end(<-taken); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestOwnCertificates checks that a server with a private authority that requires a client certificate accepts a client
// with the files, and rejects one without them.
func TestOwnCertificates(t *testing.T) {
	t.Parallel()
	authority := certstest.New(t)
	addr, _ := tlsDoor(t, enginetest.ClickHouse(t), authority.Server())
	connect := func(files certs.Files) error {
		c := DefaultConfig()
		c.Addr, c.TLS, c.Certificates = addr, true, files
		if err := c.Validate(); err != nil {
			return err
		}
		conn, err := c.Open("")
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Ping(t.Context())
	}
	if err := connect(authority.Files()); err != nil {
		t.Errorf("with the files: %v", err)
	}
	if err := connect(certs.Files{}); err == nil ||
		!strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("without the files: %v", err)
	}
	if err := connect(certs.Files{CA: authority.Files().CA}); err == nil {
		t.Error("a client without a certificate gets a response")
	}
}
