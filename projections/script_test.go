package projections

import (
	"bytes"
	"math/rand/v2"
	"slices"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/schemas/event"
)

// The histories of the tests are those of deploy/testkit/histories, under short names.
type (
	script  = histories.Script
	emitted = histories.Emitted
)

var (
	vaultAt, userAt = histories.VaultAt, histories.UserAt
	whole, power    = histories.Whole, histories.Power
	logOf, units    = histories.LogOf, histories.Units
	anything        = histories.Anything
)

// newScript returns a log with two vaults.
func newScript() *script {
	s := histories.New(chainID)
	s.Vault(vaultA)
	s.Vault(vaultB)
	return s
}

// randomHistory includes vaults that are added later.
func randomHistory(rng *rand.Rand, steps int) *script { return histories.Random(rng, chainID, steps) }

// busyHistory has blocks and reorganisations of two vaults; its first block is in unit 3.
func busyHistory(rng *rand.Rand, steps int) *script {
	s := newScript()
	for range steps {
		if depth := rng.IntN(4); depth > 0 && len(s.Blocks) > 6 {
			s.Retract(depth)
		}
		var logs []emitted
		for range rng.IntN(6) {
			logs = append(logs, anything(rng, 2, 5))
		}
		s.Mine(logs...)
	}
	return s
}

// cursorOf returns the cursor that ingest commits with the last record: every vault is covered up to the head, except
// one whose vault record is the last record, because its history is not read yet.
func cursorOf(records []*event.Record) *event.Cursor {
	last := records[len(records)-1]
	origin := records[0].GetOrigin()
	c := &event.Cursor{LogId: origin.GetLogId(), GenesisHash: origin.GetGenesisHash(), ChainId: chainID,
		InstanceId: []byte("test"), Seq: last.GetSeq()}
	gone := map[uint64]bool{}
	for _, r := range records {
		gone[r.GetRetracts()] = true
	}
	for _, r := range records {
		if b := r.GetBlock(); b != nil && r.GetRetracts() == 0 && !gone[r.GetSeq()] &&
			b.GetNumber() >= c.GetHead().GetNumber() {
			c.Head = b
		}
	}
	for _, r := range records {
		if v := r.GetVault(); v != nil {
			covered := &event.Coverage{Address: v.GetAddress(), StartBlock: v.GetStartBlock(),
				CoveredTo: c.GetHead().GetNumber(), Removed: v.GetRemoved()}
			if r == last && !v.GetRemoved() {
				covered.CoveredTo = 0
			}
			c.Vaults = slices.DeleteFunc(c.Vaults,
				func(known *event.Coverage) bool { return bytes.Equal(known.GetAddress(), v.GetAddress()) })
			c.Vaults = append(c.Vaults, covered)
		}
	}
	return c
}
