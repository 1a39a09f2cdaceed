package query

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/big"
	mathbits "math/bits"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// The withdrawal queue is read in buckets of 256 requests of a vault, whose
// sums say which of them are in the queue:
//
//	buckets ─▶ those that wait and whose time ends ─▶ totals ─▶ buckets of the page ─▶ its requests
//
// so that a page costs the same however deep it is, and rows are read of few
// requests only. What is known of the queue once is moved on by what logs did:
// from block to block at the head, and from a checkpoint in the past.

// bucketSize is how many requests share a row of the projection queue.
const bucketSize = 256

// queueSpan is how many blocks share a row of the projection queue.
const queueSpan = 32768

// keysAtOnce is how many requests or buckets are asked about at once: a
// question is 256 KiB long at most, and a key of 67 bytes.
const keysAtOnce = 2000

// requestKey names a withdrawal request.
type requestKey struct {
	Vault string `ch:"vault"`
	Index uint64 `ch:"request_index"`
}

func (k requestKey) literal() string { return fmt.Sprintf("(%s,%d)", hexLiteral(k.Vault), k.Index) }

type bucketKey struct {
	vault  string
	number uint64
}

func (k bucketKey) compare(other bucketKey) int {
	return cmp.Or(cmp.Compare(k.vault, other.vault), cmp.Compare(k.number, other.number))
}

func (k bucketKey) literal() string { return fmt.Sprintf("(%s,%d)", hexLiteral(k.vault), k.number) }

// buckets are those in which requests are in the queue. What one says is not to
// be changed.
type buckets map[bucketKey]bucket

// bucket is what is in the queue of 256 requests of a vault. Sets have the bit of
// a request's number.
type bucket struct {
	queued   uint256.Int // set of those in the queue
	made     []uint64    // in which blocks these were made, by their numbers; 0: not known
	unfunded int64       // how many of them wait for their money,
	amount   uint256.Int // and for how much
	waits    []wait      // those that wait for their money and whose time ends
}

// wait is a request that waits for its money until its time ends.
type wait struct {
	index   uint64
	expires uint64 // Unix seconds
	amount  uint256.Int
}

// members are the bits of a set, in ascending order.
func members(set *uint256.Int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for word, bits := range set {
			for ; bits != 0; bits &= bits - 1 {
				if !yield(uint64(64*word + mathbits.TrailingZeros64(bits))) {
					return
				}
			}
		}
	}
}

// size is how many members a set has.
func size(set *uint256.Int) (n int) {
	for _, bits := range set {
		n += mathbits.OnesCount64(bits)
	}
	return n
}

func hasBit(set *uint256.Int, i uint64) bool { return set[i/64]>>(i%64)&1 == 1 }

func setBit(set *uint256.Int, i uint64) { set[i/64] |= 1 << (i % 64) }

func clearBit(set *uint256.Int, i uint64) { set[i/64] &^= 1 << (i % 64) }

// signed is an amount of the engine, which wraps as its sums do.
func signed(v *big.Int) (out uint256.Int) {
	out.SetFromBig(v)
	return out
}

// bucketRow is what rows of one bucket sum up to.
type bucketRow struct {
	Vault    string   `ch:"vault"`
	Bucket   uint64   `ch:"bucket"`
	Queued   *big.Int `ch:"queued"`   // set of those in the queue
	Expiring *big.Int `ch:"expiring"` // set of those that wait and whose time ends
	Unfunded int64    `ch:"unfunded"`
	Amount   *big.Int `ch:"amount"`
	Last     uint64   `ch:"last"` // seq
}

// folded is the sum of such rows.
type folded struct {
	bucket
	expiring uint256.Int // set of those of whom waits has to know
}

// add adds a row, or takes it off.
func (f *folded) add(r bucketRow, sign int64) {
	set, expiring, amount := signed(r.Queued), signed(r.Expiring), signed(r.Amount)
	if sign > 0 {
		f.queued.Add(&f.queued, &set)
		f.expiring.Add(&f.expiring, &expiring)
		f.amount.Add(&f.amount, &amount)
	} else {
		f.queued.Sub(&f.queued, &set)
		f.expiring.Sub(&f.expiring, &expiring)
		f.amount.Sub(&f.amount, &amount)
	}
	f.unfunded += sign * r.Unfunded
}

