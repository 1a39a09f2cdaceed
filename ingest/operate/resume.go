package operate

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/printable"
)

// Resumption describes what it takes, or took, to continue with the chain that froze the log.
type Resumption struct {
	ChainID  uint64 `json:"chainId"`
	Frozen   string `json:"frozen"`   // why the log is frozen
	Endpoint string `json:"endpoint"` // the endpoint with this chain: scheme and host
	Head     Place  `json:"head"`     // newest block of the log
	// Ancestor is the newest block of the log that is also in the chain. It is block 0 if no recorded one is.
	Ancestor Place `json:"ancestor"`
	// Records above the ancestor that are retracted, and how many of them are blocks and logs.
	Records int `json:"records"`
	Blocks  int `json:"blocks"`
	Logs    int `json:"logs"`
	// Referrals that may have been sent to partners and whose cause is gone.
	Referrals []LostReferral `json:"referrals"`
	// Accepted reports whether it was done.
	Accepted bool `json:"accepted"`
}

// Roughly the number of records in a transaction and in a unit of a resumption.
const (
	retractedAtOnce = 100_000
	retractedAsUnit = 10_000
)

// Resume accepts the chain that froze a log.
type Resume struct {
	Nodes  *rpc.Pool
	Writer *writer.Writer // of the log, before it read anything
	Logger *slog.Logger
	// AtOnce and AsUnit are roughly how many records one transaction and one unit retract; 0 for the default.
	AtOnce, AsUnit int
}

// Run shows what it takes to accept the chain that froze the log and, with accept, does it: between two decision
// records it retracts everything above the newest recorded block that is in the chain, and ends the freeze. It uses the
// id of the writer that froze, which thereby learns that it may continue. Every transaction leaves a log that Run can
// continue with. It returns a *rpc.RefusedError if there is nothing to resume or the node cannot be trusted yet.
// progress may be nil.
func (r Resume) Run(ctx context.Context, accept bool, progress backup.Progress) (*Resumption, error) {
	w := r.Writer
	if cursor, err := w.Cursor(ctx); err != nil {
		return nil, err
	} else if err := frozenAt(cursor, w.ChainID); err != nil {
		return nil, err // before fencing, so that the writer continues
	}
	if accept {
		if err := w.Fence(ctx); err != nil {
			return nil, err
		}
	}
	n, err := r.Nodes.First(ctx)
	if err != nil {
		return nil, err
	}
	cursor, err := w.Restore(ctx, r.Nodes.Genesis())
	if err != nil {
		return nil, err
	}
	if err := frozenAt(cursor, w.ChainID); err != nil {
		return nil, err
	}
	w.Instance = cursor.GetInstanceId()
	plan, ancestor, err := r.plan(ctx, n, progress)
	if err != nil || !accept {
		return plan, err
	}
	r.Logger.Warn("the operator accepts the chain", "endpoint", n.Name, "ancestor", ancestor.Number, "records",
		plan.Records, "frozen", plan.Frozen)
	if err := r.accept(ctx, plan, ancestor, progress); err != nil {
		return nil, fmt.Errorf("retract the records above block %d: %w; the log is intact and still frozen: run the "+
			"command again", ancestor.Number, err)
	}
	plan.Accepted = true
	return plan, nil
}

// frozenAt returns an error for the cursor of a log that is not frozen.
func frozenAt(cursor *event.Cursor, chainID uint64) error {
	if backup.Restoring(cursor.GetFrozen()) {
		return rpc.Refuse("there is nothing to resume: %s", cursor.GetFrozen())
	}
	if cursor.GetFrozen() == "" || cursor.GetHead() == nil {
		return rpc.Refuse("there is nothing to resume: %s is not frozen", chainlog.LogTopic(chainID))
	}
	return nil
}

