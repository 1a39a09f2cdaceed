package pin

import (
	"context"
	"errors"
	"time"
)

// catchUpWithin is how long an answer waits for the spine to reach what another table
// already says.
const catchUpWithin = 300 * time.Millisecond

// ErrNotYet says that the tables do not agree about a block at the moment: project is
// writing a unit that rewrites it.
var ErrNotYet = errors.New("the chain was reorganised and its read models are being rewritten")

// Answer makes an answer that is exact: pinned to a snapshot, newest or as of a block,
// and made again where a fence says that the tables were of two beliefs. It gives the
// pin of the last try. make may be called several times; what an earlier call made
// must not be used, nor its error believed.
func (w *Watcher) Answer(ctx context.Context, s *Snapshot, asOfBlock *uint64, make func(context.Context, *Pin) error) (*Pin, error) {
	var late <-chan time.Time
	for {
		p, err := s.At(asOfBlock)
		if err != nil {
			return nil, err
		}
		err = make(ctx, p)
		until, agreed, torn := p.torn()
		if !torn {
			return p, err
		}
		if late == nil {
			timer := time.NewTimer(w.CatchUpWithin)
			defer timer.Stop()
			late = timer.C
		}
		if next := w.reach(ctx, s, until, late); next != nil {
			s = next
			continue
		}
		if asOfBlock != nil {
			return p, ErrNotYet
		}
		return s.answerBefore(ctx, agreed, make)
	}
}

// answerBefore makes the newest answer that there is while a unit stays half written:
// it is about the last block which that unit leaves as it was.
func (s *Snapshot) answerBefore(ctx context.Context, block uint64, make func(context.Context, *Pin) error) (*Pin, error) {
	if block < s.First {
		return nil, ErrNotYet
	}
	p := s.pin(block, true)
	err := make(ctx, p)
	if _, _, torn := p.torn(); torn {
		return p, ErrNotYet
	}
	return p, err
}

// Reach gives a snapshot that has the log up to a seq. It waits for that as an answer waits
// for the spine; nil where it takes longer.
func (w *Watcher) Reach(ctx context.Context, s *Snapshot, seq uint64) *Snapshot {
	if s.Seq >= seq {
		return s
	}
	late := time.NewTimer(w.CatchUpWithin)
	defer late.Stop()
	if s = w.reach(ctx, s, seq, late.C); s == nil || s.Seq < seq {
		return nil
	}
	return s
}

// reach waits until the snapshot is at a seq or in another generation, and gives it; nil
// where that takes too long, or took too long for another answer about s.
func (w *Watcher) reach(ctx context.Context, s *Snapshot, seq uint64, late <-chan time.Time) *Snapshot {
	if w.stuck.Load() == s {
		return nil
	}
	w.notify()
	for {
		changed := *w.changed.Load()
		if now := w.snapshot.Load(); now != nil && (now.Generation != s.Generation || now.Seq >= seq) {
			return now
		}
		select {
		case <-changed:
		case <-late:
			w.stuck.Store(s)
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
