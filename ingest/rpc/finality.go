package rpc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Errors of Finality.At.
var (
	// ErrNamesHead means that a node names its head, or a block above it, as final. On a chain with reorganisations
	// that is not finality.
	ErrNamesHead = errors.New("the node names its head as final")
	// ErrHeadMoved means that the chain advanced during the call for the final block, so that it is unknown whether the
	// node named its head.
	ErrHeadMoved = errors.New("the head advanced during the call for the final block")
)

const (
	// namedHeadDistrust is how long a node that named its head as final is not trusted: the head that one of several
	// backends names looks like a final block if another one returned a newer head.
	namedHeadDistrust = 10 * time.Minute
	// namedAboveDistrust is how long a node that named a block above its head is not trusted.
	namedAboveDistrust = 20 * time.Second
	// namedHeadRetry is the pause between two calls to such a node.
	namedHeadRetry = 10 * time.Second
)

// finalized returns the block that the node calls final. A failure does not count against the node, which may still
// return blocks and logs: only this call is suspended, for 1 s after the first failure, doubling to 1 min. Until then
// finalized returns the last error. NamesNoFinal recognises the error of a node that names no final block.
func (n *Node) finalized(ctx context.Context) (*Header, error) {
	if f := n.health.snapshot(); f.finality.until.After(n.health.now()) {
		return nil, f.finality.err
	}
	h, err := n.read(ctx, call{method: "eth_getBlockByNumber", params: []any{"finalized", false}, optional: true})
	switch {
	case ctx.Err() != nil:
	case err == nil, isAnswer(err):
		n.health.resume(&n.health.finality)
	default:
		n.health.suspend(&n.health.finality, firstQuarantine, lastQuarantine, err)
	}
	return h, err
}

func (n *Node) finalBelow(ctx context.Context, tip *Header) (*Header, error) {
	now, f := n.health.now(), n.health.snapshot()
	final, err := n.finalized(ctx)
	if err != nil {
		return nil, err
	}
	if final.Number >= tip.Number && final.Number > 0 {
		// Only reading the head again distinguishes a node that names its head from a chain that advanced.
		head, err := n.Latest(ctx)
		if err != nil {
			return nil, err
		}
		if head.Number > final.Number {
			return nil, fmt.Errorf("block %d at %s: %w", final.Number, n.Name, ErrHeadMoved)
		}
		if head.Number < final.Number { // two backends, one of which is behind; maybe the other one names its head
			n.health.set(func(h *health) { h.finalTrustedAt = later(h.finalTrustedAt, now.Add(namedAboveDistrust)) })
			return nil, fmt.Errorf("%w: it names block %d, and its head is block %d at %s", ErrNamesHead, final.Number,
				head.Number, n.Name)
		}
		err = n.namesHead(head)
		n.health.set(func(h *health) {
			h.finality, h.finalTrustedAt = suspension{until: now.Add(namedHeadRetry), err: err}, now.Add(namedHeadDistrust)
		})
		return nil, err
	}
	if now.Before(f.finalTrustedAt) {
		return nil, n.namesHead(tip)
	}
	return final, nil
}

func (n *Node) namesHead(head *Header) error {
	return fmt.Errorf("%w: its head is block %d at %s", ErrNamesHead, head.Number, n.Name)
}

// finalUpTo returns the final block, or tip if the final block is above it and the chain goes through tip.
func (n *Node) finalUpTo(ctx context.Context, tip *Header) (*Header, error) {
	final, err := n.finalized(ctx)
	if err != nil || final.Number < tip.Number {
		return final, err
	}
	through, err := n.descendsFrom(ctx, final, tip)
	switch {
	case err != nil:
		return nil, err
	case !through:
		return nil, fmt.Errorf("block %d at %s: %w", final.Number, n.Name, ErrHeadMoved)
	}
	return tip, nil
}

// Finality is the rule by which blocks become final.
type Finality struct {
	// Depth: the block with number head - Depth is final. 0 means the node's finalized tag.
	Depth uint64
	// Instant: the tag may name the head itself. Otherwise a node that names its head counts as naming no final block.
	Instant bool
}

// Below returns the block that is Depth below another one.
func (f Finality) Below(number uint64) uint64 { return number - min(number, f.Depth) }

// At returns the block that is final at one endpoint whose head is tip. NamesNone recognises the error of an endpoint
// that names none.
func (f Finality) At(ctx context.Context, n *Node, tip *Header) (*Header, error) {
	switch {
	case f.Depth == 0 && f.Instant:
		return n.finalUpTo(ctx, tip)
	case f.Depth == 0:
		return n.finalBelow(ctx, tip)
	}
	if err := n.hasBlocksBelow(ctx, tip, tip.Number); err != nil && tip.Number > 0 {
		return nil, err
	}
	return n.ByNumber(ctx, f.Below(tip.Number))
}

// NamesNone reports whether an error of Finality.At means that the endpoint names no final block at the moment.
func NamesNone(err error) bool { return errors.Is(err, ErrHeadMoved) || NamesNoFinal(err) }

// NamesNoFinal reports whether a node has no finalized block, names its head as final, or does not know the tag, which
// it says with null or one of several messages. It is false if the node merely failed.
func NamesNoFinal(err error) bool {
	answer, is := errors.AsType[*rpcError](err)
	return errors.Is(err, ErrNoBlock) || errors.Is(err, ErrNamesHead) ||
		hasCode(err, invalidParams, methodNotSupported) || is && noFinalText.MatchString(answer.message())
}

var noFinalText = regexp.MustCompile(`finali[sz]ed|not supported|unsupported|unknown block|block not found|invalid block|hex string`)
