package follow

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/telemetry"
)

// MaxBlocks, maxLogs and maxBytes bound the blocks, logs and data of one transaction.
const (
	MaxBlocks = 64
	maxLogs   = 20_000
	maxBytes  = 16 << 20
)

// Options are the settings of a follower, from section chain of the configuration.
type Options struct {
	Finality rpc.Finality
	Proof    proof.Level
}

// Follower appends the blocks at the head for one session of the writer.
type Follower struct {
	Options
	writer   *writer.Writer
	nodes    *rpc.Pool
	status   *status.Tracker
	log      *slog.Logger
	finality finality
	branches map[branchKey]*branchBlock // blocks of other branches, until one is committed or the log's is back
}

// New returns a follower of the chain that these nodes serve.
func New(o Options, w *writer.Writer, nodes *rpc.Pool, status *status.Tracker, log *slog.Logger) *Follower {
	return &Follower{Options: o, writer: w, nodes: nodes, status: status, log: log}
}

// View is what one endpoint shows of the chain.
type View struct {
	Node  *rpc.Node
	Tip   *rpc.Header // its head, which continues the log
	Final uint64      // the newest of its blocks that cannot change
}

// ReadHead reads the head and the final block. If the chain does not continue the log, it follows the reorganisation,
// freezes the log, or does nothing, and the view is nil.
func (f *Follower) ReadHead(ctx context.Context) (v *View, more bool, err error) {
	n, err := f.nodes.Current(ctx)
	if err != nil {
		return nil, false, err
	}
	tip, err := n.Latest(ctx)
	if err != nil {
		return nil, false, err
	}
	head := f.writer.State.Head
	if head != nil && tip.Number < head.Number {
		f.nodes.Next()
		f.status.Note(func(st *status.Status) {
			st.Reason = fmt.Sprintf("the head at %s is block %d, below the log's block %d", n.Name, tip.Number, head.Number)
		})
		return nil, false, nil
	}
	final, err := f.finalBlock(ctx, n, tip)
	if err != nil {
		return nil, false, err
	}
	if head != nil {
		other, err := f.otherBranch(ctx, n, tip)
		if err != nil {
			return nil, false, err
		}
		if other != nil {
			more, err := f.reorganiseIfAgreed(ctx, n, other)
			return nil, more, err
		}
		f.branches = nil
	}
	f.status.Note(func(st *status.Status) {
		st.HeadBlock, st.HeadTime, st.Checked, st.Reason = tip.Number, tip.Time, time.Now(), ""
	})
	// What was final stays so. But this endpoint may lack some of it: it would return no logs for those blocks.
	return &View{n, tip, min(max(final, f.writer.State.Final), tip.Number)}, false, nil
}

// Anchor sets the first head if no vault starts below the final block: the final block or, if it is far below or the
// chain names none, the block one window below the first vault's start, so that a reorganisation there can be followed.
func (f *Follower) Anchor(ctx context.Context, v *View) error {
	begin := min(writer.Lowest(f.writer.State.Indexed()), v.Tip.Number)
	h, err := v.Node.ByNumber(ctx, max(v.Final, begin-min(begin, f.writer.Window)))
	if err == nil {
		err = f.checkAgreement(ctx, v.Node, h, nil, nil)
	}
	if err != nil {
		return err
	}
	return f.writer.Commit(ctx, &writer.Change{Units: [][]*event.Record{{writer.BlockFact(h)}}, Head: h, Final: v.Final})
}

// AppendBlocks appends the blocks above the head, one unit each, in one transaction; if the node fails on the way,
// those that it returned before.
func (f *Follower) AppendBlocks(ctx context.Context, v *View) (more bool, err error) {
	if v.Tip.Number <= f.writer.State.Head.Number {
		return false, nil
	}
	ctx, span := telemetry.Begin(ctx, telemetry.Internal, "ingest blocks")
	defer func() { telemetry.End(span, err) }()
	c := &writer.Change{Final: v.Final, Head: f.writer.State.Head}
	var logs, bytes int
	unproven := new(rpc.Header) // the last block that is not proven; block 0 for none
	for c.Head.Number < v.Tip.Number && len(c.Units) < MaxBlocks && logs < maxLogs && bytes < maxBytes {
		h, unit, proven, err := f.nextUnit(ctx, v.Node, c.Head, v.Tip)
		if err != nil && (len(c.Units) == 0 || ctx.Err() != nil) {
			return false, err
		}
		if err != nil {
			f.log.InfoContext(ctx, "block above the head not readable, appending those before it", "from", c.Head.Number+1,
				"error", err)
			break
		}
		if unit == nil && len(c.Units) == 0 {
			f.noteParentMismatch(v.Node, h)
		}
		if unit == nil {
			break
		}
		c.Units, c.Head, logs = append(c.Units, unit), h, logs+len(unit)-1
		for _, r := range unit {
			bytes += len(r.GetLog().GetData())
		}
		if !proven {
			unproven = h
		}
	}
	if len(c.Units) == 0 {
		return false, nil
	}
	if f.Finality.Depth > 0 {
		c.Final = max(c.Final, f.Finality.Below(c.Head.Number))
	}
	for _, address := range f.vaultsAtHead(c.Head.Number) {
		c.Covered = append(c.Covered, f.writer.Cover(*f.writer.State.CoverageOf(address), c.Head.Number, unproven.Number))
	}
	f.noteUnproven(unproven)
	if err := f.writer.Commit(ctx, c); err != nil {
		return false, err
	}
	f.accepted(c.Head)
	return c.Head.Number < v.Tip.Number, nil
}