// plan finds the ancestor, and restores the window for a head there, and everything above it.
func (r Resume) plan(ctx context.Context, n *rpc.Node, progress backup.Progress) (*Resumption, *rpc.Header, error) {
	tip, err := n.Latest(ctx)
	if err != nil {
		return nil, nil, err
	}
	if tip.Number < r.Writer.State.Head.Number {
		return nil, nil, rpc.Refuse("the head at %s is block %d, below the log's block %d: wait until the node is in "+
			"sync, or correct chain.rpc", n.Name, tip.Number, r.Writer.State.Head.Number)
	}
	if h, err := n.ByNumber(ctx, r.Writer.State.Head.Number); err == nil && h.Hash != r.Writer.State.Head.Hash {
		if holder := r.Nodes.OtherWithBlock(ctx, n, r.Writer.State.Head); holder != nil {
			return nil, nil, rpc.Refuse("block %d of %s differs from the log, but that of %s does not: "+
				"remove the wrong one from chain.rpc", r.Writer.State.Head.Number, n.Name, holder.Name)
		}
	}
	ancestor, err := ancestorOf(ctx, r.Writer.Log, n)
	if err != nil {
		return nil, nil, err
	}
	published, err := r.Writer.Reopen(ctx, ancestor.Number,
		func(done, of uint64) { progress.Report(readingLog, done, of) })
	if err != nil {
		return nil, nil, err
	}
	plan := &Resumption{
		ChainID: r.Writer.ChainID, Frozen: r.Writer.State.Frozen, Endpoint: n.Name,
		Head:     Place{Number: r.Writer.State.Head.Number, Hash: r.Writer.State.Head.Hash.Hex()},
		Ancestor: Place{Number: ancestor.Number, Hash: ancestor.Hash.Hex()},
	}
	for _, lost := range r.Writer.State.Window.Above(ancestor.Number) {
		plan.Records++
		switch {
		case lost.GetBlock() != nil:
			plan.Blocks++
		case lost.GetLog() != nil:
			plan.Logs++
		}
	}
	var vaults []common.Address
	for _, v := range r.Writer.State.Covered {
		vaults = append(vaults, v.Address)
	}
	plan.Referrals, err = lostReferrals(ctx, n, r.Writer.ChainID, r.Writer.State.Mapped, vaults, published)
	return plan, ancestor, err
}

// accept retracts everything above the ancestor. The log stays frozen until the last transaction.
func (r Resume) accept(ctx context.Context, plan *Resumption, ancestor *rpc.Header, progress backup.Progress) error {
	units := retractions(r.Writer.State.Window.Above(ancestor.Number), cmp.Or(r.AsUnit, retractedAsUnit))
	units = append(units, []*event.Record{decision(writer.AcceptReorgClose, plan)})
	c := &writer.Change{Units: [][]*event.Record{{decision(writer.AcceptReorgOpen, plan)}}, Frozen: r.Writer.State.Frozen}
	records, done := 0, 0
	for _, unit := range units {
		progress.Report("records retracted", uint64(min(done, plan.Records)), uint64(plan.Records))
		done += len(unit)
		if records += len(unit); records > cmp.Or(r.AtOnce, retractedAtOnce) {
			if err := r.Writer.Commit(ctx, c); err != nil {
				return err
			}
			c, records = &writer.Change{Frozen: r.Writer.State.Frozen}, len(unit)
		}
		c.Units = append(c.Units, unit)
	}
	c.Head, c.Ancestor, c.Reopens, c.Frozen = ancestor, &ancestor.Number, true, ""
	for _, v := range r.Writer.State.Covered {
		v.To = max(v.Start-1, min(v.To, ancestor.Number))
		c.Covered = append(c.Covered, v)
	}
	return r.Writer.Commit(ctx, c)
}

// retractions returns the units that retract records, which are newest first, as are those of each unit. Each unit
// retracts everything above the block below its lowest one, which is recorded: a reader sees a chain that becomes
// shorter. So the highest blocks go first, rather than the newest records: those of a late vault belong to low blocks.
func retractions(lost []chainlog.Entry, asUnit int) (units [][]*event.Record) {
	number := func(e chainlog.Entry) uint64 { n, _ := writer.BlockOf(e.Record); return n }
	byBlock := slices.Clone(lost)
	slices.SortStableFunc(byBlock, func(a, b chainlog.Entry) int { return cmp.Compare(number(b), number(a)) })
	recorded := map[uint64]bool{}
	for _, e := range byBlock {
		if e.GetBlock() != nil {
			recorded[number(e)] = true
		}
	}
	for first, next := 0, 1; next <= len(byBlock); next++ {
		if next < len(byBlock) {
			below := number(byBlock[next]) < number(byBlock[next-1])
			if next-first < asUnit || !below || !recorded[number(byBlock[next])] {
				continue
			}
		}
		unit := byBlock[first:next]
		slices.SortFunc(unit, func(a, b chainlog.Entry) int { return cmp.Compare(b.GetSeq(), a.GetSeq()) })
		records := make([]*event.Record, len(unit))
		for i, e := range unit {
			records[i] = writer.Retraction(e)
		}
		units, first = append(units, records), next
	}
	return units
}

func decision(kind string, plan *Resumption) *event.Record {
	reason := fmt.Sprintf("the operator accepts the chain at %s and retracts %s above block %d (%s); the log was "+
		"frozen because %s",
		plan.Endpoint, printable.Count(plan.Records, "record"), plan.Ancestor.Number, plan.Ancestor.Hash, plan.Frozen)
	return &event.Record{Fact: &event.Record_Decision{Decision: &event.Decision{Kind: kind, Reason: reason,
		Time: uint64(time.Now().UnixMilli())}}}
}
