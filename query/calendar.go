package query

import "math"

// The calendar of a span says of each of its blocks what time it is there, and
// between which seqs its logs are: what most questions about a past block begin
// with. It is kept with the checkpoints, packed, for as long as neither logs nor
// records of blocks come to the span, and read by the first who wants it or before
// (fill). The span of the newest block has none, for it grows.

// calendarRow is one block.
type calendarRow struct {
	Block uint64 `ch:"block"`
	Time  uint32 `ch:"time"` // Unix seconds; 0: no record of it is live
	Low   uint64 `ch:"low"`  // first and last seq of its logs, 0 for none
	High  uint64 `ch:"high"`
}

// moment is what a calendar says of a block.
type moment struct {
	time uint64 // of the newest live block up to it in its span, Unix seconds; 0 for none
	prefixRow
}

// moment is that of the pin's block, or false where no calendar tells.
func (x *exchange) moment(p *pin) (m moment, ok bool, err error) {
	s, err := x.spans()
	if err != nil {
		return m, false, err
	}
	number := p.block / s.span
	if p.seq != x.snapshot.seq || !x.snapshot.whole(s, number) {
		return m, false, nil
	}
	calendar, err := x.calendar(s, number)
	return calendar.moment(p.block), err == nil, err
}

// whole says that the snapshot knows all of a span, which grows no more but by what
// comes late.
func (s *snapshot) whole(all *spans, number uint64) bool {
	return (number+1)*all.span <= s.block && all.lastOf(number) <= s.seq
}

// calendar is the one of a span.
func (x *exchange) calendar(s *spans, number uint64) (calendar, error) {
	h := x.snapshot.head
	key := checkpointKey{of: "calendar", edge: number, last: s.lastOf(number), blocks: h.blocks}
	state, err := h.checkpoints.get(x.ctx, key, func() (packed, error) {
		rows, err := pinned[calendarRow](x, x.snapshot.pin(), sqlCalendar, named("from", number*s.span), named("to", number*s.span+s.span-1))
		if err != nil {
			return nil, err
		}
		return packCalendar(rows), nil
	})
	return calendar(state), err
}

// lastOf is the last seq of a log in a span, 0 for none.
func (s *spans) lastOf(number uint64) uint64 {
	if i := s.before(number); i < len(s.list) && s.list[i].Number == number {
		return s.list[i].High
	}
	return 0
}

// calendar is that of a span, packed.
type calendar packed

func packCalendar(rows []calendarRow) packed {
	out, was := packed{}, calendarRow{}
	for _, r := range rows {
		out = out.add(r.Block - was.Block).addSigned(int64(r.Time) - int64(was.Time))
		if r.High == 0 {
			out, r.High = out.add(0), was.High
		} else {
			out = out.add(r.High - r.Low + 1).addSigned(int64(r.Low - was.High))
		}
		was = r
	}
	return out
}

// moment looks a block up.
func (c calendar) moment(block uint64) moment {
	m := moment{prefixRow: prefixRow{Next: math.MaxUint64}}
	var r calendarRow
	for p := packed(c); len(p) > 0; {
		r.Block += p.take()
		r.Time = uint32(int64(r.Time) + p.takeSigned())
		logs := p.take()
		if logs > 0 {
			r.Low = r.High + uint64(p.takeSigned())
			r.High = r.Low + logs - 1
		}
		if r.Block <= block && r.Time > 0 {
			m.time = uint64(r.Time)
		}
		switch {
		case logs == 0:
		case r.Block <= block:
			m.Seq = max(m.Seq, r.High)
		default:
			m.Next = min(m.Next, r.Low)
		}
	}
	return m
}
