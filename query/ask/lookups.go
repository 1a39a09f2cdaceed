package ask

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/query/state"
)

// lookups reads rows by name for all answers about the newest block of a snapshot: the engine takes some milliseconds
// to plan a statement, however few rows it reads. One statement runs at a time. Names that are requested meanwhile are
// read together by the next one, and a name that is being read is not read again.
//
// Rows that belong to the snapshot's block stay right for as long as pins to the snapshot exist: each pin compares the
// cursor that was read with them.
type lookups[K comparable, R any] struct {
	// read runs a statement for some names. Its rows include the cursor.
	read func(context.Context, []K) ([]R, error)
	// name returns the name of a row; false for that of the cursor.
	name func(*R) (K, bool)
	// keep reports whether the rows of a name are kept for later answers at the snapshot.
	keep func(K) bool

	mu      sync.Mutex
	running *lookup[K, R]
	next    *lookup[K, R]
	of      map[K]*lookup[K, R] // by name, for names that are not yet read or kept
}

type lookup[K comparable, R any] struct {
	reads   []K                // names
	callers int                // that wait for it
	ctx     context.Context    // of the first caller, without its end
	end     context.CancelFunc // nil until it is started
	done    chan struct{}      // closed when the following are set
	rows    []R
	err     error
	failed  *Panic
}

// mostShared is how many names of one answer are read together with those of others.
const mostShared = 256

// shared returns the lookups of the answers at a pin's snapshot. read runs a statement at a pin to its newest block.
func shared[K comparable, R any](p *Pin, read func(context.Context, *Pin, []K) ([]R, error),
	name func(*R) (K, bool), keep func(K) bool) *lookups[K, R] {
	s := p.snapshot
	return s.Shared((*lookups[K, R])(nil), func() any {
		return &lookups[K, R]{name: name, keep: keep, of: map[K]*lookup[K, R]{},
			read: func(ctx context.Context, names []K) ([]R, error) {
				return read(ctx, Newest(s), names)
			}}
	}).(*lookups[K, R])
}

// get returns the rows with the names, each name from one statement, by statement and with the cursor that it read. The
// error is a *state.Error.
func (l *lookups[K, R]) get(ctx context.Context, names []K) ([][]R, error) {
	if err := ctx.Err(); err != nil {
		return nil, &state.Error{Err: err}
	}
	of, all := l.want(ctx, names)
	for i, one := range all {
		select {
		case <-one.done:
			l.leave(one)
		case <-ctx.Done():
			for _, other := range all[i:] {
				l.leave(other)
			}
			// These queries are short, so ClickHouse did not respond if the time limit ended.
			return nil, &state.Error{Silent: errors.Is(ctx.Err(), context.DeadlineExceeded), Err: ctx.Err()}
		}
	}
	out := make([][]R, len(all))
	for i, one := range all {
		if one.failed != nil {
			panic(one.failed)
		}
		if one.err != nil {
			return nil, one.err
		}
		for n := range one.rows {
			if name, ok := l.name(&one.rows[n]); !ok || of[name] == one {
				out[i] = append(out[i], one.rows[n])
			}
		}
	}
	return out, nil
}

// want returns the statements that have read, read or will read the names, and from which one the rows of each name are
// taken: a statement may have read other names, too, which a later one has read again.
func (l *lookups[K, R]) want(ctx context.Context, names []K) (of map[K]*lookup[K, R], all []*lookup[K, R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of = make(map[K]*lookup[K, R], len(names))
	for _, name := range names {
		one := l.of[name]
		if one == nil {
			if l.next == nil {
				l.next = &lookup[K, R]{ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
			}
			one = l.next
			one.reads = append(one.reads, name)
			l.of[name] = one
		}
		of[name] = one
		if !slices.Contains(all, one) {
			one.callers++
			all = append(all, one)
		}
	}
	l.start()
	return of, all
}

// start starts the next statement if none is running. l.mu is held.
func (l *lookups[K, R]) start() {
	if l.running != nil || l.next == nil {
		return
	}
	one := l.next
	l.running, l.next = one, nil
	var ctx context.Context
	ctx, one.end = context.WithCancel(one.ctx)
	go func() {
		defer l.finish(one)
		defer func() {
			if v := recover(); v != nil {
				one.failed = &Panic{v, debug.Stack()}
			}
		}()
		one.rows, one.err = l.read(ctx, one.reads)
	}()
}

// finish publishes the rows of a statement and starts the next one.
func (l *lookups[K, R]) finish(one *lookup[K, R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.end()
	for _, name := range one.reads {
		if one.err != nil || one.failed != nil || !l.keep(name) {
			l.forget(name, one)
		}
	}
	close(one.done)
	l.running = nil
	l.start()
}

// leave notes that a caller no longer waits for a statement. Without callers the statement ends, so that the engine
// does no work for clients that have disconnected.
func (l *lookups[K, R]) leave(one *lookup[K, R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.callers--; one.callers > 0 {
		return
	}
	select {
	case <-one.done:
		return
	default:
	}
	for _, name := range one.reads {
		l.forget(name, one)
	}
	if one.end != nil {
		one.end()
	} else {
		l.next = nil
	}
}

// forget makes the next caller read a name again. l.mu is held.
func (l *lookups[K, R]) forget(name K, one *lookup[K, R]) {
	if l.of[name] == one {
		delete(l.of, name)
	}
}

// Panic is the value that a part of Together panicked with, and the stack.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) String() string { return fmt.Sprint(p.Value) }

// Together runs independent parts concurrently and returns the first error. If a part panics, Together panics with a
// *Panic: a panic in a separate goroutine would not be recovered, and would end the program.
func Together(parts ...func() error) error {
	var group errgroup.Group
	var panicked atomic.Pointer[Panic]
	for _, part := range parts {
		group.Go(func() error {
			defer func() {
				if v := recover(); v != nil {
					p, nested := v.(*Panic)
					if !nested {
						p = &Panic{v, debug.Stack()}
					}
					panicked.Store(p)
				}
			}()
			return part()
		})
	}
	err := group.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
	return err
}
