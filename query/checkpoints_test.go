package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// TestPast: the states of past blocks, which begin from checkpoints that are a few
// blocks apart: through new blocks, blocks taken back and a vault that is filled
// in late, seen from the newest seq and from those before.
func TestPast(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.scale = scale{span: 1, apart: 12, ahead: 1000}
			s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(seed, 17))}
			w.ledger = s.ledger
			s.backfill(vaultA, "Alpha", 3, 40)
			var seqs []uint64
			var filled filled
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
				if seed%2 == 0 {
					w.fillPast(t, &filled)
				}
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
			if of["standing"] < 8 || of["firstSeen"] < 3 || of["totalDeposited"] < 3 || of["totalWithdrawn"] < 3 {
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

// TestOldRequestComesBack: one that had its time, and was funded after it, takes its
// old place in the queue again: as of a block after a checkpoint that does not know
// of it any more, and at the newest block, which was told from block to block.
func TestOldRequestComesBack(t *testing.T) {
	w := newWorld(t)
	w.scale = scale{span: 8, apart: 1, ahead: 1000}
	request := func(vault common.Address, id, block, expires uint64) fact {
		return fact{kind: aRequest, vault: vault, user: alice, other: alice, id: id, assets: 5, shares: 5, expires: expires, block: block, tx: tx(byte(block))}
	}
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1), vaultMeta(vaultB, "Beta", 1), request(vaultB, 0, 1, 0), request(vaultA, 0, 2, uint64(blockTime(3))), fact{kind: aBlock, block: 3})
	for _, unit := range [][]fact{
		{{kind: anExpiry, vault: vaultA, id: 0, block: 4, tx: tx(4)}, {kind: aBlock, block: 4}},
		{request(vaultB, 1, 10, 0), {kind: aBlock, block: 10}},
		{request(vaultB, 2, 17, 0), {kind: aBlock, block: 17}},
		{{kind: aFunding, vault: vaultA, id: 0, assets: 5, block: 18, tx: tx(18)}, {kind: aBlock, block: 18}},
	} {
		w.publish()
		w.get("/api/v1/queues/withdrawals").body(t)
		w.ledger.append(unit...)
	}
	w.publish()
	for _, block := range []uint64{18, 19} {
		if block == 19 {
			w.ledger.append(fact{kind: aBlock, block: block})
			w.publish()
		}
		want := w.ledger.at(w.ledger.seq(), block).withStatus("queued", nil, false)
		if len(want) != 4 || want[1].(object)["vaultAddress"] != vaultA.Hex() {
			t.Fatalf("the queue is %v: the test proves nothing", want)
		}
		pinned := ""
		if block < 19 {
			pinned = fmt.Sprintf("&asOfBlock=%d", block)
		}
		for i := range want {
			body := w.get(fmt.Sprintf("/api/v1/queues/withdrawals?pageSize=1&page=%d%s", i+1, pinned)).body(t)
			same(t, fmt.Sprintf("block %d, place %d", block, i), body["data"], want[i:i+1])
		}
	}
}

