package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/telemetry"
)

// otherBranch returns the other block that the node has at the height of the head, read twice; nil for none.
func (f *Follower) otherBranch(ctx context.Context, n *rpc.Node, tip *rpc.Header) (*rpc.Header, error) {
	if tip.Number == f.writer.State.Head.Number && tip.Hash == f.writer.State.Head.Hash ||
		tip.Number == f.writer.State.Head.Number+1 && tip.Parent == f.writer.State.Head.Hash {
		return nil, nil
	}
	var other *rpc.Header
	for range 2 {
		h, err := n.ByNumber(ctx, f.writer.State.Head.Number)
		if err != nil {
			return nil, err
		}
		if h.Hash == f.writer.State.Head.Hash {
			return nil, nil
		}
		other = h
	}
	return other, nil
}

// reorganiseIfAgreed reorganises, unless another endpoint that is not behind still has the log's block at the height of
// the head. Then another endpoint gets its turn, so that a single endpoint on a fork is not used for long.
func (f *Follower) reorganiseIfAgreed(ctx context.Context, n *rpc.Node, other *rpc.Header) (more bool, err error) {
	if holder := f.nodes.OtherWithBlock(ctx, n, f.writer.State.Head); holder != nil {
		f.status.Metrics.Disagreements.WithLabelValues(holder.Name).Inc()
		f.status.Note(func(st *status.Status) {
			st.Reason = fmt.Sprintf("%s and %s disagree about block %d: %s has %s, %s has %s, as the log does; a "+
				"reorganisation is followed once they agree",
				n.Name, holder.Name, other.Number, n.Name, other.Hash, holder.Name, f.writer.State.Head.Hash)
		})
		f.nodes.Next()
		return false, nil
	}
	return true, f.reorganise(ctx, n, other)
}

// reorganise replaces the blocks above the common ancestor by the branch that ends with tip, a block at the height of
// the head, in one unit: first the retractions, newest first, then the new blocks. The branch is read by hash from its
// end down, so it is one branch even if the node's chain changes meanwhile. After an error, the next attempt continues
// with the blocks that were read.
func (f *Follower) reorganise(ctx context.Context, n *rpc.Node, tip *rpc.Header) (err error) {
	ctx, span := telemetry.Begin(ctx, telemetry.Internal, "ingest reorganisation")
	defer func() { telemetry.End(span, err) }()
	branch, deep, err := f.branch(ctx, n, tip)
	if err != nil {
		return err
	}
	if deep != "" {
		// The endpoint may serve another chain by now, which no failed call shows: that is no reorganisation.
		if err := f.nodes.Identify(ctx, n); err != nil {
			return err
		}
		return f.writer.Commit(ctx, &writer.Change{Frozen: deep})
	}
	ancestor := branch[0].Number - 1
	var unit []*event.Record
	covered, unproven := f.truncatedCoverage(ancestor), new(rpc.Header)
	for _, lost := range f.writer.State.Window.Above(ancestor) {
		unit = append(unit, writer.Retraction(lost))
	}
	for _, h := range branch {
		b := f.branchBlock(h)
		if b.unit == nil {
			if b.unit, b.proven, err = f.unitOf(ctx, n, h, f.vaultsAtHead(h.Number)); err != nil {
				delete(f.branches, branchKey{h.Number, h.Hash}) // its header may be why: it is read again
				return err
			}
		}
		unit = append(unit, b.unit...)
		if !b.proven {
			unproven = h
		}
	}
	for _, address := range f.vaultsAtHead(tip.Number) {
		have := *f.writer.State.CoverageOf(address)
		have.To = ancestor
		covered = append(covered, f.writer.Cover(have, tip.Number, unproven.Number))
	}
	f.noteUnproven(unproven)
	f.log.WarnContext(ctx, "the chain was reorganised", "depth", len(branch), "ancestor", ancestor, "old",
		f.writer.State.Head.Hash, "new", tip.Hash)
	f.branches = nil
	c := &writer.Change{Units: [][]*event.Record{unit}, Head: tip, Ancestor: &ancestor, Covered: covered}
	if err := f.writer.Commit(ctx, c); err != nil {
		return err
	}
	f.accepted(tip)
	return nil
}

// branchKey is the place of a block in a branch. A header that is not sealed may name any block as its parent, even one
// that it is an ancestor of: by place, such a block is another one.
type branchKey struct {
	number uint64
	hash   common.Hash
}

// branchBlock is a block of another branch. No vault is added or changed while the node has another branch, so the unit
// stays that of the vaults of the log.
type branchBlock struct {
	header *rpc.Header
	unit   []*event.Record // nil before it was read
	proven bool            // whether its logs were proven
}

// branchBlock returns what is known of a block, which it keeps for the next attempt. If many more than a window of
// blocks are kept, they are of branches that the nodes have left.
func (f *Follower) branchBlock(h *rpc.Header) *branchBlock {
	at := branchKey{h.Number, h.Hash}
	if b := f.branches[at]; b != nil {
		return b
	}
	if f.branches == nil || uint64(len(f.branches)) > 2*f.writer.Window {
		f.branches = map[branchKey]*branchBlock{}
	}
	b := &branchBlock{header: h}
	f.branches[at] = b
	return b
}

// parent returns the header of the parent of a block. If there is no such block, the header that names it may be wrong,
// unless it is sealed, so that one is read again.
func (f *Follower) parent(ctx context.Context, n *rpc.Node, h *rpc.Header) (*rpc.Header, error) {
	if b := f.branches[branchKey{h.Number - 1, h.Parent}]; b != nil {
		return b.header, nil
	}
	below, err := n.ByHash(ctx, h.Parent, h.Number-1)
	if errors.Is(err, rpc.ErrNoBlock) {
		delete(f.branches, branchKey{h.Number, h.Hash})
	}
	if err != nil {
		return nil, err
	}
	return f.branchBlock(below).header, nil
}

// truncatedCoverage returns the coverage of the vaults whose logs a reorganisation retracts but does not read again,
// because they were removed or are late: it ends at the ancestor.
func (f *Follower) truncatedCoverage(ancestor uint64) (cut []writer.Coverage) {
	joined := f.vaultsAtHead(f.writer.State.Head.Number)
	for _, have := range f.writer.State.Covered {
		if have.To > ancestor && !slices.Contains(joined, have.Address) {
			have.To = max(have.Start-1, ancestor)
			cut = append(cut, have)
		}
	}
	return cut
}

// branch reads the blocks from the common ancestor, exclusive, to tip, lowest first. If the ancestor is below the final
// block or the window, deep is the reason why ingest must freeze.
func (f *Follower) branch(
	ctx context.Context, n *rpc.Node, tip *rpc.Header,
) (branch []*rpc.Header, deep string, err error) {
	ours := f.writer.State.Window.Hashes()
	for h := tip; ; {
		branch = append(branch, h)
		if h.Number == 0 || h.Number <= f.writer.State.Final {
			return nil, fmt.Sprintf("block %d is final, but the chain at %s has another one there, with hash %s", h.Number,
				n.Name, h.Hash), nil
		}
		parent, known := ours[h.Number-1]
		if !known {
			return nil, fmt.Sprintf("the chain at %s differs from the log from block %d on, which is below the window of %d "+
				"blocks", n.Name, h.Number, f.writer.Window), nil
		}
		if parent == h.Parent {
			slices.Reverse(branch)
			return branch, "", nil
		}
		if h, err = f.parent(ctx, n, h); err != nil {
			return nil, "", err
		}
	}
}
