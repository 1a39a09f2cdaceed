package verify

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/schemas/event"
)

// loseBlock removes a vault's third block with logs from a log, as if a backfill had lost it: both its logs and its
// record.
func loseBlock(
	cursor *event.Cursor, records []*event.Record, vault common.Address,
) (lost uint64, _ *event.Cursor, _ []*event.Record) {
	var numbers []uint64
	for _, r := range records {
		if l := r.GetLog(); common.BytesToAddress(l.GetAddress()) == vault {
			numbers = append(numbers, l.GetBlockNumber())
		}
	}
	lost = slices.Compact(numbers)[2]
	rest := slices.DeleteFunc(slices.Clone(records), func(r *event.Record) bool {
		return r.GetLog() != nil && r.GetLog().GetBlockNumber() == lost || r.GetBlock() != nil &&
			r.GetBlock().GetNumber() == lost
	})
	for i, r := range rest {
		r.Seq = uint64(i) + 1
	}
	return lost, &event.Cursor{ChainId: chainID, Seq: uint64(len(rest)), Vaults: cursor.Vaults}, rest
}

// left covers every vault, but the first one not up to the head: it was removed, so no totals show what is missing.
func (v *devChain) left() map[common.Address][2]uint64 {
	covered := v.whole()
	covered[v.vaults[0].Address] = [2]uint64{v.vaults[0].StartBlock, v.height - 1}
	return covered
}

// ranges returns the check of the ranges in a report.
func ranges(t *testing.T, report *Report) Check {
	t.Helper()
	i := slices.IndexFunc(report.Checks, func(c Check) bool { return strings.HasPrefix(c.Name, "chain: covered blocks") })
	if i < 0 {
		t.Fatalf("no ranges were compared:\n%s", report)
	}
	return report.Checks[i]
}

// width returns the number of blocks in a request for logs, 0 for one by hash.
func width(method string, params []json.RawMessage) uint64 {
	var filter struct{ FromBlock, ToBlock *hexutil.Uint64 }
	if method != "eth_getLogs" || json.Unmarshal(params[0], &filter) != nil || filter.FromBlock == nil {
		return 0
	}
	return uint64(*filter.ToBlock-*filter.FromBlock) + 1
}

// TestChainHasABlockThatTheLogLost: a block with logs that the log has lost is found even if the vault has no totals
// to compare, and whatever part of the range a node returns.
func TestChainHasABlockThatTheLogLost(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	cursor, records := v.log(v.left())
	blocks := v.height - v.vaults[0].StartBlock + 1
	refuses := v.node(func(method string, params []json.RawMessage) (any, any, bool) {
		return nil, map[string]any{"code": -32005, "message": "query exceeds max block range 7"}, width(method, params) > 7
	})
	cuts := v.node(func(method string, params []json.RawMessage) (any, any, bool) {
		return []any{}, nil, width(method, params) > 7
	})
	for name, node := range map[string]string{"all at once": v.url, "7 blocks at most": refuses,
		"nothing of more than 7 blocks": cuts} {
		report, err := v.compare(node, cursor, records)
		must(t, err)
		if c := ranges(t, report); report.Err() != nil || c.Compared != blocks {
			t.Errorf("%s: want %d blocks equal, got\n%s", name, blocks, report)
		}
	}
	lost, cursor, records := loseBlock(cursor, records, v.vaults[0].Address)
	for name, node := range map[string]string{"all at once": v.url, "7 blocks at most": refuses} {
		report, err := v.compare(node, cursor, records)
		must(t, err)
		if c := ranges(t, report); !strings.HasPrefix(c.Difference, fmt.Sprintf("block %d with hash", lost)) ||
			!strings.Contains(c.Difference, "the log lacks the chain's log") {
			t.Errorf("%s: without block %d got\n%s", name, lost, report)
		}
	}
}

// TestNodeThatLeavesLogsOutOfRanges: a node that returns fewer logs of a block by its number than by its hash is not
// trusted.
func TestNodeThatLeavesLogsOutOfRanges(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	cursor, records := v.log(v.whole())
	node := v.node(func(method string, params []json.RawMessage) (any, any, bool) {
		return []any{}, nil, width(method, params) > 0
	})
	if report, err := v.compare(node, cursor, records); err == nil ||
		!strings.Contains(err.Error(), "returns other logs of block") || report.Err() != nil {
		t.Errorf("want only an error, got %v and\n%s", err, report)
	}
}

// TestRangesOfASample: a sample compares the chosen ranges and reports their number of blocks: a lost block outside
// of them is not found.
func TestRangesOfASample(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	cursor, records := v.log(v.left())
	_, cursor, records = loseBlock(cursor, records, v.vaults[0].Address)
	var widest atomic.Uint64
	node := v.node(func(method string, params []json.RawMessage) (any, any, bool) {
		widest.Store(max(widest.Load(), width(method, params))) // one request at a time
		return nil, nil, false
	})
	report := new(Report)
	must(t, againstChain(t.Context(), Options{Node: node, Sample: math.MaxUint64, patience: patience}, cursor, records,
		unmapped(t), report))
	if c := ranges(t, report); widest.Load() != 0 || c.Compared != 0 || report.Checks[0].Compared != 1 {
		t.Errorf("for a sample of only the newest block, a range of %d blocks was requested:\n%s", widest.Load(), report)
	}
	report = new(Report)
	must(t, againstChain(t.Context(), Options{Node: node, BatchBlocks: 5, patience: patience}, cursor, records,
		unmapped(t), report))
	if c := ranges(t, report); widest.Load() != 5 || c.Difference == "" {
		t.Errorf("a range of %d blocks where 5 are allowed:\n%s", widest.Load(), report)
	}
}
