package faultproxy_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// live reads the log and returns its live records in the order of their seqs, which must be contiguous from 1.
func (r *rig) live() (live []*event.Record, last uint64) {
	r.t.Helper()
	alive := map[uint64]*event.Record{}
	r.must(chainlog.ReadAfter(r.ctx, r.config.ID, chainlog.Position{}, func(e chainlog.Entry) error {
		if e.GetSeq() != last+1 {
			return fmt.Errorf("seq %d comes after seq %d", e.GetSeq(), last)
		}
		last = e.GetSeq()
		original := e.GetRetracts()
		if original == 0 {
			alive[last] = e.Record
			return nil
		}
		was := alive[original]
		if was == nil {
			return fmt.Errorf("record %d retracts record %d, which is not live", last, original)
		}
		if !proto.Equal(&event.Record{Fact: was.GetFact()}, &event.Record{Fact: e.GetFact()}) {
			return fmt.Errorf("record %d retracts record %d with another fact", last, original)
		}
		delete(alive, original)
		return nil
	}, r.kafka.Options()...))
	return slices.SortedFunc(maps.Values(alive), func(a, b *event.Record) int { return cmp.Compare(a.GetSeq(), b.GetSeq()) }), last
}

// verify compares the log with the chain, which it reads without the proxy, block by block, and the logs by the block's
// hash: what is live is in the chain, and each vault's logs are complete, without duplicates and in chain order. It
// returns the number of logs.
func (r *rig) verify() int {
	r.t.Helper()
	r.must(chainlog.Settle(r.ctx, r.config.ID, r.kafka.Options()...))
	cursor, err := chainlog.ReadCursor(r.ctx, r.config.ID, r.kafka.Options()...)
	r.must(err)
	live, last := r.live()
	if cursor.GetSeq() != last {
		r.t.Fatalf("the cursor is at seq %d, the log ends with %d", cursor.GetSeq(), last)
	}
	want := map[common.Address][]*event.Log{}
	for n := uint64(0); n <= cursor.GetHead().GetNumber(); n++ {
		h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(n))
		r.must(err)
		r.verifyBlock(h, live)
		for _, v := range r.contracts.Vaults {
			want[v.Address] = append(want[v.Address], r.chainLogs(h, v.Address)...)
		}
	}
	total := 0
	for _, v := range r.contracts.Vaults {
		var got []*event.Log
		for _, record := range live {
			if l := record.GetLog(); l != nil && bytes.Equal(l.GetAddress(), v.Address[:]) {
				got = append(got, l)
			}
		}
		r.same(v.Address, got, want[v.Address])
		total += len(got)
	}
	return total
}

// missing returns how many logs of the vaults the log lacks.
func (r *rig) missing() (missing int) {
	r.t.Helper()
	live, _ := r.live()
	cursor, err := chainlog.ReadCursor(r.ctx, r.config.ID, r.kafka.Options()...)
	r.must(err)
	for n := uint64(0); n <= cursor.GetHead().GetNumber(); n++ {
		h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(n))
		r.must(err)
		for _, v := range r.contracts.Vaults {
			missing += len(r.chainLogs(h, v.Address))
		}
	}
	for _, record := range live {
		if record.GetLog() != nil {
			missing--
		}
	}
	return missing
}

func (r *rig) verifyBlock(h *types.Header, live []*event.Record) {
	r.t.Helper()
	for _, record := range live {
		if b := record.GetBlock(); b != nil && b.GetNumber() == h.Number.Uint64() && common.Hash(b.GetHash()) != h.Hash() {
			r.t.Fatalf("record %d is block %d with hash 0x%x, the chain's is %s", record.GetSeq(), b.GetNumber(), b.GetHash(), h.Hash())
		}
	}
}

func (r *rig) same(vault common.Address, got, want []*event.Log) {
	r.t.Helper()
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && proto.Equal(got[i], want[i]) {
			continue
		}
		where := func(logs []*event.Log) string {
			if i >= len(logs) {
				return "nothing"
			}
			return fmt.Sprintf("log %d of block %d (0x%x)", logs[i].GetLogIndex(), logs[i].GetBlockNumber(), logs[i].GetBlockHash())
		}
		r.t.Fatalf("vault %s has %d live logs, the chain %d; the first difference is at %d: the log has %s, the chain %s\ninjected:\n%s",
			vault, len(got), len(want), i, where(got), where(want), r.injections())
	}
}

func (r *rig) chainLogs(h *types.Header, vault common.Address) []*event.Log {
	r.t.Helper()
	logs, err := devchain.Logs(r.ctx, r.chain, h, vault)
	r.must(err)
	return logs
}
