package engines

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5"
)

// reset opens connections, sends something, and resets them.
func reset(t *testing.T, addr string, say string) {
	t.Helper()
	for range 5 {
		conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(say))
		_ = conn.(*net.TCPConn).SetLinger(0) // Close sends a reset
		conn.Close()
	}
}

// PostgreSQL survives clients that log in with an unknown user name or reset connections.
func TestPostgresSurvivesForeignClients(t *testing.T) {
	p := startPostgresFor(t, engineDir(t))
	first := connectPostgres(t, p.URL)
	u, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	for _, name := range []string{"nobody", "root"} { // words: "nobody": the name of a user
		u.User = url.UserPassword(name, "x")
		if conn, err := pgx.Connect(t.Context(), u.String()); err == nil {
			conn.Close(t.Context())
			t.Errorf("%s has logged in", name)
		}
	}
	reset(t, server, "")
	reset(t, server, "\x00\x00\x00\x08\x04\xd2\x16\x2f") // asks for TLS
	if _, err := first.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("a session from before: %v", err)
	}
	connectPostgres(t, p.URL)
}

// ClickHouse as a library survives connections that are reset, because of the relay: before the log-in, and while a
// response waits to be read.
func TestClickHouseSurvivesResets(t *testing.T) {
	c := startClickHouseFor(t, engineDir(t))
	first := openClickHouse(t, c, "default")
	reset(t, c.Addr, "")
	for range 20 {
		var abandoned net.Conn
		conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{c.Addr},
			DialContext: func(ctx context.Context, addr string) (net.Conn, error) {
				var err error
				abandoned, err = new(net.Dialer).DialContext(ctx, "tcp", addr)
				return abandoned, err
			}})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := conn.Query(t.Context(), "SELECT number FROM numbers(10000000) SETTINGS max_block_size = 1000")
		if err != nil {
			t.Fatal(err)
		}
		_ = abandoned.(*net.TCPConn).SetLinger(0)
		abandoned.Close()
		for rows.Next() {
		}
		_ = rows.Close()
		conn.Close()
	}
	var n uint64
	if err := first.QueryRow(t.Context(), "SELECT count() FROM numbers(7)").Scan(&n); err != nil || n != 7 {
		t.Errorf("a connection from before gets %d, %v", n, err)
	}
	openClickHouse(t, c, "default")
}

// ClickHouse as a library does not survive an unknown user name (nor a log-in that breaks off): Watch reports it, with
// the name, and the next start has the data. If this test finds the engine alive, the library has been fixed, and the
// notes about it in clickhouse.go and docs/operations.md must be removed.
func TestClickHouseEndsAfterAStranger(t *testing.T) {
	dir := engineDir(t)
	c := startClickHouseFor(t, dir)
	conn := openClickHouse(t, c, "default")
	for _, statement := range []string{"CREATE DATABASE kept ENGINE = Atomic",
		"CREATE TABLE kept.t (n Int8) ENGINE = MergeTree ORDER BY n", "INSERT INTO kept.t VALUES (1)"} {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	stranger, err := clickhouse.Open(&clickhouse.Options{Addr: []string{c.Addr},
		Auth: clickhouse.Auth{Username: "unknown"}})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if err := stranger.Ping(t.Context()); err == nil {
		t.Error("an unknown user has logged in")
	}
	if err := c.Watch(t.Context()); err == nil || !strings.Contains(err.Error(), "unknown: Authentication failed") ||
		!strings.Contains(err.Error(), "default or navlog_query") {
		t.Errorf("it ended: %v", err)
	}
	again := startClickHouseFor(t, dir)
	var n uint64
	if err := openClickHouse(t, again, "default").QueryRow(t.Context(),
		"SELECT count() FROM kept.t").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows are kept: %v", n, err)
	}
}
