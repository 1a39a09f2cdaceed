package query

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/holiman/uint256"
)

// TestPackedMoves: what random logs between two blocks did, told from packed moves,
// against one sum after the other.
func TestPackedMoves(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 23))
	vault := string(vaultA[:])
	for range 500 {
		var users []userMove
		var logs []logMove
		for range random.IntN(30) {
			users = append(users, userMove{100 + random.Uint64N(9), 1 - 2*random.Int64N(2)})
			m := logMove{block: 100 + random.Uint64N(9), index: random.Uint64N(600), open: random.IntN(3) - 1, waiting: random.IntN(3) - 1}
			m.made = m.open > 0 && random.IntN(2) == 0
			if m.waiting != 0 {
				m.amount = uint256.Int{random.Uint64(), random.Uint64() >> random.UintN(64)}
				m.expires = random.Uint64() >> (1 + random.UintN(63)) * random.Uint64N(2)
			}
			logs = append(logs, m)
		}
		between := border{way: 1, from: 99 + random.Uint64N(6), to: 103 + random.Uint64N(7)}
		got, want := make(map[uint64]*vaultMove), make(map[uint64]*vaultMove)
		addUsers(got, vault, packUsers(slices.Clone(users)), between)
		addLogs(got, vault, packLogs(slices.Clone(logs)), between)
		within := func(block uint64) bool { return block >= between.from && block <= between.to }
		for _, u := range users {
			if within(u.block) {
				moveOf(want, vault, 0).users += u.users
			}
		}
		slices.SortStableFunc(logs, func(a, b logMove) int { return cmp.Compare(a.block, b.block) })
		for _, m := range logs {
			if !within(m.block) {
				continue
			}
			sum := moveOf(want, vault, m.index/bucketSize)
			sum.queued = plus(sum.queued, m.open, new(uint256.Int).Lsh(uint256.NewInt(1), uint(m.index%bucketSize)))
			sum.amount = plus(sum.amount, m.waiting, &m.amount)
			sum.unfunded += int64(m.waiting)
			if m.made {
				sum.made = append(sum.made, madeAt{m.index, m.block})
			}
			if m.expires > 0 {
				sum.waits = append(sum.waits, waitMove{wait{m.index, m.expires, m.amount}, m.waiting})
			}
		}
		nothing := func(m *vaultMove) bool {
			return reflect.DeepEqual(*m, vaultMove{vault: m.vault, bucket: m.bucket})
		}
		if got, want := withoutMoves(got, nothing), withoutMoves(want, nothing); !reflect.DeepEqual(got, want) {
			t.Fatalf("between %+v, users %+v and logs %+v move %+v, should be %+v", between, users, logs, got, want)
		}
	}
}

// plus adds a value so many times: -1, 0 or 1.
func plus(sum uint256.Int, times int, value *uint256.Int) (out uint256.Int) {
	for ; times > 0; times-- {
		sum = *out.Add(&sum, value)
	}
	for ; times < 0; times++ {
		sum = *out.Sub(&sum, value)
	}
	return sum
}

func withoutMoves(moves map[uint64]*vaultMove, which func(*vaultMove) bool) map[uint64]vaultMove {
	out := make(map[uint64]vaultMove)
	for bucket, m := range moves {
		if !which(m) {
			out[bucket] = *m
		}
	}
	return out
}

// TestMovesOfSpanAsText: what is no list of moves is told so.
func TestMovesOfSpanAsText(t *testing.T) {
	row := spanMovesRow{Vault: string(vaultA[:]), Users: "[(7,1),(8,-1)]", Logs: "[(7,3,1,1,1,500,9),(8,3,-1,0,0,0,0)]"}
	users, logs, err := row.moves()
	wantUsers := []userMove{{7, 1}, {8, -1}}
	wantLogs := []logMove{{block: 7, index: 3, expires: 500, open: 1, waiting: 1, made: true, amount: *uint256.NewInt(9)}, {block: 8, index: 3, open: -1}}
	if err != nil || !reflect.DeepEqual(users, wantUsers) || !reflect.DeepEqual(logs, wantLogs) {
		t.Errorf("%+v and %+v (%v), should be %+v and %+v", users, logs, err, wantUsers, wantLogs)
	}
	for _, row := range []spanMovesRow{{Users: "[(7)]"}, {Users: "[(x,1)]"}, {Users: "[(7,128)]"}, {Logs: "[(7,3,1,1,1,500)]"}, {Logs: "[(7,3,1,1,1,500,-9)]"}, {Logs: "[(7,-3,1,1,1,500,9)]"}} {
		if _, _, err := row.moves(); err == nil {
			t.Errorf("%+v is read as moves", row)
		}
	}
}

