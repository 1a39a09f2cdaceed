package rpc

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/schemas/event"
)

// logs reads the logs that match a filter, from the given addresses or, if there are none, from all. It reads them
// twice if the first response is null: some nodes write an empty list so, and others return it when they fail for a
// moment.
func (n *Node) logs(
	ctx context.Context, most int, filter map[string]any, addresses []common.Address,
) (*answer, error) {
	if len(addresses) > 0 {
		filter["address"] = addresses
	}
	c := call{method: "eth_getLogs", params: []any{filter}, maxBytes: most}
	a, err := asked(ctx, n, c, decodeLogs)
	if err == nil && a.null {
		a, err = asked(ctx, n, c, decodeLogs)
	}
	return a, err
}

func (n *Node) logsOfRange(
	ctx context.Context, most int, from, to uint64, addresses []common.Address,
) (*answer, error) {
	filter := map[string]any{"fromBlock": hexutil.Uint64(from), "toBlock": hexutil.Uint64(to)}
	a, err := n.logs(ctx, most, filter, addresses)
	if err != nil {
		return nil, err
	}
	for _, l := range a.logs {
		if l.BlockNumber < from || l.BlockNumber > to {
			return nil, fmt.Errorf("%s returned a log of block %d when asked for blocks %d to %d", n.Name, l.BlockNumber, from,
				to)
		}
	}
	return a, n.plausible(a.logs, addresses)
}

// logsByHash reads the logs of one block by its hash. If the node does not respond, this call rests, at first for as
// long as a timeout takes, so that half of the time is left for other calls.
func (n *Node) logsByHash(ctx context.Context, h *Header, addresses []common.Address) ([]*event.Log, error) {
	a, err := n.logs(ctx, maxAnswer, map[string]any{"blockHash": h.Hash}, addresses)
	if err != nil {
		if refusalOf(ctx, err).kind == unanswered {
			n.health.suspend(&n.health.logs, callTimeout, longestSilence, err)
		}
		return nil, err
	}
	n.health.resume(&n.health.logs)
	return n.logsOfResponse(a, h, addresses)
}

// logsOfResponse returns the logs of a response about one block. If the node marks a log of this block as removed, the
// block has left the node's chain, which is an error; removed logs of other blocks are ignored.
func (n *Node) logsOfResponse(a *answer, h *Header, addresses []common.Address) ([]*event.Log, error) {
	for _, l := range a.removed {
		if len(l.BlockHash) == 0 || bytes.Equal(l.BlockHash, h.Hash[:]) {
			return nil, fmt.Errorf("%s returned a log of block %d (%s) that is removed, so the block has left its chain (log "+
				"%d)", n.Name, h.Number, h.Hash, l.LogIndex)
		}
	}
	if err := n.checkBlock(a.logs, h); err != nil {
		return nil, err
	}
	return a.logs, n.plausible(a.logs, addresses)
}

// checkBlock checks that logs belong to a block, and sets their time to the block's.
func (n *Node) checkBlock(logs []*event.Log, h *Header) error {
	for _, l := range logs {
		switch {
		case l.BlockNumber != h.Number || !bytes.Equal(l.BlockHash, h.Hash[:]):
			return fmt.Errorf("%s returned a log of block %d (0x%x) when asked for block %d (%s)", n.Name, l.BlockNumber,
				l.BlockHash, h.Number, h.Hash)
		case l.BlockTime != noTime && l.BlockTime != h.Time:
			return fmt.Errorf("%s returned a log of block %d with the time %d, but the block's is %d", n.Name, l.BlockNumber,
				l.BlockTime, h.Time)
		}
		l.BlockTime = h.Time
	}
	return nil
}

func (n *Node) plausible(logs []*event.Log, addresses []common.Address) error {
	for i, l := range logs {
		if len(addresses) > 0 && !slices.Contains(addresses, common.Address(l.Address)) {
			return fmt.Errorf("%s returned a log of 0x%x, which was not requested (block %d, log %d)", n.Name, l.Address,
				l.BlockNumber, l.LogIndex)
		}
		if i == 0 {
			continue
		}
		if before := logs[i-1]; l.BlockNumber == before.BlockNumber && !bytes.Equal(l.BlockHash, before.BlockHash) {
			return fmt.Errorf("%s returned logs of two blocks with number %d", n.Name, l.BlockNumber)
		}
	}
	return nil
}
