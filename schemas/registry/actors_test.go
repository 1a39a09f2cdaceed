package registry

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/certs/certstest"
	"github.com/navlog/navlog/schemas/registry/db"
)

// logins creates the roles with a login for each, and returns a pool per role.
func logins(t *testing.T) (owner *pgxpool.Pool, as map[string]*pgxpool.Pool) {
	t.Helper()
	at := enginetest.Postgres(t)
	owner = open(t, at)
	if err := GrantRoles(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	as = map[string]*pgxpool.Pool{}
	for _, role := range []string{"ingest", "project", "serve", "dispatch", "operator"} {
		login := "login_" + role
		create := "DROP ROLE IF EXISTS %[1]s; CREATE ROLE %[1]s LOGIN PASSWORD 'secret' IN ROLE navlog_%[2]s"
		exec(t, owner, fmt.Sprintf(create, login, role))
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal("parse the test's URL")
		}
		u.User = url.UserPassword(login, "secret")
		as[role] = open(t, u.String())
	}
	return owner, as
}

// denied reports whether PostgreSQL rejected a statement because of a missing right or a policy.
func denied(err error) bool {
	var refusal *pgconn.PgError
	return errors.As(err, &refusal) && refusal.Code == "42501"
}

// A login writes only the status of its own program: serve signs statements by the status of
// ingest, and no other login can forge, change, backdate or delete it.
func TestProgramsWriteTheirOwnStateOnly(t *testing.T) {
	owner, as := logins(t)
	for program, pool := range as {
		for _, of := range Programs {
			wrote := db.PutStatusParams{Program: of, Instance: "real", Status: []byte(`{"by":"` + program + `"}`)}
			err := db.New(pool).PutStatus(t.Context(), wrote)
			if of == program && err != nil {
				t.Errorf("%s cannot write its own state: %v", program, err)
			}
			if of != program && !denied(err) {
				t.Errorf("%s may write the state of %s: %v", program, of, err)
			}
		}
	}
	for program, pool := range as {
		for _, statement := range []string{
			"UPDATE program_status SET status = '{}' WHERE program <> '%s'", "DELETE FROM program_status WHERE program <> '%s'",
			"UPDATE program_status SET instance = 'other' WHERE program <> '%s'",
		} {
			tag, err := pool.Exec(t.Context(), fmt.Sprintf(statement, program))
			if tag.RowsAffected() != 0 || err != nil && !denied(err) {
				t.Errorf("%s: %s changes %d rows, %v", program, statement, tag.RowsAffected(), err)
			}
		}
		if program == "operator" {
			continue
		}
		// A row cannot change its program, and its time cannot be in the future, where it would never be stale.
		for _, statement := range []string{
			"UPDATE program_status SET program = 'ingest' WHERE program = '%s' AND program <> 'ingest'",
			"UPDATE program_status SET program = 'serve' WHERE program = '%s' AND program <> 'serve'",
			"UPDATE program_status SET at = now() + interval '1 year' WHERE program = '%s'",
			"INSERT INTO program_status VALUES ('%s', 'later', now() + interval '1 s', '{}')",
		} {
			statement = fmt.Sprintf(statement, program)
			if tag, err := pool.Exec(t.Context(), statement); tag.RowsAffected() != 0 || err != nil && !denied(err) {
				t.Errorf("%s is allowed to: %s (%v)", program, statement, err)
			}
		}
	}
	rows, err := db.New(owner).ListStatus(t.Context())
	if err != nil || len(rows) != len(Programs) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if want := fmt.Sprintf(`{"by": "%s"}`, r.Program); string(r.Status) != want {
			t.Errorf("the state of %s is %s, want %s", r.Program, r.Status, want)
		}
	}
}

