package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/webhook"
)

type recorded struct {
	seq    uint64
	number uint64
	hash   common.Hash
}

// recordedBlocks reads the live block records of the whole log, in log order: 48 bytes each.
func recordedBlocks(ctx context.Context, l writer.Log) (blocks []recorded, err error) {
	err = chainlog.ReadAfter(ctx, l.ChainID, chainlog.Position{}, func(e chainlog.Entry) error {
		b := e.GetBlock()
		switch original := e.GetRetracts(); {
		case b == nil:
		case original == 0:
			blocks = append(blocks, recorded{e.GetSeq(), b.GetNumber(), common.BytesToHash(b.GetHash())})
		default: // the newest are retracted first, so it is near the end
			if i, found := slices.BinarySearchFunc(blocks, original,
				func(b recorded, seq uint64) int { return cmp.Compare(b.seq, seq) }); found {
				blocks = slices.Delete(blocks, i, i+1)
			}
		}
		return nil
	}, l.Kafka.Options()...)
	return blocks, err
}

// ancestorOf finds the newest recorded block that is also in the node's chain. If a block is in the chain, all below it
// are too, so a binary search needs few calls.
func ancestorOf(ctx context.Context, l writer.Log, n *rpc.Node) (*rpc.Header, error) {
	blocks, err := recordedBlocks(ctx, l)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(blocks, func(a, b recorded) int { return cmp.Compare(a.number, b.number) })
	var failed error
	lost := sort.Search(len(blocks), func(i int) bool {
		if failed != nil {
			return true
		}
		var h *rpc.Header
		h, failed = n.ByNumber(ctx, blocks[i].number)
		return failed != nil || h.Hash != blocks[i].hash
	})
	if failed != nil {
		return nil, failed
	}
	if lost == 0 {
		return n.ByNumber(ctx, 0) // the genesis is known to be the log's
	}
	common := blocks[lost-1]
	h, err := n.ByNumber(ctx, common.number)
	if err == nil && h.Hash != common.hash {
		err = fmt.Errorf("block %d at %s was %s a moment ago and is %s now: the chain is still being reorganised",
			common.number, n.Name, common.hash, h.Hash)
	}
	return h, err
}

// LostReferral is a referral that was published and is no longer in the chain.
type LostReferral struct {
	// EventID belongs to this occurrence of the transaction: if it was published before and was mined again, the event
	// keeps the id of the first occurrence.
	EventID     string `json:"eventId"`
	Type        string `json:"type"`
	PartnerID   uint32 `json:"partnerId"`
	Vault       string `json:"vaultAddress"`
	TxHash      string `json:"txHash"`
	BlockNumber uint64 `json:"blockNumber"`
	LogIndex    uint32 `json:"logIndex"`
	Seq         uint64 `json:"seq"` // seq of the log record
}

// lostReferrals returns those of the published referrals that are not in the node's chain. A transaction that was mined
// again has the same logs in the same order, usually at other indexes. So its referrals are counted by vault, partner
// and type, and if the chain has fewer of them, the last ones are gone.
func lostReferrals(ctx context.Context, n *rpc.Node, chainID uint64, mapped *mapping.Vaults, vaults []common.Address,
	published []*event.Record) ([]LostReferral, error) {
	published = slices.Clone(published)
	slices.SortFunc(published, func(a, b *event.Record) int {
		return cmp.Or(cmp.Compare(a.GetLog().GetBlockNumber(), b.GetLog().GetBlockNumber()),
			cmp.Compare(a.GetLog().GetLogIndex(), b.GetLog().GetLogIndex()))
	})
	type cause struct {
		tx      common.Hash
		vault   common.Address
		kind    event.Referral_Kind
		partner uint32
	}
	asked, there := map[common.Hash]bool{}, map[cause]int{}
	lost := []LostReferral{}
	ours := make([]*event.Log, len(published))
	for i, r := range published {
		ours[i] = r.GetLog()
	}
	named := writer.Attributions(mapped, ours)
	for i, r := range published {
		if named[i] == nil {
			continue // it belongs to a referral, but is not one itself
		}
		l := r.GetLog()
		tx, vault, a := common.BytesToHash(l.GetTxHash()), mapping.VaultOf(l), named[i]
		if !asked[tx] {
			logs, err := n.LogsOf(ctx, tx)
			if err != nil {
				return nil, err
			}
			logs = mapped.Belonging(vaults, logs)
			for i, a := range writer.Attributions(mapped, logs) {
				if a != nil {
					there[cause{tx, mapping.VaultOf(logs[i]), writer.KindOf(a), a.GetPartnerId()}]++
				}
			}
			asked[tx] = true
		}
		if c := (cause{tx, vault, writer.KindOf(a), a.GetPartnerId()}); there[c] > 0 {
			there[c]--
			continue
		}
		kind, seq := webhook.TypeOf(a), cmp.Or(r.GetRetracts(), r.GetSeq())
		lost = append(lost, LostReferral{
			webhook.EventID(chainID, tx, l.GetLogIndex(), kind, a.GetPartnerId()).String(), kind, a.GetPartnerId(),
			vault.Hex(), tx.Hex(), l.GetBlockNumber(), l.GetLogIndex(), seq,
		})
	}
	return lost, nil
}
