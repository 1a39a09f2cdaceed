package catchup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/follow"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/telemetry"
)

const (
	// lateHeadInterval is how long final blocks of late vaults are appended before the head is read again for the vaults
	// that follow it, and HeadInterval the same while none does.
	lateHeadInterval = 250 * time.Millisecond
	HeadInterval     = 30 * time.Second
	// maxUnprovenReads is how many times in a row each endpoint may fail to prove the logs of a final block before ingest
	// ends.
	maxUnprovenReads = 8
)

// Options are the settings of a catch-up, from section chain of the configuration.
type Options struct {
	BatchBlocks    uint64
	RangesInFlight int
}

// Catchup appends the logs of old blocks for one session of the writer.
type Catchup struct {
	Options
	writer   *writer.Writer
	follower *follow.Follower
	nodes    *rpc.Pool
	status   *status.Tracker
	log      *slog.Logger

	ranges   *rpc.Pipeline // of final blocks, read ahead; nil while there are none
	appended *rpc.Header   // the last of them that was appended; nil before the first
	unproven unprovenReads

	// After an error of a node late vaults are not read before Again; the vaults at the head do not wait for them.
	RetryAt time.Time
	backoff rpc.Backoff
	reason  string
}

// New returns a catch-up that reads single blocks as the follower does.
func New(o Options, w *writer.Writer, f *follow.Follower, nodes *rpc.Pool, status *status.Tracker,
	log *slog.Logger) *Catchup {
	return &Catchup{Options: o, writer: w, follower: f, nodes: nodes, status: status, log: log}
}

// FarBehind returns the block from which final blocks must be read before anything else happens. While the head is
// below the final block, that is the block above the head. If no vault at the head has blocks to read, it is the first
// block that the vaults furthest behind lack.
func (c *Catchup) FarBehind(final uint64) (from uint64, far bool) {
	head, vaults := c.writer.State.Head, c.writer.State.Indexed()
	leading := slices.DeleteFunc(slices.Clone(vaults),
		func(v writer.Coverage) bool { return head == nil || v.To < head.Number })
	if len(leading) > 0 && head.Number >= final {
		return 0, false
	}
	if from = writer.Lowest(leading) + 1; len(leading) == 0 || from > final {
		from = writer.Lowest(vaults) + 1
	}
	return from, from <= final
}

// Backfill appends the logs of final blocks from `from`, of all vaults that are covered up to there, followed by one
// block record. Blocks less than a window below the tip that move the head get a record each, because a query as of a
// recent block needs its time. Backfill returns after a while, so that the head is read again; blocks that were read
// ahead are kept for the next call. If other vaults already follow the head, it makes at most one commit and does not
// wait for a slow node. more reports whether anything was read.
func (c *Catchup) Backfill(ctx context.Context, v *follow.View, from uint64) (more bool, err error) {
	n, final := v.Node, v.Final
	to, vaults := c.commonRange(from, final)
	recordFrom := v.Tip.Number + 1 - min(v.Tip.Number+1, c.writer.Window)
	headersFrom := c.follower.Proof.HeadersFrom(recordFrom)
	late, wait, long := c.writer.State.Head != nil && from <= c.writer.State.Head.Number, ctx, HeadInterval
	if late {
		recordFrom, long = to+1, lateHeadInterval
		bounded, cancel := context.WithTimeout(ctx, long)
		defer cancel()
		wait = bounded
	}
	if contracts := c.writer.State.Mapped.Contracts(vaults); !c.ranges.Serves(contracts, from, to) {
		c.ranges.Close()
		reader := c.nodes.NewReader(contracts, c.follower.Sampling(vaults), c.follower.Proof, c.BatchBlocks,
			c.RangesInFlight)
		c.ranges = rpc.NewPipeline(ctx, reader, from)
	}
	for began := time.Now(); time.Since(began) < long && !c.ranges.Done(to); {
		c.ranges.Fill(n, to, recordFrom, headersFrom)
		err := c.ranges.Gather(wait, n)
		if late && err != nil && err == wait.Err() && ctx.Err() == nil { // nothing was read yet, and no job failed
			return more, nil
		}
		more = true
		if err == nil {
			c.ranges.Fill(n, to, recordFrom, headersFrom) // read ahead during the commit
		}
		if err = c.unproven.check(err, c.nodes.Size()); c.ranges.Due(to) || rpc.Refused(err) && !c.ranges.Empty() {
			if err := c.appendReady(ctx, n, vaults, final); err != nil {
				return true, c.unproven.check(err, c.nodes.Size())
			}
			c.ranges.Committed()
			c.unproven = unprovenReads{}
			if late && err == nil {
				return true, nil
			}
		}
		if err != nil {
			return true, err
		}
	}
	return more, nil
}

// commonRange returns the vaults that are covered up to the block before from, and how far they advance together: until
// they meet the next vault, the head, or the final block.
func (c *Catchup) commonRange(from, final uint64) (to uint64, behind []common.Address) {
	to = final
	for _, have := range c.writer.State.Indexed() {
		switch {
		case have.To+1 == from:
			behind = append(behind, have.Address)
		case have.To >= from:
			to = min(to, have.To)
		}
	}
	if c.writer.State.Head != nil && c.writer.State.Head.Number >= from {
		to = min(to, c.writer.State.Head.Number)
	}
	return to, behind
}

