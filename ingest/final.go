package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/navlog/navlog/ingest/rpc"
)

const (
	// finalSoon and finalLater are the pauses after the other endpoints were called for their final blocks and nothing
	// more became final. finalSoon applies while the endpoint in use names a higher block than is final or fails to
	// name any, finalLater otherwise.
	finalSoon  = time.Second
	finalLater = 30 * time.Second
	// movedOften is how many calls in a row may find that the head moved before it is reported.
	movedOften = 10
)

// finality is what a session remembers of the final blocks that endpoints named.
type finality struct {
	asked time.Time // when the other endpoints were last called; zero if more became final by it
	moved int       // consecutive calls for the final block during which the head moved
	noted string    // the last logged warning
}

// A namedFinal is the block that an endpoint names as final.
type namedFinal struct {
	node  *rpc.Node
	block *rpc.Header
}

// finalBlock returns the newest block that can no longer change: the highest one that chain.agreement endpoints name,
// each of them that block or a higher one of its chain. It is not above tip, and it may be below what was final before.
//
// A depth counts from the head of the log, whose blocks were followed by their parent hashes and agreed on. Only while
// the log is further behind does it count from the heads that the endpoints name.
func (s *session) finalBlock(ctx context.Context, n *rpc.Node, tip *rpc.Header) (uint64, error) {
	if depth := s.ingest.config.Finality.Depth; depth > 0 && s.state.head != nil && tip.Number-min(tip.Number, depth) <= s.state.head.Number {
		return rpc.Finality(s.ingest.config.Finality).Below(min(tip.Number, s.state.head.Number)), nil
	}
	own, err := rpc.Finality(s.ingest.config.Finality).At(ctx, n, tip)
	// An endpoint that fails to name a final block delays only finality. If the log is so far behind that it is unknown
	// up to where blocks can be read as final ones, everything waits.
	failed := err != nil && !rpc.NamesNone(err)
	if failed && (ctx.Err() != nil || s.state.head == nil || tip.Number > s.state.head.Number+s.ingest.config.Window) {
		return 0, err
	}
	// far reports whether many blocks that the log lacks would be read as final ones. Without an agreement on them they
	// would be read one by one, which is expensive, so they wait.
	far := func(own *rpc.Header) bool {
		return s.state.head == nil || own != nil && own.Number > s.state.head.Number+s.ingest.config.Window
	}
	need, gains := s.ingest.config.Agreement, own != nil && (own.Number > s.state.final || s.state.head == nil)
	if own != nil && need == 1 && !gains {
		s.noteFinality(nil)
		return s.state.final, nil
	}
	var named []namedFinal
	none := []error{err}
	if own != nil {
		named, none = []namedFinal{{n, own}}, nil
	}
	if len(named) < need {
		pause := finalLater
		if gains || failed {
			pause = finalSoon
		}
		if !far(own) && time.Since(s.finality.asked) < pause {
			return s.state.final, nil
		}
		s.finality.asked = time.Now()
		others, someFailed, faults := s.finalsOfOthers(ctx, n)
		if named, none = append(named, others...), append(none, faults...); ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if far(own) && len(named) < need && someFailed { // otherwise a new log would begin at block 0
			return 0, fmt.Errorf("the final block is not known: %w", errors.Join(none...))
		}
	}
	final, faults := s.agreedFinal(ctx, n, tip, named)
	if final > s.state.final {
		s.finality.asked = time.Time{}
		s.noteFinality(nil)
		return final, nil
	}
	if far(own) && len(faults) > 0 {
		return 0, fmt.Errorf("the final block is not known: %w", errors.Join(faults...))
	}
	if len(named) >= need { // they agree on the current final block, or will in a moment
		none = faults
	}
	s.noteFinality(errors.Join(none...))
	return s.state.final, nil
}

