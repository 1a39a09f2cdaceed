package ingest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

// late gives the vaults that are behind the head.
func (s *session) late() (late []coverage) {
	for _, v := range s.ingest.vaults {
		if have := s.coverageOf(v.address); have.to < s.head.Number {
			late = append(late, *have)
		}
	}
	return late
}

// lowestOf is the block up to which all of these vaults are covered.
func lowestOf(vaults []coverage) uint64 {
	lowest := uint64(math.MaxUint64)
	for _, v := range vaults {
		lowest = min(lowest, v.to)
	}
	return lowest
}

// lateness is when late vaults may go on after an error of a node, which the
// vaults at the head do not wait for.
type lateness struct {
	wait   *backoff
	again  time.Time
	reason string
}

// noteLate shows the vaults that are late.
func (s *session) noteLate(late []coverage) {
	var shown []LateVault
	for _, v := range late {
		shown = append(shown, LateVault{Address: v.address.Hex(), CoveredTo: v.to, Reason: s.lateness.reason})
	}
	s.ingest.note(func(st *Status) { st.LateVaults = shown })
}

// catchUp brings late vaults nearer to the head by one step, a range of final
// blocks or else the join, and says whether there may be more at once. An error
// on the way, one too that no try will mend, is theirs alone: the vaults at the
// head go on, and the status shows it.
func (s *session) catchUp(ctx context.Context, n *node, tip *header, late []coverage, final uint64) (more bool, err error) {
	if time.Now().Before(s.lateness.again) {
		return false, nil
	}
	before := s.seq
	if from := s.lowest() + 1; from <= final {
		err = s.backfill(ctx, n, tip, from, final)
	} else {
		_, err = s.join(ctx, n, late, final)
	}
	var failed *commitError
	if err == nil || ctx.Err() != nil || errors.As(err, &failed) {
		s.lateness.wait, s.lateness.reason = newBackoff(), ""
		return s.seq > before, err
	}
	s.lateness.again, s.lateness.reason = time.Now().Add(s.lateness.wait.pause()), err.Error()
	s.ingest.log.Warn("late vaults try again, the others go on", "error", err)
	s.nodes.next()
	return false, nil
}

// join appends, as one unit, the logs that late vaults have in the unfinalised
// blocks that the head has passed, and then the head once more, which now
// holds for them too. It waits while those blocks are below the window.
func (s *session) join(ctx context.Context, n *node, late []coverage, final uint64) (bool, error) {
	from := lowestOf(late) + 1
	blocks := s.window.blocks()
	if len(blocks) == 0 || blocks[0].Number > from {
		return false, nil
	}
	var unit []*event.Record
	for _, h := range blocks {
		var addresses []common.Address
		for _, v := range late {
			if v.to < h.Number {
				addresses = append(addresses, v.address)
			}
		}
		if len(addresses) == 0 {
			continue
		}
		// The header is read again for its bloom, which the log does not keep.
		h, err := n.byHash(ctx, h.Hash)
		if err != nil {
			return false, err
		}
		logs, err := s.factsOf(ctx, n, h, addresses)
		if err != nil {
			return false, err
		}
		unit = append(unit, logs...)
	}
	c := &change{units: [][]*event.Record{append(unit, blockFact(s.head))}, final: final}
	for _, v := range late {
		v.to = s.head.Number
		c.covered = append(c.covered, v)
	}
	return true, s.commit(ctx, c)
}
