package query

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestPast: the states of past blocks, which begin from checkpoints that are a few
// blocks apart: through new blocks, blocks taken back and a vault that is filled
// in late, seen from the newest seq and from those before.
func TestPast(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.spanSize = 1
			s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(seed, 17))}
			w.ledger = s.ledger
			s.backfill(vaultA, "Alpha", 3, 40)
			var seqs []uint64
			for _, happens := range []func(){
				func() { s.backfill(vaultB, "Beta", 20, 40) },
				func() { s.grow(); s.reorganise(7); s.grow() },
				func() { s.shorten(5) },
				func() { s.backfill(vaultC, "Gamma", 2, s.head) },
				func() {
					for range 20 {
						s.grow()
					}
				},
			} {
				w.publish()
				seqs = append(seqs, s.seq())
				w.comparePast(t, s, seqs)
				happens()
			}
			w.publish()
			w.comparePast(t, s, append(seqs, s.seq()))
			kept := w.snapshot.Load().head.checkpoints.kept
			of := map[string]int{}
			for _, key := range kept.Keys() {
				of[key.of]++
			}
			if of["queue"] < 8 || of["firstSeen"] < 3 || of["totalDeposited"] < 3 || of["totalWithdrawn"] < 3 {
				t.Errorf("checkpoints are %v: the test proves nothing", of)
			}
		})
	}
}

// comparePast compares the states of some blocks with the oracle, mostly as they
// are seen from the last of some seqs.
func (w *world) comparePast(t *testing.T, s *story, seqs []uint64) {
	t.Helper()
	for n := range 10 {
		seq := seqs[len(seqs)-1]
		if n%4 == 3 {
			seq = seqs[s.pick(len(seqs))]
		}
		highest := uint64(0)
		for _, e := range s.live(seq, 1<<62) {
			if e.kind == aBlock {
				highest = max(highest, e.block)
			}
		}
		block := 12 + s.random.Uint64N(highest-11)
		o, pinned := s.at(seq, block), fmt.Sprintf("asOfSeq=%d&asOfBlock=%d", seq, block)
		check := func(path string, want any) {
			t.Helper()
			same(t, path+pinned, w.get(path+pinned).data(t), want)
		}
		if n%2 == 0 { // of one vault first
			check("/api/v1/vaults/"+o.vaults[0].address.Hex()+"?", o.vaultDetail(o.vaults[0]))
		}
		queue := o.withStatus("queued", nil, false)
		check("/api/v1/queues/withdrawals?pageSize=100&", queue[:min(len(queue), 100)])
		check("/api/v1/queues/withdrawals?pageSize=3&page=2&", queue[min(len(queue), 3):min(len(queue), 6)])
		check("/api/v1/settlement/summary?", o.settlement())
		for _, v := range o.vaults {
			check("/api/v1/vaults/"+v.address.Hex()+"?", o.vaultDetail(v))
		}
		for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
			users := o.users(by, false)
			check("/api/v1/users?pageSize=100&sortOrder=asc&sortBy="+by+"&", users[:min(len(users), 100)])
		}
	}
}

// TestCheckpointOfOldRequest: one that had its time before the checkpoint, and was
// funded after it, is still the oldest of the queue.
func TestCheckpointOfOldRequest(t *testing.T) {
	w := newWorld(t)
	w.spanSize = 8
	request := func(block, expires uint64) fact {
		return fact{kind: aRequest, vault: vaultA, user: alice, other: alice, id: 0, assets: 5, shares: 5, expires: expires, block: block, tx: tx(byte(block))}
	}
	other := request(10, 0)
	other.vault = vaultB
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1), vaultMeta(vaultB, "Beta", 1), request(2, uint64(blockTime(3))), fact{kind: aBlock, block: 3})
	w.ledger.append(fact{kind: anExpiry, vault: vaultA, id: 0, block: 4, tx: tx(4)}, fact{kind: aBlock, block: 4})
	w.ledger.append(other, fact{kind: aBlock, block: 10})
	other.id, other.block, other.tx = 1, 17, tx(17)
	w.ledger.append(other, fact{kind: aBlock, block: 17})
	w.ledger.append(fact{kind: aFunding, vault: vaultA, id: 0, assets: 5, block: 18, tx: tx(18)}, fact{kind: aBlock, block: 19})
	w.publish()
	want := w.ledger.at(w.ledger.seq(), 18).withStatus("queued", nil, false)
	if len(want) != 3 || want[0].(object)["vaultAddress"] != vaultA.Hex() {
		t.Fatalf("the queue is %v: the test proves nothing", want)
	}
	for i := range want {
		body := w.get(fmt.Sprintf("/api/v1/queues/withdrawals?asOfBlock=18&pageSize=1&page=%d", i+1)).body(t)
		same(t, fmt.Sprintf("place %d", i), body["data"], want[i:i+1])
	}
}

