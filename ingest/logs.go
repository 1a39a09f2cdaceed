package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/event"
)

// headersAtOnce bounds one batch call for block times.
const headersAtOnce = 100

type rpcLog struct {
	Address   common.Address  `json:"address"`
	Topics    []common.Hash   `json:"topics"`
	Data      hexutil.Bytes   `json:"data"`
	Number    hexutil.Uint64  `json:"blockNumber"`
	BlockHash common.Hash     `json:"blockHash"`
	BlockTime *hexutil.Uint64 `json:"blockTimestamp"` // not every node gives it
	TxHash    common.Hash     `json:"transactionHash"`
	TxIndex   hexutil.Uint    `json:"transactionIndex"`
	Index     hexutil.Uint    `json:"logIndex"`
	Removed   bool            `json:"removed"`
}

func (l *rpcLog) record(time uint64) *event.Log {
	topics := make([][]byte, len(l.Topics))
	for i := range l.Topics {
		topics[i] = l.Topics[i][:]
	}
	return &event.Log{
		Address: l.Address[:], Topics: topics, Data: l.Data, BlockNumber: uint64(l.Number), BlockHash: l.BlockHash[:], BlockTime: time,
		TxHash: l.TxHash[:], TxIndex: uint32(l.TxIndex), LogIndex: uint32(l.Index),
	}
}

// logsOfBlock reads the logs of one block by its hash. An empty answer for a
// block whose bloom may hold one of the addresses is asked again, of the next
// endpoint first, and believed only while the block is still in the chain:
// lagging nodes answer [] for blocks that they do not know.
func (s *session) logsOfBlock(ctx context.Context, n *node, h *header, addresses []common.Address) ([]*event.Log, error) {
	logs, err := n.logsOfBlock(ctx, h, addresses)
	if err != nil || len(logs) > 0 || !mayHold(h.Bloom, addresses) {
		return logs, err
	}
	if other, err := s.nodes.other(ctx, n); err == nil {
		if logs, err = other.logsOfBlock(ctx, h, addresses); err == nil && len(logs) > 0 {
			return logs, nil
		}
	}
	if logs, err = n.logsOfBlock(ctx, h, addresses); err != nil || len(logs) > 0 {
		return logs, err
	}
	now, err := n.byNumber(ctx, h.Number)
	if err != nil {
		return nil, err
	}
	if now.Hash != h.Hash {
		return nil, fmt.Errorf("block %d (%s) left the chain of %s while its logs were read", h.Number, h.Hash, n.name)
	}
	return nil, nil
}

func mayHold(bloom types.Bloom, addresses []common.Address) bool {
	return slices.ContainsFunc(addresses, func(a common.Address) bool { return bloom.Test(a[:]) })
}

func (n *node) logsOfBlock(ctx context.Context, h *header, addresses []common.Address) ([]*event.Log, error) {
	var answer []rpcLog
	if err := n.call(ctx, &answer, "eth_getLogs", map[string]any{"blockHash": h.Hash, "address": addresses}); err != nil {
		return nil, err
	}
	logs := make([]*event.Log, len(answer))
	for i := range answer {
		l := &answer[i]
		if uint64(l.Number) != h.Number || l.BlockHash != h.Hash {
			return nil, fmt.Errorf("%s answers a log of block %d (%s) when asked for block %d (%s)", n.name, l.Number, l.BlockHash, h.Number, h.Hash)
		}
		if err := n.plausible(answer, i, addresses); err != nil {
			return nil, err
		}
		logs[i] = l.record(h.Time)
	}
	return logs, nil
}

// logsOfRange reads the logs of final blocks from to last.Number. The answer
// must agree with itself and with the header of the last block.
func (n *node) logsOfRange(ctx context.Context, from uint64, last *header, addresses []common.Address) ([]rpcLog, error) {
	var logs []rpcLog
	filter := map[string]any{"fromBlock": hexutil.Uint64(from), "toBlock": hexutil.Uint64(last.Number), "address": addresses}
	if err := n.call(ctx, &logs, "eth_getLogs", filter); err != nil {
		return nil, err
	}
	for i := range logs {
		l := &logs[i]
		if number := uint64(l.Number); number < from || number > last.Number {
			return nil, fmt.Errorf("%s answers a log of block %d when asked for blocks %d to %d", n.name, number, from, last.Number)
		}
		if uint64(l.Number) == last.Number && l.BlockHash != last.Hash {
			return nil, fmt.Errorf("%s answers a log of block %d with hash %s, but the block's hash is %s", n.name, l.Number, l.BlockHash, last.Hash)
		}
		if err := n.plausible(logs, i, addresses); err != nil {
			return nil, err
		}
	}
	return logs, nil
}

