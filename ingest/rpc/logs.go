package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/schemas/event"
)

// HeadersAtOnce is the maximum number of headers in one batch.
const HeadersAtOnce = 100

// logs reads the logs that match a filter, in a response of at most most bytes.
func (n *Node) logs(ctx context.Context, most int, filter map[string]any) (*answer, error) {
	result, err := n.exchangeUpTo(ctx, most, "eth_getLogs", filter)
	if err != nil {
		return nil, err
	}
	a, err := decodeLogs(result)
	if err != nil {
		return nil, fmt.Errorf("eth_getLogs at %s: %w", n.Name, err)
	}
	return a, nil
}

// logsOfRange reads the logs of blocks from to to, from the given addresses or, if there are none, from all, in a
// response of at most most bytes.
func (n *Node) logsOfRange(ctx context.Context, most int, from, to uint64, addresses []common.Address) (*answer, error) {
	filter := map[string]any{"fromBlock": hexutil.Uint64(from), "toBlock": hexutil.Uint64(to)}
	if len(addresses) > 0 {
		filter["address"] = addresses
	}
	a, err := n.logs(ctx, most, filter)
	if err != nil {
		return nil, err
	}
	for _, l := range a.logs {
		if l.BlockNumber < from || l.BlockNumber > to {
			return nil, fmt.Errorf("%s returned a log of block %d when asked for blocks %d to %d", n.Name, l.BlockNumber, from, to)
		}
	}
	return a, n.plausible(a.logs, addresses)
}

// LogsByHash reads the logs of one block by its hash, so that they cannot be another block's, from the given addresses
// or, if there are none, from all. topics, if any, narrow them further.
func (n *Node) LogsByHash(ctx context.Context, h *Header, addresses []common.Address, topics ...common.Hash) ([]*event.Log, error) {
	filter := map[string]any{"blockHash": h.Hash}
	if len(addresses) > 0 {
		filter["address"] = addresses
	}
	if len(topics) > 0 {
		filter["topics"] = [][]common.Hash{topics}
	}
	a, err := n.logs(ctx, maxAnswer, filter)
	if err != nil {
		return nil, err
	}
	return n.ofBlock(a, h, addresses)
}

// ofBlock returns the logs of a response about one block. If the node marks a log of this block as removed, the block
// has left the node's chain, which is an error; removed logs of other blocks are ignored.
func (n *Node) ofBlock(a *answer, h *Header, addresses []common.Address) ([]*event.Log, error) {
	for _, l := range a.removed {
		if len(l.BlockHash) == 0 || bytes.Equal(l.BlockHash, h.Hash[:]) {
			return nil, fmt.Errorf("%s returned a log of block %d (%s) that is removed, so the block has left its chain (log %d)", n.Name, h.Number, h.Hash, l.LogIndex)
		}
	}
	if err := n.belong(a.logs, h); err != nil {
		return nil, err
	}
	return a.logs, n.plausible(a.logs, addresses)
}

// belong checks that logs belong to a block, and sets their time to the block's.
func (n *Node) belong(logs []*event.Log, h *Header) error {
	for _, l := range logs {
		switch {
		case l.BlockNumber != h.Number || !bytes.Equal(l.BlockHash, h.Hash[:]):
			return fmt.Errorf("%s returned a log of block %d (0x%x) when asked for block %d (%s)", n.Name, l.BlockNumber, l.BlockHash, h.Number, h.Hash)
		case l.BlockTime != noTime && l.BlockTime != h.Time:
			return fmt.Errorf("%s returned a log of block %d with the time %d, but the block's is %d", n.Name, l.BlockNumber, l.BlockTime, h.Time)
		}
		l.BlockTime = h.Time
	}
	return nil
}