// with is the buckets after some moves. It does not know (false) where a request no
// longer waits that did not wait before.
func (b buckets) with(moves []vaultMove) (buckets, bool) {
	out := maps.Clone(b)
	if out == nil {
		out = make(buckets)
	}
	made := make(map[bucketKey][]madeAt, len(moves))
	for i := range moves {
		m := &moves[i]
		key := bucketKey{m.vault, m.bucket}
		it := out[key]
		it.queued.Add(&it.queued, &m.queued)
		it.amount.Add(&it.amount, &m.amount)
		it.unfunded += m.unfunded
		var ok bool
		if it.waits, ok = m.waiting(it.waits); !ok {
			return nil, false
		}
		out[key], made[key] = it, append(made[key], m.made...)
	}
	for key, more := range made {
		it := out[key]
		if it.queued.IsZero() {
			delete(out, key)
			continue
		}
		it.made = b[key].remade(&it.queued, more)
		out[key] = it
	}
	return out, true
}

// remade is in which blocks the requests of a set were made, after some more were.
// It is not known of one that is in the queue again, or that was made in two blocks.
func (b bucket) remade(set *uint256.Int, more []madeAt) []uint64 {
	var blocks [bucketSize]uint64
	var told uint256.Int
	n := 0
	for i := range members(&b.queued) {
		blocks[i] = b.made[n]
		n++
	}
	for _, r := range more {
		i := r.index % bucketSize
		if hasBit(&told, i) && blocks[i] != r.block {
			r.block = 0
		}
		blocks[i] = r.block
		setBit(&told, i)
	}
	out := make([]uint64, 0, size(set))
	for i := range members(set) {
		out = append(out, blocks[i])
	}
	return out
}

// vaultQueue is how much of a vault is in the withdrawal queue.
type vaultQueue struct {
	pending  int64       // requests that wait for their money or their owner
	unfunded int64       // those of them that wait for their money,
	amount   uint256.Int // and how much that is
}

// queue is the withdrawal queue at one pin.
type queue struct {
	vaults map[common.Address]vaultQueue
	all    buckets // that it was made of, with requests that have had their time
	now    uint64
}

// queue is the withdrawal queue of all vaults, or of one at least.
func (x *exchange) queue(p *pin, vault *common.Address) (*queue, error) {
	return shared(x, p, func(h *head) *lazy[*queue] { return h.queue }, func(was *earlier[*queue]) (*queue, error) { return x.readQueue(p, p.asked(vault), was) })
}

func (x *exchange) readQueue(p *pin, vault *common.Address, was *earlier[*queue]) (*queue, error) {
	var all buckets
	var now uint64
	err := together(
		func() (err error) { all, err = x.buckets(p, vault, was); return },
		func() (err error) { now, err = x.now(p); return },
	)
	if err != nil {
		return nil, err
	}
	return all.queue(now), nil
}

// queue is the requests of the buckets that have not had their time.
func (b buckets) queue(now uint64) *queue {
	q := &queue{vaults: make(map[common.Address]vaultQueue), all: b, now: now}
	for key, it := range b {
		address := toAddress(key.vault)
		v := q.vaults[address]
		v.pending += int64(size(&it.queued))
		v.unfunded += it.unfunded
		v.amount.Add(&v.amount, &it.amount)
		for _, w := range it.waits {
			if w.expires <= now {
				v.pending--
				v.unfunded--
				v.amount.Sub(&v.amount, &w.amount)
			}
		}
		q.vaults[address] = v
	}
	return q
}

// buckets are those of the queue of a vault, at least, or of all: at the newest
// block what they were and what logs did since, at a past one what they were at a
// checkpoint and what logs did since, and where either does not tell, the sums of
// the rows.
func (x *exchange) buckets(p *pin, vault *common.Address, was *earlier[*queue]) (buckets, error) {
	if was != nil {
		moves, err := x.movesSince(p, was.seq)
		if err != nil {
			return nil, err
		}
		if all, ok := was.value.all.with(moves); ok {
			return all, nil
		}
	}
	then, err := x.standing(p)
	switch {
	case err != nil:
		return nil, err
	case then != nil:
		return then.queue, nil
	}
	return x.readBuckets(p, vault)
}

// readBuckets reads the buckets: of a past block out of the engine's totals up
// to a border near it, and the logs between.
func (x *exchange) readBuckets(p *pin, vault *common.Address) (buckets, error) {
	if !p.asOf {
		rows, err := pinned[bucketRow](x, p, sqlQueueNewest, vaultParam(vault))
		if err != nil {
			return nil, err
		}
		return x.foldBuckets(p, vault, all(p.block), rows, nil)
	}
	near := nearest(p.block, queueSpan)
	if near.edge*queueSpan > x.snapshot.block { // of blocks that are still written the totals hold later rows
		near = below(p.block, queueSpan)
	}
	var rows, between []bucketRow
	err := together(
		func() (err error) {
			rows, err = pinned[bucketRow](x, p, sqlQueueBefore, vaultParam(vault), named("edge", near.edge))
			return
		},
		func() (err error) {
			between, err = pinned[bucketRow](x, p, sqlQueueBetween, vaultParam(vault), named("from", near.from), named("to", near.to))
			return
		},
	)
	if err != nil {
		return nil, err
	}
	return x.foldBuckets(p, vault, near, rows, between)
}

