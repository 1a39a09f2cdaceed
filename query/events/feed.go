package events

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

const (
	// stretchLength is how many records are read at once.
	stretchLength = 1024
	// keptStretches is how many of the newest reads are cached for streams that are slightly behind.
	keptStretches = 8
)

// Feed reads the log for streams. At its end, where most streams are, records are read and encoded once for all of
// them: 1,000 streams need one query per block, or one per stretch if many blocks arrive at once. So are those after a
// seq near the end that clients chose, because many may reconnect at once; but such a read is charged to the client
// whose stream performs it, and is kept apart, so that streams at the end neither wait for it nor lose their own. A
// stream that is further behind does its own reads, of only the records that match its filter. Every read begins at the
// stream's own seq, so nothing is missing or duplicated when a stream switches to other reads.
type Feed struct {
	atEnd  reads
	chosen reads // of streams that are behind
}

// reads are the shared reads of one kind.
type reads struct {
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

// errNotRead marks the error of a read that failed for the client that is charged for it: others try it themselves.
var errNotRead = errors.New("the client cannot read")

// NewFeed returns a Feed that has read nothing.
func NewFeed() *Feed { return &Feed{} }

// next returns the records after a seq, which is below that of the snapshot.
func (f *Feed) next(ctx context.Context, out *serve.Live, s *state.Snapshot, after uint64, behind bool,
	selected *only) (*stretch, error) {
	to := min(after+stretchLength, s.Seq)
	if behind && s.Seq-after > stretchLength {
		var own *stretch
		err := out.Work(ctx, func(ctx context.Context) (err error) {
			own, err = read(ctx, s, after, to, selected)
			return err
		})
		return own, err
	}
	of, work := &f.atEnd, out.WorkForAll
	if behind {
		of, work = &f.chosen, func(ctx context.Context, read func(context.Context) error) error {
			err := out.Work(ctx, read)
			var failure *serve.Failure
			if errors.As(err, &failure) || ctx.Err() != nil {
				err = errors.Join(errNotRead, err)
			}
			return err
		}
	}
	for {
		sh, ours := of.share(s.Generation, after)
		if ours {
			return of.perform(sh, func() error {
				return work(ctx, func(ctx context.Context) (err error) {
					sh.stretch, err = read(ctx, s, after, to, nil)
					return err
				})
			})
		}
		select {
		case <-sh.ready:
			if !errors.Is(sh.err, errNotRead) {
				return sh.stretch, sh.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// perform makes a shared read. One that fails is dropped, so that it is retried.
func (r *reads) perform(sh *shared, read func() error) (*stretch, error) {
	defer close(sh.ready)
	sh.err = context.Canceled // unless the read below succeeds
	defer func() {
		if sh.err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.kept = slices.DeleteFunc(r.kept, func(other *shared) bool { return other == sh })
		}
	}()
	sh.err = read()
	return sh.stretch, sh.err
}

// share returns the shared read that starts after a seq; ours is true if the caller must perform it.
func (r *reads) share(generation int32, after uint64) (sh *shared, ours bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sh := range r.kept {
		if sh.generation == generation && sh.after == after {
			return sh, false
		}
	}
	sh = &shared{generation: generation, after: after, ready: make(chan struct{})}
	if len(r.kept) == keptStretches {
		r.kept = slices.Delete(r.kept, 0, 1) // streams that wait for it hold a pointer to it
	}
	r.kept = append(r.kept, sh)
	return sh, true
}

// left reports whether the read that a stream needs after a seq is no longer kept: the other streams are far ahead.
func (r *reads) left(generation int32, after uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	reached := func(sh *shared) bool { return sh.generation != generation || sh.after <= after }
	return len(r.kept) == keptStretches && !slices.ContainsFunc(r.kept, reached)
}