// plausible checks the logs of a response against the request and against each other.
func (n *Node) plausible(logs []*event.Log, addresses []common.Address) error {
	for i, l := range logs {
		if len(addresses) > 0 && !slices.Contains(addresses, common.Address(l.Address)) {
			return fmt.Errorf("%s returned a log of 0x%x, which was not requested (block %d, log %d)", n.Name, l.Address, l.BlockNumber, l.LogIndex)
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

// headerAt returns the header in a response about one block. A header that cannot be decoded or is inconsistent counts
// as a failure of the node.
func (n *Node) headerAt(result []byte, which any) (*Header, error) {
	h, err := n.readHeader(result, which)
	if err != nil && !errors.Is(err, ErrNoBlock) {
		return nil, n.fails(err)
	}
	return h, err
}

// readHeader decodes the header in a response about one block. It returns ErrNoBlock for null.
func (n *Node) readHeader(result []byte, which any) (*Header, error) {
	h, err := decodeHeader(result)
	if err == nil && h == nil {
		err = ErrNoBlock
	}
	if err == nil {
		var plain bool
		h.Sealed, plain = sealed(result, h.Hash)
		err = n.seals.saw(h, plain)
	}
	if err != nil {
		return nil, fmt.Errorf("block %v at %s: %w", which, n.Name, err)
	}
	return h, nil
}

// inBatches makes a call for each of params, in batches as long as the endpoint accepts, and passes the results to take
// in their order.
//
// Many providers count each call of a batch, so a batch is no longer than the rate limit allows at once, and one that
// was too much is halved and repeated. Once it has results, inBatches waits for an endpoint that limits it: if it threw
// them away, more calls than the limit of a minute could never be completed.
func (n *Node) inBatches(ctx context.Context, method string, params [][]any, take func(i int, result []byte) error) error {
	var waited time.Duration // since the last response
	for at := 0; at < len(params); {
		some := params[at:min(len(params), at+n.limits.callsAtOnce(), at+min(n.health.atOnce(), len(params)))]
		results, err := n.exchangeBatch(ctx, method, some)
		var put *limitedError
		if errors.As(err, &put) {
			shorter := put.asked && n.limits.fewerCalls(len(some))
			pause := n.health.rests()
			if waited += pause; at == 0 && !shorter || waited > longestPause {
				return err
			}
			if err := n.health.sleep(ctx, pause); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			if r := refusalOf(ctx, err); (r.kind == tooMuch || r.kind == unclear) && n.limits.fewerCalls(len(some)) {
				continue
			}
			return err
		}
		waited = 0
		n.limits.gaveCalls(len(some))
		for i, result := range results {
			if err := take(at+i, result); err != nil {
				return err
			}
		}
		at += len(some)
	}
	return nil
}

// Headers reads the headers of blocks from to to, which must form a chain.
func (n *Node) Headers(ctx context.Context, from, to uint64) ([]*Header, error) {
	params := make([][]any, to-from+1)
	for i := range params {
		params[i] = []any{hexutil.Uint64(from + uint64(i)), false}
	}
	chain := make([]*Header, 0, len(params))
	err := n.inBatches(ctx, "eth_getBlockByNumber", params, func(i int, result []byte) error {
		h, err := n.headerAt(result, params[i][0])
		if err != nil {
			return err
		}
		if number := from + uint64(i); h.Number != number {
			return fmt.Errorf("%s returned block %d when asked for block %d", n.Name, h.Number, number)
		}
		if last := len(chain) - 1; last >= 0 && h.Parent != chain[last].Hash {
			return fmt.Errorf("%s returned blocks %d to %d that do not form a chain: block %d has the parent %s, but block %d is %s",
				n.Name, from, to, h.Number, h.Parent, chain[last].Number, chain[last].Hash)
		}
		chain = append(chain, h)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return chain, nil
}

// headersByHash reads the headers of blocks by their hashes.
func (n *Node) headersByHash(ctx context.Context, hashes []common.Hash) (map[common.Hash]*Header, error) {
	params := make([][]any, len(hashes))
	for i, hash := range hashes {
		params[i] = []any{hash, false}
	}
	found := make(map[common.Hash]*Header, len(hashes))
	err := n.inBatches(ctx, "eth_getBlockByHash", params, func(i int, result []byte) error {
		h, err := n.headerAt(result, hashes[i])
		if err == nil && h.Hash != hashes[i] {
			err = fmt.Errorf("block %s at %s: %w", hashes[i], n.Name, ErrNoBlock)
		}
		if err == nil {
			found[h.Hash] = h
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// receipts reads all logs of a block from its receipts.
func (n *Node) receipts(ctx context.Context, h *Header) ([]*event.Log, error) {
	result, err := n.exchangeOptional(ctx, "eth_getBlockReceipts", h.Hash)
	if err != nil {
		return nil, err
	}
	a, err := decodeReceipts(result)
	if err != nil {
		return nil, fmt.Errorf("eth_getBlockReceipts at %s: %w", n.Name, err)
	}
	return n.ofBlock(a, h, nil)
}
