package proof

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/event"
)

func TestIncomplete(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 29))
	for range 200 {
		var logs []*types.Log
		var ours []*event.Log
		for i := range rng.IntN(20) {
			l := &types.Log{Address: common.BigToAddress(big.NewInt(rng.Int64N(4)))}
			for range rng.IntN(5) {
				l.Topics = append(l.Topics, common.BigToHash(big.NewInt(rng.Int64N(8))))
			}
			logs = append(logs, l)
			e := &event.Log{Address: l.Address.Bytes(), LogIndex: uint32(i)}
			for _, topic := range l.Topics {
				e.Topics = append(e.Topics, topic.Bytes())
			}
			ours = append(ours, e)
		}
		want := types.CreateBloom(&types.Receipt{Logs: logs})
		if got := bloomOf(ours); got != want {
			t.Fatalf("the bloom of %d logs is %x instead of %x", len(logs), got, want)
		}
		if why := Incomplete(&want, ours); why != "" {
			t.Fatalf("all logs of a block count as incomplete: %s", why)
		}
		if len(ours) > 0 {
			i := rng.IntN(len(ours))
			if i < len(ours)-1 && Incomplete(&want, slices.Delete(slices.Clone(ours), i, i+1)) == "" {
				t.Fatalf("log %d of %d is missing and not noticed", i, len(ours))
			}
		}
	}
}
