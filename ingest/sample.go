package ingest

import (
	"context"
	"fmt"
	"time"
)

// stratum is a stretch of the chain, and what one range out of its middle has,
// which stands for it.
type stratum struct {
	from, to uint64
	// blocks of the range, and those of them that have logs.
	blocks, withLogs uint64
	logs, bytes      int // of the range's answer
	took             time.Duration
	width            float64 // blocks that a range of this stretch will have
}

// samples are what a reader finds out about a chain without reading all of it.
type samples struct {
	strata []stratum // in the order of the chain
	ranges int       // that were asked for
	// datesLogs says that the logs have their time; nil where no sample had a log.
	datesLogs *bool
}

// sample takes one range out of the middle of each of so many stretches of the
// blocks from to to, at least one and as many as there are blocks.
func (r *reader) sample(ctx context.Context, n *node, from, to uint64, stretches int) (*samples, error) {
	s := &samples{}
	blocks := to - from + 1
	count := uint64(max(1, min(uint64(stretches), blocks)))
	for i := range count {
		at := stratum{from: from + blocks*i/count, to: from + blocks*(i+1)/count - 1}
		middle := at.from + (at.to-at.from)/2
		for taken := false; !taken || !n.limits.settled(r.most) && at.blocks < at.to-middle+1; {
			var err error
			if taken, err = r.sampleAt(ctx, n, middle, &at, s); err != nil {
				return nil, fmt.Errorf("sample the logs of blocks %d to %d: %w", at.from, at.to, err)
			}
		}
		s.strata = append(s.strata, at)
	}
	for i := range s.strata {
		s.strata[i].width = r.widthOf(n, &s.strata[i])
	}
	return s, nil
}

// sampleAt asks for one range as a backfill does, and gives false where less is to
// be asked for.
func (r *reader) sampleAt(ctx context.Context, n *node, from uint64, at *stratum, s *samples) (taken bool, err error) {
	to := min(at.to, from+n.limits.next(r.most)-1)
	asked := to - from + 1
	began := time.Now()
	a, err := n.logsOfRange(upTo(ctx, 3*r.wanted), from, to, r.addresses)
	s.ranges++
	if err != nil {
		refusal := refusalOf(ctx, err, from)
		if asked == 1 || refusal.kind == notRefused || refusal.kind == unanswered {
			return false, err
		}
		n.limits.refused(asked, from, refusal)
		return false, nil
	}
	at.blocks, at.withLogs, at.logs, at.bytes, at.took = asked, 0, len(a.logs), a.bytes, time.Since(began)
	n.limits.gave(asked, len(a.logs), a.bytes, r.wanted, at.took)
	for i, l := range a.logs {
		if i == 0 || l.BlockNumber != a.logs[i-1].BlockNumber {
			at.withLogs++
		}
		if dates := l.BlockTime != noTime; s.datesLogs == nil || !dates {
			s.datesLogs = &dates
		}
	}
	return true, nil
}

// widthOf is how many blocks a range of a stretch will have.
func (r *reader) widthOf(n *node, s *stratum) float64 {
	l := n.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	blocks := float64(s.blocks)
	width := min(float64(l.bound(r.most)), blocks*float64(r.wanted)/float64(s.bytes+1))
	if l.results > 0 && s.logs > 0 {
		width = min(width, 0.9*blocks*float64(l.results)/float64(s.logs))
	}
	return max(1, width)
}
