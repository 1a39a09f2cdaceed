package proof

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// Holds reports whether a bloom contains a log's address and its first topic.
func Holds(b *types.Bloom, l *event.Log) bool {
	return b.Test(l.Address) && (len(l.Topics) == 0 || b.Test(l.Topics[0]))
}

// Incomplete returns why logs cannot be all logs of a block, or an empty string if they can. The logs of a block are
// numbered from 0 without a gap, and together they set every bit of its bloom. Logs of other contracts that the bloom
// does not contain are tolerated: some chains append logs of their bridge that they leave out of it.
func Incomplete(bloom *types.Bloom, logs []*event.Log) string {
	for i, l := range logs {
		if l.LogIndex != uint32(i) {
			return fmt.Sprintf("log %d is missing", i)
		}
	}
	if *bloom == (types.Bloom{}) {
		return ""
	}
	if b := bloomOf(logs); !within(bloom, &b) {
		return fmt.Sprintf("the header's logsBloom contains more than the %d logs of the response", len(logs))
	}
	return ""
}

// bloomOf returns the bloom of a block that has exactly these logs.
func bloomOf(logs []*event.Log) (b types.Bloom) {
	for _, l := range logs {
		b.Add(l.Address)
		for _, topic := range l.Topics {
			b.Add(topic)
		}
	}
	return b
}

// within reports whether every bit of a is set in b.
func within(a, b *types.Bloom) bool { return new(big.Int).AndNot(a.Big(), b.Big()).Sign() == 0 }

// Sparse reports whether a bloom is sparse enough to be useful: if more than half of its bits are set, it matches a
// random value with a probability of more than an eighth.
func Sparse(b *types.Bloom) bool {
	set := 0
	for _, some := range b {
		set += bits.OnesCount8(some)
	}
	return set <= 4*types.BloomByteLength
}

// knownEvents are the events of the reference contracts. Events of other mappings are not looked up: nearly every bloom
// contains some of them, such as Transfer, and each false positive costs a call.
var knownEvents = mapping.Reference().Events()

// MayHold reports whether a block may have logs of one of these contracts.
func MayHold(b *types.Bloom, contracts []common.Address) bool {
	return slices.ContainsFunc(contracts, func(a common.Address) bool { return b.Test(a[:]) })
}

// Lacks reports whether a bloom contains a contract that has no log in logs, or a contract and a known event that has
// none. It can be wrong: blooms have false positives.
func Lacks(b *types.Bloom, contracts []common.Address, logs []*event.Log) bool {
	held := slices.DeleteFunc(slices.Clone(contracts), func(a common.Address) bool { return !b.Test(a[:]) })
	lost := slices.ContainsFunc(held, func(a common.Address) bool {
		return !slices.ContainsFunc(logs, func(l *event.Log) bool { return common.Address(l.Address) == a })
	})
	return lost || len(held) > 0 && slices.ContainsFunc(knownEvents, func(known *mapping.Event) bool {
		return b.Test(known.Topic[:]) && !slices.ContainsFunc(logs, func(l *event.Log) bool {
			return len(l.Topics) > 0 && common.Hash(l.Topics[0]) == known.Topic
		})
	})
}
