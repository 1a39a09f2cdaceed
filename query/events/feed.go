package events

import (
	"context"
	_ "embed"
	"slices"
	"sync"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/state"
)

//go:embed stretch.sql
var sqlStretch string

const (
	// stretchLength is how many records are read at once.
	stretchLength = 1024
	// keptStretches is how many of the newest are kept for who is a little behind.
	keptStretches = 8
)

// Feed reads the log for streams. Near its end, where most of them are, a stretch is read
// and written out once for all of them: 1,000 streams ask one question a block. A stream
// that is further behind reads stretches of its own, with only what its filter lets through,
// until it is there. Every stretch begins at the seq where the stream is, whoever reads it:
// so there is neither a gap nor a double where a stream goes over to the shared ones.
type Feed struct {
	mu   sync.Mutex
	kept []*shared // the newest last
}

// shared is a stretch, or the wait for it.
type shared struct {
	generation int32
	after      uint64
	ready      chan struct{} // closed when stretch or err is set
	stretch    *stretch
	err        error
}

// NewFeed makes one that has read nothing.
func NewFeed() *Feed { return &Feed{} }

// next is the stretch after a seq, which is below that of the snapshot.
func (f *Feed) next(ctx context.Context, out *httpapi.Live, s *state.Snapshot, after uint64, told *only) (*stretch, error) {
	to := min(after+stretchLength, s.Seq)
	if s.Seq-after > stretchLength {
		var own *stretch
		err := out.Work(ctx, func(ctx context.Context) (err error) {
			own, err = read(ctx, s, after, to, told)
			return err
		})
		return own, err
	}
	sh, ours := f.share(s.Generation, after)
	if !ours {
		select {
		case <-sh.ready:
			return sh.stretch, sh.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	sh.err = context.Canceled // unless it is read
	defer f.settle(sh)
	sh.err = out.WorkForAll(ctx, func(ctx context.Context) (err error) {
		sh.stretch, err = read(ctx, s, after, to, nil)
		return err
	})
	return sh.stretch, sh.err
}

// share is the stretch after a seq; ours says that it is to be read by the caller.
func (f *Feed) share(generation int32, after uint64) (sh *shared, ours bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, sh := range f.kept {
		if sh.generation == generation && sh.after == after {
			return sh, false
		}
	}
	sh = &shared{generation: generation, after: after, ready: make(chan struct{})}
	if len(f.kept) == keptStretches {
		f.kept = slices.Delete(f.kept, 0, 1) // who waits for it has it
	}
	f.kept = append(f.kept, sh)
	return sh, true
}

// settle lets go of a stretch that could not be read, so that it is tried again.
func (f *Feed) settle(sh *shared) {
	if sh.err != nil {
		f.mu.Lock()
		f.kept = slices.DeleteFunc(f.kept, func(other *shared) bool { return other == sh })
		f.mu.Unlock()
	}
	close(sh.ready)
}
