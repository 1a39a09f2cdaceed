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

// TestNeededBounds: a bound that every row meets is left out, and no other.
func TestNeededBounds(t *testing.T) {
	all := []string{sqlUserDeposits.page, sqlNavs.page}
	for _, b := range bounds {
		found := false
		for _, question := range all {
			if !strings.Contains(question, b.condition) {
				continue
			}
			found = true
			kept := needed(question, []any{named(b.name, "another value"), named("other", b.value), named("list", []uint32{1})})
			if kept != question {
				t.Errorf("%s: left out with another value", b.name)
			}
			if left := needed(question, []any{named("list", []uint32{1}), named(b.name, b.value)}); strings.Contains(left, "{"+b.name+":") {
				t.Errorf("%s: not left out of %s", b.name, left)
			}
		}
		if !found {
			t.Errorf("no question says %q: the bound is written in another way now", b.condition)
		}
	}
}
