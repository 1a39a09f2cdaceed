package query

import (
	"math"
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
// by the first that begins from it, out of one that is not far away where there is
// such a one, and out of the engine's totals otherwise. Those that were not asked
// for the longest go first.
type checkpoints struct {
	mu   sync.Mutex
	kept lru.BasicLRU[checkpointKey, *checkpoint]
	size int // bytes
}

type checkpointKey struct {
	of   string
	edge uint64 // in spans
	last uint64 // seq
}

// checkpoint is a state, or the wait for it.
type checkpoint struct {
	value *lazy[any]
	size  int // bytes, once it is read
}

const (
	// checkpointRoom is how many bytes of checkpoints are kept.
	checkpointRoom = 32 << 20
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
		it = &checkpoint{value: newLazy[any]()}
		c.kept.Add(key, it)
	}
	return it
}

// known gives the value of a checkpoint that was read, or nil.
func (c *checkpoints) known(key checkpointKey) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	it, _ := c.kept.Peek(key)
	if it == nil {
		return nil
	}
	return it.value.known()
}

// settle counts a checkpoint that was read, and lets go of the oldest ones that
// there is no room for.
func (c *checkpoints) settle(key checkpointKey, it *checkpoint, size int) {
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
	every   uint64 // at the end of each so many spans
	ordered bool   // it follows the log, which there has to be in the order of the chain
	forward bool   // it is told from what it was, and not from what it became

	// read reads it at a pin, and move tells it there from a checkpoint and what the
	// logs between the two did, or gives false where it cannot.
	read func(x *exchange, p *pin) (T, error)
	move func(x *exchange, p *pin, was T, between border) (T, bool, error)
	size func(T) int // bytes
}

// at is the state at the pin's block, or false where no checkpoint tells it. What
// is ordered is told of blocks only up to which the log is in the chain's order.
func (h *history[T]) at(x *exchange, p *pin) (value T, ok bool, err error) {
	spans, err := x.spans()
	if err != nil {
		return value, false, err
	}
	edges := h.edges(x, spans, p)
	if len(edges) == 0 {
		return value, false, nil
	}
	was, err := h.checkpoint(x, p, spans, edges[0])
	if err != nil {
		return value, false, err
	}
	return h.since(x, p, spans, edges[0], was)
}

// edges are the ends of spans from which the state at the pin may be told, the
// nearest first.
func (h *history[T]) edges(x *exchange, s *spans, p *pin) (out []uint64) {
	size := s.size * h.every
	near := nearest(p.block, size).edge
	if h.forward {
		near = below(p.block, size).edge
	}
	add := func(edge uint64) {
		n := s.before(edge * h.every)
		if edge*size <= x.snapshot.block && s.last[n] <= p.seq && (!h.ordered || s.last[n] < s.next[n]) {
			out = append(out, edge*h.every)
		}
	}
	add(near)
	for i := uint64(1); i <= checkpointReach; i++ {
		if i <= near {
			add(near - i)
		}
		if !h.forward {
			add(near + i)
		}
	}
	return out
}

func (h *history[T]) key(s *spans, edge uint64) checkpointKey {
	return checkpointKey{h.name, edge, s.last[s.before(edge)]}
}

// checkpoint gives the one at the end of a span.
func (h *history[T]) checkpoint(x *exchange, p *pin, s *spans, edge uint64) (value T, err error) {
	if edge == 0 {
		return value, nil // before all blocks there is nothing
	}
	kept, key := x.snapshot.head.checkpoints, h.key(s, edge)
	it := kept.of(key)
	read, err := it.value.get(x.ctx, func() (any, error) {
		value, err := h.readCheckpoint(x, p, s, edge)
		if err == nil {
			kept.settle(key, it, h.size(value))
		}
		return value, err
	})
	if err != nil {
		return value, err
	}
	return read.(T), nil
}

func (h *history[T]) readCheckpoint(x *exchange, p *pin, s *spans, edge uint64) (value T, err error) {
	then := *p
	then.block, then.head, then.clock = edge*s.size-1, nil, newLazy[uint64]()
	for _, other := range h.edges(x, s, &then) {
		was, known := x.snapshot.head.checkpoints.known(h.key(s, other)).(T)
		if !known || other == edge {
			continue
		}
		if value, ok, err := h.since(x, &then, s, other, was); ok || err != nil {
			return value, err
		}
		break
	}
	if h.ordered {
		then.seq = s.last[s.before(edge)]
	}
	return h.read(x, &then)
}

// since is the state at the pin's block, told from the one at the end of a span.
func (h *history[T]) since(x *exchange, p *pin, s *spans, edge uint64, was T) (T, bool, error) {
	between := border{edge: edge, way: 1, from: edge * s.size, to: p.block}
	if between.from > p.block {
		between = border{edge: edge, way: -1, from: p.block + 1, to: edge*s.size - 1}
	}
	if between.from > between.to {
		return was, true, nil
	}
	return h.move(x, p, was, between)
}
