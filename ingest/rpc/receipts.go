package rpc

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/event"
)

// Receipts reads the header of a block with all its fields, and all its receipts, without proof. It returns
// ErrNoReceipts if the node does not return receipts, and a *chainproof.UnprovableError for a header without a receipts
// root.
func (n *Node) Receipts(ctx context.Context, hash common.Hash) (*types.Header, chainproof.Receipts, error) {
	raw, err := n.exchange(ctx, call{method: "eth_getBlockByHash", params: []any{hash, false}})
	if err != nil {
		return nil, nil, err
	}
	header, err := fullHeader(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("block %s at %s: %w", hash, n.Name, err)
	}
	raw, err = n.exchange(ctx, receiptsOf(hash))
	if hasCode(err, methodNotFound, methodNotSupported) {
		return nil, nil, fmt.Errorf("block %s at %s: %w: %w", hash, n.Name, ErrNoReceipts, err)
	}
	if err != nil {
		return nil, nil, err
	}
	receipts, err := chainproof.ReadReceipts(raw)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("block %s at %s: %w", hash, n.Name, err)
	case receipts == nil:
		return nil, nil, fmt.Errorf("block %s at %s: %w", hash, n.Name, ErrNoReceipts)
	}
	return header, receipts, nil
}

// fullHeader decodes a header with all its fields. It returns ErrNoBlock for null.
func fullHeader(raw []byte) (*types.Header, error) {
	switch h, err := decodeHeader(raw); { // it bounds the number of members
	case err != nil:
		return nil, err
	case h == nil:
		return nil, ErrNoBlock
	}
	return chainproof.ReadHeader(raw)
}

// receipts reads the logs of a block from its receipts.
func (n *Node) receipts(ctx context.Context, h *Header, addresses []common.Address) ([]*event.Log, error) {
	a, err := asked(ctx, n, receiptsOf(h.Hash), decodeReceipts)
	if err != nil {
		return nil, err
	}
	logs, err := n.logsOfResponse(a, h, nil)
	return logsOfAddresses(logs, addresses), err
}

func receiptsOf(hash common.Hash) call {
	return call{method: "eth_getBlockReceipts", params: []any{hash}, optional: true}
}

// LogsOf returns the logs of a transaction in their order, from whichever block of the node's chain contains it; none
// if no block does. A log has no time if the node does not return it.
func (n *Node) LogsOf(ctx context.Context, tx common.Hash) ([]*event.Log, error) {
	a, err := asked(ctx, n, call{method: "eth_getTransactionReceipt", params: []any{tx}}, decodeReceipt)
	if err != nil {
		return nil, err
	}
	for _, l := range a.logs {
		if l.BlockTime == noTime {
			l.BlockTime = 0
		}
	}
	return a.logs, nil
}