// TestCheckpointIsReadOnce: by the first that begins from it, from another one near
// it where there is one, and again when a log came to the blocks before.
func TestCheckpointIsReadOnce(t *testing.T) {
	whole, steps := 0, []border(nil)
	h := history[uint64]{name: "blocks",
		read: func(_ *exchange, p *pin) (uint64, error) { whole++; return p.block + 1, nil },
		move: func(_ *exchange, p *pin, was uint64, between border) (uint64, bool, error) {
			steps = append(steps, between)
			if was != between.edge*10 {
				t.Errorf("the checkpoint at %d says %d", between.edge, was)
			}
			return p.block + 1, true, nil
		},
		pack:   func(n uint64) packed { return packed{}.add(n) },
		unpack: func(p packed) uint64 { return p.take() },
	}
	known := (&spans{scale: scale{span: 10, apart: 5, ahead: 1000}}).with([]spanRow{{0, 1, 2, 2}, {1, 3, 9, 7}, {3, 10, 19, 10}, {5, 20, 21, 2}, {9, 22, 29, 8}})
	same(t, "checkpoints after so many spans", known.marks, []int{0, 2, 3, 5})
	same(t, "and with more logs", known.with([]spanRow{{5, 30, 32, 3}}).marks, []int{0, 2, 3, 4, 5})
	s := &snapshot{seq: 100, block: 99, head: newHead(nil, nil, known.scale)}
	s.head.spans.set(known)
	x := &exchange{ctx: t.Context(), snapshot: s}
	ask := func(block, seq uint64, reads int, want ...border) {
		t.Helper()
		whole, steps = 0, nil
		got, ok, err := h.at(x, &pin{seq: seq, block: block, asOf: true})
		if !ok || err != nil || known.before(got/10) != known.before(block/10+1) && got != block+1 {
			t.Errorf("as of block %d: %d %v %v", block, got, ok, err)
		}
		if whole != reads || !slices.Equal(steps, want) {
			t.Errorf("as of block %d: %d read whole and steps %v, want %d and %v", block, whole, steps, reads, want)
		}
	}
	ask(53, 100, 1, border{4, 1, 40, 53})
	ask(57, 100, 0, border{4, 1, 40, 57})
	ask(45, 100, 0) // there are no logs between
	ask(35, 100, 0, border{4, -1, 36, 39})
	ask(39, 100, 0) // the end of the span itself
	ask(16, 100, 0, border{4, -1, 20, 39}, border{2, -1, 17, 19})
	ask(5, 100, 0, border{0, 1, 0, 5})    // before all blocks there is nothing
	ask(98, 100, 0, border{4, 1, 40, 98}) // the chain has not reached the nearer end
	ask(53, 15, 0, border{2, 1, 20, 53})  // the pin does not know of the last log before the nearer end
	s.block = 999
	ask(98, 100, 0, border{4, 1, 40, 99}, border{10, -1, 99, 99})
	if _, ok, err := h.at(x, &pin{seq: 5, block: 500, asOf: true}); ok || err != nil {
		t.Errorf("a pin that knows of no checkpoint near it: %v %v", ok, err)
	}

	s.head.spans.set(known.with([]spanRow{{3, 40, 40, 1}}))
	ask(53, 100, 0, border{2, 1, 20, 39}, border{4, 1, 40, 53})
	h.ordered = true // a log of a block before 40 came after one of a later block
	ask(53, 100, 0, border{2, 1, 20, 53})
	h.forward = true
	ask(16, 100, 0, border{0, 1, 0, 16})
	ask(19, 100, 0)

	h.name, h.read = "nothing", func(*exchange, *pin) (uint64, error) { return 0, errors.New("the engine is gone") }
	if _, _, err := h.at(x, &pin{seq: 100, block: 35, asOf: true}); err == nil || err.Error() != "the engine is gone" {
		t.Errorf("the reader's error: %v", err)
	}
	h.read = func(*exchange, *pin) (uint64, error) { return 20, nil }
	ask(35, 100, 0, border{2, 1, 20, 35}) // what failed is left to the next
}

// TestSpansCountOnce: logs that the tables had before the snapshot are in the spans
// once, whenever these are read.
func TestSpansCountOnce(t *testing.T) {
	w := newWorld(t)
	w.scale = scale{span: 8, apart: 4, ahead: 1000}
	s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(2, 17))}
	w.ledger = s.ledger
	s.backfill(vaultA, "Alpha", 3, 40)
	w.publish()
	read := func(s *snapshot) *spans {
		all, err := (&exchange{ctx: t.Context(), snapshot: s}).spans()
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for range 3 {
		s.grow()
		w.newsAtMost = 0
		w.publish() // a snapshot whose spans nobody has read, and that are not in the news
		w.newsAtMost = newsAtMost
		for range 5 {
			s.grow()
		}
		w.ledger.insert(t, w.writer, w.database())
		early := read(w.snapshot.Load())
		w.look()
		anew := *w.snapshot.Load()
		if anew.news == nil || early.last[len(early.list)] <= anew.news.since {
			t.Fatal("the spans had nothing later than the snapshot: the test proves nothing")
		}
		anew.head = newHead(nil, nil, w.scale)
		same(t, "spans", read(w.snapshot.Load()).list, read(&anew).list)
	}
}

