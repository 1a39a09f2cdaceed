package query

import (
	"strings"
	"testing"

	"github.com/navlog/navlog/query/vaults"
)

// A vault has the operator's details of it, at every block; the others have nulls. An entry about an unknown vault is
// a warning.
func TestVaultHasTheOperatorsDetails(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t, func(c *Config) {
		c.Vaults = []vaults.About{
			{Address: strings.ToLower(vaultA.Hex()), Description: "Lends <b>stablecoins</b>.", ManagementFee: "2",
				Link: "https://vault.example/a"},
			{Address: unknown.Hex(), PerformanceFee: "10"},
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
	})
	details := func(path string) object {
		all, out := w.get(path).Data(t).(object), object{}
		for _, field := range []string{"description", "managementFee", "performanceFee", "link"} {
			value, has := all[field]
			if !has {
				t.Errorf("%s has no %s", path, field)
			}
			out[field] = value
		}
		return out
	}
	a := "/api/v1/vaults/" + vaultA.Hex()
	for _, path := range []string{a, a + "?asOfBlock=9"} {
		same(t, path, details(path), object{
			"description": "Lends <b>stablecoins</b>.", "managementFee": "2", "performanceFee": nil,
			"link": "https://vault.example/a",
		})
	}
	b := "/api/v1/vaults/" + vaultB.Hex()
	same(t, b, details(b), object{"description": nil, "managementFee": nil, "performanceFee": nil, "link": nil})

	w.warnOfUnknownVaults(t.Context())
	logged := w.logged.String()
	if strings.Count(logged, "unknown vault") != 1 || !strings.Contains(logged, "address="+unknown.Hex()) {
		t.Errorf("the log should warn of the unknown vault only: %s", logged)
	}
}