// finalsOfOthers calls all endpoints except n. failed reports whether one of them failed, and so may name a final block
// later.
func (s *session) finalsOfOthers(ctx context.Context, n *rpc.Node) (named []namedFinal, failed bool, faults []error) {
	for _, other := range s.nodes.Others(n) {
		err := s.nodes.Identified(ctx, other)
		var tip, block *rpc.Header
		if err == nil {
			tip, err = other.Latest(ctx)
		}
		if err == nil {
			block, err = rpc.Finality(s.ingest.config.Finality).At(ctx, other, tip)
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
// name, and that does not contradict the log. If there is none above the current final block, it returns the current
// one and the contradictions.
func (s *session) agreedFinal(ctx context.Context, n *rpc.Node, tip *rpc.Header, named []namedFinal) (uint64, []error) {
	slices.SortFunc(named, func(a, b namedFinal) int { return cmp.Compare(b.block.Number, a.block.Number) })
	var faults []error
	for _, f := range named {
		if f.block.Number <= s.state.final && s.state.head != nil {
			break
		}
		if f.block.Number > tip.Number {
			continue // from a head that n does not have yet
		}
		// tip and the final block were read in two calls, and a reorganisation in between is possible: the number of a
		// block on another branch is unrelated to the log's.
		if ours, known := s.state.hashAt(f.block.Number); known && ours != f.block.Hash {
			faults = append(faults, fmt.Errorf("%s names block %d as final with the hash %s, but it is %s in the log", f.node.Name, f.block.Number, f.block.Hash, ours))
			continue
		}
		// Blocks above the log's head are read from n, so it must have the block, even if it named the block itself: a
		// node can name a block that it does not have.
		if s.state.head == nil || f.block.Number > s.state.head.Number {
			if err := s.inChainOf(ctx, n, f); err != nil {
				faults = append(faults, err)
				continue
			}
		}
		supporters := 0
		for _, o := range named {
			if o.block.Number < f.block.Number {
				continue
			}
			err := error(nil)
			if o.node != f.node {
				err = s.inChainOf(ctx, o.node, f)
			}
			if o.block.Number == f.block.Number && o.block.Hash != f.block.Hash {
				err = fmt.Errorf("%w: %s names block %d as final with the hash %s, and %s with %s",
					rpc.ErrDisagree, f.node.Name, f.block.Number, f.block.Hash, o.node.Name, o.block.Hash)
			}
			if err == nil {
				supporters++
				continue
			}
			if faults = append(faults, err); errors.Is(err, rpc.ErrDisagree) {
				s.ingest.metrics.disagreements.WithLabelValues(o.node.Name).Inc()
			}
		}
		if supporters >= s.ingest.config.Agreement {
			return f.block.Number, nil
		}
	}
	return s.state.final, faults
}

// inChainOf returns nil if the endpoint's chain has the block that is named as final at its height.
func (s *session) inChainOf(ctx context.Context, n *rpc.Node, f namedFinal) error {
	h, err := n.ByNumber(ctx, f.block.Number)
	if err == nil && h.Hash != f.block.Hash {
		err = fmt.Errorf("%w: %s names block %d as final with the hash %s, but it is %s at %s", rpc.ErrDisagree, f.node.Name, f.block.Number, f.block.Hash, h.Hash, n.Name)
	}
	return err
}

// noteFinality shows why nothing more becomes final, and logs it once. nil means that something does, or could.
func (s *session) noteFinality(why error) {
	if errors.Is(why, rpc.ErrHeadMoved) && !errors.Is(why, rpc.ErrNamesHead) && !rpc.NamesNoFinal(why) {
		if s.finality.moved++; s.finality.moved < movedOften {
			return
		}
	} else {
		s.finality.moved = 0
	}
	warning := ""
	switch {
	case why == nil:
	case s.ingest.config.Finality.Depth > 0 && s.ingest.config.Agreement == 1:
		warning = fmt.Sprintf("no block is final: no endpoint gives the one that is %d below its head (%v)", s.ingest.config.Finality.Depth, why)
	case s.ingest.config.Agreement > 1:
		warning = fmt.Sprintf("nothing above block %d becomes final before %d endpoints name the same final block (chain.agreement), and referrals wait: %v",
			s.state.final, s.ingest.config.Agreement, why)
	case errors.Is(why, rpc.ErrNamesHead), errors.Is(why, rpc.ErrHeadMoved):
		warning = fmt.Sprintf("a head that is named as final counts as naming no finalized block, so nothing is final and referrals wait: set chain.finality to a depth, or to instant on a chain whose blocks are final at once (%v)", why)
	case !rpc.NamesNoFinal(why):
		warning = fmt.Sprintf("the final block is not known, so nothing more becomes final and referrals wait: %v", why)
	default:
		warning = fmt.Sprintf("an endpoint names no finalized block, so nothing is final and referrals wait: where none ever will, set chain.finality to a depth (%v)", why)
	}
	s.ingest.note(func(st *Status) { st.finalWarning = warning })
	if warning != "" && s.finality.noted == "" {
		s.ingest.log.Warn("nothing more becomes final", "reason", warning)
	}
	s.finality.noted = warning
}
