package operate

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

var vaults = []common.Address{common.HexToAddress("0xa1"), common.HexToAddress("0xa2")}

func newSchedule() *Schedule {
	return NewSchedule(Log{}, time.Hour, 50, nil, slog.New(slog.DiscardHandler), nil)
}

// stateOf returns a state in which vaults have unproven blocks up to 90.
func stateOf(final uint64, proven ...uint64) *writer.State {
	s := &writer.State{Final: final}
	for i, p := range proven {
		s.Covered = append(s.Covered, writer.Coverage{Address: vaults[i], Start: 1, To: 90, Proven: p, Unproven: 90})
	}
	return s
}

// A run reads from the log what it compares: the live logs of its vaults in the blocks that are not proven. A block
// whose logs were retracted is not in its index, since the block that replaced it may have none.
func TestIndexOfARun(t *testing.T) {
	logOf := func(seq, retracts uint64, vault common.Address, number uint64) chainlog.Entry {
		fact := &event.Record_Log{Log: &event.Log{Address: vault[:], BlockNumber: number, BlockHash: make([]byte, 32)}}
		return chainlog.Entry{Record: &event.Record{Seq: seq, Retracts: retracts, Fact: fact}}
	}
	p := newSchedule()
	p.Committed(stateOf(70, 20))
	r, x := p.begin(), index{}
	keep := func(e chainlog.Entry) {
		if r.compares(e) {
			x.apply(e)
		}
	}
	for seq, number := range []uint64{15, 40, 50, 80} {
		for _, of := range vaults {
			keep(logOf(uint64(seq)+1, 0, of, number))
		}
	}
	keep(logOf(9, 3, vaults[0], 50))
	if len(x) != 1 || len(x[40].logs) != 1 || x[40].logs[0].vault != vaults[0] {
		t.Errorf("the index is %v, want one log of block 40", x)
	}
}

// Blocks that are not final are not proven, even if they are unproven: a node that has reorganised them already would
// seem to disprove the log, and their proof would count for the blocks that replace them.
func TestRunStopsAtTheFinalBlock(t *testing.T) {
	for _, c := range []struct {
		final    uint64
		proven   [2]uint64
		vaults   int
		from, to uint64
	}{
		{100, [2]uint64{20, 20}, 2, 21, 90},
		{60, [2]uint64{20, 20}, 2, 21, 60},
		{60, [2]uint64{20, 40}, 1, 21, 40},
		{60, [2]uint64{20, 60}, 1, 21, 60},
		{60, [2]uint64{60, 60}, 0, 0, 0},
		{0, [2]uint64{0, 0}, 0, 0, 0},
	} {
		p := newSchedule()
		p.Committed(stateOf(c.final, c.proven[:]...))
		some, from, to := p.begin().next()
		if len(some) != c.vaults || len(some) > 0 && (from != c.from || to != c.to) {
			t.Errorf("%+v: blocks %d to %d of %d vaults", c, from, to, len(some))
		}
	}
}

// The progress of a run is saved once it has ended, by one commit. While the log is frozen no block is proven.
func TestProgressIsSaved(t *testing.T) {
	p := newSchedule()
	frozen := stateOf(70, 20)
	frozen.Frozen = "a deep one"
	p.Committed(frozen)
	if err := p.RunOnce(t.Context()); err != nil || p.Proven(vaults[0]) != 0 || p.HasUnsavedRun() {
		t.Errorf("a run on a frozen log proves blocks up to %d, %v", p.Proven(vaults[0]), err)
	}
	p.Committed(stateOf(70, 20))
	p.proven[vaults[0]] = 70 // as a run would
	if p.ended = false; p.HasUnsavedRun() {
		t.Error("the progress of an unfinished run causes a commit")
	}
	if err := p.RunOnce(t.Context()); err != nil || !p.HasUnsavedRun() {
		t.Errorf("the progress of a finished run causes no commit, %v", err)
	}
	if p.Committed(stateOf(70, 70)); p.HasUnsavedRun() {
		t.Error("the progress causes a second commit")
	}
}
