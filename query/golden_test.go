package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/openapi"
	"github.com/navlog/navlog/schemas/webhook"
)

// updateGolden rewrites the golden files and the document's examples.
var updateGolden = os.Getenv("NAVLOG_UPDATE_GOLDEN") != ""

// goldenCase is a request whose response is stored in testdata/<name>.json.
type goldenCase struct {
	name, path string
	status     int    // 0: 200
	post       string // body of a POST; empty: GET
	key        string // instead of partner 7's key; "none": no key
}

func goldenCases() []goldenCase {
	a := vaultA.Hex()
	return []goldenCase{
		{name: "vaults", path: "/api/v1/vaults"},
		{name: "vault", path: "/api/v1/vaults/" + a},
		{name: "vault_as_of_9", path: "/api/v1/vaults/" + a + "?asOfBlock=9"},
		{name: "nav", path: "/api/v1/vaults/" + a + "/nav"},
		{name: "vault_deposits", path: "/api/v1/vaults/" + a + "/deposits?pageSize=2"},
		{name: "vault_withdrawals", path: "/api/v1/vaults/" + a + "/withdrawals?pageSize=2"},
		{name: "vault_users", path: "/api/v1/vaults/" + a + "/users?sortBy=totalDeposited"},
		{name: "vault_events", path: "/api/v1/vaults/" + a + "/events?pageSize=3"},
		{name: "events", path: "/api/v1/events?kind=DepositAccepted,NavUpdated&pageSize=4"},
		{name: "events_retracted", path: "/api/v1/events?tx=" + tx(13).Hex() + "&retracted=true"},
		{name: "reorganisations", path: "/api/v1/reorganisations"},
		{name: "series", path: "/api/v1/vaults/" + a + "/series?interval=day"},
		{name: "funding", path: "/api/v1/vaults/" + a + "/funding"},
		{name: "block", path: "/api/v1/block?time=2023-11-14T22:15:20Z"},
		{name: "users", path: "/api/v1/users"},
		{name: "user", path: "/api/v1/users/" + alice.Hex()},
		{name: "user_deposits", path: "/api/v1/users/" + alice.Hex() + "/deposits"},
		{name: "user_withdrawals", path: "/api/v1/users/" + bob.Hex() + "/withdrawals?pageSize=1"},
		{name: "user_withdrawals_alice", path: "/api/v1/users/" + alice.Hex() + "/withdrawals"},
		{name: "user_withdrawals_carol", path: "/api/v1/users/" + carol.Hex() + "/withdrawals"},
		{name: "queue_withdrawals", path: "/api/v1/queues/withdrawals"},
		{name: "queue_withdrawals_as_of", path: "/api/v1/queues/withdrawals?asOfBlock=8"},
		{name: "queue_deposits", path: "/api/v1/queues/deposits"},
		{name: "settlement", path: "/api/v1/settlement/summary"},
		{name: "explain", path: "/api/v1/explain?of=/api/v1/users/" + alice.Hex() + "&field=/totalDeposited"},
		{name: "explain_nav", path: "/api/v1/explain?of=/api/v1/vaults/" + a + "&field=/navPerShare"},
		{name: "explain_retracted", path: "/api/v1/explain?of=/api/v1/partner/stats&field=/totalVolume&retracted=true"},
		{name: "partner_vaults", path: "/api/v1/partner/vaults"},
		{name: "partner_nav", path: "/api/v1/partner/vaults/" + a + "/nav?from=2023-11-14T22:15:20Z"},
		{name: "partner_stats", path: "/api/v1/partner/stats"},
		{name: "partner_deposits", path: "/api/v1/partner/deposits"},
		{name: "partner_router", path: "/api/v1/partner/router"},
		{name: "partner_statement", path: "/api/v1/partner/statement?from=2023-11-14&to=2023-11-14T22:14:56Z", key: "final"},
		{name: "partner_webhooks", path: webhooksPath},
		{name: "partner_certificates", path: certificatesPath},
		{name: "partner_deliveries", path: webhooksPath + "/deliveries"},
		{name: "partner_health", path: webhooksPath + "/health?to=2024-01-03"},
		{name: "partner_delivery", path: webhooksPath + "/deliveries/00000000-0000-5000-8000-000000000002"},
		{name: "partner_events", path: "/api/v1/partner/events?limit=2"},
		{name: "accepted", path: webhooksPath + "/deliveries/00000000-0000-5000-8000-000000000002/replay", post: "{}",
			status: 202},
		{name: "healthz", path: "/healthz"},
		{name: "readyz", path: "/readyz"},
		{name: "status", path: "/status"},
		{name: "statement_keys", path: "/.well-known/navlog-statements"},
		{name: "error_parameter", path: "/api/v1/users?page=0&pageSize=101", status: 400},
		{name: "error_address", path: "/api/v1/vaults/0x12", status: 400},
		{name: "error_body", path: webhooksPath, post: `{"URL":"https://partner.example/"}`, status: 400},
		{name: "error_webhook_url", path: webhooksPath, post: `{"url":"http://partner.example/"}`, status: 400},
		{name: "error_unauthorized", path: "/api/v1/partner/stats", key: "none", status: 401},
		{name: "error_forbidden", path: "/api/v1/partner/stats", key: "disabled", status: 403},
		{name: "error_not_found", path: "/api/v1/vaults/" + unknown.Hex(), status: 404},
		{name: "error_method", path: "/api/v1/vaults", post: "{}", status: 405},
		{name: "error_too_large", path: webhooksPath, post: strings.Repeat(" ", 16<<10+1), status: 413},
		{name: "error_media_type", path: webhooksPath, post: "text", status: 415},
		{name: "registered", path: webhooksPath, post: `{"url":"https://partner.example/navlog"}`},
		{name: "error_rate_limited", path: "/api/v1/partner/stats", key: "limited", status: 429},
		{name: "error_unavailable", path: "/api/v1/users", key: "no snapshot", status: 503},
	}
}