// foldBuckets adds up what the totals up to a border and the rows between it and
// the pin say. The totals may hold rows later than the pin, which are taken off
// again: a table only grows, in the order of seq, so these are all rows after
// the pin up to the last one seen.
func (x *exchange) foldBuckets(p *pin, vault *common.Address, near border, totals, between []bucketRow) (buckets, error) {
	last := uint64(0)
	sums := make(map[bucketKey]*folded, len(totals))
	fold := func(rows []bucketRow, sign int64) {
		for _, r := range rows {
			key := bucketKey{r.Vault, r.Bucket}
			if sums[key] == nil {
				sums[key] = new(folded)
			}
			sums[key].add(r, sign)
			last = max(last, r.Last)
		}
	}
	fold(totals, 1)
	fold(between, near.way)
	if last > p.seq {
		later, err := pinned[bucketRow](x, p, sqlQueueLater, vaultParam(vault), named("edge", near.edge), named("last", last))
		if err != nil {
			return nil, err
		}
		fold(later, -1)
	}
	maps.DeleteFunc(sums, func(_ bucketKey, f *folded) bool { return f.queued.IsZero() })
	return x.readWaits(p, sums)
}

// readWaits reads which requests wait for their money until their time ends, and in
// which blocks those in the queue were made. The rows of a bucket are hardly more
// than the engine reads for a single request.
func (x *exchange) readWaits(p *pin, sums map[bucketKey]*folded) (buckets, error) {
	var expiring []bucketKey
	for key, f := range sums {
		if !f.expiring.IsZero() {
			expiring = append(expiring, key)
		}
	}
	type waitsRow struct {
		Vault   string     `ch:"vault"`
		Bucket  uint64     `ch:"bucket"`
		Indexes []uint64   `ch:"indexes"`
		Amounts []*big.Int `ch:"amounts"`
		Ends    []uint64   `ch:"ends"`
	}
	type madeRow struct {
		Vault   string   `ch:"vault"`
		Bucket  uint64   `ch:"bucket"`
		Indexes []uint64 `ch:"indexes"`
		Blocks  []uint64 `ch:"blocks"`
	}
	var waits []waitsRow
	var made []madeRow
	err := together(
		func() (err error) { waits, err = ofBuckets[waitsRow](x, p, "queue_waits", expiring); return },
		func() (err error) {
			made, err = ofBuckets[madeRow](x, p, "queue_made", slices.Collect(maps.Keys(sums)))
			return
		},
	)
	if err != nil {
		return nil, err
	}
	for _, r := range waits {
		f := sums[bucketKey{r.Vault, r.Bucket}]
		for i, index := range r.Indexes {
			f.waits = append(f.waits, wait{index, r.Ends[i], signed(r.Amounts[i])})
		}
	}
	blocks := make(map[bucketKey][]madeAt, len(made))
	for _, r := range made {
		of := make([]madeAt, len(r.Indexes))
		for i, index := range r.Indexes {
			of[i] = madeAt{index, r.Blocks[i]}
		}
		blocks[bucketKey{r.Vault, r.Bucket}] = of
	}
	out := make(buckets, len(sums))
	for key, f := range sums {
		f.made = bucket{}.remade(&f.queued, blocks[key])
		out[key] = f.bucket
	}
	return out, nil
}

