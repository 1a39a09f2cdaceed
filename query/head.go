package query

import (
	"context"
	"maps"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
)

// head is what the answers about the newest block have in common: a few numbers
// of each vault, the sweeps, and the buckets that say where in the lists a page
// lies. The first answer that needs one of them reads it for all that come until
// the next snapshot; nobody reads what nobody asks for.
type head struct {
	sweeps  lazy[*sweeps]
	unswept lazy[map[common.Address]amountRow]
	users   lazy[map[common.Address]int64]
	queue   lazy[*queue]
	lists   map[string]*lazy[[]rankedBucket] // by sortBy
	first   lazy[uint64]                     // the first indexed block

	// What was last read of the sweeps and of each list, for an earlier block.
	knownSweeps *sweeps
	knownLists  map[string]rankedList
}

// newHead is the head of a snapshot. was is the one that it follows in its
// generation, or nil: what was read of the lists and of the sweeps for that one,
// or for those before it, need not be read again.
func newHead(was *snapshot) *head {
	h := &head{knownLists: make(map[string]rankedList), knownSweeps: new(sweeps), sweeps: newLazy[*sweeps](), unswept: newLazy[map[common.Address]amountRow](),
		users: newLazy[map[common.Address]int64](), queue: newLazy[*queue](), first: newLazy[uint64](), lists: make(map[string]*lazy[[]rankedBucket])}
	for by := range userOrders {
		list := newLazy[[]rankedBucket]()
		h.lists[by] = &list
	}
	if was != nil {
		h.knownSweeps = was.head.knownSweeps
		if swept := was.head.sweeps.value.Load(); swept != nil {
			h.knownSweeps = *swept
		}
		maps.Copy(h.knownLists, was.head.knownLists)
		for by, list := range was.head.lists {
			if buckets := list.value.Load(); buckets != nil {
				h.knownLists[by] = rankedList{was.seq, *buckets}
			}
		}
	}
	return h
}

// lazy is a value that is read once. Who asks for it while it is read waits;
// a reader that fails leaves it to the next. What it gives is not to be changed.
type lazy[T any] struct {
	value *atomic.Pointer[T]
	turn  chan struct{} // holds the one reader
}

func newLazy[T any]() lazy[T] {
	return lazy[T]{new(atomic.Pointer[T]), make(chan struct{}, 1)}
}

func (l *lazy[T]) set(value T) { l.value.Store(&value) }

func (l *lazy[T]) get(ctx context.Context, read func() (T, error)) (T, error) {
	if value := l.value.Load(); value != nil {
		return *value, nil
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		var none T
		return none, unavailable("The answer took too long.", ctx.Err())
	}
	defer func() { <-l.turn }()
	if value := l.value.Load(); value != nil {
		return *value, nil
	}
	value, err := read()
	if err == nil {
		l.set(value)
	}
	return value, err
}

// asked is the vault that has to be read where this one is asked for: at the
// newest block, whose answers share what they read, all of them (nil).
func (p *pin) asked(vault *common.Address) *common.Address {
	if p.head != nil {
		return nil
	}
	return vault
}

// shared gives a value of the head, and for any other pin reads it.
func shared[T any](x *exchange, p *pin, which func(*head) *lazy[T], read func() (T, error)) (T, error) {
	if p.head == nil {
		return read()
	}
	return which(p.head).get(x.ctx, read)
}
