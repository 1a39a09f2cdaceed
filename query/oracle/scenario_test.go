package oracle

import (
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/readtest"
)

// A scenario makes a random history: backfills of vaults one after another, new blocks at the head, reorganisations
// (also back to the previous branch), and logs that a reference vault would never emit.
type scenario struct {
	*readtest.Log
	random *rand.Rand
	vaults []common.Address
	txs    uint64
	head   uint64
}

var people = []common.Address{readtest.Alice, readtest.Bob, readtest.Carol,
	common.HexToAddress("0x6666666666666666666666666666666666666666"),
	common.HexToAddress("0x7777777777777777777777777777777777777777")}

func newScenario(seed uint64) *scenario {
	return &scenario{Log: readtest.NewLog(readtest.ChainID), random: rand.New(rand.NewPCG(seed, seed))}
}

func (s *scenario) pick(n int) int { return s.random.IntN(n) }

// logs makes a few logs of one vault in a block, given what is live now.
func (s *scenario) logs(vault common.Address, block uint64, index *uint32) []readtest.Fact {
	var out []readtest.Fact
	var deposits, requests, swept uint64
	for _, e := range s.Live(s.Seq(), 1<<62) {
		switch {
		case e.Fact.Vault != vault || e.Quarantined:
		case e.Kind == readtest.Deposit:
			deposits++
		case e.Kind == readtest.Request:
			requests++
		case e.Kind == readtest.Sweep:
			swept = max(swept, e.To)
		}
	}
	for range s.pick(4) {
		s.txs++
		*index++
		f := readtest.Fact{Vault: vault, User: people[s.pick(len(people))], Block: block, Index: *index}
		f.Tx[0], f.Tx[1], f.Tx[2], f.Tx[31] = byte(s.txs>>16), byte(s.txs>>8), byte(s.txs), 1
		f.Assets, f.Shares = int64(s.pick(5)+1)*100, int64(s.pick(1000)+1)
		switch s.pick(12) {
		case 0, 1, 2:
			deposits++
			f.Kind, f.ID, f.Other, f.Partner = readtest.Deposit, deposits, readtest.Router, []uint32{0, 7, 8}[s.pick(3)]
		case 3, 4:
			f.Kind, f.ID, f.Other, f.Partner = readtest.Request, requests, people[s.pick(len(people))], []uint32{0, 7}[s.pick(2)]
			f.Expires = []uint64{0, uint64(readtest.BlockTime(block + uint64(s.pick(30))))}[s.pick(2)]
			requests++
			if s.pick(6) == 0 && requests > 2 { // reuse an index, possibly one with earlier events
				f.ID = uint64(s.pick(int(requests) + 1))
			}
		case 5, 10:
			f.Kind, f.ID = readtest.Funding, uint64(s.pick(int(requests)+2))
		case 6:
			f.Kind, f.ID = readtest.Claim, uint64(s.pick(int(requests)+2))
		case 7, 11:
			f.Kind, f.ID = []readtest.Kind{readtest.Cancel, readtest.Expiry}[s.pick(2)], uint64(s.pick(int(requests)+2))
		case 8:
			f.Kind, f.Price, f.Supply = readtest.Nav, int64(s.pick(1000)), int64(s.pick(1000))
			out = append(out, f) // and another NAV in the same block
			f.Price++
			*index++
			f.Index = *index
			out = append(out, f) // and one that cannot be counted, and a settlement
			*index++
			out = append(out, readtest.Fact{Kind: readtest.Deposit, Quarantined: true, Vault: vault, Block: block, Index: *index,
				Tx: f.Tx})
			*index++
			f.Kind, f.Index, f.Also = readtest.Settlement, *index, people[:4] // of several effects
		case 9:
			if swept > 1 && s.pick(3) == 0 { // a range that was already swept
				f.Kind, f.ID, f.To = readtest.Sweep, 1, swept
				break
			}
			if swept >= deposits {
				continue
			}
			f.Kind, f.ID, f.To = readtest.Sweep, swept+1, swept+1+uint64(s.pick(int(deposits-swept)))
			swept = f.To
		}
		out = append(out, f)
	}
	return out
}

func (s *scenario) backfill(vault common.Address, name string, start, to uint64) {
	s.Append(readtest.VaultRecord(vault, name, start))
	for from := start; from <= to; from += 10 {
		last := min(from+9, to)
		for block := from; block <= last; block++ {
			index := uint32(1000 * len(s.vaults)) // log indexes within a block differ between vaults
			for _, f := range s.logs(vault, block, &index) {
				s.Add(f, 0)
			}
		}
		s.Append(readtest.BlockRecord(last))
	}
	s.vaults = append(s.vaults, vault)
	s.head = max(s.head, to)
}

// grow appends one block at the head, as a unit.
func (s *scenario) grow() {
	s.head++
	index := uint32(0)
	for _, v := range s.vaults {
		for _, f := range s.logs(v, s.head, &index) {
			s.Add(f, 0)
		}
	}
	s.Append(readtest.BlockRecord(s.head))
}

// reorganise retracts some blocks and appends others, or the same ones again.
func (s *scenario) reorganise(depth uint64) {
	gone := s.Retract(s.head - depth)
	if s.pick(3) == 0 {
		s.Append(gone...)
		return
	}
	s.head -= depth
	s.oneUnit(func() {
		for range depth + uint64(s.pick(2)) {
			s.grow()
		}
	})
}

// shorten retracts some blocks and appends one, so that time goes back.
func (s *scenario) shorten(depth uint64) {
	s.Retract(s.head - depth)
	s.head -= depth
	s.oneUnit(s.grow)
}

// oneUnit makes a single unit of what happens appends.
func (s *scenario) oneUnit(happens func()) {
	from := s.Seq()
	happens()
	for i := from; i < s.Seq()-1; i++ {
		s.Entries[i].Boundary = false
	}
}

// randomScenario makes a scenario and calls step with it after each unit.
func randomScenario(seed uint64, step func(*scenario)) *scenario {
	s := newScenario(seed)
	do := func(happens func()) {
		happens()
		step(s)
	}
	do(func() { s.backfill(readtest.VaultA, "Alpha", 1, 20) })
	do(func() { s.backfill(readtest.VaultB, "Beta", 5, 20) })
	for range 15 {
		do(s.grow)
	}
	do(func() { s.reorganise(3) })
	do(s.grow)
	do(func() { s.backfill(readtest.VaultC, "Gamma", 2, s.head) })
	for range 12 {
		do(s.grow)
		switch s.pick(4) {
		case 0:
			do(func() { s.reorganise(1 + uint64(s.pick(5))) })
		case 1:
			do(func() { s.shorten(1 + uint64(s.pick(4))) })
		}
	}
	return s
}

// hasReorganisation reports whether the log contains a retraction.
func (s *scenario) hasReorganisation() bool {
	return slices.ContainsFunc(s.Entries, func(e readtest.Entry) bool { return e.Retracts != 0 })
}
