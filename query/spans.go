package query

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// spanSize is how many blocks share a row of the projection spans.
const spanSize = 4096

// spans say between which seqs the logs of each span of blocks are. They tell
// what the log had of the chain up to a block, and whether more came later: of a
// vault that was added, or of blocks that replaced others. There is one of 24 bytes
// for each span, and what is new is read from block to block.
type spans struct {
	size uint64    // in blocks
	list []spanRow // in the order of the chain
	// By how many of them are before: the last seq of a log in these, and the first
	// one in the others.
	last, next []uint64
}

// spanRow is a span in which there are logs.
type spanRow struct {
	Number uint64 `ch:"span"`
	Low    uint64 `ch:"low"` // seqs
	High   uint64 `ch:"high"`
}

// spans are all up to the snapshot. Some may be of later logs too.
func (x *exchange) spans() (*spans, error) {
	head := x.snapshot.head
	return ofHead(x, head.spans, func() (*spans, error) {
		known, since := &spans{size: head.spanSize}, uint64(0)
		if was := head.spans.before(x.snapshot.seq); was != nil {
			known, since = was.value, was.seq
		}
		rows, err := pinned[spanRow](x, x.snapshot.pin(), question("spans", known.size), named("since", since))
		if err != nil {
			return nil, err
		}
		return known.with(rows), nil
	})
}

// with are the spans after some more rows. What others read stays as it is.
func (s *spans) with(rows []spanRow) *spans {
	list := slices.Clone(s.list)
	for _, r := range rows {
		i, there := slices.BinarySearchFunc(list, r.Number, func(w spanRow, n uint64) int { return cmp.Compare(w.Number, n) })
		if !there {
			list = slices.Insert(list, i, r)
			continue
		}
		list[i].Low, list[i].High = min(list[i].Low, r.Low), max(list[i].High, r.High)
	}
	out := &spans{size: s.size, list: list, last: make([]uint64, len(list)+1), next: make([]uint64, len(list)+1)}
	for i, w := range list {
		out.last[i+1] = max(out.last[i], w.High)
	}
	out.next[len(list)] = math.MaxUint64
	for i, w := range slices.Backward(list) {
		out.next[i] = min(out.next[i+1], w.Low)
	}
	return out
}

// before is how many spans with logs are before the one of that number.
func (s *spans) before(number uint64) int {
	return sort.Search(len(s.list), func(i int) bool { return s.list[i].Number >= number })
}

// blocks are those among which the logs from a seq to another one are.
func (s *spans) blocks(from, to uint64) (low, high uint64) {
	low = math.MaxUint64
	for _, w := range s.list {
		if w.High >= from && w.Low <= to {
			low, high = min(low, w.Number*s.size), w.Number*s.size+s.size-1
		}
	}
	return low, high
}

// prefixRow is the last seq of a log up to a block, and the first one of a log
// after it.
type prefixRow struct {
	Seq  uint64 `ch:"seq"`
	Next uint64 `ch:"next"`
}

// prefix tells these of the pin's block: by whole spans, and by the logs of the
// one that the block is in.
func (x *exchange) prefix(p *pin) (r prefixRow, err error) {
	s, err := x.spans()
	if err != nil {
		return r, err
	}
	number := p.block / s.size
	from, to := s.before(number), s.before(number+1)
	r.Next = math.MaxUint64
	if from < to {
		r, err = pinnedOne[prefixRow](x, p, sqlPrefix, named("from", number*s.size), named("to", number*s.size+s.size-1))
	}
	r.Seq, r.Next = max(r.Seq, s.last[from]), min(r.Next, s.next[to])
	return r, err
}

// before is the pin moved back to the seq that the log had reached with its
// block. False: what is live up to the block was never all that was live.
func (x *exchange) before(p *pin) (*pin, bool, error) {
	r, err := x.prefix(p)
	if err != nil || r.Seq >= r.Next || r.Seq > p.seq {
		return nil, false, err
	}
	then := *p
	then.seq = r.Seq
	return &then, true, nil
}
