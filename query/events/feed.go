package events

import (
	"context"
	_ "embed"
	"slices"
	"sync"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

//go:embed stretch.sql
var sqlStretch string

const (
	// stretchLength is how many records are read at once.
	stretchLength = 1024
	// keptStretches is how many of the newest reads are cached for streams that are slightly behind.
	keptStretches = 8
)

// Feed reads the log for streams. Near its end, where most streams are, records are read and encoded once for all of
// them: 1,000 streams need one query per block. A stream that is further behind does its own reads, of only the
// records that match its filter, until it has caught up. Every read begins at the stream's own seq, so nothing is
// missing or duplicated when a stream switches to the shared reads.
type Feed struct {
	mu   sync.Mutex
	kept []*shared // the newest last
}

// shared is a shared read, either complete or in progress.
type shared struct {
	generation int32
	after      uint64
	ready      chan struct{} // closed when stretch or err is set
	stretch    *stretch
	err        error
}

// NewFeed returns a Feed that has read nothing.
func NewFeed() *Feed { return &Feed{} }

// next returns the records after a seq, which is below that of the snapshot.
func (f *Feed) next(ctx context.Context, out *serve.Live, s *state.Snapshot, after uint64, told *only) (*stretch, error) {
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
	sh.err = context.Canceled // unless the read below succeeds
	defer f.settle(sh)
	sh.err = out.WorkForAll(ctx, func(ctx context.Context) (err error) {
		sh.stretch, err = read(ctx, s, after, to, nil)
		return err
	})
	return sh.stretch, sh.err
}

// share returns the shared read that starts after a seq; ours is true if the caller must perform it.
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
		f.kept = slices.Delete(f.kept, 0, 1) // streams that wait for it hold a pointer to it
	}
	f.kept = append(f.kept, sh)
	return sh, true
}

// settle drops a shared read that failed, so that it is retried.
func (f *Feed) settle(sh *shared) {
	if sh.err != nil {
		f.mu.Lock()
		f.kept = slices.DeleteFunc(f.kept, func(other *shared) bool { return other == sh })
		f.mu.Unlock()
	}
	close(sh.ready)
}
