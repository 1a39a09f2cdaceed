package rpc

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// A final block above the tip makes the tip final only if its chain goes through the tip, by hashes.
func TestDescendsFrom(t *testing.T) {
	chain := newFakeChain(t, 31, 100, sparse)
	n := chain.dial()
	at := func(number uint64) *Header {
		h, err := n.ByNumber(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	const otherHash = "0xaa"
	dead := at(20)
	dead.Hash = common.HexToHash(otherHash)
	unknown := at(30)
	unknown.Parent = common.HexToHash(otherHash)
	for name, c := range map[string]struct {
		tip, final *Header
		want       bool
	}{
		"the next block":                     {at(20), at(21), true},
		"some blocks further":                {at(20), at(50), true},
		"too far to follow":                  {at(20), at(100), false},
		"the tip left its chain":             {dead, at(21), false},
		"the tip left it long ago":           {dead, at(50), false},
		"its chain is not returned that far": {at(20), unknown, false},
	} {
		got, err := n.descendsFrom(t.Context(), c.final, c.tip)
		if err != nil || got != c.want {
			t.Errorf("%s: the chain goes through the tip: %v, %v; want %v", name, got, err, c.want)
		}
	}
}
