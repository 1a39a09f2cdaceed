package query

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
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
	queued    uint256.Int // set of those in the queue
	unfunded  int64       // how many of them wait for their money,
	amount    uint256.Int // and for how much
	low, high uint64      // between which blocks those in the queue were made
	waits     []wait      // those that wait for their money and whose time ends
}

// wait is a request that waits for its money until its time ends.
type wait struct {
	index   uint64
	expires uint64 // Unix seconds
	amount  uint256.Int
}

// keys are the requests of a set of a bucket.
func (k bucketKey) keys(set uint256.Int) []requestKey {
	var keys []requestKey
	for i := range uint64(bucketSize) {
		if hasBit(&set, i) {
			keys = append(keys, requestKey{k.vault, k.number*bucketSize + i})
		}
	}
	return keys
}

func hasBit(set *uint256.Int, i uint64) bool { return set[i/64]>>(i%64)&1 == 1 }

func toggleBit(set *uint256.Int, i uint64) { set[i/64] ^= 1 << (i % 64) }

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
	Low      uint64   `ch:"low"` // first and last block of a request, 0 for none
	High     uint64   `ch:"high"`
	Last     uint64   `ch:"last"` // seq
}

// folded is the sum of such rows.
type folded struct {
	bucket
	expiring uint256.Int // set of those of whom waits has to know
}

// add adds a row, or takes it off. What was taken off may leave the blocks wider
// than they have to be.
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
	f.made(r.Low, r.High)
}

// made widens the blocks in which the requests were made.
func (b *bucket) made(low, high uint64) {
	if low > 0 && (b.low == 0 || low < b.low) {
		b.low = low
	}
	b.high = max(b.high, high)
}

// with is the buckets after some moves of the blocks up to one. It does not know
// (false) where a request no longer waits that did not wait before.
func (b buckets) with(moves []vaultMove, block uint64) (buckets, bool) {
	out := maps.Clone(b)
	if out == nil {
		out = make(buckets)
	}
	for _, m := range moves {
		key := bucketKey{m.Vault, m.Bucket}
		it := out[key]
		queued, amount := signed(m.Queued), signed(m.Amount)
		it.queued.Add(&it.queued, &queued)
		it.amount.Add(&it.amount, &amount)
		it.unfunded += m.Unfunded
		it.made(m.Low, m.High)
		if m.Back > 0 { // it was in the queue before, and nobody says since when
			it.made(1, block)
		}
		var ok bool
		if it.waits, ok = m.waiting(it.waits); !ok {
			return nil, false
		}
		out[key] = it
	}
	for _, m := range moves {
		key := bucketKey{m.Vault, m.Bucket}
		if it := out[key]; it.queued.IsZero() {
			delete(out, key)
		}
	}
	return out, true
}

// queueBucket is the requests of a bucket that are in the queue.
type queueBucket struct {
	keys      []requestKey
	low, high uint64 // between which blocks they were made
}

// vaultQueue is how much of a vault is in the withdrawal queue.
type vaultQueue struct {
	pending  int64       // requests that wait for their money or their owner
	unfunded int64       // those of them that wait for their money,
	amount   uint256.Int // and how much that is
}

// queue is the withdrawal queue at one pin.
type queue struct {
	vaults  map[common.Address]vaultQueue
	buckets []queueBucket
	all     buckets // that it was made of, with requests that have had their time
}

// queue is the withdrawal queue of all vaults, or of one.
func (x *exchange) queue(p *pin, vault *common.Address) (*queue, error) {
	all, err := shared(x, p, func(h *head) *lazy[*queue] { return h.queue }, func(was *earlier[*queue]) (*queue, error) { return x.readQueue(p, p.asked(vault), was) })
	if err != nil || vault == nil {
		return all, err
	}
	one := &queue{vaults: map[common.Address]vaultQueue{*vault: all.vaults[*vault]}}
	for _, b := range all.buckets {
		if toAddress(b.keys[0].Vault) == *vault {
			one.buckets = append(one.buckets, b)
		}
	}
	return one, nil
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
	q := &queue{vaults: make(map[common.Address]vaultQueue), all: b}
	for _, key := range slices.SortedFunc(maps.Keys(b), bucketKey.compare) {
		it := b[key]
		for _, w := range it.waits {
			if w.expires <= now {
				toggleBit(&it.queued, w.index%bucketSize)
				it.unfunded--
				it.amount.Sub(&it.amount, &w.amount)
			}
		}
		live := key.keys(it.queued)
		address := toAddress(key.vault)
		v := q.vaults[address]
		v.pending += int64(len(live))
		v.unfunded += it.unfunded
		v.amount.Add(&v.amount, &it.amount)
		q.vaults[address] = v
		if len(live) > 0 {
			q.buckets = append(q.buckets, queueBucket{live, it.low, it.high})
		}
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
		if all, ok := was.value.all.with(moves, p.block); ok {
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

// readWaits reads which requests wait for their money until their time ends. The
// rows of a bucket are hardly more than the engine reads for a single request.
func (x *exchange) readWaits(p *pin, sums map[bucketKey]*folded) (buckets, error) {
	var keys []bucketKey
	for key, f := range sums {
		if !f.expiring.IsZero() {
			keys = append(keys, key)
		}
	}
	type row struct {
		Vault   string     `ch:"vault"`
		Bucket  uint64     `ch:"bucket"`
		Indexes []uint64   `ch:"indexes"`
		Amounts []*big.Int `ch:"amounts"`
		Ends    []uint64   `ch:"ends"`
	}
	slices.SortFunc(keys, bucketKey.compare)
	for some := range slices.Chunk(keys, keysAtOnce) {
		rows, err := pinned[row](x, p, question("queue_waits", keyList(some)))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			f := sums[bucketKey{r.Vault, r.Bucket}]
			for i, index := range r.Indexes {
				f.waits = append(f.waits, wait{index, r.Ends[i], signed(r.Amounts[i])})
			}
		}
	}
	out := make(buckets, len(sums))
	for key, f := range sums {
		out[key] = f.bucket
	}
	return out, nil
}

// around gives the requests that may be on a page, which is sorted by where the
// requests were made, and how many of the queue are before all of them.
func (q *queue) around(page page) (keys []requestKey, before uint64) {
	byLow, byHigh := slices.Clone(q.buckets), slices.Clone(q.buckets)
	slices.SortFunc(byLow, func(a, b queueBucket) int { return cmp.Compare(a.low, b.low) })
	slices.SortFunc(byHigh, func(a, b queueBucket) int { return cmp.Compare(a.high, b.high) })
	end := page.offset() + uint64(page.size)
	var notAfter, wholeBefore uint64 // requests of the buckets that begin up to b.high, and of those that end before b.low
	i := 0
	dropped := make(map[requestKey]bool, len(byHigh)) // by the first request of a bucket
	for _, b := range byHigh {
		for ; i < len(byLow) && byLow[i].low <= b.high; i++ {
			notAfter += uint64(len(byLow[i].keys))
		}
		if notAfter <= page.offset() {
			dropped[b.keys[0]] = true
			before += uint64(len(b.keys))
		}
	}
	i = 0
	for _, b := range byLow {
		for ; i < len(byHigh) && byHigh[i].high < b.low; i++ {
			wholeBefore += uint64(len(byHigh[i].keys))
		}
		if wholeBefore < end && !dropped[b.keys[0]] {
			keys = append(keys, b.keys...)
		}
	}
	return keys, before
}

// queuePage reads one page of the queue, oldest first.
func (x *exchange) queuePage(p *pin, q *queue, page page) ([]requestRow, error) {
	keys, before := q.around(page)
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