// fillPast reads the checkpoints of the snapshot that were not read yet. All are
// there then but those that had to go.
func (w *world) fillPast(t *testing.T, f *filled, gone ...checkpointKey) {
	t.Helper()
	s := w.snapshot.Load()
	w.growPast(t, f)
	all, keys := s.head.spans.known(), []checkpointKey(nil)
	for _, mark := range all.marks[1:] {
		if all.last[mark] > f.last {
			continue // it came too late
		}
		keys = append(keys, pastStanding.key(all, mark))
		for _, list := range pastPlaces {
			if all.last[mark] < all.next[mark] {
				keys = append(keys, list.key(all, mark))
			}
		}
	}
	if len(keys) == 0 {
		t.Error("there are no checkpoints: the test proves nothing")
	}
	for _, key := range keys {
		if there := s.head.checkpoints.known(key) != nil; there == slices.Contains(gone, key) {
			t.Errorf("checkpoint of %s at the end of span %d: %v", key.of, key.edge, there)
		}
	}
}

func (w *world) growPast(t *testing.T, f *filled) {
	t.Helper()
	s := w.snapshot.Load()
	rounds := 0
	for f.mayGrow(s) {
		if err := f.grow(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if rounds++; rounds > 1000 {
			t.Fatal("there is always more to read")
		}
	}
}

// TestFill: what fails is read in the next round, what had to go is not, a new
// generation begins anew, and of many the newest are read.
func TestFill(t *testing.T) {
	w := newWorld(t)
	w.scale = scale{span: 1, apart: 4, ahead: 1000}
	s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(1, 17))}
	w.ledger = s.ledger
	s.backfill(vaultA, "Alpha", 3, 40)
	w.publish()
	var f filled
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.grow(ended, w.snapshot.Load()); err == nil || !f.mayGrow(w.snapshot.Load()) {
		t.Fatalf("without an engine: %v", err)
	}
	w.fillPast(t, &f)
	kept, last := w.snapshot.Load().head.checkpoints, f.last
	gone := kept.kept.Keys()[0]
	it, _ := kept.kept.Peek(gone)
	kept.kept.Remove(gone)
	kept.size -= it.size
	for range 12 {
		s.grow()
	}
	w.publish()
	w.fillPast(t, &f, gone)
	if f.last <= last {
		t.Errorf("filled up to %d, and before the new blocks up to %d", f.last, last)
	}

	many := kept.kept.Len()
	anew := func() *checkpoints {
		other := *w.snapshot.Load()
		other.head = newHead(nil, nil, w.scale)
		w.snapshot.Store(&other)
		return other.head.checkpoints
	}
	kept = anew()
	w.fillPast(t, &f)
	same(t, "checkpoints of the next generation, with the one that had to go", kept.kept.Len(), many+1)

	kept = anew()
	engine := &counter{Conn: w.conn}
	counted := *w.snapshot.Load()
	counted.conn = engine
	w.snapshot.Store(&counted)
	ended, cancel = context.WithCancel(t.Context())
	done := make(chan error)
	says := func(value string) bool {
		return strings.Contains(w.get("/metrics").Body.String(), "\nnavlog_query_read_ahead "+value+"\n")
	}
	if !says("0") {
		t.Error("the metrics say that the past is read before it is")
	}
	go func() { done <- w.Query.fill(ended) }()
	eventually(t, "the loop read them all", func() bool {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		return kept.kept.Len() == many+1
	})
	eventually(t, "the metrics say so", func() bool { return says("1") })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if asked, ahead := engine.asked.Load(), engine.ahead.Load(); asked == 0 || asked != ahead {
		t.Errorf("%d of %d questions of the loop come before inserts", asked-ahead, asked)
	}

	w.scale.ahead = 5
	kept = anew()
	w.growPast(t, &f)
	var got, want []uint64
	for _, key := range kept.kept.Keys() {
		if key.of == pastStanding.name {
			got = append(got, key.edge)
		}
	}
	all := w.snapshot.Load().head.spans.known()
	for _, mark := range all.marks[len(all.marks)-5:] {
		if all.last[mark] <= f.last {
			want = append(want, all.edge(mark))
		}
	}
	if len(want) < 3 || !slices.Equal(got, want) {
		t.Errorf("read ahead were those at %v, and the newest are at %v", got, want)
	}
}