// TestCheckpointIsReadOnce: by the first that begins from it, from another one near
// it where there is one, and again when a log came to the blocks before.
func TestCheckpointIsReadOnce(t *testing.T) {
	whole, steps := 0, []border(nil)
	h := history[uint64]{name: "blocks", every: 2,
		read: func(_ *exchange, p *pin) (uint64, error) { whole++; return p.block + 1, nil },
		move: func(_ *exchange, p *pin, was uint64, between border) (uint64, bool, error) {
			steps = append(steps, between)
			if was != between.edge*10 {
				t.Errorf("the checkpoint at %d says %d", between.edge, was)
			}
			return p.block + 1, true, nil
		},
		size: func(uint64) int { return 8 },
	}
	known := (&spans{size: 10}).with([]spanRow{{0, 1, 9}, {3, 10, 19}, {9, 20, 29}})
	s := &snapshot{seq: 100, block: 99, head: newHead(nil, 10)}
	s.head.spans.set(known)
	x := &exchange{ctx: t.Context(), snapshot: s}
	ask := func(block, seq uint64, reads int, want ...border) {
		t.Helper()
		whole, steps = 0, nil
		got, ok, err := h.at(x, &pin{seq: seq, block: block, asOf: true})
		if got != block+1 || !ok || err != nil {
			t.Errorf("as of block %d: %d %v %v", block, got, ok, err)
		}
		if whole != reads || !slices.Equal(steps, want) {
			t.Errorf("as of block %d: %d read whole and steps %v, want %d and %v", block, whole, steps, reads, want)
		}
	}
	ask(43, 100, 1, border{4, 1, 40, 43})
	ask(47, 100, 0, border{4, 1, 40, 47})
	ask(35, 100, 0, border{4, -1, 36, 39})
	ask(39, 100, 0) // the end of the span itself
	ask(61, 100, 0, border{4, 1, 40, 59}, border{6, 1, 60, 61})
	ask(18, 100, 0, border{4, -1, 20, 39}, border{2, -1, 19, 19})
	ask(5, 100, 0, border{0, 1, 0, 5})                          // before all blocks there is nothing
	ask(98, 100, 0, border{6, 1, 60, 79}, border{8, 1, 80, 98}) // the chain has not reached the nearer end
	ask(43, 15, 0, border{2, 1, 20, 43})                        // the pin does not know of the last log before the nearer end
	s.block = 999
	if _, ok, err := h.at(x, &pin{seq: 5, block: 500, asOf: true}); ok || err != nil {
		t.Errorf("a pin that knows of no checkpoint near it: %v %v", ok, err)
	}

	s.head.spans.set(known.with([]spanRow{{3, 40, 40}}))
	ask(43, 100, 0, border{2, 1, 20, 39}, border{4, 1, 40, 43})
	h.ordered = true // a log of a block before 40 came after one of a later block
	ask(43, 100, 0, border{2, 1, 20, 43})

	h.name, h.read = "nothing", func(*exchange, *pin) (uint64, error) { return 0, errors.New("the engine is gone") }
	if _, _, err := h.at(x, &pin{seq: 100, block: 21, asOf: true}); err == nil || err.Error() != "the engine is gone" {
		t.Errorf("the reader's error: %v", err)
	}
	h.read = func(*exchange, *pin) (uint64, error) { return 20, nil }
	ask(21, 100, 0, border{2, 1, 20, 21}) // what failed is left to the next
}

// TestCheckpointsAreBounded: the ones that were not asked for the longest go, also
// while they are read.
func TestCheckpointsAreBounded(t *testing.T) {
	c := newCheckpoints()
	key := func(edge uint64) checkpointKey { return checkpointKey{"queue", edge, 7} }
	add := func(edge uint64, size int) *checkpoint {
		it := c.of(key(edge))
		it.value.set(edge)
		c.settle(key(edge), it, size)
		return it
	}
	for edge := range uint64(4) {
		add(edge, checkpointRoom/4)
	}
	c.of(key(0))
	reading := c.of(key(9))
	add(4, checkpointRoom/4)
	for edge, want := range map[uint64]any{0: uint64(0), 1: nil, 2: uint64(2), 3: uint64(3), 4: uint64(4), 9: nil} {
		same(t, fmt.Sprintf("checkpoint %d", edge), c.known(key(edge)), want)
	}
	add(5, checkpointRoom)
	same(t, "all others", c.kept.Len(), 1)
	c.settle(key(9), reading, 5)
	same(t, "one that had to go while it was read", c.size, checkpointRoom)
	add(6, checkpointRoom+1)
	same(t, "one for which there is no room", []int{c.kept.Len(), c.size}, []int{0, 0})
}