func (c *Catchup) appendReady(ctx context.Context, n *rpc.Node, vaults []common.Address, final uint64) (err error) {
	ctx, span := telemetry.Gather(ctx, c.ranges.Parents(), telemetry.Internal, "ingest ranges")
	defer func() { telemetry.End(span, err) }()
	parts, err := c.ranges.Seal(ctx, n)
	if err != nil {
		return err
	}
	return c.appendParts(ctx, parts, vaults, final)
}

// appendParts commits consecutive blocks, as units that each end with a block. Each part must continue the one before
// it; otherwise everything that was read ahead is read again.
func (c *Catchup) appendParts(ctx context.Context, parts []*rpc.Part, vaults []common.Address, final uint64) error {
	next, before, unproven := &writer.Change{Final: final}, c.appended, uint64(0)
	for _, p := range parts {
		if err := c.checkContinues(p, before); err != nil {
			c.Discard()
			return err
		}
		unit := unitOfPart(p, c.writer.State.Mapped.Belonging(vaults, p.Logs), c.follower.SampleFacts(p.Samples))
		next.Units, before, unproven = append(next.Units, unit), p.End(), max(unproven, p.Unproven)
		for _, address := range vaults {
			if p.NoState > 0 && c.writer.State.Mapped.Of(address).Description.Samples() {
				c.writer.NoState(address, p.NoState)
			}
		}
	}
	for _, address := range vaults {
		next.Covered = append(next.Covered, c.writer.Cover(*c.writer.State.CoverageOf(address), before.Number, unproven))
	}
	if c.writer.State.Head == nil || before.Number > c.writer.State.Head.Number {
		next.Head = before
	}
	if err := c.writer.Commit(ctx, next); err != nil {
		return err
	}
	c.appended = before
	return nil
}

// Discard discards everything that was read ahead.
func (c *Catchup) Discard() {
	c.ranges.Close()
	c.ranges = nil
}

// checkContinues compares both ends of a part with the block before it and with the blocks that the state knows.
func (c *Catchup) checkContinues(p *rpc.Part, before *rpc.Header) error {
	below, known := c.writer.State.HashAt(p.From - 1)
	if before != nil && before.Number+1 == p.From {
		below, known = before.Hash, true
	}
	if known && p.Parent != (common.Hash{}) && p.Parent != below {
		return fmt.Errorf("the final block %d was given with the parent %s, but block %d is %s: the nodes of chain.rpc "+
			"are not of one chain; the blocks are read again", p.From, p.Parent, p.From-1, below)
	}
	end := p.End()
	if ours, known := c.writer.State.HashAt(end.Number); known && ours != end.Hash {
		return fmt.Errorf("the final block %d was given as %s, but it is %s in the log: the nodes of chain.rpc are not of "+
			"one chain; the blocks are read again", end.Number, end.Hash, ours)
	}
	for _, sample := range p.Samples {
		ours, known := c.writer.State.HashAt(sample.Number)
		if sample.Number == end.Number {
			ours, known = end.Hash, true
		}
		if known && ours != sample.At.Hash {
			return fmt.Errorf("NAV was sampled at the final block %d with the hash %s, but it is %s: the nodes of chain.rpc "+
				"are not of one chain; the blocks are read again",
				sample.Number, sample.At.Hash, ours)
		}
	}
	return nil
}

// unitOfPart returns the records of a part as a unit: the logs of each block, then its samples, then the block if it is
// recorded.
func unitOfPart(p *rpc.Part, ours []*event.Log, samples []*event.Record) []*event.Record {
	unit, logs := make([]*event.Record, 0, len(p.Blocks)+len(ours)+len(samples)), writer.LogFacts(ours...)
	logsUpTo := func(number uint64) {
		for len(logs) > 0 && logs[0].GetLog().GetBlockNumber() <= number {
			unit, logs = append(unit, logs[0]), logs[1:]
		}
	}
	for _, h := range p.Blocks {
		for len(samples) > 0 && samples[0].GetSample().GetBlockNumber() <= h.Number {
			logsUpTo(samples[0].GetSample().GetBlockNumber())
			unit, samples = append(unit, samples[0]), samples[1:]
		}
		logsUpTo(h.Number)
		unit = append(unit, writer.BlockFact(h))
	}
	return unit
}

// unprovenReads counts how many times in a row the logs of one final block were not proven.
type unprovenReads struct {
	block uint64
	count int
}

// check returns an error that ends ingest if no endpoint can prove the logs of a final block.
func (d *unprovenReads) check(err error, endpoints int) error {
	var unproven *rpc.UnprovenError
	if !errors.As(err, &unproven) {
		return err
	}
	if d.block != unproven.Block {
		*d = unprovenReads{block: unproven.Block}
	}
	if d.count++; d.count < maxUnprovenReads*endpoints {
		return err
	}
	return rpc.Refuse("%v; no endpoint of chain.rpc gave them in %d tries, so the nodes have pruned or lost the logs "+
		"of block %d: add an archive node to chain.rpc (if the chain's blooms do not cover all logs, set chain.proof "+
		"to none); nothing of this block was appended",
		unproven, d.count, unproven.Block)
}
