package query

import (
	"strings"
	"testing"
)

// TestUnlikeAssetsAreWarnedOf: once, and not while all have the same decimals.
func TestUnlikeAssetsAreWarnedOf(t *testing.T) {
	w := newFixture(t)
	const warning = "differ in decimals"
	if strings.Contains(w.log.String(), warning) {
		t.Error("warned of equal decimals")
	}
	third := vaultMeta(vaultC, "Gamma", 12)
	third.meta.Asset.Decimals = 18
	w.ledger.append(third, fact{kind: aBlock, block: 12})
	w.publish()
	w.ledger.append(fact{kind: aBlock, block: 13})
	w.publish()
	if n := strings.Count(w.log.String(), warning); n != 1 {
		t.Errorf("warned %d times", n)
	}
}
