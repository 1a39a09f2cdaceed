package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/registry/db"
)

// as opens the registry with the rights of a role, as its login would.
func as(t *testing.T, url, role string) *pgxpool.Pool {
	t.Helper()
	return open(t, url+"&role="+role)
}

// Each role can run its program's queries and none of the others': in particular, the program that serves the internet
// can neither read a secret nor mark an event as delivered.
func TestRolesHaveExactlyTheirRights(t *testing.T) {
	url, ctx := enginetest.Postgres(t), context.Background()
	owner := open(t, url)
	for range 2 { // again, as after each migration
		if err := GrantRoles(ctx, owner); err != nil {
			t.Fatal(err)
		}
	}
	event := uuid.New()
	for _, statement := range []string{
		`INSERT INTO partner (id, name) VALUES (7, 'Seven')`,
		`INSERT INTO endpoint (partner_id, secret) VALUES (7, 'sealed')`,
		`INSERT INTO api_key (partner_id, hash, last4) VALUES (7, sha256('key'), 'abcd')`,
		fmt.Sprintf(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ('%s', 7, 1, 't', 'b', 'failed')`, event),
	} {
		exec(t, owner, statement)
	}
	url7 := "https://seven.example/"
	serve := db.New(as(t, url, "navlog_serve"))
	for what, do := range map[string]func() error{
		"PartnerByKey": func() error { _, err := serve.PartnerByKey(ctx, HashKey("key")); return err },
		"PartnersByKeys": func() error {
			_, err := serve.PartnersByKeys(ctx, [][]byte{HashKey("key")})
			return err
		},
		"GetPartner": func() error { _, err := serve.GetPartner(ctx, 7); return err },
		"CreateBucket": func() error {
			return serve.CreateBucket(ctx,
				db.CreateBucketParams{PartnerID: 7, Policy: "partner"})
		},
		"DrawTokens": func() error {
			_, err := serve.DrawTokens(ctx,
				db.DrawTokensParams{PartnerID: 7, Policy: "webhooks", Want: 1, Quota: 1, WindowNs: 1})
			return noRows(err)
		},
		"SetWebhookURL": func() error {
			_, err := serve.SetWebhookURL(ctx, db.SetWebhookURLParams{PartnerID: 7, Url: &url7})
			return err
		},
		"CreateCommand": func() error {
			_, err := serve.CreateCommand(ctx, db.CreateCommandParams{PartnerID: 7, Kind: "replay", EventID: &event})
			return err
		},
		"ListDeliveries": func() error {
			_, err := serve.ListDeliveries(ctx, db.ListDeliveriesParams{PartnerID: 7, Limit: 5})
			return err
		},
		"CountDeliveries": func() error { _, err := serve.CountDeliveries(ctx, 7); return err },
		"DeliveryAttempts": func() error {
			_, err := serve.DeliveryAttempts(ctx, db.DeliveryAttemptsParams{EventIds: []uuid.UUID{event}, OfEach: 1})
			return err
		},
		"DeliveryOwner": func() error { _, err := serve.DeliveryOwner(ctx, event); return err },
		"EventsAfter": func() error {
			_, err := serve.EventsAfter(ctx, db.EventsAfterParams{PartnerID: 7, Limit: 5})
			return err
		},
		"LastSuccess": func() error { _, err := serve.LastSuccess(ctx, 7); return noRows(err) },
		"LastFailure": func() error { _, err := serve.LastFailure(ctx, 7); return noRows(err) },
		"GetBreaker": func() error {
			_, err := serve.GetBreaker(ctx, db.GetBreakerParams{PartnerID: 7, Url: url7})
			return noRows(err)
		},
		"LiveGeneration": func() error { _, err := serve.LiveGeneration(ctx); return noRows(err) },
		"ListStatus":     func() error { _, err := serve.ListStatus(ctx); return err },
		"PutStatus": func() error {
			return serve.PutStatus(ctx, db.PutStatusParams{Program: Serve, Instance: "i", Status: []byte("{}")})
		},
		"DeleteOldStatus": func() error { return serve.DeleteOldStatus(ctx) },
	} {
		if err := do(); err != nil {
			t.Errorf("navlog_serve cannot %s: %v", what, err)
		}
	}
	ingest := db.New(as(t, url, "navlog_ingest"))
	if _, err := ingest.PendingVaultCommands(ctx, 1); err != nil {
		t.Errorf("navlog_ingest cannot read commands about vaults: %v", err)
	}
	if err := ingest.FinishVaultCommand(ctx, db.FinishVaultCommandParams{ID: 1, Outcome: CommandDone}); err != nil {
		t.Errorf("navlog_ingest cannot write the outcome of one: %v", err)
	}
	refused := map[string][]string{
		"navlog_serve": {
			`SELECT FROM vault_command`,
			`INSERT INTO vault_command (chain_id, kind, vault) VALUES (1, 'remove', '01234567890123456789')`,
			`SELECT secret FROM endpoint`, `SELECT next_secret FROM endpoint`, `UPDATE endpoint SET secret = ''`,
			`UPDATE endpoint SET held = true`, `SELECT * FROM endpoint`,
			`UPDATE delivery SET state = 'delivered'`, `INSERT INTO delivery SELECT * FROM delivery`, `DELETE FROM delivery`,
			`DELETE FROM attempt`,
			`SELECT last4 FROM api_key`, `UPDATE api_key SET revoked_at = NULL`,
			`INSERT INTO api_key (partner_id, hash, last4) VALUES (7, sha256('mine'), 'mine')`,
			`UPDATE partner SET disabled = false`, `INSERT INTO command (partner_id, kind, done_at) VALUES (7, 'test', now())`,
			`UPDATE command SET done_at = now()`,
			`UPDATE generation SET state = 'bad'`, `SELECT FROM dead_record`, `SELECT FROM audit`,
			`INSERT INTO audit (operator, command, detail, outcome) VALUES ('x', 'x', 'x', 'done')`,
			`UPDATE job_lease SET fence = 0`, `SELECT FROM job_lease`, `UPDATE position SET next_offset = 0`,
			`CREATE TABLE mine (n int)`, `DROP TABLE delivery`, `ALTER TABLE delivery DISABLE TRIGGER ALL`,
			`TRUNCATE delivery`, `CREATE ROLE mine`,
		},
		"navlog_ingest": {
			`SELECT FROM partner`, `SELECT FROM endpoint`, `SELECT FROM api_key`, `SELECT FROM delivery`,
			`SELECT FROM generation`, `SELECT FROM audit`, `INSERT INTO command (partner_id, kind) VALUES (7, 'test')`,
			`INSERT INTO vault_command (chain_id, kind, vault) VALUES (1, 'remove', '01234567890123456789')`,
			`UPDATE vault_command SET kind = 'remove'`, `DELETE FROM vault_command`,
			`CREATE TABLE mine (n int)`,
		},
		"navlog_project": {
			`SELECT FROM partner`, `SELECT FROM endpoint`, `SELECT FROM api_key`, `SELECT FROM delivery`,
			`DELETE FROM generation`, `SELECT FROM audit`, `UPDATE audit SET operator = 'x'`,
			`CREATE TABLE mine (n int)`,
		},
		"navlog_dispatch": {
			`SELECT FROM api_key`, `INSERT INTO partner (id, name) VALUES (8, 'Eight')`, `UPDATE partner SET disabled = false`,
			`UPDATE endpoint SET url = 'x'`, `UPDATE endpoint SET secret = ''`,
			`INSERT INTO command (partner_id, kind) VALUES (7, 'test')`, `SELECT FROM generation`, `SELECT FROM audit`,
			`DELETE FROM audit`, `UPDATE rate_bucket SET full_at = 0`, `CREATE TABLE mine (n int)`,
		},
		"navlog_operator": {
			`UPDATE audit SET operator = 'x'`, `DELETE FROM audit`, `TRUNCATE audit`, `UPDATE delivery SET state = 'delivered'`,
			`DELETE FROM delivery`, `DELETE FROM partner`, `UPDATE position SET next_offset = 0`,
			`UPDATE dead_record SET resolved_at = now()`, `UPDATE vault_command SET outcome = 'done'`,
			`DELETE FROM vault_command`, `UPDATE command SET done_at = now()`, `UPDATE job_lease SET fence = 0`,
			`UPDATE generation SET state = 'bad'`, `CREATE TABLE mine (n int)`,
		},
	}
	for role, statements := range refused {
		pool := as(t, url, role)
		for _, statement := range statements {
			_, err := pool.Exec(ctx, statement)
			var refusal *pgconn.PgError
			if !errors.As(err, &refusal) || refusal.Code != "42501" {
				t.Errorf("%s is allowed to: %s (%v)", role, statement, err)
			}
		}
	}
	for _, role := range []string{"navlog_ingest", "navlog_project", "navlog_dispatch"} {
		limited, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		program := strings.TrimPrefix(role, "navlog_")
		go func() { done <- Report(limited, as(t, url, role), program, func() any { return map[string]string{} }) }()
		ready := eventuallyRow(t, owner, "SELECT count(*) FROM program_status WHERE program = $1", program)
		cancel()
		if err := <-done; err != nil || !ready {
			t.Errorf("%s cannot report its status: %v", role, err)
		}
	}
	owners := map[string]string{GenerationLease: "navlog_project", IntakeLease: "navlog_dispatch",
		PartnerLease: "navlog_dispatch"}
	for kind, owner := range owners {
		for _, role := range []string{"navlog_project", "navlog_dispatch"} {
			pool := as(t, url, role)
			leases := &Leases{Queries: db.New(pool), Kind: kind, Owner: uuid.New(), Period: time.Minute}
			l, err := leases.Take(ctx, 7)
			if (err == nil) != (role == owner) {
				t.Errorf("%s takes a lease of kind %s: %v", role, kind, err)
			}
			if err != nil {
				continue
			}
			if err := leases.Renew(ctx); err != nil || !l.Safe() {
				t.Errorf("%s renews a lease of kind %s: %v", role, kind, err)
			}
			l.Drop(ctx)
			var n int64
			err = pool.QueryRow(ctx, "SELECT count(*) FROM job_lease WHERE kind = $1 AND until > now()", kind).Scan(&n)
			if n != 0 || err != nil {
				t.Errorf("%s drops a lease of kind %s: %d are held, %v", role, kind, n, err)
			}
		}
	}
	if tag, err := as(t, url, "navlog_project").Exec(ctx,
		"UPDATE job_lease SET fence = 0 WHERE kind <> 'generation'"); err != nil || tag.RowsAffected() != 0 {
		t.Errorf("navlog_project writes leases of dispatchers: %s, %v", tag, err)
	}
	project := db.New(as(t, url, "navlog_project"))
	if err := project.CreateGeneration(ctx,
		db.CreateGenerationParams{ID: 1, LogID: make([]byte, 16), Schema: "s", State: Building}); err != nil {
		t.Error(err)
	}
	if n, err := project.SetGenerationState(ctx,
		db.SetGenerationStateParams{ID: 1, OldState: Building, NewState: Live}); err != nil || n != 1 {
		t.Error(n, err)
	}
	if err := AnnounceWritten(ctx, as(t, url, "navlog_project"), 1); err != nil {
		t.Error(err)
	}
	if err := project.Audit(ctx,
		db.AuditParams{Operator: "o", Command: "projection drop", Detail: "d", Outcome: "begun"}); err != nil {
		t.Error(err)
	}
}

func noRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

func eventuallyRow(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; {
		if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// A program that leaves migrations to `navlog migrate` changes no table, and its error names the command.
func TestMigrationsAreLeftToOthers(t *testing.T) {
	url, ctx := enginetest.Postgres(t), context.Background()
	for what, try := range map[string]func() (*pgxpool.Pool, error){
		"a reader": func() (*pgxpool.Pool,
			error) {
			return OpenAsItIs(ctx, Config{URL: url, MaxConns: 2})
		},
		"a program with skipMigrations": func() (*pgxpool.Pool,
			error) {
			return Open(ctx, Config{URL: url, MaxConns: 2, SkipMigrations: true})
		},
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), "has no tables yet: `navlog migrate`") {
			t.Errorf("%s, before there are tables: %v", what, err)
		}
	}
	owner, err := Connect(ctx, Config{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	var tables int
	if err := owner.QueryRow(ctx,
		"SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'").Scan(&tables); err != nil ||
		tables != 0 {
		t.Errorf("%d tables were created by a program that must not migrate: %v", tables, err)
	}
	if err := Migrate(ctx, owner); err != nil {
		t.Fatal(err)
	}
	pool, err := OpenAsItIs(ctx, Config{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
	if err := GrantRoles(ctx, owner); err != nil {
		t.Fatal(err)
	}
	open(t, url+"&role=navlog_ingest").Close() // there is nothing to migrate, and this login has no right to

	exec(t, owner, "DELETE FROM goose_db_version WHERE version_id = $1", newest())
	older, err := Version(ctx, owner)
	if err != nil {
		t.Fatal(err)
	}
	_, err = OpenAsItIs(ctx, Config{URL: url, MaxConns: 2})
	for _, want := range []string{fmt.Sprintf("are of version %d, and this navlog needs %d: run `navlog migrate`", older,
		newest()), "with --roles if each program has its own login"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with older tables the error lacks %q: %v", want, err)
		}
	}
	if _, err := Open(ctx, Config{URL: url + "&role=navlog_ingest", MaxConns: 2}); err == nil ||
		!strings.Contains(err.Error(), "run `navlog migrate` with the login that owns the tables") {
		t.Errorf("by a role that may not migrate: %v", err)
	}
}
