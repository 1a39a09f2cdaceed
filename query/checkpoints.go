package query

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/ethereum/go-ethereum/common/lru"
)

// A state of the past begins from a checkpoint: what it was at the end of a span
// of blocks near the pin. What the logs between the two did is added, or taken
// off where the checkpoint is the later one.
//
//	─────── checkpoint ──┤ from ▒▒▒▒▒ to          ─────────────────── checkpoint ──┤
//	               end of a span     pin                   pin  from ▒▒▒▒▒▒▒▒▒▒▒▒▒ to
//
// A checkpoint is kept by the last log of the blocks before: it holds for as long
// as no other comes to these, and for each pin that knows of that one. It is read
// before anybody asks (fill), or by the first that begins from it, out of one that
// is not far away where there is such a one, and out of the engine's totals
// otherwise. Beside checkpoints are kept what is told of a span (calendar, readMoves)
// and what a partner brought in all of them (spanVolumes). Those of all kinds that were
// not asked for the longest go first.
type checkpoints struct {
	mu   sync.Mutex
	kept lru.BasicLRU[checkpointKey, *checkpoint]
	size int // bytes
}

type checkpointKey struct {
	of     string
	edge   uint64 // in spans: where it is, or the span that it is of
	last   uint64 // seq
	blocks uint64 // of a calendar, which says something of blocks too: see head
}

// checkpoint is a state, or the wait for it.
type checkpoint struct {
	value *lazy[packed]
	size  int // bytes, once it is read
}

const (
	// checkpointRoom is how many bytes of checkpoints are kept.
	checkpointRoom = 72 << 20
	// checkpointOwn is how many bytes a checkpoint takes beside its state.
	checkpointOwn = 256
	// checkpointReach is from how many checkpoints away a state is told: to tell it
	// from one that is farther away takes longer than to read it.
	checkpointReach = 2
)

func newCheckpoints() *checkpoints {
	return &checkpoints{kept: lru.NewBasicLRU[checkpointKey, *checkpoint](math.MaxInt32)}
}

// of gives the checkpoint of a key, which is not read yet where it is new.
func (c *checkpoints) of(key checkpointKey) *checkpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	it, ok := c.kept.Get(key)
	if !ok {
		it = &checkpoint{value: newLazy[packed]()}
		c.kept.Add(key, it)
	}
	return it
}

// known gives the value of a checkpoint that was read, or nil.
func (c *checkpoints) known(key checkpointKey) packed {
	c.mu.Lock()
	defer c.mu.Unlock()
	it, _ := c.kept.Peek(key)
	return it.known()
}

// use is known for an answer: what is asked for stays the longest.
func (c *checkpoints) use(key checkpointKey) packed {
	c.mu.Lock()
	defer c.mu.Unlock()
	it, _ := c.kept.Get(key)
	return it.known()
}

func (it *checkpoint) known() packed {
	if it == nil {
		return nil
	}
	return it.value.known()
}

// get gives the value of a key, which is read where it is not kept.
func (c *checkpoints) get(ctx context.Context, key checkpointKey, read func() (packed, error)) (packed, error) {
	it := c.of(key)
	return it.value.get(ctx, func() (packed, error) {
		state, err := read()
		if err != nil {
			return nil, err
		}
		state = slices.Clone(state) // without the room into which it could still grow
		c.settle(key, it, len(state))
		return state, nil
	})
}

// settle counts a checkpoint of so many bytes that was read, and lets go of the
// oldest ones that there is no room for.
func (c *checkpoints) settle(key checkpointKey, it *checkpoint, size int) {
	size += checkpointOwn
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, _ := c.kept.Peek(key); kept != it {
		return // it had to go already
	}
	it.size = size
	c.size += size
	for c.size > checkpointRoom {
		_, oldest, _ := c.kept.RemoveOldest()
		c.size -= oldest.size
	}
}

// history is a kind of state that checkpoints are kept of.
type history[T any] struct {
	name    string
	ordered bool // it follows the log, which there has to be in the order of the chain
	forward bool // it is told from what it was, and not from what it became

	// read reads it at a pin, and move tells it there from a checkpoint and what the
	// logs between the two did, or gives false where it cannot.
	read func(x *exchange, p *pin) (T, error)
	move func(x *exchange, p *pin, was T, between border) (T, bool, error)

	pack   func(T) packed
	unpack func(packed) T
}

