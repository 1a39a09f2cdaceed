package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
)

const (
	// shortFinalPause and longFinalPause are the pauses after the other endpoints were called for their final blocks and
	// nothing more became final: shortFinalPause while the endpoint in use names a higher block than is final or fails to
	// name any.
	shortFinalPause = time.Second
	longFinalPause  = 30 * time.Second
	maxHeadMoves    = 10
)

// finality is what a session remembers of the final blocks that endpoints named.
type finality struct {
	othersCalled time.Time // when the other endpoints were last called; zero if more became final by it
	headMoves    int       // consecutive calls for the final block during which the head moved
	warning      string    // the last logged warning
}

// A namedFinal is the block that an endpoint names as final.
type namedFinal struct {
	node  *rpc.Node
	block *rpc.Header
}

// finalBlock returns the newest block that can no longer change: the highest one that chain.agreement endpoints name,
// each of them that block or a higher one of its chain. It is not above tip, and it may be below what was final before.
// A depth counts from the head of the log or, while that is further behind, from the heads that the endpoints name.
func (f *Follower) finalBlock(ctx context.Context, n *rpc.Node, tip *rpc.Header) (uint64, error) {
	if depth := f.Finality.Depth; depth > 0 && f.writer.State.Head != nil &&
		tip.Number-min(tip.Number, depth) <= f.writer.State.Head.Number {
		return f.Finality.Below(min(tip.Number, f.writer.State.Head.Number)), nil
	}
	own, err := f.Finality.At(ctx, n, tip)
	// An endpoint that fails to name a final block delays only finality. If the log is so far behind that it is unknown
	// up to where blocks can be read as final ones, everything waits.
	failed := err != nil && !rpc.NamesNone(err)
	if failed && (ctx.Err() != nil || f.writer.State.Head == nil ||
		tip.Number > f.writer.State.Head.Number+f.writer.Window) {
		return 0, err
	}
	// far reports whether many blocks that the log lacks would be read as final ones. Without an agreement on them they
	// would be read one by one, which is expensive, so they wait.
	far := func(own *rpc.Header) bool {
		return f.writer.State.Head == nil || own != nil && own.Number > f.writer.State.Head.Number+f.writer.Window
	}
	need, gains := f.nodes.Agreement, own != nil && (own.Number > f.writer.State.Final || f.writer.State.Head == nil)
	if own != nil && need == 1 && !gains {
		f.noteFinality(nil)
		return f.writer.State.Final, nil
	}
	var named []namedFinal
	none := []error{err}
	if own != nil {
		named, none = []namedFinal{{n, own}}, nil
	}
	if len(named) < need {
		pause := longFinalPause
		if gains || failed {
			pause = shortFinalPause
		}
		if !far(own) && time.Since(f.finality.othersCalled) < pause {
			return f.writer.State.Final, nil
		}
		f.finality.othersCalled = time.Now()
		others, someFailed, faults := f.finalBlocksOfOthers(ctx, n)
		if named, none = append(named, others...), append(none, faults...); ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if far(own) && len(named) < need && someFailed { // otherwise a new log would begin at block 0
			return 0, fmt.Errorf("the final block is not known: %w", errors.Join(none...))
		}
	}
	final, faults := f.agreedFinal(ctx, n, tip, named)
	if final > f.writer.State.Final {
		f.finality.othersCalled = time.Time{}
		f.noteFinality(nil)
		return final, nil
	}
	if far(own) && len(faults) > 0 {
		return 0, fmt.Errorf("the final block is not known: %w", errors.Join(faults...))
	}
	if len(named) >= need { // they agree on the current final block, or will in a moment
		none = faults
	}
	f.noteFinality(errors.Join(none...))
	return f.writer.State.Final, nil
}

// finalBlocksOfOthers calls all endpoints except n. failed reports whether one of them may name a final block later.
func (f *Follower) finalBlocksOfOthers(
	ctx context.Context, n *rpc.Node,
) (named []namedFinal, failed bool, faults []error) {
	for other, err := range f.nodes.Others(ctx, n) {
		var tip, block *rpc.Header
		if err == nil {
			tip, err = other.Latest(ctx)
		}
		if err == nil {
			block, err = f.Finality.At(ctx, other, tip)
		}
		if err != nil {
			failed, faults = failed || !rpc.NamesNone(err), append(faults, err)
			continue
		}
		named = append(named, namedFinal{other, block})
	}
	return named, failed, faults
}

