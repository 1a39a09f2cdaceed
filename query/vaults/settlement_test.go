package vaults

import (
	"math"
	"math/big"
	"testing"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
)

// TestEntryOfUpgradedVault: a vault whose requests had no estimates before it was upgraded has no sum of estimates,
// because earlier requests may still wait.
func TestEntryOfUpgradedVault(t *testing.T) {
	var ranges []mapping.Range
	for i, preset := range []string{"lagoon-v0.6", "reference"} {
		m, err := mapping.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		ranges = append(ranges, mapping.Range{From: uint64(10 * i), To: uint64(10*i) + 9, Mapping: m})
	}
	ranges[1].To = math.MaxUint64
	for name, c := range map[string]struct {
		of    []mapping.Range
		known bool
	}{"upgraded": {ranges, false}, "since the upgrade": {ranges[1:], true}} {
		v := &state.Vault{Mapped: &mapping.Sources{Description: &mapping.Description{
			Sources: []mapping.Source{{Role: "vault"}}, Ranges: c.of}}}
		got := entryOf(v, &ask.Totals{Deposited: *big.NewInt(5)},
			ask.Queued{Unfunded: 1, Estimate: "7"})
		if sum := got.WithdrawalsToFund; *sum.Count != 1 || (sum.TotalAmount != nil) != c.known {
			t.Errorf("%s: the withdrawals to fund are %+v", name, sum)
		}
	}
}
