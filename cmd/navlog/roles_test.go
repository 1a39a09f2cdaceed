package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/wiring"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/registry"
)

// asRole makes the following commands use the registry's URL of a role.
func (c commands) asRole(owner, role string) {
	c.t.Helper()
	c.t.Setenv("NAVLOG_POSTGRES_URL", owner+"&role="+role)
}

// On a database that was migrated and granted by `navlog migrate --roles` only, the operator's commands, project and
// serve work with the rights of their roles, and a read-only command creates no tables before that.
func TestProgramsWorkAsTheirRoles(t *testing.T) {
	c := newCommands(t)
	owner := enginetest.Postgres(t)
	t.Setenv("NAVLOG_POSTGRES_URL", owner)
	for _, args := range [][]string{{"partner", "list"}, {"webhook", "list"}, {"webhook", "dead", "list"}, {"audit"},
		{"status"}} {
		if _, err := c.run(args...); err == nil || !strings.Contains(err.Error(), "`navlog migrate`") {
			t.Errorf("navlog %s in an empty database: %v", strings.Join(args, " "), err)
		}
	}
	if out := c.mustRun("migrate", "--roles"); !strings.Contains(out, "from version 0 to") {
		t.Errorf("migrate: %q", out)
	}
	t.Setenv("NAVLOG_POSTGRES_SKIP_MIGRATIONS", "true")

	asOwner := c.registry()
	c.asRole(owner, "navlog_operator")
	var partner, second registry.NewPartner
	c.json(&partner, "partner", "create", "Acme", "--id", "7")
	c.json(&second, "partner", "rotate-key", "7")
	if err := partners.Register(t.Context(), asOwner, 7, "https://example.com/hook"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"partner", "list"}, {"partner", "show", "7"}, {"partner", "disable", "7"}, {"partner", "enable", "7"},
		{"partner", "set-limit", "7", "30"}, {"partner", "rotate-secret", "7"},
		{"partner", "reseal"}, {"partner", "revoke-key", "7", last4(second.APIKey)}, {"webhook", "list"},
		{"webhook", "test", "7", "--wait", "0s"},
		{"webhook", "replay-range", "7", "1", "2", "--wait", "0s"}, {"webhook", "park", "7"}, {"webhook", "resume", "7"},
		{"webhook", "dead", "list"},
		{"webhook", "dead", "retry", "--all", "--wait", "0s"},
		{"vault", "remove", "0xa1A1a1a1A1A1A1A1A1a1a1a1a1a1A1A1A1A1a1a1", "--yes", "--wait", "200ms"}, {"status"}, {"audit"},
	} {
		if _, err := c.run(args...); err != nil {
			t.Errorf("navlog %s: %v", strings.Join(args, " "), err)
		}
	}

	t.Setenv("NAVLOG_KAFKA_BROKERS", strings.Join(enginetest.Kafka(t), ","))
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", enginetest.ClickHouse(t))
	t.Setenv("NAVLOG_CLICKHOUSE_PREFIX", fmt.Sprintf("roles%d", os.Getpid()))
	t.Setenv("NAVLOG_HTTP_LISTEN", "127.0.0.1:0")
	api := c.startAsRoles(owner)
	for _, request := range []struct{ method, path, body string }{
		{"POST", "/api/v1/partner/webhooks", `{"url":"https://example.com/hook"}`}, {"GET", "/api/v1/partner/webhooks", ""},
		{"POST", "/api/v1/partner/webhooks/test", ""},
		{"GET", "/api/v1/partner/webhooks/deliveries", ""}, {"GET", "/api/v1/partner/webhooks/certificates", ""},
		{"GET", "/api/v1/partner/webhooks/health", ""}, {"GET", "/api/v1/partner/events", ""},
		{"GET", "/api/v1/partner/stats", ""}, {"GET", "/api/v1/partner/router", ""},
		{"GET", "/api/v1/vaults", ""}, {"GET", "/status", ""},
	} {
		code, answer := send(t, request.method, api+request.path, partner.APIKey, request.body)
		// Whether example.com resolves here does not matter.
		if code != http.StatusOK && code != http.StatusAccepted && !strings.Contains(answer, "INVALID_WEBHOOK_URL") &&
			!strings.Contains(answer, "webhook URL") {
			t.Errorf("%s %s: %d %s", request.method, request.path, code, answer)
		}
	}
	c.asRole(owner, "navlog_project")
	if _, err := c.run("projection", "list"); err != nil {
		t.Error(err)
	}
	if _, err := c.run("projection", "drop", "9"); err == nil || strings.Contains(err.Error(), "permission") {
		t.Errorf("projection drop: %v", err)
	}
	c.asRole(owner, "navlog_operator")
	var audit []auditRow
	if c.json(&audit, "audit"); audit[0].Command != "projection drop" || audit[0].Outcome != registry.ActionFailed {
		t.Errorf("audit %+v", audit[0])
	}
}

