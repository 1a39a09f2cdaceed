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

// HeadersAtOnce is how many headers are asked for in one batch.
const HeadersAtOnce = 100

// logs asks for the logs that a filter lets through, in an answer of at most so many
// bytes.
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

// logsOfRange reads the logs of blocks from to to, of some addresses or, where
// there are none, of all, in an answer of at most so many bytes.
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
			return nil, fmt.Errorf("%s answers a log of block %d when asked for blocks %d to %d", n.Name, l.BlockNumber, from, to)
		}
	}
	return a, n.plausible(a.logs, addresses)
}

// LogsByHash reads the logs of one block by its hash, so that they cannot be
// another block's; of some addresses or, where there are none, of all. topics
// narrow them further where there are any.
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

// ofBlock gives the logs of an answer about one block. A log of it that the node calls removed says that the block has left
// the node's chain; one of another block says nothing about this one.
func (n *Node) ofBlock(a *answer, h *Header, addresses []common.Address) ([]*event.Log, error) {
	for _, l := range a.removed {
		if len(l.BlockHash) == 0 || bytes.Equal(l.BlockHash, h.Hash[:]) {
			return nil, fmt.Errorf("%s answers a log of block %d (%s) that is removed, so the block has left its chain (log %d)", n.Name, h.Number, h.Hash, l.LogIndex)
		}
	}
	if err := n.belong(a.logs, h); err != nil {
		return nil, err
	}
	return a.logs, n.plausible(a.logs, addresses)
}

// belong checks that logs are those of a block, and gives them its time.
func (n *Node) belong(logs []*event.Log, h *Header) error {
	for _, l := range logs {
		switch {
		case l.BlockNumber != h.Number || !bytes.Equal(l.BlockHash, h.Hash[:]):
			return fmt.Errorf("%s answers a log of block %d (0x%x) when asked for block %d (%s)", n.Name, l.BlockNumber, l.BlockHash, h.Number, h.Hash)
		case l.BlockTime != noTime && l.BlockTime != h.Time:
			return fmt.Errorf("%s answers a log of block %d with the time %d, but the block's is %d", n.Name, l.BlockNumber, l.BlockTime, h.Time)
		}
		l.BlockTime = h.Time
	}
	return nil
}

// plausible checks the logs of an answer against the question and against each
// other.
func (n *Node) plausible(logs []*event.Log, addresses []common.Address) error {
	for i, l := range logs {
		if len(addresses) > 0 && !slices.Contains(addresses, common.Address(l.Address)) {
			return fmt.Errorf("%s answers a log of 0x%x, which was not asked for (block %d, log %d)", n.Name, l.Address, l.BlockNumber, l.LogIndex)
		}
		if i == 0 {
			continue
		}
		if before := logs[i-1]; l.BlockNumber == before.BlockNumber && !bytes.Equal(l.BlockHash, before.BlockHash) {
			return fmt.Errorf("%s answers logs of two blocks with number %d", n.Name, l.BlockNumber)
		}
	}
	return nil
}

// headerAt turns the answer about one block into its header. What cannot be read, or contradicts
// itself, is the fault of the node.
func (n *Node) headerAt(result []byte, which any) (*Header, error) {
	h, err := n.readHeader(result, which)
	if err != nil && !errors.Is(err, ErrNoBlock) {
		return nil, n.babbles(err)
	}
	return h, err
}

// readHeader reads the header in an answer about one block. null is ErrNoBlock.
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

// inBatches asks a question for each of params, in batches that are as long as the
// endpoint takes them, and gives the results in their order to take.
//
// Many providers count each question of a batch, so a batch has no more of them than
// may be asked at once, and one that was too much is asked again by halves. Having
// begun, it waits for an endpoint that wants to be left alone: with what came before
// thrown away, questions that are more than a limit of a minute would never end.
func (n *Node) inBatches(ctx context.Context, method string, params [][]any, take func(i int, result []byte) error) error {
	var waited time.Duration // since the last answer
	for at := 0; at < len(params); {
		some := params[at:min(len(params), at+n.limits.headers(), at+min(n.health.atOnce(), len(params)))]
		results, err := n.exchangeBatch(ctx, method, some)
		var put *limitedError
		if errors.As(err, &put) {
			shorter := put.asked && n.limits.fewerHeaders(len(some))
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
			if r := refusalOf(ctx, err, 0); (r.kind == tooMuch || r.kind == unclear) && n.limits.fewerHeaders(len(some)) {
				continue
			}
			return err
		}
		waited = 0
		n.limits.gaveHeaders(len(some))
		for i, result := range results {
			if err := take(at+i, result); err != nil {
				return err
			}
		}
		at += len(some)
	}
	return nil
}

// Headers reads the headers of blocks from to to, which must be a chain.
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
			return fmt.Errorf("%s answers block %d when asked for block %d", n.Name, h.Number, number)
		}
		if last := len(chain) - 1; last >= 0 && h.Parent != chain[last].Hash {
			return fmt.Errorf("%s answers blocks %d to %d that are no chain: block %d has the parent %s, but block %d is %s",
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

// headersByHash reads the headers of some blocks.
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

// receipts reads all logs of a block out of its receipts.
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
