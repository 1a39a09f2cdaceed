package catchup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/follow"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/telemetry"
)

// Step brings the late vaults nearer to the head, by a range of final blocks or else the join, and reports whether more
// can follow at once. An error, even one that no retry can help, affects only the late vaults. With pause it only shows
// them in the status.
func (c *Catchup) Step(ctx context.Context, v *follow.View, pause bool) (more bool, err error) {
	head := c.writer.State.Head.Number
	late := slices.DeleteFunc(c.writer.State.Indexed(), func(v writer.Coverage) bool { return v.To >= head })
	var shown []registry.LateVault
	for _, v := range late {
		shown = append(shown, registry.LateVault{Address: v.Address.Hex(), CoveredTo: v.To, Reason: c.reason})
	}
	c.status.Note(func(st *status.Status) { st.LateVaults = shown })
	if pause || len(late) == 0 || time.Now().Before(c.RetryAt) {
		return false, nil
	}
	if from := writer.Lowest(late) + 1; from <= v.Final {
		more, err = c.Backfill(ctx, v, from)
	} else {
		more, err = true, c.join(ctx, v, late)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, writer.ErrCommit) {
		if more { // a node that only kept us waiting has not succeeded
			c.backoff, c.RetryAt, c.reason = rpc.Backoff{}, time.Time{}, ""
		}
		return more, err
	}
	c.RetryAt, c.reason = time.Now().Add(c.backoff.Pause()), err.Error()
	c.log.Warn("cannot read late vaults, retrying; the others continue", "error", err)
	c.nodes.NextAfter(err)
	return false, nil
}

// maxBelowWindow is the maximum number of blocks between the final block and the window that are read for a late vault.
// The headers of all of them are read at each step, to connect them with the window.
const maxBelowWindow = 1024

// join appends, as one unit, the late vaults' logs in the next unfinalised blocks up to the head, followed by the last
// of these blocks again: up to there the log now covers these vaults too. It takes about as long as the next poll of
// the head may wait. If a node fails on the way, what was read before is appended.
func (c *Catchup) join(ctx context.Context, view *follow.View, late []writer.Coverage) (err error) {
	ctx, span := telemetry.Begin(ctx, telemetry.Internal, "ingest late vaults")
	defer func() { telemetry.End(span, err) }()
	n := view.Node
	blocks, err := c.missedBlocks(ctx, n, writer.Lowest(late)+1)
	if err != nil {
		return err
	}
	var unit []*event.Record
	var last *rpc.Header
	var unproven uint64 // the last block that is not proven
	began := time.Now()
	for ; len(blocks) > 0 && (last == nil || time.Since(began) < lateHeadInterval); blocks = blocks[1:] {
		h, logs, proven, err := c.lateLogs(ctx, n, blocks[0], late)
		if err != nil && (last == nil || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			c.log.Info("block not readable for late vaults, appending those before it", "from", blocks[0].Number, "error", err)
			break
		}
		unit, last = append(unit, logs...), h
		if !proven {
			unproven = h.Number
		}
	}
	next := &writer.Change{Units: [][]*event.Record{append(unit, writer.BlockFact(last))}, Final: view.Final}
	for _, v := range late {
		if v.To < last.Number {
			next.Covered = append(next.Covered, c.writer.Cover(v, last.Number, unproven))
		}
	}
	return c.writer.Commit(ctx, next)
}

// lateLogs reads one block for the late vaults that do not cover it.
func (c *Catchup) lateLogs(
	ctx context.Context, n *rpc.Node, block *rpc.Header, late []writer.Coverage,
) (h *rpc.Header, logs []*event.Record, proven bool, err error) {
	if h, err = n.ByHash(ctx, block.Hash, block.Number); err != nil {
		return nil, nil, false, err
	}
	var addresses []common.Address
	for _, v := range late {
		if v.To < h.Number {
			addresses = append(addresses, v.Address)
		}
	}
	logs, proven, err = c.follower.Facts(ctx, n, h, addresses)
	return h, logs, proven, err
}

// missedBlocks returns the next blocks from `from` up to the head. Those in the window are known. Those below it that
// are not final yet are read, and must be ancestors of the window's first block.
func (c *Catchup) missedBlocks(ctx context.Context, n *rpc.Node, from uint64) ([]*rpc.Header, error) {
	blocks := c.writer.State.Window.Blocks()
	first := blocks[0]
	if first.Number <= from {
		blocks = blocks[from-first.Number:]
		return blocks[:min(len(blocks), follow.MaxBlocks)], nil
	}
	if first.Number-from > maxBelowWindow {
		return nil, fmt.Errorf("blocks %d to %d are not final and below the window, so late vaults wait until they are: "+
			"make chain.window, which is %d, larger than the distance between the final block and the head",
			from, first.Number-1, c.writer.Window)
	}
	below, err := n.Headers(ctx, from, first.Number-1)
	if err != nil {
		return nil, err
	}
	if end := below[len(below)-1]; end.Hash != first.Parent {
		return nil, fmt.Errorf("block %d at %s is %s, but in the log it is %s", end.Number, n.Name, end.Hash, first.Parent)
	}
	return below[:min(len(below), follow.MaxBlocks)], nil
}