// agreedFinal returns the highest of the named blocks that enough endpoints have in the chain below the block that they
// name, and that does not contradict the log; or else the current final block and the contradictions.
func (f *Follower) agreedFinal(
	ctx context.Context, n *rpc.Node, tip *rpc.Header, named []namedFinal,
) (uint64, []error) {
	slices.SortFunc(named, func(a, b namedFinal) int { return cmp.Compare(b.block.Number, a.block.Number) })
	var faults []error
	for _, c := range named {
		if c.block.Number <= f.writer.State.Final && f.writer.State.Head != nil {
			break
		}
		if c.block.Number > tip.Number {
			continue // from a head that n does not have yet
		}
		// tip and the final block were read in two calls, and a reorganisation in between is possible: the number of a
		// block on another branch is unrelated to the log's.
		if ours, known := f.writer.State.HashAt(c.block.Number); known && ours != c.block.Hash {
			faults = append(faults, fmt.Errorf("%s names block %d as final with the hash %s, but it is %s in the log",
				c.node.Name, c.block.Number, c.block.Hash, ours))
			continue
		}
		// Blocks above the log's head are read from n, so it must have the block, even if it named the block itself: a
		// node can name a block that it does not have.
		if f.writer.State.Head == nil || c.block.Number > f.writer.State.Head.Number {
			if err := f.inChainOf(ctx, n, c); err != nil {
				faults = append(faults, err)
				continue
			}
		}
		supporters := 0
		for _, o := range named {
			if o.block.Number < c.block.Number {
				continue
			}
			err := error(nil)
			if o.node != c.node {
				err = f.inChainOf(ctx, o.node, c)
			}
			if o.block.Number == c.block.Number && o.block.Hash != c.block.Hash {
				err = fmt.Errorf("%w: %s names block %d as final with the hash %s, and %s with %s",
					rpc.ErrDisagree, c.node.Name, c.block.Number, c.block.Hash, o.node.Name, o.block.Hash)
			}
			if err == nil {
				supporters++
				continue
			}
			if faults = append(faults, err); errors.Is(err, rpc.ErrDisagree) {
				f.status.Metrics.Disagreements.WithLabelValues(o.node.Name).Inc()
			}
		}
		if supporters >= f.nodes.Agreement {
			return c.block.Number, nil
		}
	}
	return f.writer.State.Final, faults
}

// inChainOf returns nil if the endpoint's chain has the block that is named as final at its height.
func (f *Follower) inChainOf(ctx context.Context, n *rpc.Node, c namedFinal) error {
	h, err := n.ByNumber(ctx, c.block.Number)
	if err == nil && h.Hash != c.block.Hash {
		err = fmt.Errorf("%w: %s names block %d as final with the hash %s, but it is %s at %s", rpc.ErrDisagree, c.node.Name,
			c.block.Number, c.block.Hash, h.Hash, n.Name)
	}
	return err
}

// noteFinality shows why nothing more becomes final, and logs it once. nil means that something does, or could.
func (f *Follower) noteFinality(why error) {
	if errors.Is(why, rpc.ErrHeadMoved) && !errors.Is(why, rpc.ErrNamesHead) && !rpc.NamesNoFinal(why) {
		if f.finality.headMoves++; f.finality.headMoves < maxHeadMoves {
			return
		}
	} else {
		f.finality.headMoves = 0
	}
	warning := ""
	switch {
	case why == nil:
	case f.Finality.Depth > 0 && f.nodes.Agreement == 1:
		warning = fmt.Sprintf("no block is final: no endpoint gives the one that is %d below its head (%v)", f.Finality.Depth,
			why)
	case f.nodes.Agreement > 1:
		warning = fmt.Sprintf("nothing above block %d becomes final before %d endpoints name the same final block "+
			"(chain.agreement), and referrals wait: %v",
			f.writer.State.Final, f.nodes.Agreement, why)
	case errors.Is(why, rpc.ErrNamesHead), errors.Is(why, rpc.ErrHeadMoved):
		warning = fmt.Sprintf("a head that is named as final counts as naming no finalized block, so nothing is final and "+
			"referrals wait: set chain.finality to a depth, or to instant on a chain whose blocks are final at once (%v)", why)
	case !rpc.NamesNoFinal(why):
		warning = fmt.Sprintf("the final block is not known, so nothing more becomes final and referrals wait: %v", why)
	default:
		warning = fmt.Sprintf("an endpoint names no finalized block, so nothing is final and referrals wait: if no "+
			"endpoint ever names one, set chain.finality to a depth (%v)", why)
	}
	f.status.Note(func(st *status.Status) { st.FinalWarning = warning })
	if warning != "" && f.finality.warning == "" {
		f.log.Warn("nothing more becomes final", "reason", warning)
	}
	f.finality.warning = warning
}
