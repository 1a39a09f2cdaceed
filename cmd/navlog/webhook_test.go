package main

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// The operator's commands against a registry without running programs: what they leave for dispatch, what they show of
// its work, and the message of each mistake.
func TestWebhookCommands(t *testing.T) {
	c := newCommands(t)
	var partner registry.NewPartner
	c.json(&partner, "partner", "create", "Acme", "--id", "7")
	postgres, err := registry.Open(t.Context(), registry.Config{URL: os.Getenv("NAVLOG_POSTGRES_URL"), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Close()
	event := uuid.New()
	for _, sql := range []string{
		`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, attempts, finished_at) VALUES ('` +
			event.String() + `', 7, 1, 'deposit.referral', '{"a":1}', 'failed', 4, now())`,
		`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES (gen_random_uuid(), 7, 2, 'deposit.referral', '{}', 'pending')`,
		`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, error, response, dns_us, connect_us)
			VALUES ('` + event.String() + `', 1, 'https://example.com/', 1, now(), 12, 'refused', NULL, 1500, 2500)`,
	} {
		if _, err := postgres.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	var rows []deliveryRow
	c.json(&rows, "webhook", "list", "--partner", "7", "--state", "failed")
	if len(rows) != 1 || rows[0].ID != event || rows[0].Sequence != 1 {
		t.Errorf("listed %+v", rows)
	}
	if out, err := c.run("webhook", "list"); err != nil || strings.Count(out, "\n") != 3 ||
		!strings.Contains(out, "SEQUENCE") {
		t.Errorf("%v:\n%s", err, out)
	}
	var shown struct {
		deliveryRow
		Log []attemptRow `json:"attemptLog"`
	}
	c.json(&shown, "webhook", "show", event.String())
	if len(shown.Log) != 1 || shown.Log[0].DNSMs == nil || *shown.Log[0].DNSMs != 1.5 || shown.Log[0].TLSMs != nil {
		t.Errorf("shown %+v", shown)
	}
	if out, err := c.run("webhook", "show", event.String()); err != nil || !strings.Contains(out, "1.5 ms") ||
		!strings.Contains(out, "refused") || strings.Contains(out, "corrected") {
		t.Errorf("%v:\n%s", err, out)
	}
	if err := db.New(postgres).CorrectDelivery(t.Context(),
		db.CorrectDeliveryParams{EventID: event, Body: []byte(`{"a":2}`)}); err != nil {
		t.Fatal(err)
	}
	var corrected struct {
		Body        struct{ A int }
		CorrectedAt *time.Time
		Before      []struct{ A int } `json:"bodiesBefore"`
	}
	c.json(&corrected, "webhook", "show", event.String())
	if corrected.Body.A != 2 || corrected.CorrectedAt == nil || len(corrected.Before) != 1 || corrected.Before[0].A != 1 {
		t.Errorf("shown %+v", corrected)
	}
	if out := c.mustRun("webhook", "show", event.String()); !strings.Contains(out, "\ncorrected 2") ||
		!strings.Contains(out, `before    {"a":1}`) {
		t.Errorf("a correction is not shown:\n%s", out)
	}

	orders := [][]string{{"replay", event.String()}, {"replay-range", "7", "1", "2", "--state", "failed"}, {"test", "7"}}
	sendsNothing := func(want string) {
		t.Helper()
		for _, args := range orders {
			out, err := c.run(append(append([]string{"webhook"}, args...), "--wait", "0s")...)
			if cli.CodeOf(err) != cli.Failed || !strings.Contains(err.Error(), want) || out != "" {
				t.Errorf("%v: %q, %v, want %q", args, out, err, want)
			}
		}
	}
	sendsNothing("partner 7 has no webhook URL, so nothing is sent")
	if err := partners.Register(t.Context(), postgres, 7, "https://acme.example/hook"); err != nil {
		t.Fatal(err)
	}
	c.mustRun("partner", "disable", "7")
	sendsNothing("partner 7 is disabled, so nothing is sent")
	c.mustRun("partner", "enable", "7")
	for _, args := range orders {
		out, err := c.run(append(append([]string{"webhook"}, args...), "--wait", "0s")...)
		if err != nil || !strings.Contains(out, "queued as command") {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
	var kinds string
	if err := postgres.QueryRow(t.Context(),
		"SELECT string_agg(kind || coalesce(only_state, ''), ' ' ORDER BY id) FROM command").Scan(&kinds); err != nil ||
		kinds != "replay replay-rangefailed test" {
		t.Errorf("commands %q, %v", kinds, err)
	}
	held := func() (held bool) {
		if err := postgres.QueryRow(t.Context(), "SELECT held FROM endpoint").Scan(&held); err != nil {
			t.Fatal(err)
		}
		return held
	}
	if _, err := c.run("webhook", "park", "7"); err != nil || !held() {
		t.Errorf("park: %v, held %t", err, held())
	}
	for _, command := range [][]string{{"partner", "show", "7"}, {"partner", "list"}} {
		if out, err := c.run(command...); err != nil || !strings.Contains(out, "enabled, webhooks parked") {
			t.Errorf("%v does not show that the partner is parked: %v\n%s", command, err, out)
		}
	}
	out, err := c.run("webhook", "test", "7", "--wait", "0s")
	if err != nil || !strings.Contains(out, "parked, so nothing is sent until `navlog webhook resume 7`") {
		t.Errorf("a test event for a parked partner: %v\n%s", err, out)
	}
	if _, err := c.run("webhook", "resume", "7"); err != nil || held() {
		t.Errorf("resume: %v, held %t", err, held())
	}

	logs := []string{strings.Repeat("0a", 16), strings.Repeat("0b", 16)}
	if _, err := c.run("webhook", "follow-log", logs[1]); err == nil ||
		!strings.Contains(err.Error(), "no referral was read yet") {
		t.Errorf("follow-log before the first referral: %v", err)
	}
	if _, err := postgres.Exec(t.Context(),
		"INSERT INTO position (topic_id, partition, topic, next_offset, log_id) SELECT gen_random_uuid(), n, 't', 5, "+
			"decode($1, 'hex') FROM generate_series(0, 1) n", logs[0]); err != nil {
		t.Fatal(err)
	}
	if out := c.mustRun("webhook", "follow-log", logs[1]); !strings.Contains(out, logs[1]) {
		t.Errorf("follow-log: %q", out)
	}
	var followed int
	if err := postgres.QueryRow(t.Context(),
		"SELECT count(*) FROM position WHERE log_id = decode($1, 'hex') AND next_offset = 5",
		logs[1]).Scan(&followed); err != nil || followed != 2 {
		t.Errorf("%d positions follow the log, %v", followed, err)
	}

	for want, args := range map[string][]string{
		"already":               {"follow-log", logs[1]},
		"32 hex digits":         {"follow-log", "abc"},
		"there is no event":     {"show", uuid.NewString()},
		"no event":              {"replay", uuid.NewString()},
		"there is no partner 8": {"test", "8"},
		"no partner 9":          {"park", "9"},
		"there is no partner 9": {"list", "--partner", "9"},
		"--state is":            {"list", "--state", "lost"},
		"--limit: it is 0":      {"list", "--limit", "0"},
		"the range is 3 to 2":   {"replay-range", "7", "3", "2"},
		"sent anyway":           {"replay", pending(t, c)},
	} {
		if _, err := c.run(append([]string{"webhook"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

func pending(t *testing.T, c commands) string {
	t.Helper()
	var rows []deliveryRow
	c.json(&rows, "webhook", "list", "--state", "pending")
	if len(rows) != 1 {
		t.Fatalf("%d pending", len(rows))
	}
	return rows[0].ID.String()
}

// Records that could not become a delivery are listed, shown as far as they can be read, and queued for a retry; a
// dispatcher does the rest.
func TestDeadRecordCommands(t *testing.T) {
	c := newCommands(t)
	pool := c.registry()
	value, err := proto.Marshal(&event.Referral{ChainId: 5, Kind: 3, PartnerId: 7})
	if err != nil {
		t.Fatal(err)
	}
	for offset, value := range [][]byte{value, {0xff}} {
		if _, err := pool.Exec(t.Context(),
			`INSERT INTO dead_record (topic_id, partition, "offset", topic, reason, error, value)
			VALUES (gen_random_uuid(), 2, $1, 'referral.deposits', 'poison', 'it cannot be read', $2)`, offset,
			value); err != nil {
			t.Fatal(err)
		}
	}
	var rows []deadRow
	c.json(&rows, "webhook", "dead", "list")
	if len(rows) != 2 || rows[1].ID != 1 || rows[1].Error != "it cannot be read" || rows[1].Partition != 2 {
		t.Fatalf("listed %+v", rows)
	}
	if out := c.mustRun("webhook", "dead", "show", "1"); !strings.Contains(out, `"partnerId":7`) ||
		!strings.Contains(out, hex.EncodeToString(value)) {
		t.Errorf("shown:\n%s", out)
	}
	if out := c.mustRun("webhook", "dead", "show", "2"); !strings.Contains(out,
		"nothing that this version of navlog can read") || !strings.Contains(out, "ff") {
		t.Errorf("shown:\n%s", out)
	}
	if out := c.mustRun("webhook", "dead", "retry", "1", "--wait", "0s"); !strings.Contains(out,
		"waiting for a running dispatcher: 1") {
		t.Errorf("%q", out)
	}
	q := db.New(pool)
	row, err := q.ClaimDeadRecord(t.Context())
	if err != nil || row.ID != 1 {
		t.Fatalf("left for dispatch: %+v, %v", row, err)
	}
	if err := q.ResolveDeadRecord(t.Context(), db.ResolveDeadRecordParams{ID: 1, RetriedAt: row.RetryAt}); err != nil {
		t.Fatal(err)
	}
	if c.json(&rows, "webhook", "dead", "list"); len(rows) != 1 || rows[0].ID != 2 {
		t.Errorf("listed after one is resolved: %+v", rows)
	}
	if c.json(&rows, "webhook", "dead", "list", "--all"); len(rows) != 2 || rows[1].ResolvedAt == nil {
		t.Errorf("listed with --all: %+v", rows)
	}
	for want, args := range map[string][]string{
		"no dead record 9":               {"show", "9"},
		"no unresolved dead record 9":    {"retry", "2", "9"},
		"no unresolved dead record 1":    {"retry", "1"},
		"their ids, or --all":            {"retry"},
		"name the dead records to retry": {"retry", "2", "--all"},
	} {
		if _, err := c.run(append([]string{"webhook", "dead"}, args...)...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	var waiting int
	if err := pool.QueryRow(t.Context(),
		"SELECT count(*) FROM dead_record WHERE id = 2 AND retry_at IS NOT NULL").Scan(&waiting); err != nil || waiting != 0 {
		t.Errorf("a rejected retry left a request (%v)", err)
	}
	if _, err := c.run("webhook", "dead", "retry", "--all", "--wait", "0s"); err != nil {
		t.Error(err)
	}
	var audit []auditRow
	if c.json(&audit, "audit"); len(audit) != 2 || audit[0].Command != "webhook dead retry" {
		t.Errorf("audit %+v", audit)
	}
}
