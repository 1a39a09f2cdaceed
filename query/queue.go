package query

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// The withdrawal queue is read in buckets of 256 requests of a vault, whose
// sums say which of them are in the queue:
//
//	buckets ─▶ those that may have had their time ─▶ totals ─▶ buckets of the page ─▶ its requests
//
// so that a page costs the same however deep it is, and rows are read of few
// requests only.

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

// bucketRow is what the rows of one bucket sum up to.
type bucketRow struct {
	Vault    string   `ch:"vault"`
	Bucket   uint64   `ch:"bucket"`
	Queued   *big.Int `ch:"queued"`   // set of those in the queue
	Expiring *big.Int `ch:"expiring"` // set of those not funded whose time ends
	Unfunded int64    `ch:"unfunded"`
	Amount   *big.Int `ch:"amount"` // that the unfunded ones wait for
	Low      uint64   `ch:"low"`    // first and last block of a request, 0 for none
	High     uint64   `ch:"high"`
	Last     uint64   `ch:"last"` // seq
}

type bucketKey struct {
	vault  string
	bucket uint64
}

func (k bucketKey) compare(other bucketKey) int {
	return cmp.Or(cmp.Compare(k.vault, other.vault), cmp.Compare(k.bucket, other.bucket))
}

func (k bucketKey) literal() string { return fmt.Sprintf("(%s,%d)", hexLiteral(k.vault), k.bucket) }

func (r *bucketRow) key() bucketKey { return bucketKey{r.Vault, r.Bucket} }

// add adds up two rows of a bucket, or takes the second from the first. What
// was taken off may leave the blocks wider than they have to be.
func (r *bucketRow) add(more bucketRow, sign int64) {
	signed := func(v *big.Int) *big.Int { return new(big.Int).Mul(v, big.NewInt(sign)) }
	r.Queued = new(big.Int).Add(r.Queued, signed(more.Queued))
	r.Expiring = new(big.Int).Add(r.Expiring, signed(more.Expiring))
	r.Amount = new(big.Int).Add(r.Amount, signed(more.Amount))
	r.Unfunded += sign * more.Unfunded
	if more.Low > 0 && (r.Low == 0 || more.Low < r.Low) {
		r.Low = more.Low
	}
	r.High = max(r.High, more.High)
}

var setMask = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), bucketSize), big.NewInt(1))

// wrapped is a set of a bucket as the engine's sums wrap it.
func wrapped(set *big.Int) *big.Int { return new(big.Int).And(set, setMask) }

// keys are the requests of a set of this bucket.
func (r *bucketRow) keys(set *big.Int) []requestKey {
	set = wrapped(set)
	var keys []requestKey
	for i := range set.BitLen() {
		if set.Bit(i) == 1 {
			keys = append(keys, requestKey{r.Vault, r.Bucket*bucketSize + uint64(i)})
		}
	}
	return keys
}

// queueBucket is the requests of a bucket that are in the queue.
type queueBucket struct {
	keys      []requestKey
	low, high uint64 // between which blocks they were made
}

// vaultQueue is how much of a vault is in the withdrawal queue.
type vaultQueue struct {
	pending  int64    // requests that wait for their money or their owner
	unfunded int64    // those of them that wait for their money,
	amount   *big.Int // and how much that is
}

// queue is the withdrawal queue at one pin.
type queue struct {
	vaults  map[common.Address]vaultQueue
	buckets []queueBucket

	// What it was made of, for the queue of a later block.
	now  uint64 // of the pin, Unix seconds
	rows map[bucketKey]bucketRow
	due  map[bucketKey]dueBucket
}

// dueBucket is the requests of a bucket that wait and have had their time.
type dueBucket struct {
	amounts map[uint64]*big.Int // what they wait for, by the request
	next    uint64              // when the next one will have had its time, Unix seconds; 0 for never
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
	q := &queue{vaults: make(map[common.Address]vaultQueue), due: make(map[bucketKey]dueBucket)}
	moved, err := x.moveQueue(p, q, was)
	if err != nil {
		return nil, err
	}
	if !moved {
		err := together(
			func() (err error) { q.rows, err = x.queueBuckets(p, vault); return },
			func() (err error) { q.now, err = x.now(p); return },
		)
		if err != nil {
			return nil, err
		}
	}
	if err := x.readDue(p, q); err != nil {
		return nil, err
	}
	q.addUp()
	return q, nil
}

