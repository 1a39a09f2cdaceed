package query

import (
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestSweepsAtEveryPin: sweeps of all kinds, overlapping and with gaps, some of
// them taken back, read in several goes, against a look through all rows.
func TestSweepsAtEveryPin(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		vaults := []common.Address{vaultA, vaultB}
		var rows []sweepRow
		for seq := uint64(1); seq < 40; seq++ {
			v := r.IntN(2)
			if live := len(rows); live > 0 && r.IntN(4) == 0 {
				back := rows[r.IntN(live)]
				if back.Sign > 0 && !takenBack(rows, back.Seq) {
					rows = append(rows, sweepRow{Seq: seq, Sign: -1, Retracts: back.Seq, Vault: back.Vault, From: back.From, To: back.To, Block: back.Block, Time: back.Time})
				}
				continue
			}
			from := r.Uint64N(60)
			rows = append(rows, sweepRow{Seq: seq, Sign: 1, Vault: string(vaults[v][:]), From: from, To: from + r.Uint64N(12), Block: seq + r.Uint64N(3), Time: uint32(1000 + seq + r.Uint64N(3))})
		}
		known, read := new(sweeps), 0
		for read < len(rows) {
			some := min(read+1+r.IntN(8), len(rows))
			next := known.with(rows[read:some], rows[some-1].Seq)
			sweepsAre(t, known, rows[:read], vaults) // is what it was
			known, read = next, some
		}
		sweepsAre(t, known, rows, vaults)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// sweepsAre compares what sweeps say of every deposit, at every pin, with rows.
func sweepsAre(t *testing.T, got *sweeps, rows []sweepRow, vaults []common.Address) {
	t.Helper()
	for at := uint64(0); at < 45; at++ {
		for _, p := range []*pin{{seq: at}, {seq: got.seq, asOf: true, block: at}} {
			for _, v := range vaults {
				var last uint64
				var lastTime uint32
				first := make(map[uint64]uint32)
				for _, w := range rows {
					if w.Vault != string(v[:]) || w.Sign < 0 || w.Seq > p.seq || p.asOf && w.Block > p.block || takenBack(upTo(rows, p.seq), w.Seq) {
						continue
					}
					last, lastTime = max(last, w.To), max(lastTime, w.Time)
					for id := w.From; id <= w.To; id++ {
						if first[id] == 0 {
							first[id] = w.Time
						}
					}
				}
				is := got.last(p, v)
				same(t, "last", []any{is.id, is.time}, []any{last, lastTime})
				for id := range uint64(80) {
					if at := got.timeOf(p, v, id); at != first[id] {
						t.Errorf("deposit %d was swept at %d, should be %d", id, at, first[id])
					}
				}
			}
		}
	}
}

func takenBack(rows []sweepRow, seq uint64) bool {
	for _, r := range rows {
		if r.Sign < 0 && r.Retracts == seq {
			return true
		}
	}
	return false
}

func upTo(rows []sweepRow, seq uint64) (out []sweepRow) {
	for _, r := range rows {
		if r.Seq <= seq {
			out = append(out, r)
		}
	}
	return out
}