// plausible checks log i of an answer by itself and against the one before it.
func (n *node) plausible(logs []rpcLog, i int, addresses []common.Address) error {
	l := &logs[i]
	switch {
	case l.Removed:
		return fmt.Errorf("%s answers a removed log (block %d, log %d)", n.name, l.Number, l.Index)
	case !slices.Contains(addresses, l.Address):
		return fmt.Errorf("%s answers a log of %s, which was not asked for (block %d, log %d)", n.name, l.Address, l.Number, l.Index)
	case len(l.Topics) > 4:
		return fmt.Errorf("%s answers a log with %d topics (block %d, log %d)", n.name, len(l.Topics), l.Number, l.Index)
	case i == 0:
		return nil
	}
	switch before := &logs[i-1]; {
	case l.Number < before.Number || (l.Number == before.Number && l.Index <= before.Index):
		return fmt.Errorf("%s answers logs out of order (block %d, log %d after block %d, log %d)", n.name, l.Number, l.Index, before.Number, before.Index)
	case l.Number == before.Number && l.BlockHash != before.BlockHash:
		return fmt.Errorf("%s answers logs of two blocks with number %d", n.name, l.Number)
	}
	return nil
}

// dated turns the logs of a range into records, whose block times come from
// the logs where the node gives them and from the headers otherwise.
func (n *node) dated(ctx context.Context, logs []rpcLog) ([]*event.Log, error) {
	times := map[common.Hash]uint64{}
	var missing []common.Hash
	for i := range logs {
		l := &logs[i]
		if l.BlockTime != nil {
			times[l.BlockHash] = uint64(*l.BlockTime)
		} else if _, asked := times[l.BlockHash]; !asked {
			times[l.BlockHash] = 0
			missing = append(missing, l.BlockHash)
		}
	}
	for some := range slices.Chunk(missing, headersAtOnce) {
		if err := n.blockTimes(ctx, some, times); err != nil {
			return nil, err
		}
	}
	records := make([]*event.Log, len(logs))
	for i := range logs {
		records[i] = logs[i].record(times[logs[i].BlockHash])
	}
	return records, nil
}

func (n *node) blockTimes(ctx context.Context, hashes []common.Hash, times map[common.Hash]uint64) error {
	which := make([]any, len(hashes))
	for i, hash := range hashes {
		which[i] = hash
	}
	headers, err := n.headers(ctx, "eth_getBlockByHash", which)
	if err != nil {
		return err
	}
	for i, hash := range hashes {
		if headers[i].Hash != hash {
			return fmt.Errorf("block %s at %s: %w", hash, n.name, errNoBlock)
		}
		times[hash] = headers[i].Time
	}
	return nil
}

// chainTo reads the headers of blocks from to last.Number, which must be one
// chain that ends with last.
func (n *node) chainTo(ctx context.Context, from uint64, last *header) ([]*header, error) {
	var which []any
	for number := from; number < last.Number; number++ {
		which = append(which, hexutil.Uint64(number))
	}
	var chain []*header
	for some := range slices.Chunk(which, headersAtOnce) {
		headers, err := n.headers(ctx, "eth_getBlockByNumber", some)
		if err != nil {
			return nil, err
		}
		chain = append(chain, headers...)
	}
	chain = append(chain, last)
	for i, h := range chain {
		if h.Number != from+uint64(i) || i > 0 && h.Parent != chain[i-1].Hash {
			return nil, fmt.Errorf("%s answers blocks %d to %d that are no chain: block %d is %s, its parent %s", n.name, from, last.Number, h.Number, h.Hash, h.Parent)
		}
	}
	return chain, nil
}

// headers reads several headers in one call.
func (n *node) headers(ctx context.Context, method string, which []any) ([]*header, error) {
	params := make([][]any, len(which))
	for i := range which {
		params[i] = []any{which[i], false}
	}
	answers, err := n.exchangeBatch(ctx, method, params)
	if err != nil {
		return nil, err
	}
	headers := make([]*header, len(which))
	for i := range which {
		var h *rpcHeader
		if err := json.Unmarshal(answers[i], &h); err != nil {
			return nil, fmt.Errorf("%s at %s: the result cannot be read: %w", method, n.name, err)
		}
		if headers[i], err = n.headerOf(h, which[i]); err != nil {
			return nil, err
		}
	}
	return headers, nil
}
