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

func (k bucketKey) literal() string { return fmt.Sprintf("(%s,%d)", hexLiteral(k.vault), k.bucket) }

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
}

// queue is the withdrawal queue of all vaults, or of one.
func (x *exchange) queue(p *pin, vault *common.Address) (*queue, error) {
	all, err := shared(x, p, func(h *head) *lazy[*queue] { return h.queue }, func() (*queue, error) { return x.readQueue(p, p.asked(vault)) })
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

func (x *exchange) readQueue(p *pin, vault *common.Address) (*queue, error) {
	var buckets []bucketRow
	var now uint64
	err := together(
		func() (err error) { buckets, err = x.queueBuckets(p, vault); return },
		func() (err error) { now, err = x.now(p); return },
	)
	if err != nil {
		return nil, err
	}
	due, err := x.due(p, buckets, now)
	if err != nil {
		return nil, err
	}
	q := &queue{vaults: map[common.Address]vaultQueue{}}
	for _, b := range buckets {
		address := toAddress(b.Vault)
		v := q.vaults[address]
		if v.amount == nil {
			v.amount = new(big.Int)
		}
		v.unfunded += b.Unfunded
		v.amount.Add(v.amount, b.Amount)
		live := b.keys(b.Queued)
		live = slices.DeleteFunc(live, func(k requestKey) bool {
			amount, over := due[k]
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
	return q, nil
}

// queueBuckets reads the buckets: of a past block out of the engine's totals up
// to a border near it, and the rows between.
func (x *exchange) queueBuckets(p *pin, vault *common.Address) ([]bucketRow, error) {
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
func (x *exchange) foldBuckets(p *pin, vault *common.Address, near border, totals, between []bucketRow) ([]bucketRow, error) {
	last := uint64(0)
	folded := make(map[bucketKey]*bucketRow, len(totals))
	fold := func(rows []bucketRow, sign int64) {
		for _, r := range rows {
			key := bucketKey{r.Vault, r.Bucket}
			if folded[key] == nil {
				folded[key] = &bucketRow{Vault: r.Vault, Bucket: r.Bucket, Queued: new(big.Int), Expiring: new(big.Int), Amount: new(big.Int)}
			}
			folded[key].add(r, sign)
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
	out := make([]bucketRow, 0, len(folded))
	for _, key := range slices.SortedFunc(maps.Keys(folded), func(a, b bucketKey) int {
		return cmp.Or(cmp.Compare(a.vault, b.vault), cmp.Compare(a.bucket, b.bucket))
	}) {
		out = append(out, *folded[key])
	}
	return out, nil
}

// due are the requests that wait and have had their time by now, with what they
// wait for. They are asked for by bucket: the rows of one are hardly more than
// the engine reads for a single request.
func (x *exchange) due(p *pin, buckets []bucketRow, now uint64) (map[requestKey]*big.Int, error) {
	var keys []bucketKey
	for _, b := range buckets {
		if wrapped(b.Expiring).Sign() != 0 {
			keys = append(keys, bucketKey{b.Vault, b.Bucket})
		}
	}
	type row struct {
		requestKey
		Amount *big.Int `ch:"amount"`
	}
	due := make(map[requestKey]*big.Int)
	for some := range slices.Chunk(keys, keysAtOnce) {
		rows, err := pinned[row](x, p, question("queue_due", keyList(some)), named("now", now))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			due[r.requestKey] = r.Amount
		}
	}
	return due, nil
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
