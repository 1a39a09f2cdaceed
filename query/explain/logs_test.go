package explain

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
)

// TestEffectsOfOneLogHaveIDs: the effects of one log have different ids, those of /events.
func TestEffectsOfOneLogHaveIDs(t *testing.T) {
	l := &logs{pin: new(ask.Pin), number: &numbers[0]}
	tx := common.Hash{1}
	for sub, want := range []string{tx.Hex() + "-7", tx.Hex() + "-7.1", tx.Hex() + "-7.2"} {
		amount := ask.Number("1")
		if got := l.json(&entry{Sub: uint8(sub), LogIndex: 7, Tx: tx}, amount, amount); got.ID != want {
			t.Errorf("effect %d has the id %s, want %s", sub, got.ID, want)
		}
	}
}
