package readmodel_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestCancelledQueries checks that queries whose context ends at any moment do not harm the server, and that the next
// query succeeds.
func TestCancelledQueries(t *testing.T) {
	conn, err := config(t).Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	given := 0
	for i := range 600 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(3000))*time.Microsecond)
		if i%2 == 0 {
			err = conn.Ping(ctx)
		} else {
			var n uint64
			err = conn.QueryRow(ctx, "SELECT max(number) FROM numbers(100000)").Scan(&n)
		}
		cancel()
		if err != nil {
			given++
		}
	}
	if given == 0 {
		t.Error("every query finished in time, so the test is incomplete")
	}
	var n uint64
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM numbers(7)").Scan(&n); err != nil || n != 7 {
		t.Fatalf("after %d cancelled queries the server reports %d, %v", given, n, err)
	}
}

// TestCancelledWhileConnectionIsReset cancels a query while blocks of its response wait to be read and its connection
// has been reset: the query must return an error, not crash the program.
func TestCancelledWhileConnectionIsReset(t *testing.T) {
	c := config(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	engine := c.Addr
	came := make(chan struct{}) // closed when more has arrived than the driver buffers
	reset := make(chan struct{})
	go func() {
		outside, err := listener.Accept()
		if err != nil {
			return
		}
		inside, err := net.Dial("tcp", engine)
		if err != nil {
			outside.Close()
			return
		}
		go func() {
			_, _ = io.Copy(inside, outside)
			_ = inside.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.CopyN(outside, inside, 1<<20)
		close(came)
		<-reset
		_ = outside.(*net.TCPConn).SetLinger(0)
		outside.Close()
		inside.Close()
	}()
	c.Addr = listener.Addr().String()
	conn, err := c.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rows, err := conn.Query(ctx, "SELECT number FROM numbers(10000000) SETTINGS max_block_size = 1000")
	if err != nil {
		t.Fatal(err)
	}
	<-came
	close(reset)
	<-time.After(50 * time.Millisecond) // so that the reset usually arrives first
	cancel()
	<-time.After(200 * time.Millisecond) // and so that the driver cancels before a block is read
	for rows.Next() {
	}
	if err := errors.Join(rows.Err(), rows.Close()); err == nil {
		t.Error("a truncated response is accepted as complete")
	}
}

// TestSilentServer checks that cancelling ends a query whose server accepted the connection and does not respond, and
// its connection.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	c := config(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	c.Addr = listener.Addr().String()
	conn, err := c.Open("")
	must(t, err)
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error)
	go func() { failed <- conn.Ping(ctx) }()
	server, err := listener.Accept()
	must(t, err)
	defer server.Close()
	_, err = server.Read(make([]byte, 1)) // the driver greets
	must(t, err)
	began := time.Now()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || time.Since(began) > 3*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	must(t, server.SetReadDeadline(time.Now().Add(3*time.Second)))
	if _, err := io.Copy(io.Discard, server); err != nil {
		t.Errorf("its connection is still open: %v", err)
	}
}

// TestSecureConnection checks that TLS verifies the server's name, and that a server with an untrusted certificate is
// rejected.
func TestSecureConnection(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	c := config(t)
	c.Addr, c.TLS = server.Listener.Addr().String(), true
	conn, err := c.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var unknown *tls.CertificateVerificationError
	if err := conn.Ping(t.Context()); !errors.As(err, &unknown) {
		t.Errorf("an unsigned certificate: %v", err)
	}
}

// TestPatientConnection checks that long statements have the writer's memory limit, but no time limit.
func TestPatientConnection(t *testing.T) {
	conn, err := config(t).OpenPatient("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, want := range map[string]string{"max_execution_time": "0", "max_memory_usage": "2147483648"} {
		var value string
		if err := conn.QueryRow(t.Context(),
			"SELECT value FROM system.settings WHERE name = '"+name+"'").Scan(&value); err != nil || value != want {
			t.Errorf("%s is %q, %v; want %s", name, value, err, want)
		}
	}
}

// TestSession checks that temporary tables exist as long as the connection, however fast statements follow each other,
// and that a statement after its end fails with that reason.
func TestSession(t *testing.T) {
	t.Parallel()
	session, err := config(t).OpenSession("default")
	must(t, err)
	defer session.Close()
	must(t, session.Exec(t.Context(), "CREATE TEMPORARY TABLE kept AS SELECT 1 AS one"))
	for range 500 {
		rows, err := session.Query(t.Context(), "SELECT one FROM kept")
		must(t, err)
		for rows.Next() {
			var one uint8
			must(t, rows.Scan(&one))
		}
		must(t, rows.Err())
		var all []struct {
			One uint8 `ch:"one"`
		}
		must(t, session.Select(t.Context(), &all, "SELECT one FROM kept"))
		var one uint8
		must(t, session.QueryRow(t.Context(), "SELECT one FROM kept").Scan(&one))
	}
	ended, cancel := context.WithCancel(t.Context())
	rows, err := session.Query(ended, "SELECT number FROM numbers(1000000000)")
	must(t, err)
	cancel()
	_ = rows.Close()
	if err := session.Exec(t.Context(), "SELECT one FROM kept"); err == nil ||
		!strings.Contains(err.Error(), "the connection of the session") {
		t.Errorf("after its connection has ended: %v", err)
	}
}