// TestCheckpointsAreBounded: the ones that were not asked for the longest go, also
// while they are read.
func TestCheckpointsAreBounded(t *testing.T) {
	c := newCheckpoints()
	key := func(edge uint64) checkpointKey { return checkpointKey{of: "queue", edge: edge, last: 7} }
	add := func(edge uint64, size int) *checkpoint {
		it := c.of(key(edge))
		it.value.set(packed{}.add(edge))
		c.settle(key(edge), it, size)
		return it
	}
	const quarter = checkpointRoom/4 - checkpointOwn
	for edge := range uint64(4) {
		add(edge, quarter)
	}
	c.of(key(0))
	reading := c.of(key(9))
	add(4, quarter)
	for edge, want := range map[uint64]packed{0: {0}, 1: nil, 2: {2}, 3: {3}, 4: {4}, 9: nil} {
		same(t, fmt.Sprintf("checkpoint %d", edge), c.known(key(edge)), want)
	}
	same(t, "one that is used", []packed{c.use(key(2)), c.use(key(8))}, []packed{{2}, nil})
	add(7, quarter)
	same(t, "those after it was used", []packed{c.known(key(2)), c.known(key(3))}, []packed{{2}, nil})
	add(5, checkpointRoom-checkpointOwn)
	same(t, "all others", c.kept.Len(), 1)
	c.settle(key(9), reading, 5)
	same(t, "one that had to go while it was read", c.size, checkpointRoom)
	add(6, checkpointRoom)
	same(t, "one for which there is no room", []int{c.kept.Len(), c.size}, []int{0, 0})
}

// TestPacked: what is unpacked is what was packed, in few bytes.
func TestPacked(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 7))
	wide := func() (v uint256.Int) { // of any length, none and all bytes included
		v[0], v[1], v[2], v[3] = random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()
		v.Rsh(&v, random.UintN(257))
		return v
	}
	for range 300 {
		all, places := buckets{}, []rankedBucket{}
		for range random.IntN(20) {
			key := bucketKey{[]string{string(vaultA[:]), string(vaultB[:])}[random.IntN(2)], random.Uint64() >> random.UintN(64) / bucketSize}
			it := bucket{queued: wide(), unfunded: random.Int64N(256), amount: wide()}
			it.made = make([]uint64, size(&it.queued))
			for i := range it.made {
				it.made[i] = random.Uint64() >> random.UintN(64)
			}
			for range random.IntN(3) {
				it.waits = append(it.waits, wait{key.number*bucketSize + random.Uint64N(bucketSize), random.Uint64() >> random.UintN(64), wide()})
			}
			all[key] = it
		}
		then := standing{all, map[common.Address]int64{vaultA: random.Int64() >> random.UintN(63), vaultB: 1, vaultC: 0}}
		same(t, "standing", fmt.Sprint(unpackStanding(packStanding(then))), fmt.Sprint(then))
		bucket := uint32(0)
		for bucket < math.MaxUint32>>1 && random.IntN(20) > 0 {
			bucket += random.Uint32() >> (1 + random.UintN(31))
			places = append(places, rankedBucket{Bucket: bucket, Users: random.Int32()})
		}
		same(t, "places", unpackPlaces(packPlaces(places)), places)
	}
	if state := packStanding(standing{}); state == nil || fmt.Sprint(unpackStanding(state)) != fmt.Sprint(standing{}) {
		t.Errorf("no vaults are %v, which is no checkpoint", state)
	}
	if state := packPlaces(nil); state == nil || len(state) > 0 {
		t.Errorf("no places are %v, which is no checkpoint", state)
	}
	full := make([]rankedBucket, 10_000)
	for i := range full {
		full[i] = rankedBucket{Bucket: uint32(i * 40), Users: 100}
	}
	if n := len(packPlaces(full)); n > 2*len(full) {
		t.Errorf("%d buckets of a list take %d bytes", len(full), n)
	}
}

