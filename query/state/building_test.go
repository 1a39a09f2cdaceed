package state_test

import (
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/state"
)

// TestRetractedWhileItIsBuilt: the newest block of a generation that is being built must be live, even if the log
// ends with a unit that retracts blocks and adds none.
func TestRetractedWhileItIsBuilt(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	source, before := w.BeforeReorganisation().Source, w.Snapshot()
	w.Log.Retract(before.Block - 1)
	w.Log.Entries[len(w.Log.Entries)-1].Boundary = true
	w.Gen.WriteEvents(w.Log)
	s, err := state.LookBuilding(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	if s.Seq != w.Log.Seq() || s.Block >= before.Block || !s.Partial {
		t.Errorf("it is at seq %d of %d and block %d, although block %d was retracted", s.Seq, w.Log.Seq(), s.Block,
			before.Block)
	}
}