// noteParentMismatch notes that the block above the head does not follow it: the chain is being reorganised, which the
// next ReadHead finds, or the blocks of the endpoint do not form a chain. So another one gets its turn.
func (f *Follower) noteParentMismatch(n *rpc.Node, above *rpc.Header) {
	f.status.Note(func(st *status.Status) {
		st.Reason = fmt.Sprintf("block %d at %s has the parent %s, but block %d is %s in the log",
			above.Number, n.Name, above.Parent, above.Number-1, f.writer.State.Head.Hash)
	})
	f.nodes.Next()
}

// accepted passes the header of the log's newest block to the pool, which judges later headers by it, unless blooms
// prove nothing.
func (f *Follower) accepted(head *rpc.Header) {
	if f.Proof != proof.None {
		f.nodes.Accepted(head)
	}
}

// nextUnit makes the unit of the next block; nil if the block does not follow the one below.
func (f *Follower) nextUnit(
	ctx context.Context, n *rpc.Node, below, tip *rpc.Header,
) (h *rpc.Header, unit []*event.Record, proven bool, err error) {
	ctx, span := telemetry.Child(ctx, telemetry.Internal, "read block")
	defer func() { telemetry.End(span, err) }()
	telemetry.Number(span, telemetry.BlockNumber, below.Number+1)
	h = tip
	if below.Number+1 < tip.Number {
		if h, err = n.ByNumber(ctx, below.Number+1); err != nil {
			return nil, nil, false, err
		}
	}
	if h.Parent != below.Hash {
		return h, nil, false, nil
	}
	unit, proven, err = f.unitOf(ctx, n, h, f.vaultsAtHead(h.Number))
	return h, unit, proven, err
}

// unitOf makes the unit of one block: its logs, the samples of NAV and then the block itself.
func (f *Follower) unitOf(
	ctx context.Context, n *rpc.Node, h *rpc.Header, addresses []common.Address,
) (unit []*event.Record, proven bool, err error) {
	facts, proven, err := f.Facts(ctx, n, h, addresses)
	if err != nil {
		return nil, false, err
	}
	return append(facts, writer.BlockFact(h)), proven, nil
}

// Facts returns the vaults' logs in one block and the samples of their NAV as records, once as many endpoints
// agree on them as chain.agreement requires. proven reports whether the header proves that no logs are missing.
func (f *Follower) Facts(
	ctx context.Context, n *rpc.Node, h *rpc.Header, vaults []common.Address,
) (facts []*event.Record, proven bool, err error) {
	from, proven := n, h.Sealed
	if len(vaults) > 0 {
		var logs []*event.Log
		logs, from, proven, err = f.logsOfBlock(ctx, n, h, f.writer.State.Mapped.Contracts(vaults))
		if err != nil {
			return nil, false, err
		}
		facts = writer.LogFacts(f.writer.State.Mapped.Belonging(vaults, logs)...)
	}
	if err := f.checkAgreement(ctx, from, h, vaults, facts); err != nil {
		return nil, false, err
	}
	samples, err := f.samplesOf(ctx, n, h, vaults)
	return append(facts, samples...), proven, err
}

// vaultsAtHead returns the vaults that are covered up to the head and start at a block or below it.
func (f *Follower) vaultsAtHead(number uint64) (addresses []common.Address) {
	for _, v := range f.writer.State.Indexed() {
		if v.To >= f.writer.State.Head.Number && v.Start <= number {
			addresses = append(addresses, v.Address)
		}
	}
	return addresses
}

func (f *Follower) noteUnproven(h *rpc.Header) {
	warning := ""
	switch {
	case h.Number == 0, f.Proof == proof.None:
	case !h.Sealed:
		warning = fmt.Sprintf("the fields of the header of block %d do not hash to its hash, so its bloom proves nothing "+
			"and provenTo does not move: the chain hashes its headers in a way of its own, or an endpoint changes them",
			h.Number)
	default:
		warning = fmt.Sprintf("block %d has more logs than an endpoint returns in one response, so they were read for one "+
			"vault after the other, which does not prove that none is missing, and provenTo does not move: add an endpoint "+
			"without such a limit to chain.rpc", h.Number)
	}
	f.status.Note(func(st *status.Status) { st.ProofWarning = warning })
}
