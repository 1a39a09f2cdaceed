package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/registry"
)

// With the rights of dispatch, positions move back and never forward, in the topics of the chain only, after a person
// has typed yes, and not while a dispatcher runs. The audit has a row.
func TestDispatchRewind(t *testing.T) {
	c := newCommands(t)
	owner := os.Getenv("NAVLOG_POSTGRES_URL")
	c.mustRun("migrate", "--roles")
	t.Setenv("NAVLOG_POSTGRES_SKIP_MIGRATIONS", "true")
	postgres, err := registry.Open(t.Context(), registry.Config{URL: owner, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Close()
	exec := func(sql string) {
		t.Helper()
		if _, err := postgres.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	positions := func() (found []int64) {
		t.Helper()
		rows, err := postgres.Query(t.Context(), "SELECT next_offset FROM position ORDER BY topic, partition")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var n int64
			if err := rows.Scan(&n); err != nil {
				t.Fatal(err)
			}
			found = append(found, n)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := func(what string, want ...int64) {
		t.Helper()
		if got := positions(); !slices.Equal(got, want) {
			t.Errorf("%s: the positions are %v, want %v", what, got, want)
		}
	}
	exec(`INSERT INTO position (topic_id, topic, partition, next_offset) SELECT t.id, t.name, p, 10 * (p + 1) FROM generate_series(0, 1) p,
		(VALUES ('00000000-0000-0000-0000-000000000001'::uuid, 'chain.31337.referral.deposits'), ('00000000-0000-0000-0000-000000000002', 'chain.31337.referral.withdrawals'),
			('00000000-0000-0000-0000-000000000003', 'chain.9.referral.deposits')) t(id, name)`)
	c.asRole(owner, "navlog_dispatch")

	stdin = strings.NewReader("no\n")
	t.Cleanup(func() { stdin = os.Stdin })
	if _, err := c.run("dispatch", "rewind"); cli.CodeOf(err) != cli.Usage {
		t.Errorf("without a confirmation: %v", err)
	}
	for _, running := range []string{
		`INSERT INTO dispatcher (owner, until, key_ids) VALUES (gen_random_uuid(), now() + interval '1 hour', '{}')`,
		`INSERT INTO program_status (program, instance, at, status) VALUES ('dispatch', 'i', now() + interval '1 hour', '{}')`,
	} {
		exec(running)
		if _, err := c.run("dispatch", "rewind", "--yes"); err == nil ||
			!strings.Contains(err.Error(), "stop every `navlog dispatch`") {
			t.Errorf("while a dispatcher runs: %v", err)
		}
		exec("DELETE FROM dispatcher")
		exec("DELETE FROM program_status")
	}
	want("refused", 10, 20, 10, 20, 10, 20)

	stdin = strings.NewReader("yes\n")
	if out, err := c.run("dispatch", "rewind", "--topic", "withdrawals", "--partition", "1", "--offset",
		"15"); err != nil || !strings.Contains(out, "1 partition is read again") {
		t.Errorf("one partition: %q, %v", out, err)
	}
	want("one partition", 10, 20, 10, 15, 10, 20)
	if _, err := c.run("dispatch", "rewind", "--offset", "30", "--yes"); err == nil ||
		!strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("forward: %v", err)
	}
	var rows []rewindRow
	c.json(&rows, "dispatch", "rewind", "--yes")
	if len(rows) != 4 || rows[3].From != 15 || rows[3].To != 0 {
		t.Errorf("moved %+v", rows)
	}
	want("all", 0, 0, 0, 0, 10, 20)
	c.asRole(owner, "navlog_operator")
	var audit []auditRow
	if c.json(&audit, "audit"); len(audit) != 3 || audit[0].Command != "dispatch rewind" ||
		!strings.Contains(audit[0].Detail, "in 4 partitions of chain.31337.referral.deposits") {
		t.Errorf("the audit has %+v", audit)
	}
}
