package query

import (
	"context"
	"time"
)

const (
	fillEvery   = time.Second
	fillTimeout = 10 * time.Second // for one checkpoint
)

// fill reads the checkpoints until ctx ends, before requests about the past ask for
// them: when a generation is new, and then when there may be a new one. It rests
// after each for as long as it took: there are requests to be answered meanwhile.
func (q *Query) fill(ctx context.Context) error {
	ctx = withReadAhead(ctx)
	var f filled
	for {
		rest := fillEvery
		if s := q.snapshot.Load(); s != nil && f.mayGrow(s) {
			began := time.Now()
			if err := f.grow(ctx, s); err == nil {
				rest = time.Since(began)
			} else if ctx.Err() == nil {
				q.log.Debug("checkpoints are left to who asks for them", "generation", s.id, "error", err)
			}
			q.pastRead.Store(!f.mayGrow(s))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rest):
		}
	}
}

// filled is how far the checkpoints of a generation were read. One that had to go
// since is not read again before somebody asks.
type filled struct {
	of   *checkpoints
	seen uint64 // seq up to which there is nothing more to be read
	last uint64 // seq of the last log before the last one that was read
}

// mayGrow says that a snapshot may have a checkpoint that was not read.
func (f *filled) mayGrow(s *snapshot) bool {
	return f.of != s.head.checkpoints || s.seq >= f.seen+s.head.scale.apart
}

// grow reads the next ones, which are those of one mark. It goes through the newest
// marks of a snapshot in the order of the chain, so that each is told from the one
// before.
func (f *filled) grow(ctx context.Context, s *snapshot) error {
	if f.of != s.head.checkpoints {
		*f = filled{of: s.head.checkpoints}
	}
	spans, err := (&exchange{ctx: ctx, snapshot: s}).spans()
	if err != nil {
		return err
	}
	for i := max(len(spans.marks)-s.head.scale.ahead, 1); i < len(spans.marks); i++ {
		mark := spans.marks[i]
		if spans.last[mark] <= f.last {
			continue
		}
		there, err := fillMark(ctx, s, spans, spans.marks[i-1], mark)
		if err != nil {
			return err
		}
		if there {
			f.last = spans.last[mark]
			return nil
		}
	}
	f.seen = s.seq
	return nil
}

// spansAtOnce is of how many spans before a mark the calendar and the moves are read.
const spansAtOnce = 64

// fillMark reads the checkpoints of a mark, as far as there are some, and before these
// the calendars and the moves of the spans before it.
func fillMark(ctx context.Context, s *snapshot, all *spans, before, mark int) (there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	x := &exchange{ctx: ctx, snapshot: s}
	fill := []func(*exchange, *spans, int) (bool, error){pastStanding.fill}
	for _, list := range pastPlaces {
		fill = append(fill, list.fill)
	}
	for _, w := range all.list[max(mark-spansAtOnce, before):mark] {
		if s.whole(all, w.Number) {
			if _, err := x.calendar(all, w.Number); err != nil {
				return false, err
			}
			if err := x.readMoves(all, w.Number); err != nil {
				return false, err
			}
		}
	}
	for _, read := range fill {
		some, err := read(x, all, mark)
		if err != nil {
			return there, err
		}
		there = there || some
	}
	return there, nil
}
