package query

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// head is what the answers about the newest block have in common: a few numbers
// of each vault, the sweeps, the spans, and the buckets that say where in the
// lists a page lies. Each is read once for all answers: before the snapshot is
// served, where requests about the last ones wanted it (prepare), and otherwise by
// the first that does.
type head struct {
	sweeps        *lazy[*sweeps]
	unswept       *lazy[map[common.Address]unsweptRow]
	depositQueues *lazy[map[common.Address]unsweptRow] // the same with the deposits, where these are few
	users         *lazy[map[common.Address]int64]
	queue         *lazy[*queue]
	lists         map[string]*lazy[[]rankedBucket] // by sortBy
	first         *lazy[uint64]                    // the first indexed block
	spans         *lazy[*spans]
	brought       *byPartner

	checkpoints *checkpoints // of all heads of the generation
	blocks      uint64       // how often blocks were taken back, or came that are not above all before: calendars of before no longer hold
	scale       scale
}

// newHead is the head of a snapshot with these news. was is the one that it follows in
// its generation, or nil: of what was read for that one, or for those before it, only
// what is new need be read.
func newHead(was *snapshot, news *news, scale scale) *head {
	old, seq := &head{}, uint64(0) // nothing known, nothing wanted
	if was != nil {
		old, seq = was.head, was.seq
	}
	h := &head{
		sweeps: old.sweeps.next(seq), unswept: old.unswept.next(seq), depositQueues: old.depositQueues.next(seq), users: old.users.next(seq), queue: old.queue.next(seq), first: old.first.next(seq), spans: old.spans.next(seq),
		checkpoints: cmp.Or(old.checkpoints, newCheckpoints()), scale: scale,
		lists: make(map[string]*lazy[[]rankedBucket]), brought: old.brought.next(seq),
	}
	for by := range userOrders {
		h.lists[by] = old.lists[by].next(seq)
	}
	if h.blocks = old.blocks; was != nil && !news.above(was.block) {
		h.blocks++
	}
	return h
}

// prepareTimeout is how long a snapshot is held back at most for its head.
const prepareTimeout = 500 * time.Millisecond

// prepare reads what requests wanted of the last heads, within the given time.
// It reads one after the other, for the engine has the requests of the last block
// to answer too; what fails or takes too long is left to the first who wants it.
func (h *head) prepare(ctx context.Context, s *snapshot, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	x, p := &exchange{ctx: ctx, snapshot: s}, s.pin()
	type part struct {
		demand *atomic.Int64
		read   func() error
	}
	parts := []part{
		{h.sweeps.demand, func() error { _, err := x.sweeps(); return err }},
		{h.unswept.demand, func() error { _, _, err := x.unswept(p, nil); return err }},
		{h.depositQueues.demand, func() error { _, _, err := x.unsweptQueues(p, nil); return err }},
		{h.users.demand, func() error { _, err := x.vaultUsers(p, nil); return err }},
		{h.queue.demand, func() error { _, err := x.queue(p, nil); return err }},
		{h.first.demand, func() error { _, err := x.firstBlock(p); return err }},
		{h.spans.demand, func() error { _, err := x.spans(); return err }},
	}
	for by, list := range h.lists {
		parts = append(parts, part{list.demand, func() error { _, err := x.places(p, by); return err }})
	}
	for _, part := range parts {
		if part.demand.Add(-1) >= 0 && part.read() != nil {
			return
		}
	}
	_ = x.bringForward(p, h.brought)
}

// lazy is a value that is read once. Who asks for it while it is read waits;
// a reader that fails leaves it to the next. What it gives is not to be changed.
type lazy[T any] struct {
	value  atomic.Pointer[T]
	turn   chan struct{} // holds the one reader
	demand *atomic.Int64 // how many snapshots more prepare it
	was    *earlier[T]   // what it was when it was last read, or nil
}

// earlier is a value at an earlier seq of the same generation.
type earlier[T any] struct {
	seq   uint64
	value T
}

// demanded is how many snapshots prepare what a request wanted of one.
const demanded = 16

// newSeqs is how many seqs later a value may be read out of what it was and what
// is new. The engine finds the rows after a seq by its parts: of few seqs they are
// in small ones.
const newSeqs = 1 << 16

func newLazy[T any]() *lazy[T] {
	return &lazy[T]{turn: make(chan struct{}, 1), demand: new(atomic.Int64)}
}

// next is the same value of the snapshot that follows the one at seq, to be read
// anew.
func (l *lazy[T]) next(seq uint64) *lazy[T] {
	next := newLazy[T]()
	if l == nil {
		return next
	}
	next.demand, next.was = l.demand, l.was
	if value := l.value.Load(); value != nil {
		next.was = &earlier[T]{seq, *value}
	}
	return next
}

// before is the value not long before a seq, or nil where that is not known.
func (l *lazy[T]) before(seq uint64) *earlier[T] {
	if l == nil || l.was == nil || seq-l.was.seq > newSeqs {
		return nil
	}
	return l.was
}

// known is the value where it was read.
func (l *lazy[T]) known() (value T) {
	if l != nil && l.value.Load() != nil {
		value = *l.value.Load()
	}
	return value
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

// ofHead gives a value of a head, and tells the next ones if a request wants it.
func ofHead[T any](x *exchange, value *lazy[T], read func() (T, error)) (T, error) {
	if x.request != nil {
		value.demand.Store(demanded)
	}
	return value.get(x.ctx, read)
}

// shared gives a value of the head, and for any other pin reads it. read is told
// what the value was before, where that is known.
func shared[T any](x *exchange, p *pin, which func(*head) *lazy[T], read func(was *earlier[T]) (T, error)) (T, error) {
	if p.head == nil {
		return read(nil)
	}
	value := which(p.head)
	return ofHead(x, value, func() (T, error) { return read(value.before(p.seq)) })
}

// asked is the vault that has to be read where this one is asked for: at the
// newest block, whose answers share what they read, all of them (nil).
func (p *pin) asked(vault *common.Address) *common.Address {
	if p.head != nil {
		return nil
	}
	return vault
}
