package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

// A transaction at the head holds at most so many blocks, and no further one
// once it has so many logs.
const (
	blocksAtOnce = 64
	logsAtOnce   = 20_000
)

// advance takes the next step (the package comment lists them) and says whether
// there may be another one at once.
func (s *session) advance(ctx context.Context) (more bool, err error) {
	n, err := s.nodes.current(ctx)
	if err != nil {
		return false, err
	}
	tip, err := n.latest(ctx)
	if err != nil {
		return false, err
	}
	if s.head != nil && tip.Number < s.head.Number {
		s.nodes.next()
		s.ingest.note(func(st *Status) {
			st.Reason = fmt.Sprintf("the head at %s is block %d, below the log's block %d", n.name, tip.Number, s.head.Number)
		})
		return false, nil
	}
	final, err := s.finalBlock(ctx, n, tip)
	if err != nil {
		return false, err
	}
	if s.head != nil {
		other, err := s.otherBranch(ctx, n, tip)
		if err != nil {
			return false, err
		}
		if other != nil {
			return true, s.reorganise(ctx, n, other)
		}
	}
	s.ingest.note(func(st *Status) { st.seen(tip, time.Now()) })
	s.ingest.metrics.head.Set(float64(tip.Number))
	if unknown := s.unknownVaults(); len(unknown) > 0 {
		return true, s.introduce(ctx, n, unknown)
	}
	if from := s.lowest() + 1; from <= final {
		return true, s.backfill(ctx, n, tip, from, final)
	}
	return s.atHead(ctx, n, tip, final)
}

// atHead takes the steps above the final block.
func (s *session) atHead(ctx context.Context, n *node, tip *header, final uint64) (more bool, err error) {
	if s.head == nil {
		return true, s.anchor(ctx, n, final)
	}
	s.ingest.note(func(st *Status) { st.State, st.ETASeconds = Following, nil })
	if late := s.late(); len(late) > 0 {
		if joined, err := s.join(ctx, n, late, final); joined || err != nil {
			return joined, err
		}
	}
	if tip.Number > s.head.Number {
		return s.climb(ctx, n, tip, final)
	}
	next := *s.state
	next.final = max(s.final, final)
	if next.final > s.final || next.toldTarget(s.ingest.config.Confirmations) > s.told {
		return false, s.commit(ctx, &change{final: final})
	}
	return false, nil
}

// anchor begins the head at the final block where no vault starts below it.
func (s *session) anchor(ctx context.Context, n *node, final uint64) error {
	h, err := n.byNumber(ctx, final)
	if err != nil {
		return err
	}
	return s.commit(ctx, &change{units: [][]*event.Record{{blockFact(h)}}, head: h, final: final})
}

// climb appends the blocks above the head, one unit each, in one transaction.
// Where the node fails on the way, what it gave before is appended: so a node
// that fails now and then slows ingest down and does not stop it.
func (s *session) climb(ctx context.Context, n *node, tip *header, final uint64) (more bool, err error) {
	c := &change{final: final, head: s.head}
	var logs int
	for c.head.Number < tip.Number && len(c.units) < blocksAtOnce && logs < logsAtOnce {
		h, unit, err := s.unitAbove(ctx, n, c.head, tip)
		if err != nil && (len(c.units) == 0 || ctx.Err() != nil) {
			return false, err
		}
		if err != nil {
			s.ingest.log.Info("some blocks above the head were not given; those before them are appended", "from", c.head.Number+1, "error", err)
			break
		}
		if unit == nil {
			break // the chain is being reorganised: the next look decides
		}
		c.units, c.head, logs = append(c.units, unit), h, logs+len(unit)-1
	}
	if len(c.units) == 0 {
		return false, nil
	}
	c.covered = s.moved(c.head.Number)
	if err := s.commit(ctx, c); err != nil {
		return false, err
	}
	return c.head.Number < tip.Number, nil
}

// unitAbove makes the unit of the block above one, none where the node has no
// such block.
func (s *session) unitAbove(ctx context.Context, n *node, below, tip *header) (h *header, unit []*event.Record, err error) {
	h = tip
	if below.Number+1 < tip.Number {
		if h, err = n.byNumber(ctx, below.Number+1); err != nil {
			return nil, nil, err
		}
	}
	if h.Parent != below.Hash {
		return h, nil, nil
	}
	unit, err = s.unitOf(ctx, n, h, s.joined(h.Number))
	return h, unit, err
}

// unitOf makes the unit of one block: its logs and then the block itself.
func (s *session) unitOf(ctx context.Context, n *node, h *header, addresses []common.Address) ([]*event.Record, error) {
	var unit []*event.Record
	if len(addresses) > 0 {
		logs, err := s.logsOfBlock(ctx, n, h, addresses)
		if err != nil {
			return nil, err
		}
		for _, l := range logs {
			unit = append(unit, logFact(l))
		}
	}
	if err := s.agreed(ctx, n, h, addresses, unit); err != nil {
		return nil, err
	}
	return append(unit, blockFact(h)), nil
}

// joined gives the vaults whose logs belong to a block above the final one:
// those that are covered up to the head, from their start block on.
func (s *session) joined(number uint64) (addresses []common.Address) {
	for _, v := range s.ingest.vaults {
		if have := s.coverageOf(v.address); have.to >= s.head.Number && have.start <= number {
			addresses = append(addresses, v.address)
		}
	}
	return addresses
}

// moved is the coverage of the joined vaults when the head is at number.
func (s *session) moved(number uint64) (moved []coverage) {
	for _, address := range s.joined(number) {
		have := *s.coverageOf(address)
		have.to = number
		moved = append(moved, have)
	}
	return moved
}

// finalBlock asks for the block that cannot change any more. A node that names
// none leaves everything unfinal.
func (s *session) finalBlock(ctx context.Context, n *node, tip *header) (uint64, error) {
	if depth := s.ingest.config.Finality.Depth; depth > 0 {
		return tip.Number - min(tip.Number, depth), nil
	}
	h, err := n.finalized(ctx)
	switch {
	case err == nil:
		return min(h.Number, tip.Number), nil
	case !refused(err) && !errors.Is(err, errNoBlock):
		return 0, err
	}
	if !s.noFinalNoted {
		s.noFinalNoted = true
		s.ingest.log.Warn("the node names no finalized block: where it never will, set chain.finality to a depth", "error", err)
	}
	return 0, nil
}

// otherBranch looks whether the node has another block at the height of the
// head. It is believed only when it is read twice.
func (s *session) otherBranch(ctx context.Context, n *node, tip *header) (*header, error) {
	if tip.Number == s.head.Number && tip.Hash == s.head.Hash || tip.Number == s.head.Number+1 && tip.Parent == s.head.Hash {
		return nil, nil
	}
	var other *header
	for range 2 {
		h, err := n.byNumber(ctx, s.head.Number)
		if err != nil {
			return nil, err
		}
		if h.Hash == s.head.Hash {
			return nil, nil
		}
		other = h
	}
	return other, nil
}