func send(t *testing.T, method, url, key, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-api-key", key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// startAsRoles runs project and serve, each with a pool of its role, and returns the API's URL.
func (c commands) startAsRoles(owner string) string {
	t := c.t
	t.Helper()
	running := wiring.NewServices(slog.New(slog.DiscardHandler))
	part := func(role string) *wiring.Deps {
		c.asRole(owner, role)
		loaded, err := config.Load(c.file, os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		d, err := wiring.New(t.Context(), loaded, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Pool.Close)
		return d
	}
	projecting, serving := part("navlog_project"), part("navlog_serve")
	conn, err := projecting.Config.ClickHouse.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Exec(context.Background(),
			"DROP DATABASE IF EXISTS "+projecting.Config.ClickHouse.Database(1)); err != nil {
			t.Error(err)
		}
		conn.Close()
	})
	writeLog(t, projecting.Config.Kafka, 40)
	project := projecting.Project()
	serve, err := serving.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	running.Start(t.Context(), "project", project.Run)
	running.Start(t.Context(), "serve", serve.Run)
	wait.Until(t, project.Ready)
	wait.Until(t, serve.Ready)
	wait.Until(t, func() error { // both report their state
		out := c.mustRunAs(owner, "navlog_operator", "status", "--json")
		var status struct{ Programs []statusRow }
		if err := json.Unmarshal([]byte(out), &status); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, p := range status.Programs {
			seen[p.Program] = true
		}
		if !seen[registry.Project] || !seen[registry.Serve] {
			return fmt.Errorf("status of %v", seen)
		}
		return nil
	})
	return "http://" + serve.Addr()
}

func (c commands) mustRunAs(owner, role string, args ...string) string {
	c.t.Helper()
	c.asRole(owner, role)
	return c.mustRun(args...)
}

// A change of another store is made only by a login that may record it: a missing right is no reason to leave the audit
// out. A signal that arrives before the change prevents it.
func TestChangeNeedsTheRightToRecordIt(t *testing.T) {
	c := newCommands(t)
	owner := enginetest.Postgres(t)
	t.Setenv("NAVLOG_POSTGRES_URL", owner)
	c.mustRun("migrate", "--roles")
	t.Setenv("NAVLOG_POSTGRES_SKIP_MIGRATIONS", "true")
	did := 0
	restore := func(ctx context.Context, role string) (string, error) {
		t.Helper()
		c.asRole(owner, role)
		var notices bytes.Buffer
		err := signature{As: "carol"}.auditedIfReachable(ctx, &cli.Streams{Err: &notices}, mustLoad(t, c.file),
			registry.Action{Command: "restore", Detail: "chain 1"}, "navlog_ingest", "keep a note",
			func() error { did++; return nil })
		return notices.String(), err
	}
	notice, err := restore(t.Context(), "navlog_dispatch")
	if did != 0 || notice != "" || err == nil || !strings.HasPrefix(err.Error(), "nothing was changed, because the login") ||
		!strings.Contains(err.Error(), "give it the login navlog_ingest") {
		t.Errorf("the login of dispatch: done %d times, %v\n%s", did, err, notice)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if notice, err := restore(interrupted, "navlog_ingest"); did != 0 || notice != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: done %d times, %v\n%s", did, err, notice)
	}
	if notice, err := restore(t.Context(), "navlog_ingest"); did != 1 || notice != "" || err != nil {
		t.Errorf("the login of ingest: done %d times, %v\n%s", did, err, notice)
	}
}

// A migration is in the audit, also if the grants after it fail: the next run grants them and finds nothing to migrate.
func TestMigrationIsAudited(t *testing.T) {
	c := newCommands(t)
	owner := enginetest.Postgres(t)
	t.Setenv("NAVLOG_POSTGRES_URL", owner)
	pool, err := pgxpool.New(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no grants'; END $$")
	exec("CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('GRANT', 'REVOKE') EXECUTE FUNCTION refuse()")
	if out, err := c.run("migrate", "--roles"); err == nil || !strings.Contains(err.Error(), "no grants") {
		t.Errorf("migrated without grants: %q, %v", out, err)
	}
	exec("DROP EVENT TRIGGER refuse")
	if out := c.mustRun("migrate", "--roles"); strings.Contains(out, "from version 0 to") ||
		!strings.Contains(out, "roles granted true") {
		t.Errorf("granted: %q", out)
	}
	c.mustRun("migrate") // changes nothing
	var rows []auditRow
	c.json(&rows, "audit")
	if len(rows) != 2 || !strings.Contains(rows[1].Detail, "from version 0 to") ||
		!strings.HasSuffix(rows[1].Detail, "roles granted false") ||
		!strings.HasSuffix(rows[0].Detail, "roles granted true") {
		t.Errorf("the audit has %+v", rows)
	}
}
