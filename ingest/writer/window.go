package writer

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// Window is the live part of the log that can still cause changes: what a reorganisation may have to retract, and
// referrals that are not published yet. Its records are in log order.
type Window struct{ entries []chainlog.Entry }

// Apply folds the next record of the log into the window.
func (w *Window) Apply(e chainlog.Entry) {
	if original := e.GetRetracts(); original != 0 {
		i, found := slices.BinarySearchFunc(w.entries, original,
			func(e chainlog.Entry, seq uint64) int { return cmp.Compare(e.GetSeq(), seq) })
		if found { // otherwise it was dropped before the window began
			w.entries = slices.Delete(w.entries, i, i+1)
		}
		return
	}
	if _, ofBlock := BlockOf(e.Record); ofBlock {
		w.entries = append(w.entries, e)
	}
}

func (w *Window) prune(mapped *mapping.Vaults, floor, published uint64) {
	w.entries = slices.DeleteFunc(w.entries,
		func(e chainlog.Entry) bool { return !isNeeded(mapped, e.Record, floor, published) })
}

// isNeeded reports whether a record is above the floor, or may belong to a referral of a block after published.
func isNeeded(mapped *mapping.Vaults, r *event.Record, floor, published uint64) bool {
	number, _ := BlockOf(r)
	return number > floor || number > published && mayRefer(mapped, r.GetLog())
}

// Above returns the live records of blocks above number, newest first.
func (w *Window) Above(number uint64) []chainlog.Entry {
	var lost []chainlog.Entry
	for _, e := range slices.Backward(w.entries) {
		if n, _ := BlockOf(e.Record); n > number {
			lost = append(lost, e)
		}
	}
	return lost
}

// Blocks returns the live blocks of the window, lowest first.
func (w *Window) Blocks() []*rpc.Header {
	byNumber := map[uint64]*rpc.Header{}
	for _, e := range w.entries {
		if b := e.GetBlock(); b != nil {
			byNumber[b.GetNumber()] = rpc.HeaderOf(b)
		}
	}
	return slices.SortedFunc(maps.Values(byNumber),
		func(a, b *rpc.Header) int { return cmp.Compare(a.Number, b.Number) })
}

// Hashes returns the hash of every block of the window and of the block below it, which is the parent of the lowest
// one.
func (w *Window) Hashes() map[uint64]common.Hash {
	hashes := map[uint64]common.Hash{}
	for _, h := range w.Blocks() {
		hashes[h.Number] = h.Hash
		if _, known := hashes[h.Number-1]; !known && h.Number > 0 {
			hashes[h.Number-1] = h.Parent
		}
	}
	return hashes
}

// BlockOf returns the block that a record belongs to; vault records and decisions belong to none.
func BlockOf(r *event.Record) (number uint64, ok bool) {
	switch fact := r.GetFact().(type) {
	case *event.Record_Log:
		return fact.Log.GetBlockNumber(), true
	case *event.Record_Block:
		return fact.Block.GetNumber(), true
	case *event.Record_Sample:
		return fact.Sample.GetBlockNumber(), true
	}
	return 0, false
}