// The audit has the login that wrote a row and its time, whatever the statement claims, and a
// login records only its own program's commands.
func TestTheAuditNamesTheLogin(t *testing.T) {
	owner, as := logins(t)
	may := map[string][]string{
		"ingest":   {"ingest resume", "restore"},
		"dispatch": {"dispatch rewind"},
		"project":  {"projection rebuild", "projection switch", "projection rollback", "projection drop"},
		"operator": {
			"partner create", "partner rotate-key", "partner revoke-key", "partner rotate-secret", "partner reseal",
			"partner disable", "partner enable", "partner set-limit", "webhook park", "webhook resume", "webhook test",
			"webhook replay", "webhook replay-range", "webhook dead retry", "webhook follow-log", "kafka grant",
			"vault remove", "vault restore",
		},
	}
	commands := append(slices.Concat(slices.Collect(maps.Values(may))...), "migrate")
	for role, pool := range as {
		for _, command := range commands {
			done := db.AuditParams{Operator: "alice", Command: command, Detail: "d", Outcome: ActionDone}
			err := db.New(pool).Audit(t.Context(), done)
			if slices.Contains(may[role], command) && err != nil {
				t.Errorf("%s cannot record %q: %v", role, command, err)
			}
			if !slices.Contains(may[role], command) && !denied(err) {
				t.Errorf("%s may record %q: %v", role, command, err)
			}
		}
		for _, claim := range []string{
			"INSERT INTO audit (operator, login, command, detail, outcome) VALUES ('x', 'navlog_migrate', '%s', 'd', 'done')",
			"INSERT INTO audit (operator, at, command, detail, outcome) VALUES ('x', '2020-01-01', '%s', 'd', 'done')",
			"INSERT INTO audit (id, operator, command, detail, outcome) OVERRIDING SYSTEM VALUE" +
				" VALUES (1, 'x', '%s', 'd', 'done')",
		} {
			claim = fmt.Sprintf(claim, append(may[role], "migrate")[0])
			if _, err := pool.Exec(t.Context(), claim); !denied(err) {
				t.Errorf("%s is allowed to: %s (%v)", role, claim, err)
			}
		}
	}
	var wrong int
	const others = `SELECT count(*) FROM audit WHERE login <> CASE WHEN command IN ('ingest resume', 'restore') THEN 'login_ingest'
		WHEN command = 'dispatch rewind' THEN 'login_dispatch'
		WHEN command LIKE 'projection %' THEN 'login_project' ELSE 'login_operator' END`
	if err := owner.QueryRow(t.Context(), others).Scan(&wrong); err != nil || wrong != 0 {
		t.Errorf("%d rows name another login than the one that wrote them (%v)", wrong, err)
	}
	// The same holds for the owner of the tables, which is exempt from rights and policies.
	var me, login string
	var recent bool
	const claim = `INSERT INTO audit (operator, login, at, command, detail, outcome)
		VALUES ('x', 'another', '2020-01-01', 'migrate', 'd', 'done')
		RETURNING session_user, login, at > now() - interval '1 hour'`
	if err := owner.QueryRow(t.Context(), claim).Scan(&me, &login, &recent); err != nil || login != me || !recent {
		t.Errorf("the owner writes as %q at its own time (%t), and is %q (%v)", login, recent, me, err)
	}
}