// ofBuckets asks a question about some buckets.
func ofBuckets[T any](x *exchange, p *pin, file string, keys []bucketKey) (rows []T, err error) {
	slices.SortFunc(keys, bucketKey.compare)
	for some := range slices.Chunk(keys, keysAtOnce) {
		more, err := pinned[T](x, p, question(file, keyList(some)))
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// inLine is a request in the queue.
type inLine struct {
	requestKey
	made uint64 // in which block
}

// queueBucket is a bucket with the set of its requests that have not had their time and
// were made in a known block, how many they are, and between which blocks they were
// made.
type queueBucket struct {
	bucketKey
	bucket
	line      uint256.Int
	count     uint64
	low, high uint64
}

func (b *queueBucket) requests() []inLine {
	out, n := make([]inLine, 0, b.count), 0
	for i := range members(&b.queued) {
		if hasBit(&b.line, i) {
			out = append(out, inLine{requestKey{b.vault, b.number*bucketSize + i}, b.made[n]})
		}
		n++
	}
	return out
}

// buckets are those with requests of a vault, or of all, that have not had their time,
// and such requests of whom it is not known in which block they were made.
func (q *queue) buckets(vault *common.Address) (buckets []*queueBucket, unknown []requestKey) {
	for key, it := range q.all {
		if vault != nil && key.vault != string(vault[:]) {
			continue
		}
		b, n := &queueBucket{bucketKey: key, bucket: it, line: it.queued, low: math.MaxUint64}, 0
		for _, w := range it.waits {
			if w.expires <= q.now {
				clearBit(&b.line, w.index%bucketSize)
			}
		}
		for i := range members(&it.queued) {
			made := it.made[n]
			n++
			switch {
			case !hasBit(&b.line, i):
			case made == 0:
				clearBit(&b.line, i)
				unknown = append(unknown, requestKey{key.vault, key.number*bucketSize + i})
			default:
				b.count, b.low, b.high = b.count+1, min(b.low, made), max(b.high, made)
			}
		}
		if b.count > 0 {
			buckets = append(buckets, b)
		}
	}
	return buckets, unknown
}

// around gives the requests that may be on a page, which is sorted by where in the
// chain they were made, and how many are before all of them. Of those of one block it
// is not known in which order they are, and the unknown ones may be anywhere. Most
// buckets are before the page or after it as a whole.
func around(buckets []*queueBucket, unknown []requestKey, page page) (keys []requestKey, before uint64) {
	from := page.offset() - min(page.offset(), uint64(len(unknown)))
	to := page.offset() + uint64(page.size)
	some, before := between(buckets, from, to)
	from, to = from-before, min(to-before, uint64(len(some)))
	if from < uint64(len(some)) {
		first, _ := slices.BinarySearchFunc(some, some[from].made, inLine.compareTo)
		last, _ := slices.BinarySearchFunc(some, some[to-1].made+1, inLine.compareTo)
		before, some = before+uint64(first), some[first:last]
	} else {
		before, some = before+uint64(len(some)), nil
	}
	for _, r := range some {
		keys = append(keys, r.requestKey)
	}
	return append(keys, unknown...), before
}

func (r inLine) compareTo(block uint64) int { return cmp.Compare(r.made, block) }

// between are the requests of the buckets that may have the places from one to before
// another in the order of the blocks, in this order, and how many are before them.
func between(buckets []*queueBucket, from, to uint64) (some []inLine, before uint64) {
	byLow, byHigh := slices.Clone(buckets), slices.Clone(buckets)
	slices.SortFunc(byLow, func(a, b *queueBucket) int { return cmp.Compare(a.low, b.low) })
	slices.SortFunc(byHigh, func(a, b *queueBucket) int { return cmp.Compare(a.high, b.high) })
	var notAfter, wholeBefore uint64 // requests of the buckets that begin up to the end of one, and of those that end before it begins
	i := 0
	dropped := make(map[*queueBucket]bool, len(buckets))
	for _, b := range byHigh {
		for ; i < len(byLow) && byLow[i].low <= b.high; i++ {
			notAfter += byLow[i].count
		}
		if notAfter <= from {
			dropped[b] = true
			before += b.count
		}
	}
	i = 0
	for _, b := range byLow {
		for ; i < len(byHigh) && byHigh[i].high < b.low; i++ {
			wholeBefore += byHigh[i].count
		}
		if wholeBefore < to && !dropped[b] {
			some = append(some, b.requests()...)
		}
	}
	slices.SortFunc(some, func(a, b inLine) int { return cmp.Compare(a.made, b.made) })
	return some, before
}

// queuePage reads one page of the queue, oldest first, of a vault or of all.
func (x *exchange) queuePage(p *pin, q *queue, vault *common.Address, page page) ([]requestRow, error) {
	buckets, unknown := q.buckets(vault)
	keys, before := around(buckets, unknown, page)
	var rows []requestRow
	for some := range slices.Chunk(keys, keysAtOnce) {
		more, err := x.requests(p, some)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	slices.SortFunc(rows, func(a, b requestRow) int { return a.position(b) })
	from := min(page.offset()-before, uint64(len(rows)))
	return rows[from:min(from+uint64(page.size), uint64(len(rows)))], nil
}