// TestBucketsWithSteps: the steps of requests lead from one state of the queue to
// the next, in whatever order they come.
func TestBucketsWithSteps(t *testing.T) {
	type state struct {
		open, waits           bool
		amount, expires, made uint64
	}
	random := rand.New(rand.NewPCG(3, 7))
	var all buckets
	is := map[requestKey]state{}
	sign := func(was, is bool) int64 { return int64(bit(is)) - int64(bit(was)) }
	for block := uint64(1); block < 400; block++ {
		var steps []stepRow
		for range random.IntN(40) {
			key := requestKey{[]string{string(vaultA[:]), string(vaultB[:])}[random.IntN(2)], random.Uint64N(3 * bucketSize)}
			if slices.ContainsFunc(steps, func(s stepRow) bool { return s.requestKey == key }) {
				continue
			}
			was, next := is[key], state{}
			switch {
			case !was.open && was.made == 0:
				next = state{true, true, random.Uint64N(1000), []uint64{0, block + random.Uint64N(99)}[random.IntN(2)], block}
			case !was.open && random.IntN(2) == 0: // funded after it had its time
				next = state{open: true, made: was.made}
			case was.waits && random.IntN(2) == 0: // funded
				next = state{open: true, made: was.made}
			default: // gone, though somebody may fund it yet
				next = state{made: was.made}
			}
			step := stepRow{requestKey: key, Open: sign(was.open, next.open), Waiting: sign(was.waits, next.waits)}
			step.Amount = new(big.Int).Sub(new(big.Int).SetUint64(next.amount), new(big.Int).SetUint64(was.amount))
			step.Expires = int64(next.expires) - int64(was.expires)
			if was.made == 0 {
				step.Made = block
			}
			is[key] = next
			steps = append(steps, step)
		}
		before := fmt.Sprint(all.queue(block))
		next, ok := all.with(steps, block)
		if !ok {
			t.Fatalf("block %d: the steps lead nowhere", block)
		}
		if fmt.Sprint(all.queue(block)) != before {
			t.Fatalf("block %d: what was is not what it was", block)
		}
		all = next
		now := block + random.Uint64N(50)
		pending, unfunded, amount, keys := map[common.Address]int64{}, map[common.Address]int64{}, map[common.Address]uint64{}, map[requestKey]uint64{}
		for key, s := range is {
			if s.open && !(s.waits && s.expires != 0 && s.expires <= now) {
				vault := toAddress(key.Vault)
				pending[vault]++
				unfunded[vault] += int64(bit(s.waits))
				amount[vault] += s.amount
				keys[key] = s.made
			}
		}
		q := all.queue(now)
		for _, vault := range []common.Address{vaultA, vaultB} {
			got := q.vaults[vault]
			if got.pending != pending[vault] || got.unfunded != unfunded[vault] || got.amount.Uint64() != amount[vault] {
				t.Fatalf("block %d: %+v in the queue, should be %d, %d of them waiting for %d", block, got, pending[vault], unfunded[vault], amount[vault])
			}
		}
		for _, b := range q.buckets {
			for _, key := range b.keys {
				if made, ok := keys[key]; !ok || made < b.low || made > b.high {
					t.Fatalf("block %d: %+v of block %d, known %v, is in a bucket of the blocks %d to %d", block, key, made, ok, b.low, b.high)
				}
				delete(keys, key)
			}
		}
		if len(keys) > 0 {
			t.Fatalf("block %d: not in the queue are %v", block, keys)
		}
	}
	same(t, "nothing but the amount", second(all.with([]stepRow{{requestKey: requestKey{string(vaultA[:]), 1}, Amount: big.NewInt(1)}}, 400)), false)
	same(t, "nothing but the time", second(all.with([]stepRow{{requestKey: requestKey{string(vaultA[:]), 1}, Amount: new(big.Int), Expires: -1}}, 400)), false)
}

func second[A, B any](_ A, b B) B { return b }

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