var generationNumber = regexp.MustCompile(`"generation":\d+`)

// TestGolden compares the responses about the fixture with files that were checked by hand.
func TestGolden(t *testing.T) {
	w := newFixture(t)
	seven := w.partner(7, "Seven & Sons")
	keys := map[string]string{"": seven, "none": "", "no snapshot": seven, "final": seven,
		"disabled": w.partner(8, "Eight"), "limited": w.partner(9, "Nine")}
	w.exec(`UPDATE partner SET disabled = true WHERE id = 8`)
	w.exec(`UPDATE partner SET rate_limit = 1 WHERE id = 9`)
	w.get("/api/v1/partner/router", "x-api-key", keys["limited"])
	w.deliveries()
	w.certificates()
	w.exec(`INSERT INTO statement_key (public_key, since, retired_at) VALUES (decode('%x', 'hex'), '2023-10-01', '2023-11-01'), (decode('%x', 'hex'), '2023-11-01', NULL)`,
		bytes.Repeat([]byte{1}, 32), w.statements.Key.Public())
	for _, c := range goldenCases() {
		t.Run(c.name, func(t *testing.T) {
			w := w
			if c.key == "no snapshot" {
				w = &world{Query: w.Query, t: t, pool: w.pool, g: w.g, clock: w.clock, logged: w.logged}
				w.serve()
			}
			if c.key == "final" {
				defer w.final(9)()
			}
			header := []string{"x-api-key", keys[c.key], "X-Request-Id", "my-request-1"}
			var r reply
			if c.post == "" {
				r = w.get(c.path, header...)
			} else {
				kind := "application/json"
				if c.post == "text" {
					kind = "text/plain"
				}
				r = w.Do("POST", c.path, strings.NewReader(c.post), append(header, "Content-Type", kind)...)
			}
			if r.Code != max(c.status, 200) {
				t.Errorf("%s: %d %s", c.path, r.Code, r.Body)
			}
			golden(t, c.name, generationNumber.ReplaceAll(r.Body.Bytes(), []byte(`"generation":1`)))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	if updateGolden {
		if err := os.WriteFile(goldenPath(name), pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := goldenFile(t, name); !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("%s\n got %s\nwant %s", goldenPath(name), pretty.Bytes(), want)
	}
}

func goldenPath(name string) string { return filepath.Join("testdata", name+".json") }

func goldenFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(goldenPath(name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestExamples: the document's examples are the golden responses, and the bodies of webhooks are those that
// schemas/webhook produces.
func TestExamples(t *testing.T) {
	test, err := (&webhook.Envelope{ID: uuid.MustParse("00000000-0000-4000-8000-0000000000aa"), Version: webhook.Version,
		Type: webhook.Test, CreatedAt: webhook.FormatTime(uint64(blockTime(5))), PartnerID: 7, Data: struct{}{}}).Body()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{
		"registration": []byte(`{"url":"https://partner.example/navlog"}`), "event_test": test,
		"event_deposit": eventBody(7, 1), "event_withdrawal": eventBody(7, 2),
	}
	for _, c := range goldenCases() {
		want[c.name] = goldenFile(t, c.name)
	}
	want["error_first_sync"] = goldenFile(t, "error_first_sync") // see TestFirstSync
	if updateGolden {
		writeExamples(t, want)
		return
	}
	used := string(openapi.YAML())
	for name, b := range want {
		example := readtest.TheContract().Doc.Components.Examples[name]
		if example == nil {
			t.Errorf("the document has no example %s", name)
			continue
		}
		shown, err := json.Marshal(example.Value.Value)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(readtest.Decode(t, shown), readtest.Decode(t, b)) {
			t.Errorf("example %s is not the actual response: %s", name, shown)
		}
		if !strings.Contains(used, "'#/components/examples/"+name+"'") {
			t.Errorf("example %s is used nowhere", name)
		}
	}
	if n := len(readtest.TheContract().Doc.Components.Examples); n != len(want) {
		t.Errorf("%d examples, want %d", n, len(want))
	}
}

func writeExamples(t *testing.T, want map[string][]byte) {
	t.Helper()
	const file, mark = "../schemas/openapi/openapi.yaml", "\n  examples:\n"
	before, _, _ := strings.Cut(string(openapi.YAML()), mark)
	var b strings.Builder
	b.WriteString(before + mark)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		var line bytes.Buffer
		if err := json.Compact(&line, want[name]); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "    %s: {value: %s}\n", name, line.Bytes())
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
