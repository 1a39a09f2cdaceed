package query

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// scale is how the past is divided.
type scale struct {
	span   uint64 // blocks that share a row of the projection spans
	apart  uint64 // logs between checkpoints, at least
	ahead  int    // checkpoints of a kind that are read before anybody asks: the newest
	lately uint64 // logs among which the deposits since the last sweeps are looked for, at most
}

// pastScale gives checkpoints that a question tells from each other in few
// milliseconds. 244 of each kind with their calendars and moves, of ten million logs and
// a million users, take 68 MB: there is room for those that are read ahead.
var pastScale = scale{span: 4096, apart: 1 << 15, ahead: 300, lately: 1 << 14}

// spans say between which seqs the logs of each span of blocks are. They tell
// what the log had of the chain up to a block, and whether more came later: of a
// vault that was added, or of blocks that replaced others. There is one of 32 bytes
// for each span, and what is new is read from block to block.
type spans struct {
	scale
	list []spanRow // in the order of the chain
	// By how many of them are before: the last seq of a log in these, and the first
	// one in the others.
	last, next []uint64
	marks      []int // where the checkpoints are, by how many are before; the first is 0
}

// spanRow is a span in which there are logs.
type spanRow struct {
	Number uint64 `ch:"span"`
	Low    uint64 `ch:"low"` // seqs
	High   uint64 `ch:"high"`
	Logs   uint64 `ch:"logs"`
}

// spans are all up to the snapshot. Some may be of later logs too, and what is new
// to them begins after the last of these: each log is counted once.
func (x *exchange) spans() (*spans, error) {
	head := x.snapshot.head
	return ofHead(x, head.spans, func() (*spans, error) {
		known, since := &spans{scale: head.scale}, uint64(0)
		if was := head.spans.before(x.snapshot.seq); was != nil {
			known, since = was.value, max(was.seq, was.value.last[len(was.value.list)])
		}
		rows, ok := x.snapshot.news.spans(since, known.span)
		if !ok {
			var err error
			if rows, err = pinned[spanRow](x, x.snapshot.pin(), question("spans", known.span), named("since", since)); err != nil {
				return nil, err
			}
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
		list[i].Low, list[i].High, list[i].Logs = min(list[i].Low, r.Low), max(list[i].High, r.High), list[i].Logs+r.Logs
	}
	out := &spans{scale: s.scale, list: list, last: make([]uint64, len(list)+1), next: make([]uint64, len(list)+1), marks: []int{0}}
	logs := uint64(0) // since the last mark
	for i, w := range list {
		out.last[i+1] = max(out.last[i], w.High)
		if logs += w.Logs; logs >= s.apart {
			out.marks, logs = append(out.marks, i+1), 0
		}
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

// edge is where the last one of so many spans ends, in spans.
func (s *spans) edge(n int) uint64 {
	if n == 0 {
		return 0
	}
	return s.list[n-1].Number + 1
}

// lastLog is a seq up to which all logs are whose blocks are not after one.
func (s *spans) lastLog(block uint64) uint64 { return s.last[s.before(block/s.span+1)] }

// logs is about how many logs are in the blocks from one to another, both included.
func (s *spans) logs(from, to uint64) (n uint64) {
	for _, w := range s.list[s.before(from/s.span):s.before(to/s.span+1)] {
		first, last := w.Number*s.span, w.Number*s.span+s.span-1
		n += w.Logs * (min(last, to) - max(first, from) + 1) / s.span
	}
	return n
}

// blocks are those among which the logs from a seq to another one are.
func (s *spans) blocks(from, to uint64) (low, high uint64) {
	low = math.MaxUint64
	for _, w := range s.list {
		if w.High >= from && w.Low <= to {
			low, high = min(low, w.Number*s.span), w.Number*s.span+s.span-1
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

// prefix tells these of the pin's block: by whole spans, and by the calendar or the
// logs of the one that the block is in.
func (x *exchange) prefix(p *pin) (r prefixRow, err error) {
	s, err := x.spans()
	if err != nil {
		return r, err
	}
	number := p.block / s.span
	from, to := s.before(number), s.before(number+1)
	r.Next = math.MaxUint64
	if from < to {
		at, known, fault := x.moment(p)
		if r, err = at.prefixRow, fault; err == nil && !known {
			r, err = pinnedOne[prefixRow](x, p, sqlPrefix, named("from", number*s.span), named("to", number*s.span+s.span-1))
		}
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