// moveQueue makes a queue of what it was at an earlier head and the rows since.
// It does not (false) where that is not known, where the chain's time went back,
// and where a bucket comes into the queue that was not there: of its older
// requests some may be in the queue again.
func (x *exchange) moveQueue(p *pin, q *queue, was *earlier[*queue]) (moved bool, err error) {
	if was == nil {
		return false, nil
	}
	if q.now, err = x.now(p); err != nil || q.now < was.value.now {
		return false, err
	}
	since, err := pinned[bucketRow](x, p, sqlQueueNew, vaultParam(nil), named("since", was.seq))
	if err != nil {
		return false, err
	}
	rows, due := maps.Clone(was.value.rows), maps.Clone(was.value.due)
	maps.DeleteFunc(due, func(_ bucketKey, d dueBucket) bool { return d.next != 0 && d.next <= q.now })
	for _, r := range since {
		sum, ok := rows[r.key()]
		if !ok && wrapped(r.Queued).Sign() != 0 {
			return false, nil
		}
		if ok {
			sum.add(r, 1)
			rows[r.key()] = sum
			delete(due, r.key())
		}
	}
	q.rows, q.due = rows, due
	return true, nil
}

// addUp fills in how much of each vault is in the queue, and its buckets.
func (q *queue) addUp() {
	for _, key := range slices.SortedFunc(maps.Keys(q.rows), bucketKey.compare) {
		b, due := q.rows[key], q.due[key].amounts
		address := toAddress(b.Vault)
		v := q.vaults[address]
		if v.amount == nil {
			v.amount = new(big.Int)
		}
		v.unfunded += b.Unfunded
		v.amount.Add(v.amount, b.Amount)
		live := slices.DeleteFunc(b.keys(b.Queued), func(k requestKey) bool {
			amount, over := due[k.Index]
			if over {
				v.unfunded--
				v.amount.Sub(v.amount, amount)
			}
			return over
		})
		v.pending += int64(len(live))
		q.vaults[address] = v
		if len(live) > 0 {
			q.buckets = append(q.buckets, queueBucket{live, b.Low, b.High})
		}
	}
}

// queueBuckets reads the buckets: of a past block out of the engine's totals up
// to a border near it, and the rows between.
func (x *exchange) queueBuckets(p *pin, vault *common.Address) (map[bucketKey]bucketRow, error) {
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
func (x *exchange) foldBuckets(p *pin, vault *common.Address, near border, totals, between []bucketRow) (map[bucketKey]bucketRow, error) {
	last := uint64(0)
	folded := make(map[bucketKey]bucketRow, len(totals))
	fold := func(rows []bucketRow, sign int64) {
		for _, r := range rows {
			sum, ok := folded[r.key()]
			if !ok {
				sum = bucketRow{Vault: r.Vault, Bucket: r.Bucket, Queued: new(big.Int), Expiring: new(big.Int), Amount: new(big.Int)}
			}
			sum.add(r, sign)
			folded[r.key()] = sum
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
	return folded, nil
}

// readDue reads which requests wait and have had their time, of the buckets of
// which that is not known. The rows of a bucket are hardly more than the engine
// reads for a single request.
func (x *exchange) readDue(p *pin, q *queue) error {
	var keys []bucketKey
	for key, b := range q.rows {
		if _, known := q.due[key]; !known && wrapped(b.Expiring).Sign() != 0 {
			keys = append(keys, key)
		}
	}
	type row struct {
		Vault   string     `ch:"vault"`
		Bucket  uint64     `ch:"bucket"`
		Indexes []uint64   `ch:"indexes"`
		Amounts []*big.Int `ch:"amounts"`
		Next    uint64     `ch:"next"`
	}
	slices.SortFunc(keys, bucketKey.compare)
	for some := range slices.Chunk(keys, keysAtOnce) {
		rows, err := pinned[row](x, p, question("queue_due", keyList(some)), named("now", q.now))
		if err != nil {
			return err
		}
		for _, r := range rows {
			due := dueBucket{make(map[uint64]*big.Int, len(r.Indexes)), r.Next}
			for i, index := range r.Indexes {
				due.amounts[index] = r.Amounts[i]
			}
			q.due[bucketKey{r.Vault, r.Bucket}] = due
		}
	}
	return nil
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