// TestKeptMovesFollowTheChain: what moves of spans say of the blocks up to each one,
// against what the engine says, through a late vault and blocks that are replaced.
func TestKeptMovesFollowTheChain(t *testing.T) {
	w := newWorld(t)
	w.scale = scale{span: 4, apart: 12, ahead: 1000}
	s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(9, 2))}
	w.ledger = s.ledger
	s.backfill(vaultA, "Alpha", 3, 40)
	w.publish()
	var f filled
	kept := 0
	compare := func(at *snapshot) {
		t.Helper()
		x := &exchange{ctx: t.Context(), snapshot: at}
		for to := range at.block + 1 {
			p := at.pin()
			p.block, p.asOf = to, true
			from := s.random.Uint64N(to/4+1) * 4
			got, ok, err := x.keptMoves(p, border{way: 1, from: from, to: to})
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue
			}
			kept++
			want, err := x.moves(p, named("from", from), named("to", to), named("since", uint64(0)))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := sortedMoves(got), sortedMoves(want); !reflect.DeepEqual(got, want) {
				t.Errorf("at seq %d, blocks %d to %d moved %+v, should be %+v", at.seq, from, to, got, want)
			}
			p.seq--
			if _, ok, _ := x.keptMoves(p, border{way: 1, from: from, to: to}); ok {
				t.Error("moves are told at a seq that is not the snapshot's")
			}
		}
	}
	for _, happens := range s.chapters(40) {
		happens()
		before := *w.snapshot.Load()
		w.publish()
		compare(w.snapshot.Load()) // what was read before this happened
		w.growPast(t, &f)
		compare(w.snapshot.Load())
		before.head = newHead(nil, nil, w.scale) // sees what comes after it, and what was read since
		before.head.checkpoints = w.snapshot.Load().head.checkpoints
		compare(&before)
	}
	if kept < 100 {
		t.Errorf("%d spans of blocks were told by kept moves: the test proves nothing", kept)
	}
}

// sortedMoves leaves out those that did nothing, and the order of their lists.
func sortedMoves(moves []vaultMove) (out []vaultMove) {
	for _, m := range moves {
		slices.SortFunc(m.made, func(a, b madeAt) int { return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.index, b.index)) })
		slices.SortFunc(m.waits, func(a, b waitMove) int {
			return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.expires, b.expires), a.amount.Cmp(&b.amount), cmp.Compare(a.sign, b.sign))
		})
		if m.queued.IsZero() && m.amount.IsZero() && m.unfunded == 0 && m.users == 0 && len(m.made)+len(m.waits) == 0 {
			continue
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b vaultMove) int {
		return bucketKey{a.vault, a.bucket}.compare(bucketKey{b.vault, b.bucket})
	})
	return out
}

// TestMovesAsText: what the engine writes is read, and anything else is an error.
func TestMovesAsText(t *testing.T) {
	zero := new(big.Int)
	row := moveRow{Vault: string(vaultA[:]), Bucket: 3, Queued: big.NewInt(-2), Unfunded: -1, Amount: big.NewInt(9), Users: 1,
		Made: "[(7,100),(18446744073709551615,101)]", Waits: "[(7,500,6277101735386680763835789423207666416102355444464034512895,1),(8,0,0,-1)]"}
	most := uint256.MustFromDecimal("6277101735386680763835789423207666416102355444464034512895")
	want := vaultMove{vault: row.Vault, bucket: 3, queued: signed(big.NewInt(-2)), unfunded: -1, amount: *uint256.NewInt(9), users: 1,
		made: []madeAt{{7, 100}, {math.MaxUint64, 101}}, waits: []waitMove{{wait{7, 500, *most}, 1}, {wait{8, 0, uint256.Int{}}, -1}}}
	got, err := row.move()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%v), should be %+v", got, err, want)
	}
	for _, text := range []string{"[(7)]", "[(7,x)]", "[(7,-1)]", "[(18446744073709551616,1)]", "x"} {
		if _, err := (&moveRow{Queued: zero, Amount: zero, Made: text, Waits: "[]"}).move(); err == nil {
			t.Errorf("%q is read as requests that were made", text)
		}
	}
	for _, text := range []string{"[(7,1,2)]", "[(7,1,-2,1)]", "[(7,1,2,256)]"} {
		if _, err := (&moveRow{Queued: zero, Amount: zero, Made: "[]", Waits: text}).move(); err == nil {
			t.Errorf("%q is read as waits", text)
		}
	}
}
