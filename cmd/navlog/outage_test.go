package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/registry"
)

// onPostgres runs statements on a connection of its own, which can write while the others are read-only.
func onPostgres(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), os.Getenv("NAVLOG_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, sql := range append([]string{"SET default_transaction_read_only = off"}, statements...) {
		sql = strings.ReplaceAll(sql, "DATABASE", "DATABASE "+pgx.Identifier{conn.Config().Database}.Sanitize())
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// endSessions ends all sessions with PostgreSQL, as its restart does.
const endSessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND " +
	"pid <> pg_backend_pid()"

const (
	readOnly  = "ALTER DATABASE SET default_transaction_read_only = on"
	writable  = "ALTER DATABASE RESET default_transaction_read_only"
	toPrimary = "is a standby, or its default_transaction_read_only is on: let postgres.url lead to the primary"
)

// TestPostgresIsReadOnly: commands that read work, and those that change something say what to do and change nothing.
// doctor finds it, and status gives it as the reason why no program reports its state.
func TestPostgresIsReadOnly(t *testing.T) {
	c := newCommands(t)
	c.mustRun("partner", "create", "Acme", "--id", "7")
	onPostgres(t, "INSERT INTO program_status (program, instance, status, at) VALUES ('ingest', 'gone', "+
		`'{"state":"following"}', now() - interval '1 minute')`)
	stopped := func(login string) {
		t.Helper()
		if out, err := c.run("status"); err != nil || !strings.Contains(out, "unknown (last: following)") {
			t.Errorf("status without programs, with a %s login: %v\n%s", login, err, out)
		}
	}
	stopped("writing")
	onPostgres(t, "ALTER ROLE CURRENT_USER IN DATABASE SET default_transaction_read_only = on")
	stopped("reading") // which the programs do not have
	onPostgres(t, "ALTER ROLE CURRENT_USER IN DATABASE RESET default_transaction_read_only")
	onPostgres(t, readOnly)
	for _, command := range []string{"partner create Other", "partner rotate-key 7", "partner disable 7",
		"partner reseal", "webhook park 7", "vault remove 0x0000000000000000000000000000000000000001 --yes",
		"migrate --roles"} {
		if out, err := c.run(strings.Fields(command)...); err == nil || strings.Count(err.Error(), toPrimary) != 1 ||
			out != "" {
			t.Errorf("navlog %s: %v\n%s", command, err, out)
		}
	}
	for _, command := range []string{"partner list", "partner show 7", "audit", "webhook list"} {
		c.mustRun(strings.Fields(command)...)
	}
	if out, err := c.run("status"); err == nil || !strings.Contains(err.Error(), "no program can report its state: ") ||
		!strings.Contains(err.Error(), toPrimary) || !strings.Contains(out, "unknown (last: following)") {
		t.Errorf("status: %v\n%s", err, out)
	}
	for _, command := range []string{"doctor --program serve", "config check --connect"} {
		out, err := c.run(strings.Fields(command)...)
		if text := strings.Join(strings.Fields(out), " "); err == nil ||
			!strings.Contains(text, "FAIL PostgreSQL, writing PostgreSQL at ") || !strings.Contains(text, toPrimary) {
			t.Errorf("navlog %s: %v\n%s", command, err, out)
		}
	}
	onPostgres(t, writable)
	c.mustRun("partner", "rotate-key", "7")
	var rows []auditRow
	if c.json(&rows, "audit"); len(rows) != 2 {
		t.Errorf("audited %+v", rows)
	}
}

// TestConnectionEndsDuringCommand: PostgreSQL ends the session of a command before its change is committed. The exit
// code is that of an engine that ended the connection, nothing is half-done, and the same command succeeds then.
func TestConnectionEndsDuringCommand(t *testing.T) {
	c := newCommands(t)
	pool := c.registry()
	tx, err := pool.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "LOCK TABLE audit") // the last row of each change
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.run("partner", "create", "Acme", "--id", "7")
		ended <- err
	}()
	wait.For(t, "the command waits for the audit", func() (was bool) {
		const sql = "SELECT coalesce(bool_or(pg_terminate_backend(pid)), false) FROM pg_locks WHERE NOT granted AND " +
			"relation = 'audit'::regclass"
		err := pool.QueryRow(t.Context(), sql).Scan(&was)
		return err == nil && was
	})
	if err := <-ended; cli.CodeOf(err) != cli.Unreachable || !strings.Contains(err.Error(), "run this again") {
		t.Errorf("exit code %d: %v", cli.CodeOf(err), err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var created registry.NewPartner
	c.json(&created, "partner", "create", "Acme", "--id", "7")
	var rows []auditRow
	if c.json(&rows, "audit"); len(rows) != 1 || created.APIKey == "" || created.SigningSecret == "" {
		t.Errorf("created %+v, audited %+v", created, rows)
	}
}

// TestOutcomeIsReadAfterOutage: a command that waits for a program is queued, so its wait survives the end of the
// session with PostgreSQL. If the outcome cannot be read in time, it is reported as queued, with the reason.
func TestOutcomeIsReadAfterOutage(t *testing.T) {
	c := newCommands(t)
	pool := c.registry()
	type result struct {
		out, notices string
		err          error
	}
	remove := func(wait string) chan result {
		ended := make(chan result, 1)
		go func() {
			var out, notices bytes.Buffer
			err := run(t.Context(), []string{"vault", "remove", "0x0000000000000000000000000000000000000001", "--yes",
				"--wait", wait, "--config", c.file}, &out, &notices)
			ended <- result{out.String(), notices.String(), err}
		}()
		return ended
	}
	queued := func(n int) func() bool {
		return func() bool {
			var rows int
			return pool.QueryRow(t.Context(), "SELECT count(*) FROM vault_command").Scan(&rows) == nil && rows == n
		}
	}
	ended := remove("1m")
	wait.For(t, "the command is queued", queued(1))
	onPostgres(t, endSessions, "UPDATE vault_command SET outcome = 'done', detail = 'carried out', finished_at = now()")
	if r := <-ended; r.err != nil || !strings.Contains(r.out, "done, carried out") || r.notices != "" {
		t.Errorf("after the outage: %+v", r)
	}
	ended = remove("5s")
	wait.For(t, "the second command is queued", queued(2))
	onPostgres(t, "ALTER TABLE vault_command RENAME TO away", endSessions)
	r := <-ended
	if r.err != nil || !strings.Contains(r.out, "is queued as command 2") ||
		!strings.Contains(r.notices, "the outcome could not be read: read command 2: ") {
		t.Errorf("the outage lasts: %+v", r)
	}
}

// stallAfter returns a connection string that leads to PostgreSQL until a client sends the text. From then on the
// server accepts connections, and responds to nothing.
func stallAfter(t *testing.T, text string) string {
	t.Helper()
	to, err := url.Parse(os.Getenv("NAVLOG_POSTGRES_URL"))
	if err != nil {
		t.Fatal(err)
	}
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { relay.Close() })
	server, silent := to.Host, new(atomic.Bool)
	go func() {
		for {
			client, err := relay.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { client.Close() })
			if silent.Load() {
				continue
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			t.Cleanup(func() { upstream.Close() })
			go func() {
				_, _ = io.Copy(client, upstream)
				client.Close()
			}()
			go func() {
				sent := make([]byte, 64<<10)
				for {
					n, err := client.Read(sent)
					if err != nil {
						upstream.Close()
						return
					}
					if silent.Load() || bytes.Contains(sent[:n], []byte(text)) {
						silent.Store(true)
						continue
					}
					_, _ = upstream.Write(sent[:n])
				}
			}()
		}
	}()
	to.Host = relay.Addr().String()
	return to.String()
}

