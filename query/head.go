package query

import (
	"context"
	"maps"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
)

// head is what the answers about the newest block have in common: a few numbers
// of each vault, and the buckets that say where in the lists a page lies. The
// first answer that needs a part reads it for all that come until the next
// snapshot; nobody reads what nobody asks for.
type head struct {
	sweeps  part[*sweeps]
	swept   *sweeps // the last that were read, for an earlier block
	unswept part[map[common.Address]amountRow]
	users   part[map[common.Address]int64]
	queue   part[*queue]
	lists   map[string]*part[[]rankedBucket] // by sortBy
	known   map[string]rankedList            // the last that was read of each list, for an earlier block
	first   part[uint64]                     // the first indexed block
}

// newHead is the head of a snapshot. was is the one that it follows in its
// generation, or nil: what was read of the lists and of the sweeps for that one,
// or for those before it, need not be read again.
func newHead(was *snapshot) *head {
	h := &head{known: make(map[string]rankedList), swept: new(sweeps), sweeps: newPart[*sweeps](), unswept: newPart[map[common.Address]amountRow](),
		users: newPart[map[common.Address]int64](), queue: newPart[*queue](), first: newPart[uint64](), lists: make(map[string]*part[[]rankedBucket])}
	for by := range userOrders {
		list := newPart[[]rankedBucket]()
		h.lists[by] = &list
	}
	if was != nil {
		h.swept = was.head.swept
		if swept := was.head.sweeps.value.Load(); swept != nil {
			h.swept = *swept
		}
		maps.Copy(h.known, was.head.known)
		for by, list := range was.head.lists {
			if buckets := list.value.Load(); buckets != nil {
				h.known[by] = rankedList{was.seq, *buckets}
			}
		}
	}
	return h
}

// part is a value that is read once. Who asks for it while it is read waits;
// a reader that fails leaves it to the next. What it gives is not to be changed.
type part[T any] struct {
	value *atomic.Pointer[T]
	turn  chan struct{} // holds the one reader
}

func newPart[T any]() part[T] {
	return part[T]{new(atomic.Pointer[T]), make(chan struct{}, 1)}
}

func (p *part[T]) set(value T) { p.value.Store(&value) }

func (p *part[T]) get(ctx context.Context, read func() (T, error)) (T, error) {
	if value := p.value.Load(); value != nil {
		return *value, nil
	}
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		var none T
		return none, unavailable("The answer took too long.", ctx.Err())
	}
	defer func() { <-p.turn }()
	if value := p.value.Load(); value != nil {
		return *value, nil
	}
	value, err := read()
	if err == nil {
		p.set(value)
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

// shared gives a part of the head, and for any other pin reads it.
func shared[T any](x *exchange, p *pin, which func(*head) *part[T], read func() (T, error)) (T, error) {
	if p.head == nil {
		return read()
	}
	return which(p.head).get(x.ctx, read)
}
