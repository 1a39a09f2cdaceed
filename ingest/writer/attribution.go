package writer

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// Attributions returns the effect by which each log names a partner, at the log's index; nil for a log that names none.
// For a vault whose mapping has companions, all logs of a transaction must be given.
func Attributions(mapped *mapping.Vaults, logs []*event.Log) []*event.Effect {
	type transaction struct {
		vault       common.Address
		block, hash string
	}
	out := make([]*event.Effect, len(logs))
	grouped := map[transaction][]int{}
	for i, l := range logs {
		if sources := mapped.Of(mapping.VaultOf(l)); sources.Companions() {
			tx := transaction{mapping.VaultOf(l), string(l.GetBlockHash()), string(l.GetTxHash())}
			grouped[tx] = append(grouped[tx], i)
		} else if effect, err := sources.Referral(l); err == nil {
			out[i] = effect
		}
	}
	for tx, at := range grouped {
		slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(logs[a].GetLogIndex(), logs[b].GetLogIndex()) })
		all := make([]*event.Log, len(at))
		for n, i := range at {
			all[n] = logs[i]
		}
		for n, effect := range mapped.Of(tx.vault).Referrals(all) {
			out[at[n]] = effect
		}
	}
	return out
}

// KindOf returns the kind of the referral that an effect is.
func KindOf(effect *event.Effect) event.Referral_Kind {
	if effect.GetKind() == event.Effect_KIND_REQUESTED {
		return event.Referral_KIND_WITHDRAWAL
	}
	return event.Referral_KIND_DEPOSIT
}

// mayRefer reports whether a log can name a partner, possibly by an alias that is added later.
func mayRefer(mapped *mapping.Vaults, l *event.Log) bool {
	return l != nil && mapped.Of(mapping.VaultOf(l)).MayRefer(l)
}

// eventOf returns the name of a log's contract event.
func eventOf(mapped *mapping.Vaults, l *event.Log) string {
	sources := mapped.Of(mapping.VaultOf(l))
	if role, ours := sources.Role(common.BytesToAddress(l.GetAddress())); ours && len(l.GetTopics()) > 0 {
		first := [1]common.Hash{common.BytesToHash(l.GetTopics()[0])}
		log := mapping.Log{Role: role, Place: mapping.Place(l.GetBlockNumber(), l.GetLogIndex()), Topics: first[:]}
		if known := sources.Event(&log); known != nil {
			return known.Name
		}
	}
	return "Unknown"
}
