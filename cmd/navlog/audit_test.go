package main

import (
	"encoding/base64"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

func (c commands) registry() *pgxpool.Pool {
	c.t.Helper()
	pool, err := registry.Open(c.t.Context(), registry.Config{URL: os.Getenv("NAVLOG_POSTGRES_URL"), MaxConns: 2})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(pool.Close)
	return pool
}

func (c commands) mustRun(args ...string) string {
	c.t.Helper()
	out, err := c.run(args...)
	if err != nil {
		c.t.Fatalf("navlog %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// last4 returns the last four characters of a key, by which people identify it.
func last4(key string) string { return key[len(key)-4:] }

// Every change by an operator leaves a row, written in the transaction of the change: who, which command, what; no row
// contains a key or a secret. A command that changed nothing leaves none.
func TestEveryChangeIsAudited(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_OPERATOR", "alice")
	var created, second, third, rotated registry.NewPartner
	c.json(&created, "partner", "create", "Acme", "--id", "7")
	pool := c.registry()
	event := uuid.NewString()
	if _, err := pool.Exec(t.Context(),
		`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ($1, 7, 1, 'deposit.referral', '{}', 'failed')`, event); err != nil {
		t.Fatal(err)
	}
	if err := partners.Register(t.Context(), pool, 7, "https://acme.example/hook"); err != nil {
		t.Fatal(err)
	}
	c.json(&second, "partner", "rotate-key", "7")
	c.json(&third, "partner", "rotate-key", "7", "--as", "bob")
	c.json(&rotated, "partner", "rotate-secret", "7", "--overlap", "0s")
	for _, args := range [][]string{
		{"partner", "disable", "7"}, {"partner", "enable", "7"}, {"partner", "set-limit", "7", "30"},
		{"partner", "revoke-key", "7", last4(second.APIKey)},
		{"partner", "reseal"}, {"webhook", "park", "7"}, {"webhook", "resume", "7"},
		{"webhook", "test", "7", "--wait", "0s"}, {"webhook", "replay", event, "--wait", "0s"},
		{"webhook", "replay-range", "7", "1", "2", "--state", "failed", "--wait", "0s"},
	} {
		c.mustRun(args...)
	}
	for _, args := range [][]string{{"partner", "disable", "9"}, {"partner", "rotate-secret", "9"},
		{"webhook", "park", "9"}, {"webhook", "test", "9"}, {"partner", "list"}, {"webhook", "list"}, {"audit"}} {
		c.run(args...)
	}
	var rows []auditRow
	c.json(&rows, "audit")
	slices.Reverse(rows)
	var commands []string
	for _, r := range rows {
		commands = append(commands, r.Command)
		who := "alice"
		if r.ID == rows[2].ID {
			who = "bob"
		}
		if r.Operator != who || r.Login == "" || r.Detail == "" || r.Outcome != registry.ActionDone || r.PartnerID != 7 &&
			r.Command != "partner reseal" {
			t.Errorf("row %+v", r)
		}
	}
	want := []string{
		"partner create", "partner rotate-key", "partner rotate-key", "partner rotate-secret", "partner disable",
		"partner enable", "partner set-limit",
		"partner revoke-key", "partner reseal", "webhook park", "webhook resume", "webhook test", "webhook replay",
		"webhook replay-range",
	}
	if !slices.Equal(commands, want) {
		t.Errorf("audited %q, want %q", commands, want)
	}
	out := c.mustRun("audit", "--partner", "7", "--limit", "20")
	for _, shown := range []string{"revoked ..." + last4(second.APIKey), "revoked ..." + last4(created.APIKey), `"bob"`,
		"limit 30", event} {
		if !strings.Contains(out, shown) {
			t.Errorf("the audit does not show %q:\n%s", shown, out)
		}
	}
	for _, secret := range []string{created.APIKey, third.APIKey, created.SigningSecret, rotated.SigningSecret, "whsec_",
		"nk_"} {
		if strings.Contains(out, secret) {
			t.Errorf("the audit shows %q:\n%s", secret, out)
		}
	}
}

// Each command either is in this list or leaves a row; the author of a new command has to decide which.
func TestReadOnlyCommands(t *testing.T) {
	reads := []string{
		"audit", "backup", "completion", "config check", "doctor", "explain partner", "explain settlement", "explain user",
		"explain vault", "ingest estimate", "kafka rights", "log show", "log stats", "log tail", "mapping check",
		"mapping try", "partner aliases list", "partner certificates show", "partner list", "partner show", "probe",
		"projection list", "projection show", "statement get", "statement verify", "status", "vault detect", "verify",
		"version",
		"webhook dead list", "webhook dead show", "webhook list", "webhook show",
	}
	programs := []string{"ingest run", "project", "serve", "dispatch run"}
	var c subcommands
	parser, err := kong.New(&c, kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(false) {
		path := leaf.Name
		for above := leaf.Parent; above.Parent != nil; above = above.Parent {
			path = above.Name + " " + path
		}
		signed := leaf.Target.FieldByName("As").IsValid() && leaf.Target.FieldByName("As").Kind() == reflect.String
		if known := slices.Contains(reads, path) || slices.Contains(programs, path); known == signed {
			t.Errorf("navlog %s: listed as read-only: %t, accepts --as: %t", path, known, signed)
		}
	}
}

// A change to another store is recorded before it begins, so that a failed one has its rows too.
func TestAuditAroundOtherStores(t *testing.T) {
	c := newCommands(t)
	pool, by := c.registry(), signature{As: "carol"}
	d := registry.Action{Command: "projection drop", Detail: "generation 3"}
	if err := by.audited(t.Context(), &cli.Streams{Err: io.Discard}, pool, d, func() error {
		var rows []auditRow
		if c.json(&rows, "audit"); len(rows) != 1 || rows[0].Outcome != registry.ActionBegun {
			t.Errorf("during the change: %+v", rows)
		}
		return os.ErrPermission
	}); err != os.ErrPermission {
		t.Errorf("got the error %v", err)
	}
	if err := by.audited(t.Context(), &cli.Streams{Err: io.Discard}, pool, d, func() error { return nil }); err != nil {
		t.Error(err)
	}
	var rows []auditRow
	c.json(&rows, "audit")
	var outcomes []string
	for _, r := range rows {
		outcomes = append(outcomes, r.Outcome)
	}
	if !slices.Equal(outcomes, []string{registry.ActionDone, registry.ActionBegun, registry.ActionFailed, registry.ActionBegun}) {
		t.Errorf("%+v", rows)
	}
}

// A change of a generation whose result cannot be written, as on a full disk, was made: the audit records it as done.
func TestAuditOfAResultThatCannotBeWritten(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", enginetest.ClickHouse(t))
	q := db.New(c.registry())
	if err := q.CreateGeneration(t.Context(), db.CreateGenerationParams{ID: 1, LogID: make([]byte, 16), Schema: "s",
		State: registry.Standby, Without: [][]byte{}, Vaults: [][]byte{}}); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"projection", "drop", "1", "--config", c.file}, fullDisk{}, io.Discard)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the result cannot be written: %v", err)
	}
	var rows []auditRow
	c.json(&rows, "audit")
	if len(rows) != 2 || rows[0].Outcome != registry.ActionDone || rows[1].Outcome != registry.ActionBegun {
		t.Errorf("%+v", rows)
	}
}

func TestRevokeKey(t *testing.T) {
	c := newCommands(t)
	var one, two, other registry.NewPartner
	c.json(&one, "partner", "create", "Acme", "--id", "7")
	c.json(&two, "partner", "rotate-key", "7")
	c.json(&other, "partner", "create", "Other", "--id", "8")
	q := db.New(c.registry())
	live := func(key string) bool {
		_, err := q.PartnerByKey(t.Context(), registry.HashKey(key))
		return err == nil
	}
	for _, args := range [][]string{{"7"}, {"7", "abc"}, {"7", last4(one.APIKey), "--all"}, {"7", last4(other.APIKey)},
		{"9", "--all"}} {
		if _, err := c.run(append([]string{"partner", "revoke-key"}, args...)...); err == nil {
			t.Errorf("revoke-key %v is accepted", args)
		}
	}
	if out := c.mustRun("partner", "revoke-key", "7", last4(one.APIKey)); !strings.Contains(out, "after a second") ||
		strings.Contains(out, one.APIKey) {
		t.Errorf("%q", out)
	}
	if live(one.APIKey) || !live(two.APIKey) || !live(other.APIKey) {
		t.Error("another key than the named one was revoked")
	}
	if _, err := c.run("partner", "revoke-key", "7", last4(one.APIKey)); err == nil ||
		!strings.Contains(err.Error(), "no live key") {
		t.Errorf("revoked a second time: %v", err)
	}
	c.mustRun("partner", "revoke-key", "7", "--all")
	if live(two.APIKey) || !live(other.APIKey) {
		t.Error("--all does not revoke all of the partner's keys and no other's")
	}
}

// The key that encrypts the signing secrets is rotated without changing a secret, in steps at each of which every
// secret can be decrypted; skipping a step is rejected.
func TestSecretKeyIsRotated(t *testing.T) {
	c := newCommands(t)
	first := os.Getenv("NAVLOG_SECRET_KEY")
	second := base64.StdEncoding.EncodeToString([]byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"))
	var one, next registry.NewPartner
	c.json(&one, "partner", "create", "Acme", "--id", "7")
	c.json(&next, "partner", "rotate-secret", "7", "--overlap", "24h")
	c.mustRun("partner", "create", "Without rotation", "--id", "8")
	pool := c.registry()
	q := db.New(pool)
	if err := partners.Register(t.Context(), pool, 7, "https://acme.example/hook"); err != nil {
		t.Fatal(err)
	}
	opens := func(keys string) {
		t.Helper()
		sealer, err := registry.NewSealer(keys)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := q.Endpoints(t.Context(), nil)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d endpoints, %v", len(rows), err)
		}
		if secret, err := sealer.Open(7, rows[0].Secret); err != nil || secret != one.SigningSecret {
			t.Errorf("the secret: %v", err)
		}
		if secret, err := sealer.Open(7, rows[0].NextSecret); err != nil || secret != next.SigningSecret {
			t.Errorf("the next secret: %v", err)
		}
	}
	announce := func(keys string) {
		t.Helper()
		sealer, err := registry.NewSealer(keys)
		if err != nil {
			t.Fatal(err)
		}
		owner := uuid.MustParse("11111111-1111-1111-1111-111111111111")
		if _, err := q.Announce(t.Context(),
			db.AnnounceParams{Owner: owner, Milliseconds: 50_000, KeyIds: sealer.KeyIDs()}); err != nil {
			t.Fatal(err)
		}
	}
	announce(first)
	t.Setenv("NAVLOG_SECRET_KEY", second+","+first)
	for _, args := range [][]string{{"partner", "reseal"}, {"partner", "create", "Third"},
		{"partner", "rotate-secret", "8"}} {
		if _, err := c.run(args...); err == nil || !strings.Contains(err.Error(), "start them again") {
			t.Errorf("navlog %s while a dispatcher cannot decrypt with the new key: %v", strings.Join(args, " "), err)
		}
	}
	opens(first)
	announce(second + "," + first)
	var done struct {
		KeyID              string
		Partners, Resealed int
	}
	if c.json(&done, "partner", "reseal"); done.Partners != 2 || done.Resealed != 3 {
		t.Errorf("resealed %+v", done)
	}
	opens(second)
	if c.json(&done, "partner", "reseal"); done.Resealed != 0 {
		t.Errorf("resealed a second time: %+v", done)
	}
	const removable = "0 of them by this command: the other keys can be removed"
	if out := c.mustRun("partner", "reseal"); !strings.Contains(out, removable) {
		t.Errorf("with nothing to reseal: %s", out)
	}
	t.Setenv("NAVLOG_SECRET_KEY", first+","+second) // a program that starts with the old order
	c.mustRun("partner", "rotate-secret", "8", "--overlap", "0s")
	t.Setenv("NAVLOG_SECRET_KEY", second+","+first)
	if out := c.mustRun("partner", "reseal"); !strings.Contains(out,
		"1 of them by this command: run it again until it reports 0") {
		t.Errorf("with a secret that was encrypted with the old key: %s", out)
	}
	var version int64
	if err := pool.QueryRow(t.Context(), "SELECT version FROM endpoint WHERE partner_id = 7").Scan(&version); err != nil ||
		version != 3 {
		t.Errorf("version %d, want 3: creation, rotation, URL (%v)", version, err)
	}
	t.Setenv("NAVLOG_SECRET_KEY", second)
	c.mustRun("partner", "create", "Fourth")
	t.Setenv("NAVLOG_SECRET_KEY", first)
	if _, err := c.run("partner", "create", "Fifth"); err == nil ||
		!strings.Contains(err.Error(), "NAVLOG_SECRET_KEY is not the key it was stored with") {
		t.Errorf("with only the old key: %v", err)
	}
}
