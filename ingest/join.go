package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/telemetry"
)

// late returns the vaults that are behind the head.
func (s *session) late() (late []coverage) {
	for _, v := range s.ingest.watched() {
		if have := s.state.coverageOf(v.address); have.to < s.state.head.Number {
			late = append(late, *have)
		}
	}
	return late
}

// lowestOf returns the block up to which all of these vaults are covered.
func lowestOf(vaults []coverage) uint64 {
	lowest := uint64(math.MaxUint64)
	for _, v := range vaults {
		lowest = min(lowest, v.to)
	}
	return lowest
}

// lateness delays late vaults after an error of a node; the vaults at the head do not wait for them.
type lateness struct {
	wait     *rpc.Backoff
	again    time.Time
	reason   string
	failures int // consecutive failures
}

// noteLate shows the late vaults in the status.
func (s *session) noteLate(late []coverage) {
	var shown []LateVault
	for _, v := range late {
		shown = append(shown, LateVault{Address: v.address.Hex(), CoveredTo: v.to, Reason: s.lateness.reason})
	}
	s.ingest.note(func(st *Status) { st.LateVaults = shown })
}

// catchUp brings late vaults nearer to the head by one step, a range of final blocks or else the join, and reports
// whether more can follow at once. An error, even one that no retry can help, affects only the late vaults: those at
// the head continue, and the status shows it.
func (s *session) catchUp(ctx context.Context, n *rpc.Node, tip *rpc.Header, late []coverage, final uint64) (more bool, err error) {
	if time.Now().Before(s.lateness.again) {
		return false, nil
	}
	if from := s.lowest() + 1; from <= final {
		more, err = s.backfill(ctx, n, tip, from, final)
	} else {
		more, err = true, s.join(ctx, n, late, final)
	}
	var failed *commitError
	if err == nil || ctx.Err() != nil || errors.As(err, &failed) {
		if more { // a node that only kept us waiting has not succeeded
			s.lateness.wait, s.lateness.reason = rpc.NewBackoff(), ""
			s.lateness.failures = 0
		}
		return more, err
	}
	s.lateness.failures++
	s.lateness.again, s.lateness.reason = time.Now().Add(s.lateness.wait.Pause()), err.Error()
	s.ingest.log.Warn("cannot read late vaults, retrying; the others continue", "error", err)
	s.nodes.Next()
	return false, nil
}

// belowWindow is the maximum number of blocks between the final block and the window that are read for a late vault.
// The headers of all of them are read at each step, to connect them with the window.
const belowWindow = 1024

// join appends, as one unit, the late vaults' logs in the next unfinalised blocks up to the head, followed by the last
// of these blocks again: up to there the log now covers these vaults too, and at the head they have joined. It reads a
// bounded number of blocks, and takes about as long as the next poll of the head may wait. If a node fails on the way,
// what was read before is appended.
func (s *session) join(ctx context.Context, n *rpc.Node, late []coverage, final uint64) (err error) {
	ctx, span := telemetry.Begin(ctx, telemetry.Internal, "ingest late vaults")
	defer func() { telemetry.End(span, err) }()
	blocks, err := s.passed(ctx, n, lowestOf(late)+1)
	if err != nil {
		return err
	}
	var unit []*event.Record
	var last *rpc.Header
	var unsealed uint64 // the last block whose header is not sealed
	for began := time.Now(); len(blocks) > 0 && (last == nil || time.Since(began) < lookAgain); blocks = blocks[1:] {
		h, logs, err := s.lateLogs(ctx, n, blocks[0].Hash, late)
		if err != nil && (last == nil || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			s.ingest.log.Info("block not readable for late vaults, appending those before it", "from", blocks[0].Number, "error", err)
			break
		}
		unit, last = append(unit, logs...), h
		if !h.Sealed {
			unsealed = h.Number
		}
	}
	c := &change{units: [][]*event.Record{append(unit, blockFact(last))}, final: final}
	for _, v := range late {
		if v.to < last.Number {
			v.believe(v.to, s.ingest.unproven(last.Number, unsealed))
			v.to = last.Number
			c.covered = append(c.covered, v)
		}
	}
	return s.commit(ctx, c)
}

// lateLogs reads one block for the late vaults that do not cover it. The header is read again for its bloom, which the
// log does not keep.
func (s *session) lateLogs(ctx context.Context, n *rpc.Node, hash common.Hash, late []coverage) (*rpc.Header, []*event.Record, error) {
	h, err := n.ByHash(ctx, hash)
	if err != nil {
		return nil, nil, err
	}
	var addresses []common.Address
	for _, v := range late {
		if v.to < h.Number {
			addresses = append(addresses, v.address)
		}
	}
	logs, err := s.factsOf(ctx, n, h, addresses)
	return h, logs, err
}

// passed returns the next blocks from `from` up to the head. Those in the window are known. Those below it that are not
// final yet are read, and must be ancestors of the window's first block.
func (s *session) passed(ctx context.Context, n *rpc.Node, from uint64) ([]*rpc.Header, error) {
	blocks := s.state.window.blocks()
	first := blocks[0]
	if first.Number <= from {
		blocks = blocks[from-first.Number:]
		return blocks[:min(len(blocks), blocksAtOnce)], nil
	}
	if first.Number-from > belowWindow {
		return nil, fmt.Errorf("blocks %d to %d are not final and below the window, so late vaults wait until they are: make chain.window, which is %d, larger than the distance between the final block and the head",
			from, first.Number-1, s.ingest.config.Window)
	}
	below, err := n.Headers(ctx, from, first.Number-1)
	if err != nil {
		return nil, err
	}
	if end := below[len(below)-1]; end.Hash != first.Parent {
		return nil, fmt.Errorf("block %d at %s is %s, but in the log it is %s", end.Number, n.Name, end.Hash, first.Parent)
	}
	return below[:min(len(below), blocksAtOnce)], nil
}
