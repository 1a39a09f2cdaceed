package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
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
	if out, err := c.run("status"); err != nil || !strings.Contains(out, "unknown (last: following)") {
		t.Errorf("status without programs: %v\n%s", err, out)
	}
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
