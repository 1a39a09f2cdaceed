package rpc

import (
	"context"
	"errors"
	"fmt"
)

// verifiedReach is how many blocks above a verified head are accepted without another check.
const verifiedReach = 64

// farAbove reports whether a head is so far above another one that the other one lags.
func (h *Header) farAbove(other *Header) bool {
	return h.Number > other.Number && h.Number-other.Number >= lagBlocks && h.Time > other.Time &&
		h.Time-other.Time >= lagSeconds
}

// sawHead notes the head of an endpoint. A head far above that of another endpoint would make the other one lag, and so
// take away its turn and its vote on reorganisations. Any number is easily claimed, so such a head counts only if its
// endpoint also has the block, and a block that the other one lacks; otherwise that is the error.
func (p *Pool) sawHead(ctx context.Context, n *Node, head *Header) error {
	var best *Header
	since := p.clock.now().Add(-headMaxAge)
	for _, other := range p.all {
		f := other.health.snapshot()
		h := f.head
		if other == n || f.wrong != "" || h == nil || f.headAt.Before(since) {
			continue
		}
		if head.farAbove(h) {
			if err := n.verifyHead(ctx, head, h.Number+1); err != nil {
				return n.discardHead(err)
			}
		}
		if !h.farAbove(head) {
			continue
		}
		if h = other.latestVerifiedHead(ctx, h, head.Number+1); h == nil || !h.farAbove(head) {
			continue
		}
		if best == nil || h.Number > best.Number {
			best = h
		}
	}
	n.health.sawHead(head, best)
	if seen := p.seenHead.Load(); n == p.inUse.Load() && (seen == nil || seen.number != head.Number) {
		p.seenHead.Store(&seenBlock{head.Number, p.clock.now()})
	}
	return nil
}

// hasBlocksBelow returns nil if the node has the block below its head, by hash, and the block with the number lacked,
// which other endpoints lack, and ErrNoBlock if it does not.
func (n *Node) hasBlocksBelow(ctx context.Context, head *Header, lacked uint64) error {
	below, err := n.ByHash(ctx, head.Parent, head.Number-1)
	if err == nil && below.Time > head.Time {
		err = fmt.Errorf("its parent is newer: %w", ErrNoBlock)
	}
	if err == nil {
		_, err = n.ByNumber(ctx, min(lacked, head.Number-1))
	}
	switch {
	case errors.Is(err, ErrNoBlock):
		return fmt.Errorf("%s names block %d as its head and does not have the blocks up to it: %w", n.Name, head.Number, err)
	case err != nil:
		return err
	}
	n.health.set(func(h *health) { h.verifiedHead = head })
	return nil
}

// discardHead discards the head of a node that does not have it: the node lags until its next head. A node that merely
// failed to respond keeps it.
func (n *Node) discardHead(err error) error {
	if errors.Is(err, ErrNoBlock) {
		n.health.set(func(h *health) {
			now := h.now()
			h.head, h.verifiedHead, h.lagReason, h.lastError = nil, nil, err.Error(), err.Error()
			h.fault, h.unstableAt = now, now
		})
	}
	return err
}

// latestVerifiedHead returns an earlier head of the node if the node has it. Otherwise, since its blocks may have been
// reorganised, it returns the current head if the node has that, or nil.
func (n *Node) latestVerifiedHead(ctx context.Context, head *Header, lacked uint64) *Header {
	if n.verifyHead(ctx, head, lacked) == nil {
		return head
	}
	head, err := n.latest(ctx)
	if err == nil && head.Number >= lacked {
		err = n.discardHead(n.hasBlocksBelow(ctx, head, lacked))
	}
	if err != nil {
		return nil
	}
	n.health.set(func(h *health) { h.head, h.headAt = head, h.now() })
	return head
}

// verifyHead is like hasBlocksBelow, but makes no call if the head follows one that was already verified.
func (n *Node) verifyHead(ctx context.Context, head *Header, lacked uint64) error {
	b := n.health.snapshot().verifiedHead
	if b != nil && head.Number >= b.Number && head.Number-b.Number <= verifiedReach {
		return nil
	}
	return n.hasBlocksBelow(ctx, head, lacked)
}
