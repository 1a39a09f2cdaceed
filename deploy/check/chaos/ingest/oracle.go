package ingest

import (
	"bytes"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/testkit/logoracle"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// A verdict is what the oracle found. The seed passed if First is empty.
type verdict struct {
	Records int    // in the log, retractions included
	Logs    int    // live records of logs
	Samples int    // live records of samples
	Lost    int    // missing logs, samples or referrals
	Doubled int    // logs, samples or referrals that should not be there
	First   string // first difference, or ""
}

func (v *verdict) differs(format string, a ...any) {
	if v.First == "" {
		v.First = fmt.Sprintf(format, a...)
	}
}

// checkLog compares the topics with the chain.
func (w *world) checkLog() (v verdict, err error) {
	blocks, err := w.recorder.canonical(w.ctx)
	if err != nil {
		return v, err
	}
	if err := w.recorder.note(w.ctx); err != nil {
		return v, err
	}
	if err := chainlog.Settle(w.ctx, w.config.ID, w.kafka.Options()...); err != nil {
		return v, err
	}
	cursor, err := w.newestCursor(w.ctx)
	if err != nil {
		return v, err
	}
	records, err := stack.Records(w.ctx, w.kafka.Brokers, chainlog.LogTopic(w.config.ID))
	if err != nil {
		return v, err
	}
	f := &fold{world: w, verdict: &v, cursor: cursor, attributed: map[uint64]*attributed{}}
	f.Log = &logoracle.Log{ChainID: w.config.ID, Fault: v.differs, Unit: f.checkUnit}
	f.Fold(records)
	f.Records = len(f.All)
	f.end(blocks)
	if err := f.samples(blocks); err != nil {
		return v, err
	}
	for _, topic := range []string{chainlog.ReferralDeposits(w.config.ID), chainlog.ReferralWithdrawals(w.config.ID)} {
		records, err := stack.Records(w.ctx, w.kafka.Brokers, topic)
		if err != nil {
			return v, err
		}
		f.referrals(topic, records)
	}
	return v, nil
}

// A fold is the log, read from its beginning.
type fold struct {
	*world
	*verdict
	*logoracle.Log
	cursor     *event.Cursor
	attributed map[uint64]*attributed // every record with a partner, by seq
}

// end compares the live records with the chain.
func (f *fold) end(blocks []*fact) {
	if f.cursor.GetSeq() != uint64(f.Records) {
		f.differs("the cursor is at seq %d and the log ends with %d", f.cursor.GetSeq(), f.Records)
	}
	if f.Records > 0 && !bytes.Equal(f.All[0].GetOrigin().GetLogId(), f.cursor.GetLogId()) {
		f.differs("the log is %x and the cursor's log %x", f.All[0].GetOrigin().GetLogId(), f.cursor.GetLogId())
	}
	live := f.Sorted()
	f.liveBlocks(live, blocks)
	vaults := map[common.Address]int{}
	for _, r := range live {
		if v := r.GetVault(); v != nil {
			vaults[common.Address(v.GetAddress())]++
		}
	}
	want := map[common.Address][]*event.Log{}
	for _, vault := range f.vaults() {
		if vaults[vault] != 1 {
			f.differs("vault %s has %d live records", vault, vaults[vault])
		}
		for _, b := range blocks {
			want[vault] = append(want[vault], b.of(vault)...)
		}
	}
	f.Logs, f.Lost, f.Doubled = f.Compare(want)
}

// liveBlocks checks that every live block is the chain's, that the newest one is the head, and that no block that is
// not final is missing.
func (f *fold) liveBlocks(live []*event.Record, blocks []*fact) {
	there := map[uint64]bool{}
	var newest uint64
	for _, r := range live {
		b := r.GetBlock()
		if b == nil {
			continue
		}
		n := b.GetNumber()
		if n >= uint64(len(blocks)) || !sameBlock(b, blocks[n]) {
			f.differs("record %d is block %d (0x%x), which is not in the chain", r.GetSeq(), n, b.GetHash())
		}
		there[n], newest = true, max(newest, n)
	}
	head := blocks[len(blocks)-1]
	if f.cursor.GetFinalBlock() > f.sure {
		f.differs("the cursor has the final block %d, and the chain never had one above %d", f.cursor.GetFinalBlock(), f.sure)
	}
	if newest != head.number || !sameBlock(f.cursor.GetHead(), head) {
		f.differs("the newest live block is %d and the cursor's %d, the head of the chain is %d", newest,
			f.cursor.GetHead().GetNumber(), head.number)
	}
	for n := f.cursor.GetFinalBlock() + 1; n <= newest; n++ {
		if !there[n] {
			f.differs("block %d is not final and has no live record", n)
		}
	}
	for _, v := range f.cursor.GetVaults() {
		if v.GetCoveredTo() != head.number {
			f.differs("the cursor covers vault %x up to block %d of %d", v.GetAddress(), v.GetCoveredTo(), head.number)
		}
	}
}

func sameBlock(b *event.Block, f *fact) bool {
	return b.GetNumber() == f.number && bytes.Equal(b.GetHash(), f.hash[:]) &&
		bytes.Equal(b.GetParentHash(), f.parent[:]) && b.GetTime() == f.time
}