// timed is a stream that knows when it was last written to.
type timed struct {
	bytes.Buffer
	last time.Time
}

func (w *timed) Write(text []byte) (int, error) {
	w.last = time.Now()
	return w.Buffer.Write(text)
}

// TestOutcomeFromSilentPostgres: a command that waits for a program reports that PostgreSQL does not respond, and ends
// soon after its result, although the driver waits 15 s for the end of a connection.
func TestOutcomeFromSilentPostgres(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_POSTGRES_URL", stallAfter(t, "name: VaultCommand :one"))
	var out timed
	var notices bytes.Buffer
	err := run(t.Context(), []string{"vault", "remove", "0x0000000000000000000000000000000000000001", "--yes", "--wait",
		"2s", "--config", c.file}, &out, &notices)
	want := "the outcome could not be read: no response from PostgreSQL within 2s: read command 1: "
	if err != nil || !strings.Contains(out.String(), "is queued as command 1") ||
		!strings.Contains(notices.String(), want) {
		t.Errorf("%v\n%s\n%s", err, out.String(), notices.String())
	}
	if took := time.Since(out.last); took > 6*time.Second {
		t.Errorf("it ended %s after its result", took)
	}
}

// TestStatusFromSilentPostgres: status does not wait forever, so that --watch does not leave an old state on the
// screen.
func TestStatusFromSilentPostgres(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_POSTGRES_URL", stallAfter(t, "name: ListStatus :many"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := run(ctx, []string{"status", "--config", c.file}, io.Discard, io.Discard)
	if cli.CodeOf(err) != cli.Unreachable || !strings.HasPrefix(err.Error(), "no response from PostgreSQL within 8s: ") {
		t.Errorf("exit code %d: %v", cli.CodeOf(err), err)
	}
}

