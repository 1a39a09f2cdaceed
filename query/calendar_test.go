package query

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCalendar: a block looked up in a packed calendar, against a look at all rows.
func TestCalendar(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 3))
	for range 500 {
		var rows []calendarRow
		block := random.Uint64() >> (1 + random.UintN(63))
		for range random.IntN(30) {
			r := calendarRow{Block: block, Time: random.Uint32() >> random.UintN(33)} // 0 now and then: taken back
			if random.IntN(3) > 0 {
				r.Low = 1 + random.Uint64()>>(1+random.UintN(63))
				r.High = r.Low + random.Uint64N(9)
			}
			rows = append(rows, r)
			block += 1 + random.Uint64N(5)
		}
		packed := calendar(packCalendar(rows))
		for at := block - min(block, 180); at < block+2; at++ {
			want := moment{prefixRow: prefixRow{Next: math.MaxUint64}}
			for _, r := range rows {
				if r.Block <= at && r.Time > 0 {
					want.time = uint64(r.Time)
				}
				if r.Block <= at && r.High > 0 {
					want.Seq = max(want.Seq, r.High)
				}
				if r.Block > at && r.High > 0 {
					want.Next = min(want.Next, r.Low)
				}
			}
			if got := packed.moment(at); got != want {
				t.Fatalf("block %d of %+v is %+v, should be %+v", at, rows, got, want)
			}
		}
	}
	if n := len(packCalendar(make([]calendarRow, 4096))); n > 3*4096 {
		t.Errorf("4096 blocks without logs take %d bytes", n)
	}
}

// TestCalendarFollowsTheChain: what calendars say of every block that they know,
// against a look through the whole log, through late vaults, blocks that are replaced
// and blocks without logs that are gone.
func TestCalendarFollowsTheChain(t *testing.T) {
	w := newWorld(t)
	w.scale = scale{span: 4, apart: 12, ahead: 1000}
	s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(3, 19))}
	w.ledger = s.ledger
	s.backfill(vaultA, "Alpha", 3, 40)
	w.publish()
	known := 0
	compare := func(at *snapshot) {
		t.Helper()
		x := &exchange{ctx: t.Context(), snapshot: at}
		for block := range at.block + 1 {
			p := at.pin()
			p.block, p.asOf = block, true
			got, ok, err := x.moment(p)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue
			}
			known++
			if want := momentOf(s.ledger, at.seq, block, 4); got != want {
				t.Errorf("at seq %d, block %d is %+v, should be %+v", at.seq, block, got, want)
			}
			p.seq--
			if _, ok, _ := x.moment(p); ok {
				t.Errorf("block %d is told at a seq that is not the snapshot's", block)
			}
		}
	}
	empty := func(blocks ...uint64) {
		for _, b := range blocks {
			s.ledger.append(fact{kind: aBlock, block: b})
		}
	}
	compare(w.snapshot.Load())
	for _, happens := range []func(){
		func() { s.backfill(vaultB, "Beta", 20, 40) },
		func() { s.grow(); s.reorganise(7); s.grow() },
		func() { s.shorten(5) },
		func() { empty(60, 61, 62, 63, 64, 65, 66, 67, 68, 72) },
		func() { s.ledger.retract(61); empty(64, 67, 80) },
		func() { s.ledger.retract(64); empty(65, 66, 80, 90) },
		func() { s.backfill(vaultC, "Gamma", 2, 80) },
		func() { // a log that comes late, and no block with it
			s.ledger.append(fact{kind: aNav, vault: vaultB, price: 1, assets: 1, supply: 1, block: 21, index: 90, tx: tx(9)})
		},
		func() { empty(94) },
		func() { empty(95) }, // of a span that grew
	} {
		happens()
		s.ledger.insert(t, w.writer, w.database())
		before := *w.snapshot.Load()
		before.head = newHead(nil, nil, w.scale) // that may see what comes before the snapshot does
		before.head.checkpoints, before.head.blocks = w.snapshot.Load().head.checkpoints, w.snapshot.Load().head.blocks
		compare(&before)
		w.look()
		compare(w.snapshot.Load())
	}
	if known < 300 {
		t.Errorf("calendars knew %d blocks: the test proves nothing", known)
	}
}

// momentOf is what a calendar of some blocks has to say, out of the log.
func momentOf(l *ledger, seq, block, span uint64) moment {
	m, first := moment{prefixRow: prefixRow{Next: math.MaxUint64}}, block/span*span
	newest := map[uint64]entry{} // block records
	for _, e := range l.records[:seq] {
		switch {
		case e.block < first || e.block >= first+span || e.kind == aVault:
		case e.kind == aBlock:
			newest[e.block] = e
		case e.block <= block:
			m.Seq = max(m.Seq, e.seq)
		default:
			m.Next = min(m.Next, e.seq)
		}
	}
	for b := first; b <= block; b++ {
		if e, ok := newest[b]; ok && e.retracts == 0 {
			m.time = uint64(blockTime(b))
		}
	}
	return m
}