// TestGrantsOfEachRole lists all rights of each role: a change of roles.sql must change this list.
func TestGrantsOfEachRole(t *testing.T) {
	owner, _ := logins(t)
	rows, err := owner.Query(t.Context(), `
		SELECT grantee || ' ' || lower(privilege_type) || ' ' || table_name FROM information_schema.role_table_grants
		WHERE grantee LIKE 'navlog\_%' AND table_schema = 'public' AND privilege_type <> 'SELECT'
		UNION
		SELECT grantee || ' ' || lower(c.privilege_type) || ' ' || c.table_name || '.' || column_name
		FROM information_schema.role_column_grants c
		WHERE grantee LIKE 'navlog\_%' AND table_schema = 'public' AND privilege_type <> 'SELECT' AND NOT EXISTS (
			SELECT FROM information_schema.role_table_grants t
			WHERE (t.grantee, t.table_name, t.privilege_type) = (c.grantee, c.table_name, c.privilege_type))`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	add := func(role, privileges, tables string) {
		for _, privilege := range strings.Fields(privileges) {
			for _, table := range strings.Fields(tables) {
				want = append(want, "navlog_"+role+" "+privilege+" "+table)
			}
		}
	}
	for _, role := range []string{"ingest", "project", "serve", "dispatch"} { // their own rows, by policy
		add(role, "insert update delete", "program_status uptime")
	}
	for _, role := range []string{"ingest", "project", "dispatch", "operator"} { // neither login nor time nor id
		add(role, "insert", "audit.operator audit.command audit.partner_id audit.detail audit.outcome")
	}
	add("ingest", "update", "vault_command.outcome vault_command.detail vault_command.finished_at")
	add("project", "insert update", "generation job_lease")
	add("serve", "update", "endpoint.version endpoint.url endpoint.updated_at statement_key.retired_at")
	add("serve", "insert", "command.partner_id command.kind command.event_id statement_key.public_key")
	add("serve", "insert update", "rate_bucket")
	add("dispatch", "insert update delete", "delivery attempt breaker dispatcher lease backfill_lease")
	add("dispatch", "insert update", "position stream dead_record job_lease")
	add("dispatch", "insert", "correction adopted")
	add("dispatch", "update", "retention")
	add("dispatch", "update delete", "command")
	add("operator", "insert", "partner.id partner.name api_key.partner_id api_key.hash api_key.last4")
	add("operator", "insert", "endpoint.partner_id endpoint.secret command.partner_id command.kind command.event_id")
	add("operator", "insert", "command.first_sequence command.last_sequence command.only_state")
	add("operator", "insert", "vault_command.chain_id vault_command.kind vault_command.vault vault_command.argument")
	add("operator", "update", "partner.name partner.disabled partner.rate_limit api_key.revoked_at")
	add("operator", "update", "endpoint.version endpoint.secret endpoint.next_secret endpoint.next_at endpoint.held")
	add("operator", "update", "endpoint.updated_at dead_record.retry_at position.log_id")
	for _, role := range []string{"operator", "rotation"} {
		const certificates = "endpoint_certificates."
		for column := range strings.FieldsSeq("authorities authorities_expire client client_key client_expires " +
			"client_fingerprint") {
			add(role, "insert update", certificates+column)
		}
		add(role, "insert", certificates+"partner_id "+certificates+"url")
		add(role, "update", certificates+"id "+certificates+"changed_at")
		add(role, "delete", "endpoint_certificates")
	}
	add("rotation", "update", "endpoint.secret endpoint.next_secret endpoint.next_at api_key.revoked_at")
	add("rotation", "insert", "api_key.partner_id api_key.hash api_key.last4")
	add("rotation", "insert", "audit.operator audit.command audit.partner_id audit.detail audit.outcome")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		for _, g := range got {
			if !slices.Contains(want, g) {
				t.Errorf("granted, but not expected: %s", g)
			}
		}
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("expected, but not granted: %s", w)
			}
		}
	}
}

// A login cannot act for another one: move an API key to another partner, or insert a command
// that only operators may give or that is already done.
func TestNoLoginActsAsAnother(t *testing.T) {
	owner, as := logins(t)
	for _, statement := range []string{
		`INSERT INTO partner (id, name) VALUES (7, 'Seven'), (8, 'Eight')`,
		`INSERT INTO endpoint (partner_id, secret) VALUES (7, 'sealed')`,
		`INSERT INTO api_key (partner_id, hash, last4) VALUES (7, sha256('key'), 'abcd')`,
	} {
		exec(t, owner, statement)
	}
	for statement, roles := range map[string]string{
		`UPDATE api_key SET partner_id = 8`:        "ingest project serve dispatch operator",
		`UPDATE api_key SET hash = sha256('mine')`: "ingest project serve dispatch operator",
		`INSERT INTO command (partner_id, kind, first_sequence, last_sequence) VALUES (7, 'replay-range', 1, 2)`: "ingest project serve dispatch",
		`INSERT INTO command (partner_id, kind) VALUES (7, 'replay-range')`:                                      "ingest project serve dispatch",
		`INSERT INTO command (partner_id, kind, done_at) VALUES (7, 'test', now())`:                              "ingest project serve dispatch operator",
		`UPDATE endpoint SET url = 'https://mine.example'`:                                                       "ingest project dispatch operator",
		`INSERT INTO statement_key (public_key) VALUES (sha256('mine'))`:                                         "ingest project dispatch operator",
		`UPDATE statement_key SET retired_at = now()`:                                                            "ingest project dispatch operator",
		`DELETE FROM statement_key`:                                                                              "ingest project serve dispatch operator",
		`UPDATE generation SET state = 'live'`:                                                                   "ingest serve dispatch operator",
	} {
		for _, role := range strings.Fields(roles) {
			if _, err := as[role].Exec(t.Context(), statement); !denied(err) {
				t.Errorf("%s is allowed to: %s (%v)", role, statement, err)
			}
		}
	}
}

