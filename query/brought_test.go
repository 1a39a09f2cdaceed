package query

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestBroughtBySpans: a partner's statistics of every block, told by spans, through new
// blocks, a late vault and blocks that are replaced, and where the tables are ahead of
// the snapshot when the spans are read.
func TestBroughtBySpans(t *testing.T) {
	w := newWorld(t)
	w.scale = scale{span: 4, apart: 12, ahead: 1000}
	s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(4, 8))}
	w.ledger = s.ledger
	s.backfill(vaultA, "Alpha", 3, 40)
	told := 0
	compare := func() {
		t.Helper()
		at := w.snapshot.Load()
		for block := uint64(12); block <= at.block; block++ {
			for _, partner := range []uint32{7, 8} {
				x, p := &exchange{ctx: t.Context(), snapshot: at, caller: &caller{id: partner}}, at.pin()
				if err := x.toBlock(p, block); err != nil {
					t.Fatal(err)
				}
				got, ok, err := x.broughtBySpans(p)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					broughtIs(t, fmt.Sprintf("partner %d at seq %d and block %d", partner, at.seq, block), got, s.at(at.seq, block), partner)
				}
				if ok && at.lastMark(at.head.spans.known()) > 0 {
					told++
				}
				p.seq--
				if _, ok, _ := x.broughtBySpans(p); ok {
					t.Error("spans tell it at a seq that is not the snapshot's")
				}
			}
		}
	}
	for _, happens := range []func(){
		func() {},
		func() { s.backfill(vaultB, "Beta", 20, 40) },
		func() { s.grow(); s.reorganise(7); s.grow() },
		func() { // a deposit that comes late, to the last span that is known
			at := w.snapshot.Load()
			s.add(fact{kind: aDeposit, vault: vaultA, id: 9000, user: people[0], other: people[0], partner: 7, assets: 3, shares: 3,
				block: at.head.spans.known().edge(at.lastMark(at.head.spans.known()))*4 - 1, index: 900, tx: tx(9)}, 0)
			s.append(fact{kind: aBlock, block: s.head + 1})
			s.head++
		},
		func() { s.shorten(9) },
		func() {
			for range 9 {
				s.grow()
			}
		},
	} {
		happens()
		var before *snapshot // that knows the spans when rows come which are after it
		if at := w.snapshot.Load(); at != nil {
			other := *at
			before, other.head = &other, newHead(nil, nil, w.scale)
			if _, err := (&exchange{ctx: t.Context(), snapshot: before}).spans(); err != nil {
				t.Fatal(err)
			}
		}
		s.ledger.insert(t, w.writer, w.database())
		if before != nil {
			w.snapshot.Store(before)
			compare()
		}
		w.look()
		compare()
	}
	if told < 50 {
		t.Errorf("%d blocks were told by spans: the test proves nothing", told)
	}
}

// broughtIs compares what a partner brought with its statistics.
func broughtIs(t *testing.T, what string, got brought, o *oracle, partner uint32) {
	t.Helper()
	byVault, total := []any{}, int64(0)
	for _, v := range o.vaults {
		for _, r := range got.vaults {
			if toAddress(r.Vault) == v.address && r.Deposits > 0 {
				byVault = append(byVault, object{"vaultAddress": v.address.Hex(), "depositCount": r.Deposits, "totalVolume": r.Volume.String()})
				total += r.Deposits
			}
		}
	}
	want := o.partnerStats(partner, "")
	same(t, what, []any{got.users, total, byVault}, []any{want["uniqueUsers"], want["totalDeposits"], want["byVault"]})
}