// at is the state at the pin's block, or false where no checkpoint tells it. What
// is ordered is told of blocks only up to which the log is in the chain's order.
func (h *history[T]) at(x *exchange, p *pin) (value T, ok bool, err error) {
	s, err := x.spans()
	if err != nil {
		return value, false, err
	}
	marks := h.marks(x, s, p)
	if len(marks) == 0 {
		return value, false, nil
	}
	was, err := h.checkpoint(x, p, s, marks[0])
	if err != nil {
		return value, false, err
	}
	return h.since(x, p, s, marks[0], was)
}

// marks are those from whose checkpoints the state at the pin may be told, the
// nearest first.
func (h *history[T]) marks(x *exchange, s *spans, p *pin) (out []int) {
	after := sort.SearchInts(s.marks, s.before((p.block+1)/s.span)+1)
	upTo := after
	if !h.forward {
		upTo = min(after+checkpointReach, len(s.marks))
	}
	for _, n := range s.marks[max(after-1-checkpointReach, 0):upTo] {
		if h.holds(x, s, p, n) {
			out = append(out, n)
		}
	}
	far := func(n int) uint64 { return max(s.edge(n)*s.span, p.block+1) - min(s.edge(n)*s.span, p.block+1) }
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(far(a), far(b)) })
	return out
}

// holds says that the checkpoint of a mark is one for the pin.
func (h *history[T]) holds(x *exchange, s *spans, p *pin, mark int) bool {
	return s.edge(mark)*s.span <= x.snapshot.block && s.last[mark] <= p.seq && (!h.ordered || s.last[mark] < s.next[mark])
}

func (h *history[T]) key(s *spans, mark int) checkpointKey {
	return checkpointKey{of: h.name, edge: s.edge(mark), last: s.last[mark]}
}

// checkpoint gives the one of a mark.
func (h *history[T]) checkpoint(x *exchange, p *pin, s *spans, mark int) (value T, err error) {
	if mark == 0 {
		return value, nil // before all blocks there is nothing
	}
	state, err := x.snapshot.head.checkpoints.get(x.ctx, h.key(s, mark), func() (packed, error) {
		value, err := h.readCheckpoint(x, p, s, mark)
		if err != nil {
			return nil, err
		}
		return h.pack(value), nil
	})
	if err != nil {
		return value, err
	}
	return h.unpack(state), nil
}

func (h *history[T]) readCheckpoint(x *exchange, p *pin, s *spans, mark int) (value T, err error) {
	then := *p
	then.asOfBlock(s.edge(mark)*s.span-1, s)
	for _, other := range h.marks(x, s, &then) {
		was := x.snapshot.head.checkpoints.known(h.key(s, other))
		if was == nil || other == mark {
			continue
		}
		if value, ok, err := h.since(x, &then, s, other, h.unpack(was)); ok || err != nil {
			return value, err
		}
		break
	}
	if h.ordered {
		then.seq = s.last[mark]
	}
	return h.read(x, &then)
}

// since is the state at the pin's block, told from the checkpoint of a mark.
func (h *history[T]) since(x *exchange, p *pin, s *spans, mark int, was T) (T, bool, error) {
	edge := s.edge(mark)
	between := border{edge: edge, way: 1, from: edge * s.span, to: p.block}
	if between.from > p.block {
		between = border{edge: edge, way: -1, from: p.block + 1, to: edge*s.span - 1}
	}
	if s.before(between.from/s.span) == s.before(between.to/s.span+1) {
		return was, true, nil // there are no logs between
	}
	return h.move(x, p, was, between)
}

// fill reads the checkpoint of a mark where it is one for the snapshot.
func (h *history[T]) fill(x *exchange, s *spans, mark int) (bool, error) {
	p := x.snapshot.pin()
	if !h.holds(x, s, p, mark) {
		return false, nil
	}
	_, err := h.checkpoint(x, p, s, mark)
	return true, err
}
