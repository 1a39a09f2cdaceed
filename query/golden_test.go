package query

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestGolden compares the answers about the fixture with files that were
// checked by hand. NAVLOG_UPDATE_GOLDEN=1 writes them anew.
func TestGolden(t *testing.T) {
	w := newFixture(t)
	seven := w.partner(7, "Seven & Sons")
	w.partner(8, "Eight")
	w.deliveries()
	a := vaultA.Hex()
	for name, path := range map[string]string{
		"vaults":                  "/api/v1/vaults",
		"vault":                   "/api/v1/vaults/" + a,
		"vault_as_of_9":           "/api/v1/vaults/" + a + "?asOfBlock=9",
		"nav":                     "/api/v1/vaults/" + a + "/nav",
		"users":                   "/api/v1/users",
		"user":                    "/api/v1/users/" + alice.Hex(),
		"user_deposits":           "/api/v1/users/" + alice.Hex() + "/deposits",
		"user_withdrawals":        "/api/v1/users/" + bob.Hex() + "/withdrawals?pageSize=1",
		"user_withdrawals_alice":  "/api/v1/users/" + alice.Hex() + "/withdrawals",
		"user_withdrawals_carol":  "/api/v1/users/" + carol.Hex() + "/withdrawals",
		"queue_withdrawals":       "/api/v1/queues/withdrawals",
		"queue_withdrawals_as_of": "/api/v1/queues/withdrawals?asOfBlock=8",
		"queue_deposits":          "/api/v1/queues/deposits",
		"settlement":              "/api/v1/settlement/summary",
		"partner_vaults":          "/api/v1/partner/vaults",
		"partner_nav":             "/api/v1/partner/vaults/" + a + "/nav?from=2023-11-14T22:15:20Z",
		"partner_stats":           "/api/v1/partner/stats",
		"partner_deposits":        "/api/v1/partner/deposits",
		"partner_router":          "/api/v1/partner/router",
		"partner_webhooks":        "/api/v1/partner/webhooks",
		"partner_deliveries":      "/api/v1/partner/webhooks/deliveries",
	} {
		t.Run(name, func(t *testing.T) {
			r := w.get(path, "x-api-key", seven)
			r.body(t)
			golden(t, name, r.Body.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".json")
	if os.Getenv("NAVLOG_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("%s\n got %s\nwant %s", file, pretty.Bytes(), want)
	}
}
