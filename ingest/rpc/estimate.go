package rpc

import (
	"context"
	"fmt"
	"time"
)

// Stratum is a part of the chain, with the figures of one range from its middle, which stands for the whole part.
type Stratum struct {
	From, To uint64
	// Blocks is the number of blocks of the range, and WithLogs the number of those that have logs.
	Blocks, WithLogs uint64
	Logs, Bytes      int // of the range's response
	Took             time.Duration
	Width            float64 // estimated blocks per range in this part
}

// Survey is a reader's estimate of a chain, made without reading all of it.
type Survey struct {
	Strata []Stratum // in the order of the chain
	Ranges int       // ranges read
	// DatesLogs reports whether the logs have their time; nil if no range had a log.
	DatesLogs *bool
}

// Survey divides the blocks from to to into 1 or more parts and reads one range from the middle of each.
func (r *Reader) Survey(ctx context.Context, n *Node, from, to uint64, parts int,
	progress func(done, of uint64)) (*Survey, error) {
	s := &Survey{}
	blocks := to - from + 1
	count := max(1, min(uint64(parts), blocks))
	for i := range count {
		progress(i, count)
		at := Stratum{From: from + blocks*i/count, To: from + blocks*(i+1)/count - 1}
		middle := at.From + (at.To-at.From)/2
		for taken := false; !taken || !n.limits.widthKnown(r.maxBlocks) && at.Blocks < at.To-middle+1; {
			var err error
			if taken, err = r.surveyAt(ctx, n, middle, &at, s); err != nil {
				return nil, fmt.Errorf("sample the logs of blocks %d to %d: %w", at.From, at.To, err)
			}
		}
		s.Strata = append(s.Strata, at)
	}
	for i := range s.Strata {
		s.Strata[i].Width = r.widthOf(n, &s.Strata[i])
	}
	return s, nil
}

// surveyAt reads one range, and returns false if a shorter one must be read.
func (r *Reader) surveyAt(ctx context.Context, n *Node, from uint64, at *Stratum, s *Survey) (taken bool, err error) {
	to := min(at.To, from+n.limits.next(r.maxBlocks)-1)
	asked := to - from + 1
	began := time.Now()
	a, err := n.logsOfRange(ctx, 3*r.target, from, to, r.vaults)
	s.Ranges++
	if err != nil {
		refusal := refusalOf(ctx, err)
		if asked == 1 || !refusal.kind.splits() {
			return false, err
		}
		n.limits.refused(asked, refusal)
		return false, nil
	}
	at.Blocks, at.WithLogs, at.Logs, at.Bytes, at.Took = asked, 0, len(a.logs), a.bytes, time.Since(began)
	n.limits.rangeSucceeded(asked, a.received, a.bytes, r.target, at.Took)
	for i, l := range a.logs {
		if i == 0 || l.BlockNumber != a.logs[i-1].BlockNumber {
			at.WithLogs++
		}
		if dates := l.BlockTime != noTime; s.DatesLogs == nil || !dates {
			s.DatesLogs = &dates
		}
	}
	return true, nil
}

func (r *Reader) widthOf(n *Node, s *Stratum) float64 {
	l := n.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	width := float64(s.Blocks) * l.targetGrowth(s.Logs, s.Bytes, r.target)
	return max(1, min(width, float64(min(r.maxBlocks, l.ranges.bound))))
}
