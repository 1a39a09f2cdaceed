package query

import (
	"strings"
	"testing"

	"github.com/navlog/navlog/query/vaults"
)

// A vault has what the operator says about it, at every block; the others have nulls. An entry about an unknown vault is
// a warning.
func TestVaultHasWhatTheOperatorSays(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t, func(c *Config) {
		c.Vaults = []vaults.About{
			{Address: strings.ToLower(vaultA.Hex()), Description: "Lends <b>stablecoins</b>.", ManagementFee: "2", Link: "https://vault.example/a"},
			{Address: nobody.Hex(), PerformanceFee: "10"},
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
	})
	said := func(path string) object {
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
		same(t, path, said(path), object{
			"description": "Lends <b>stablecoins</b>.", "managementFee": "2", "performanceFee": nil, "link": "https://vault.example/a",
		})
	}
	b := "/api/v1/vaults/" + vaultB.Hex()
	same(t, b, said(b), object{"description": nil, "managementFee": nil, "performanceFee": nil, "link": nil})

	w.warnOfUnknownVaults(t.Context())
	logged := w.logged.String()
	if strings.Count(logged, "unknown vault") != 1 || !strings.Contains(logged, "address="+nobody.Hex()) {
		t.Errorf("the log does not warn only of the unknown vault: %s", logged)
	}
}
