package operate

import (
	"errors"
	"math"
	"testing"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// A unit retracts whole blocks, however few records it is meant to hold, because readers serve the log unit by unit.
// Nothing is left out, and the newest goes first.
func TestRetractions(t *testing.T) {
	t.Parallel()
	var lost []chainlog.Entry // newest first: a block, then its logs
	const logs = 3
	seq := uint64(100)
	for number := uint64(20); number > 10; number-- {
		lost = append(lost, chainlog.Entry{Record: &event.Record{Seq: seq,
			Fact: &event.Record_Block{Block: &event.Block{Number: number}}}})
		seq--
		for range number % (logs + 1) {
			lost = append(lost, chainlog.Entry{Record: writer.LogFacts(&event.Log{BlockNumber: number})[0]})
			lost[len(lost)-1].Seq = seq
			seq--
		}
	}
	for asUnit := 1; asUnit <= len(lost)+1; asUnit++ {
		units := retractions(lost, asUnit)
		next := 0
		for i, unit := range units {
			if unit[0].GetBlock() == nil {
				t.Errorf("of %d records: unit %d begins in the middle of block %d", asUnit, i, unit[0].GetLog().GetBlockNumber())
			}
			if len(unit) > asUnit+logs || len(unit) < asUnit && i < len(units)-1 {
				t.Errorf("of %d records: unit %d has %d", asUnit, i, len(unit))
			}
			for _, r := range unit {
				if next == len(lost) || r.GetRetracts() != lost[next].GetSeq() || r.GetFact() != lost[next].GetFact() {
					t.Fatalf("of %d records: unit %d retracts record %d, which is not next", asUnit, i, r.GetRetracts())
				}
				next++
			}
		}
		if next != len(lost) {
			t.Errorf("of %d records: %d of %d are retracted", asUnit, next, len(lost))
		}
	}
	if units := retractions(nil, 3); len(units) != 0 {
		t.Errorf("nothing is retracted in %d units", len(units))
	}
}

// A late vault has high seqs at low blocks, but its records are retracted with their blocks all the same: each unit
// leaves nothing above its ancestor, with a recorded block as the newest one.
func TestRetractionsOfALateVault(t *testing.T) {
	t.Parallel()
	var w writer.Window
	seq := uint64(0)
	add := func(r *event.Record) {
		seq++
		r.Seq = seq
		w.Apply(chainlog.Entry{Record: r})
	}
	log := func(number uint64) { add(writer.LogFacts(&event.Log{BlockNumber: number})[0]) }
	block := func(number uint64) {
		add(&event.Record{Fact: &event.Record_Block{Block: &event.Block{Number: number}}})
	}
	for number := uint64(1); number <= 40; number++ {
		for range number % 3 {
			log(number)
		}
		if number > 20 || number%6 == 0 { // old blocks came in ranges, of which only the last block is recorded
			block(number)
		}
	}
	for _, end := range []uint64{13, 25, 40} { // and those of the late vault in separate ranges
		for number := max(end, 12) - 12; number <= end; number += 2 {
			log(number)
		}
		block(end)
	}
	lost := w.Above(4)
	for asUnit := 1; asUnit <= len(lost)+1; asUnit++ {
		live := map[uint64]*event.Record{}
		for _, e := range lost {
			live[e.GetSeq()] = e.Record
		}
		units := retractions(lost, asUnit)
		if asUnit < 10 && len(units) < 5 {
			t.Errorf("of %d records: there are %d units", asUnit, len(units))
		}
		for i, unit := range units {
			lowest, before := uint64(math.MaxUint64), uint64(math.MaxUint64)
			for _, r := range unit {
				was := live[r.GetRetracts()]
				if was == nil || was.GetFact() != r.GetFact() || r.GetRetracts() >= before {
					t.Fatalf("of %d records: unit %d retracts record %d after record %d: it is not live, or newer", asUnit, i,
						r.GetRetracts(), before)
				}
				number, _ := writer.BlockOf(r)
				lowest, before = min(lowest, number), r.GetRetracts()
				delete(live, r.GetRetracts())
			}
			newest, recorded := uint64(0), uint64(0)
			for _, r := range live {
				number, _ := writer.BlockOf(r)
				newest = max(newest, number)
				recorded = max(recorded, r.GetBlock().GetNumber())
			}
			if newest >= lowest || newest != recorded {
				t.Errorf("of %d records: after unit %d, which retracts block %d, block %d is live, and recorded is block %d",
					asUnit, i, lowest, newest, recorded)
			}
		}
		if len(live) > 0 {
			t.Errorf("of %d records: %d are left", asUnit, len(live))
		}
	}
}

// A log can be resumed if it is frozen and has a head.
func TestFrozenAt(t *testing.T) {
	t.Parallel()
	head := &event.Block{Number: 7}
	for name, c := range map[string]struct {
		cursor *event.Cursor
		frozen bool
	}{
		"no log":                     {nil, false},
		"log not frozen":             {&event.Cursor{Head: head}, false},
		"frozen log":                 {&event.Cursor{Head: head, Frozen: "a deep one"}, true},
		"frozen log without a block": {&event.Cursor{Frozen: "a deep one"}, false},
	} {
		err := frozenAt(c.cursor, 1)
		var refused *rpc.RefusedError
		if c.frozen != (err == nil) || err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