// TestBucketsWithMoves: moves lead from one state of the queue to the next, in
// whatever order they come and whether they are of one request or of some.
func TestBucketsWithMoves(t *testing.T) {
	type state struct {
		open, waits           bool
		amount, expires, made uint64
	}
	random := rand.New(rand.NewPCG(3, 7))
	var all buckets
	is, back := map[requestKey]state{}, map[requestKey]bool{}
	sign := func(was, is bool) int64 { return int64(bit(is)) - int64(bit(was)) }
	for block := uint64(1); block < 400; block++ {
		var moves []vaultMove
		var moved []requestKey
		for range random.IntN(40) {
			key := requestKey{[]string{string(vaultA[:]), string(vaultB[:])}[random.IntN(2)], random.Uint64N(3 * bucketSize)}
			if slices.Contains(moved, key) {
				continue
			}
			was, next := is[key], state{}
			switch {
			case !was.open && was.made == 0:
				next = state{true, true, random.Uint64N(1000), []uint64{0, block + random.Uint64N(99)}[random.IntN(2)], block}
			case !was.open && random.IntN(2) == 0: // funded after it had its time
				next, back[key] = state{open: true, made: was.made}, true
			case was.waits && random.IntN(2) == 0: // funded
				next = state{open: true, made: was.made}
			default: // gone, though somebody may fund it yet
				next = state{made: was.made}
			}
			move := vaultMove{vault: key.Vault, bucket: key.Index / bucketSize, unfunded: sign(was.waits, next.waits)}
			move.queued = signed(new(big.Int).Lsh(big.NewInt(sign(was.open, next.open)), uint(key.Index%bucketSize)))
			move.amount = signed(new(big.Int).Sub(new(big.Int).SetUint64(next.amount), new(big.Int).SetUint64(was.amount)))
			if was.made == 0 {
				move.made = []madeAt{{key.Index, block}}
			}
			for sign, s := range map[int]state{-1: was, 1: next} {
				if s.waits && s.expires != 0 && was != next {
					move.waits = append(move.waits, waitMove{wait{key.Index, s.expires, *uint256.NewInt(s.amount)}, sign})
				}
			}
			is[key], moved = next, append(moved, key)
			of := func(m vaultMove) bool { return m.vault == move.vault && m.bucket == move.bucket }
			if i := slices.IndexFunc(moves, of); i >= 0 && random.IntN(2) == 0 {
				moves[i] = merged(moves[i], move)
			} else {
				moves = append(moves, move)
			}
		}
		random.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
		before := fmt.Sprint(all)
		next, ok := all.with(moves)
		if !ok {
			t.Fatalf("block %d: the moves lead nowhere", block)
		}
		if fmt.Sprint(all) != before {
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
		inBuckets, unknown := q.buckets(nil)
		var line []inLine
		for _, b := range inBuckets {
			line = append(line, b.requests()...)
		}
		for _, key := range unknown {
			line = append(line, inLine{key, 0})
		}
		for _, r := range line {
			if made, ok := keys[r.requestKey]; !ok || r.made != made && !(r.made == 0 && back[r.requestKey]) {
				t.Fatalf("block %d: %+v should be of block %d, known %v", block, r, made, ok)
			}
			delete(keys, r.requestKey)
		}
		if len(keys) > 0 {
			t.Fatalf("block %d: not in the queue are %v", block, keys)
		}
	}
	key, five, six := bucketKey{string(vaultA[:]), 0}, *uint256.NewInt(5), *uint256.NewInt(6)
	waits := vaultMove{vault: key.vault, queued: *uint256.NewInt(2), made: []madeAt{{1, 400}}, waits: []waitMove{{wait{1, 77, five}, 1}}}
	waiting, ok := buckets(nil).with([]vaultMove{waits})
	same(t, "one waits", fmt.Sprint(ok, waiting[key].waits), fmt.Sprint(true, []wait{{1, 77, five}}))
	other := vaultMove{vault: key.vault, amount: *uint256.NewInt(1), waits: []waitMove{{wait{1, 78, six}, 1}, {wait{1, 77, five}, -1}}}
	after, ok := waiting.with([]vaultMove{other})
	same(t, "it waits for something else", fmt.Sprint(ok, after[key].waits), fmt.Sprint(true, []wait{{1, 78, six}}))
	once, _ := after.with([]vaultMove{{vault: key.vault, made: []madeAt{{1, 401}}}})
	twice, _ := after.with([]vaultMove{{vault: key.vault, made: []madeAt{{1, 401}, {1, 402}}}})
	same(t, "the blocks of one that was made again, and of one made twice", [][]uint64{once[key].made, twice[key].made}, [][]uint64{{401}, {0}})
	if _, ok := after.with([]vaultMove{other}); ok {
		t.Error("a wait ended that was not there, and nobody says so")
	}
}

// merged are two moves of one bucket as one.
func merged(a, b vaultMove) vaultMove {
	a.queued.Add(&a.queued, &b.queued)
	a.amount.Add(&a.amount, &b.amount)
	a.unfunded += b.unfunded
	a.made, a.waits = append(a.made, b.made...), append(a.waits, b.waits...)
	return a
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