// TestProjectionFromSilentPostgres: a command that follows the generations, as a rebuild does for hours, ends with the
// reason if PostgreSQL does not respond.
func TestProjectionFromSilentPostgres(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", enginetest.ClickHouse(t))
	t.Setenv("NAVLOG_POSTGRES_URL", stallAfter(t, "name: ListGenerations :many"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Minute, cancel)
	err := run(ctx, []string{"projection", "list", "--config", c.file}, io.Discard, io.Discard)
	if cli.CodeOf(err) != cli.Unreachable || !strings.HasPrefix(err.Error(), "list the generations in PostgreSQL: ") {
		t.Errorf("exit code %d: %v", cli.CodeOf(err), err)
	}
}

// TestAuditDoesNotStopOtherStores: a change to Kafka does not need PostgreSQL, so it does not need a writable one
// either, and it has succeeded even if its end cannot be recorded. Both are reported.
func TestAuditDoesNotStopOtherStores(t *testing.T) {
	c := newCommands(t)
	conf, err := config.Read(cli.Flags{Config: c.file})
	if err != nil {
		t.Fatal(err)
	}
	d := registry.Action{Command: "restore", Detail: "chain 1"}
	run := func(do func() error) (notice string, err error) {
		var notices bytes.Buffer
		err = signature{As: "carol"}.auditedIfReachable(t.Context(), &cli.Streams{Err: &notices}, conf, d, "navlog_ingest",
			"keep a note", do)
		return notices.String(), err
	}
	outcomes := func() (all string) {
		t.Helper()
		var rows []auditRow
		c.json(&rows, "audit")
		for _, r := range rows {
			all += r.Outcome + " "
		}
		return all
	}
	for outcome, want := range map[string]error{"done": nil, "failed": os.ErrPermission} {
		notice, err := run(func() error {
			onPostgres(t, readOnly, endSessions)
			return want
		})
		if err != want || !strings.HasPrefix(notice, "the change is "+outcome+", but the audit could not record that: ") {
			t.Errorf("PostgreSQL became read-only during a change that returns %v: %v\n%s", want, err, notice)
		}
		onPostgres(t, writable)
	}
	if got := outcomes(); got != "begun begun " {
		t.Errorf("audited %s", got)
	}
	onPostgres(t, readOnly)
	did := 0
	notice, err := run(func() error { did++; return nil })
	if err != nil || did != 1 || !strings.Contains(notice, toPrimary) ||
		!strings.HasSuffix(notice, "; keep a note\n") {
		t.Errorf("PostgreSQL is read-only: done %d times, %v\n%s", did, err, notice)
	}
	onPostgres(t, writable)
	if notice, err := run(func() error { return nil }); err != nil || notice != "" {
		t.Errorf("PostgreSQL is writable again: %v\n%s", err, notice)
	}
	if got := outcomes(); got != "done begun begun begun " {
		t.Errorf("audited %s", got)
	}
}