// With the rights of serve, a key is registered before it signs; the next key retires it, and
// a retired key stays registered and never signs again.
func TestStatementKeysAreListedAndRetired(t *testing.T) {
	_, as := logins(t)
	first, second := make([]byte, 32), append(make([]byte, 31), 1)
	for range 2 {
		if err := UseStatementKey(t.Context(), as["serve"], first); err != nil {
			t.Fatal(err)
		}
	}
	if err := UseStatementKey(t.Context(), as["serve"], second); err != nil {
		t.Fatal(err)
	}
	if err := UseStatementKey(t.Context(), as["serve"], first); !errors.Is(err, ErrStatementKeyRetired) {
		t.Errorf("a retired key: %v", err)
	}
	tag, err := as["serve"].Exec(t.Context(), "UPDATE statement_key SET retired_at = NULL")
	if tag.RowsAffected() != 0 || err != nil && !denied(err) {
		t.Errorf("a retired key is restored: %v", err)
	}
	_, err = as["serve"].Exec(t.Context(), "UPDATE statement_key SET retired_at = now() + interval '1 year'")
	if !denied(err) {
		t.Errorf("a key is retired in the future: %v", err)
	}
	keys, err := db.New(as["serve"]).StatementKeys(t.Context())
	if err != nil || len(keys) != 2 || keys[0].RetiredAt == nil || keys[1].RetiredAt != nil {
		t.Errorf("%+v, %v", keys, err)
	}
}

