package histories_test

import (
	"math/rand/v2"
	"testing"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/schemas/event"
)

// units of a history.
const units = 30

// TestScriptsAreLogs checks that ingest could have written a random history. Each unit has a cursor that matches the
// log's content, retractions come newest first and retract live records, and no vault is ahead of the head.
func TestScriptsAreLogs(t *testing.T) {
	late, joined := 0, 0
	for seed := range uint64(200) {
		s := histories.Random(rand.New(rand.NewPCG(seed, 1)), 1, units)
		for _, unit := range histories.Units(s.Records) {
			lives(t, s, unit)
			c := s.Cursor(unit[len(unit)-1].GetSeq())
			if c == nil || c.GetSeq() != unit[len(unit)-1].GetSeq() {
				t.Fatalf("history %d: the unit that ends with seq %d has the cursor %v", seed, unit[len(unit)-1].GetSeq(), c)
			}
			for _, v := range c.GetVaults() {
				if c.GetHead() != nil && v.GetCoveredTo() > c.GetHead().GetNumber() {
					t.Fatalf("history %d: a vault is covered to block %d of %d", seed, v.GetCoveredTo(), c.GetHead().GetNumber())
				}
			}
			if c.GetHead() != nil && !s.Covered(c.GetSeq()) {
				late++
			}
			if n := len(c.GetVaults()); n > 2 && s.Covered(c.GetSeq()) {
				joined++
			}
		}
		if c := s.Cursor(s.Seq()); c.GetHead() != nil && !s.Covered(s.Seq()) {
			t.Errorf("history %d ends with a late vault: %v", seed, c)
		}
	}
	if late == 0 || joined == 0 {
		t.Errorf("%d units with a late vault, %d with one that joined", late, joined)
	}
}

// lives checks what a unit retracts.
func lives(t *testing.T, s *histories.Script, unit []*event.Record) {
	t.Helper()
	last := s.Seq() + 1
	for _, r := range unit {
		if r.GetRetracts() == 0 {
			continue
		}
		if r.GetRetracts() >= last || s.Records[r.GetRetracts()-1].GetRetracts() != 0 {
			t.Fatalf("seq %d retracts %d after %d", r.GetSeq(), r.GetRetracts(), last)
		}
		last = r.GetRetracts()
	}
}
