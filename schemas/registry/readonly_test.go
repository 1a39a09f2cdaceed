package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry/db"
)

// setReadOnly makes the sessions that begin from now on read-only, or writable again; those that exist stay as they
// are.
func setReadOnly(t *testing.T, url string, on bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, sql := range []string{"SET default_transaction_read_only = off", fmt.Sprintf(
		"ALTER DATABASE %s SET default_transaction_read_only = %t", pgx.Identifier{conn.Config().Database}.Sanitize(), on)} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadOnlySessionsEnd: a session that was opened while PostgreSQL was read-only stays so. The pool must not keep it
// once it has rejected a write: the next write has another session. The error names the server and what to do.
func TestReadOnlySessionsEnd(t *testing.T) {
	url := migrated.Postgres(t)
	setReadOnly(t, url, true)
	pool := open(t, url)
	server := fmt.Sprintf("%s:%d", pool.Config().ConnConfig.Host, pool.Config().ConnConfig.Port)
	create := func() error {
		return Change(t.Context(), pool, "op", func(q *db.Queries) (Action, error) {
			id, err := q.CreatePartner(t.Context(), "One")
			return Action{"partner create", id, ""}, err
		})
	}
	for name, err := range map[string]error{"a write": create(), "the check": Writable(t.Context(), pool)} {
		if want := "PostgreSQL at " + server + " is a standby, or "; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, on a read-only server: %v", name, err)
		}
	}
	held := make([]*pgxpool.Conn, pool.Config().MaxConns) // all of them are read-only
	for i := range held {
		var err error
		if held[i], err = pool.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	setReadOnly(t, url, false)
	for _, c := range held {
		_, _ = c.Exec(t.Context(), "DELETE FROM lease")
		c.Release()
	}
	for range held {
		if err := errors.Join(create(), Writable(t.Context(), pool)); err != nil {
			t.Errorf("PostgreSQL is writable again: %v", err)
		}
	}
}

// TestChangeWithoutConnection: the error of a change whose session ends before COMMIT names the server, which need
// not be the first one of postgres.url, and says that nothing was changed.
func TestChangeWithoutConnection(t *testing.T) {
	url := migrated.Postgres(t)
	server := Servers(open(t, url))
	pool := open(t, strings.Replace(url, server, "127.0.0.1:1,"+server, 1))
	if all := Servers(pool); all != "127.0.0.1:1, "+server {
		t.Errorf("the servers are %s", all)
	}
	create := func(meanwhile string) error {
		return Change(t.Context(), pool, "op", func(q *db.Queries) (Action, error) {
			id, err := q.CreatePartner(t.Context(), "One")
			exec(t, pool, meanwhile)
			return Action{"partner create", id, ""}, err
		})
	}
	err := create("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' AND " +
		"datname = current_database()")
	want := "the connection to PostgreSQL at " + server + " ended before anything was changed, run this again: "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if err := create("SELECT 1"); err != nil {
		t.Errorf("run again: %v", err)
	}
	var partners int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM partner").Scan(&partners); err != nil || partners != 1 {
		t.Errorf("%d partners: %v", partners, err)
	}
}