// A login of serve rotates keys and secrets and changes certificates only with navlog_rotation, which no program has,
// and records it in the name of the partner only.
func TestServeRotatesWithTheRoleOnly(t *testing.T) {
	at := enginetest.Postgres(t)
	owner := open(t, at)
	if err := GrantRoles(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	const key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	sealer, err := NewSealer(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CreatePartner(t.Context(), owner, "alice", sealer, 7, "Seven", true); err != nil {
		t.Fatal(err)
	}
	login := func(name, roles string) *pgxpool.Pool {
		create := "DROP ROLE IF EXISTS %[1]s; CREATE ROLE %[1]s LOGIN PASSWORD 'secret' IN ROLE %[2]s"
		exec(t, owner, fmt.Sprintf(create, name, roles))
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal("parse the test's URL")
		}
		u.User = url.UserPassword(name, "secret")
		return open(t, u.String())
	}
	without, with := login("login_not_rotating", "navlog_serve"), login("login_rotating", "navlog_serve, navlog_rotation")
	url := "https://seven.example/hook"
	if _, err := db.New(owner).SetWebhookURL(t.Context(), db.SetWebhookURLParams{PartnerID: 7, Url: &url}); err != nil {
		t.Fatal(err)
	}
	ca := certstest.New(t)
	given, err := ca.Texts(ca.Client("acme")).Parse()
	if err != nil {
		t.Fatal(err)
	}
	// changes returns PostgreSQL's error for each change that a partner may request.
	changes := func(pool *pgxpool.Pool, operator string) []error {
		by := Author{Name: operator}
		_, keys := RotateKey(t.Context(), pool, by, 7, true)
		proven, secret := ProvenSealer(t.Context(), pool, key)
		if secret == nil {
			_, secret = RotateSecret(t.Context(), pool, by, proven, 7, 0)
		}
		_, set := SetCertificates(t.Context(), pool, by, sealer, 7, "", given)
		_, renewed := SetCertificates(t.Context(), pool, by, sealer, 7, "", given)
		_, partly := RemoveCertificates(t.Context(), pool, by, 7, "", false, true)
		_, removed := RemoveCertificates(t.Context(), pool, by, 7, "", true, true)
		return []error{keys, secret, set, renewed, partly, removed}
	}
	// Before the changes of a login with the role there is nothing to remove.
	refused := func(errs []error) bool {
		return !slices.ContainsFunc(errs[:4], func(err error) bool { return !denied(err) })
	}
	if errs := changes(without, "partner 7"); !refused(errs) {
		t.Errorf("serve without the role: %v", errs)
	}
	for _, operator := range []string{"alice", "partner 8", "partner"} {
		if errs := changes(with, operator); !refused(errs) {
			t.Errorf("serve records a change as %q: %v", operator, errs)
		}
	}
	if errs := changes(with, "partner 7"); errors.Join(errs...) != nil {
		t.Errorf("serve with the role: %v", errs)
	}
	for _, statement := range []string{
		`INSERT INTO audit (operator, command, partner_id, detail, outcome) VALUES ('partner 7', 'partner disable', 7, 'd', 'done')`,
		`SELECT FROM audit`, `UPDATE partner SET disabled = false`, `UPDATE endpoint SET held = true`, `DELETE FROM api_key`,
		`UPDATE api_key SET hash = sha256('mine')`, `UPDATE api_key SET partner_id = 8`,
		`INSERT INTO endpoint (partner_id, secret) VALUES (8, 'mine')`,
		`SELECT client_key FROM endpoint_certificates`, `UPDATE endpoint_certificates SET url = 'https://mine.example'`,
		`UPDATE endpoint_certificates SET partner_id = 8`,
		`UPDATE endpoint_certificates SET client = encode(client_key, 'hex')`,
	} {
		if _, err := with.Exec(t.Context(), statement); !denied(err) {
			t.Errorf("serve with the role is allowed to: %s (%v)", statement, err)
		}
	}
	var rows []string
	found, err := owner.Query(t.Context(), "SELECT operator || ', ' || login || ', ' || command FROM audit ORDER BY id")
	if err == nil {
		rows, err = pgx.CollectRows(found, pgx.RowTo[string])
	}
	var want []string
	for _, command := range []string{"rotate-key", "rotate-secret", "certificates set", "certificates set",
		"certificates remove", "certificates remove"} {
		want = append(want, "partner 7, login_rotating, partner "+command)
	}
	if err != nil || len(rows) != 7 || !slices.Equal(rows[1:], want) {
		t.Errorf("the audit has %q, %v", rows, err)
	}
}

// An owner of the tables that may not create roles, like the one in compose.yaml, upgrades a database that has all
// roles of the version before.
func TestRolesWithoutTheRightToCreateRoles(t *testing.T) {
	at := enginetest.Postgres(t)
	superuser := open(t, at)
	if err := GrantRoles(t.Context(), superuser); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DROP ROLE IF EXISTS login_owner", "CREATE ROLE login_owner LOGIN PASSWORD 'secret' NOCREATEROLE",
		"DO $$ DECLARE t record; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' UNION SELECT " +
			"viewname FROM pg_views WHERE schemaname = 'public' LOOP EXECUTE format('ALTER TABLE %I OWNER TO login_owner', " +
			"t.tablename); END LOOP; END $$",
		"ALTER SCHEMA public OWNER TO login_owner",
	} {
		exec(t, superuser, statement)
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal("parse the test's URL")
	}
	u.User = url.UserPassword("login_owner", "secret")
	owner, err := OpenAsItIs(t.Context(), Config{URL: u.String(), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if _, err := owner.Exec(t.Context(),
		strings.ReplaceAll(roles, "navlog_rotation", "navlog_role_of_later")); err != nil {
		t.Errorf("the missing new role stops the upgrade: %v", err)
	}
	if err := GrantRoles(t.Context(), owner); err != nil {
		t.Errorf("with the role: %v", err)
	}
}
