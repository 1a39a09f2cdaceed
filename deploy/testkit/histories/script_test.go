package histories_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// units of a history.
const units = 30

// TestScriptsAreLogs checks that ingest could have written a random history. Each unit has a cursor that matches the
// log's content, retractions come newest first and retract live records, no vault is ahead of the head, and nothing is
// read of a removed one.
func TestScriptsAreLogs(t *testing.T) {
	late, joined := 0, 0
	for seed := range uint64(200) {
		s := histories.Random(rand.New(rand.NewPCG(seed, 1)), 1, units)
		for _, unit := range histories.Units(s.Records) {
			checkRetractions(t, s, unit)
			c := s.Cursor(unit[len(unit)-1].GetSeq())
			if c == nil || c.GetSeq() != unit[len(unit)-1].GetSeq() {
				t.Fatalf("history %d: the unit that ends with seq %d has the cursor %v", seed, unit[len(unit)-1].GetSeq(), c)
			}
			for _, v := range c.GetVaults() {
				if v.GetRemoved() && slices.ContainsFunc(unit, func(r *event.Record) bool {
					return r.GetRetracts() == 0 && bytes.Equal(r.GetLog().GetAddress(), v.GetAddress())
				}) {
					t.Fatalf("history %d: the unit that ends with seq %d has a log of a removed vault", seed, c.GetSeq())
				}
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

// TestRandomHasEveryKind: a few hundred random histories contain what is rare on a chain but possible.
func TestRandomHasEveryKind(t *testing.T) {
	found := map[string]int{}
	for seed := range uint64(200) {
		s := histories.Random(rand.New(rand.NewPCG(seed, 1)), 1, units)
		txs, times, removed := map[string]uint32{}, map[uint64]bool{}, map[string]bool{}
		first, known := s.First, map[uint64]bool{} // the first block of the first vaults, and the recorded ones
		var newest *event.Block
		for _, r := range s.Records {
			times[r.GetBlock().GetTime()] = true
		}
		for _, unit := range histories.Units(s.Records) {
			blocks := map[uint64]bool{}
			for _, r := range unit {
				b, l := r.GetBlock(), r.GetLog()
				switch {
				case r.GetRetracts() != 0:
				case l != nil:
					blocks[l.GetBlockNumber()] = true
					if first, known := txs[string(l.GetTxHash())]; known && first != l.GetLogIndex() {
						found["logs of one transaction"]++
					}
					txs[string(l.GetTxHash())] = l.GetLogIndex()
					e, err := devchain.Decode(topics(l), l.GetData())
					if err != nil {
						t.Fatal(err)
					}
					if request, ok := e.(contracts.WithdrawalRequested); ok && times[request.ExpiresAt] {
						found["a request that expires at the time of a block"]++
					}
				case r.GetVault() != nil:
					a := string(r.GetVault().GetAddress())
					switch {
					case r.GetVault().GetRemoved():
						found["a vault that is removed"]++
					case removed[a]:
						found["a vault that is restored"]++
					case len(known) == 0:
						first = r.GetVault().GetStartBlock()
					case r.GetVault().GetStartBlock() < first:
						found["a late vault that begins before all blocks"]++
					}
					removed[a] = r.GetVault().GetRemoved()
				case b != nil:
					if newest != nil && b.GetNumber() < newest.GetNumber() && !known[b.GetNumber()] {
						found["an old block that is recorded for a late vault"]++
					}
					known[b.GetNumber()] = true
					if blocks[b.GetNumber()] = true; newest != nil && newest.GetNumber()+1 == b.GetNumber() &&
						newest.GetTime() == b.GetTime() {
						found["blocks with equal times"]++
					}
					newest = b
				case r.GetDecision().GetKind() == "accept-reorg:open":
					found["an accepted reorganisation"]++
				}
			}
			begin, last := unit[0], unit[len(unit)-1]
			if begin.GetRetracts() != 0 && s.Cursor(last.GetSeq()).GetHead() == nil {
				found["every block retracted"]++
			}
			if begin.GetRetracts() == 0 && len(blocks) > 1 {
				found["blocks of which only the last is recorded"]++
			}
		}
	}
	for _, what := range []string{"logs of one transaction", "a request that expires at the time of a block",
		"blocks with equal times", "an accepted reorganisation", "every block retracted",
		"blocks of which only the last is recorded", "a vault that is removed",
		"a vault that is restored", "a late vault that begins before all blocks",
		"an old block that is recorded for a late vault"} {
		if found[what] < 10 {
			t.Errorf("%s: %d times", what, found[what])
		}
	}
}

// TestPresets: histories of vaults of all presets have effects of every kind, from logs that belong together and from
// samples, which are retracted with their blocks.
func TestPresets(t *testing.T) {
	found := map[string]int{}
	for seed := range uint64(100) {
		s := histories.Random(rand.New(rand.NewPCG(seed, 1)), 1, units, histories.Presets()...)
		vaults, err := mapping.NewVaults()
		if err != nil {
			t.Fatal(err)
		}
		for _, unit := range histories.Units(s.Records) {
			checkRetractions(t, s, unit)
			txs := map[string][]mapping.Log{}
			of := map[string]*mapping.Sources{}
			for _, r := range unit {
				if v := r.GetVault(); v != nil {
					if err := vaults.Apply(v); err != nil {
						t.Fatal(err)
					}
				}
				if l := r.GetLog(); l != nil && r.GetRetracts() == 0 {
					sources := vaults.Of(mapping.VaultOf(l))
					tx := string(l.GetTxHash()) + sources.Address.Hex()
					if log, ok := sources.FromRecord(l); ok {
						txs[tx], of[tx] = append(txs[tx], log), sources
					}
				}
				if sample := r.GetSample(); sample != nil {
					effects, sound := vaults.Of(common.Address(sample.GetVault())).Measured(sample)
					switch {
					case r.GetRetracts() != 0:
						found["a sample that is retracted"]++
					case sound:
						found[effects[0].Kind.String()]++
					default:
						found["a sample that is too large"]++
					}
				}
			}
			for tx, logs := range txs {
				effects, err := of[tx].Map(logs, nil)
				if err != nil {
					found["a log that is quarantined"]++
				}
				for _, e := range effects {
					found[e.Kind.String()]++
					if e.Kind == mapping.Deposit && e.Present(mapping.Attribution) && e.Present(mapping.Group) &&
						e.Attribution != (common.Hash{}) {
						found["a deposit in a group with an attribution"]++
					}
				}
			}
		}
	}
	wanted := []string{"a sample that is retracted", "a sample that is too large", "a log that is quarantined",
		"a deposit in a group with an attribution"}
	for kind := mapping.Deposit; kind <= mapping.Sample; kind++ {
		wanted = append(wanted, kind.String())
	}
	for _, what := range wanted {
		if found[what] < 10 {
			t.Errorf("%s: %d times", what, found[what])
		}
	}
}

// topics returns the topics of a log.
func topics(l *event.Log) (out []common.Hash) {
	for _, topic := range l.GetTopics() {
		out = append(out, common.Hash(topic))
	}
	return out
}

// checkRetractions checks what a unit retracts.
func checkRetractions(t *testing.T, s *histories.Script, unit []*event.Record) {
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
