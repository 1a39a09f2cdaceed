package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/chainproof"
)

// nodeLog has the fields of a node's log that are compared. Nodes differ in the other fields, such as blockTimestamp,
// so these are not parsed.
type nodeLog struct {
	Address     common.Address `json:"address"`
	Topics      []common.Hash  `json:"topics"`
	Data        hexutil.Bytes  `json:"data"`
	BlockNumber quantity       `json:"blockNumber"`
	BlockHash   common.Hash    `json:"blockHash"`
	TxHash      common.Hash    `json:"transactionHash"`
	Index       quantity       `json:"logIndex"`
	Removed     *bool          `json:"removed"`
}

// quantity is a number as written in JSON-RPC, with or without leading zeros, or a JSON integer.
type quantity uint64

// UnmarshalJSON parses it.
func (q *quantity) UnmarshalJSON(b []byte) error {
	text, base := b, 10
	if hex, is := bytes.CutPrefix(bytes.ToLower(bytes.Trim(b, `"`)), []byte("0x")); is && b[0] == '"' {
		text, base = hex, 16
	}
	n, err := strconv.ParseUint(string(text), base, 64)
	if err != nil {
		return fmt.Errorf("%.40s is not a number of 64 bits", b)
	}
	*q = quantity(n)
	return nil
}

// ofChain returns the node's logs, in chain order. Some nodes return null for an empty list.
func (c *chainCheck) ofChain(ctx context.Context, query ethereum.FilterQuery) ([]types.Log, error) {
	filter := map[string]any{"address": query.Addresses}
	if query.BlockHash != nil {
		filter["blockHash"] = *query.BlockHash
	} else {
		filter["fromBlock"], filter["toBlock"] = (*hexutil.Big)(query.FromBlock), (*hexutil.Big)(query.ToBlock)
	}
	var items []json.RawMessage
	if err := c.call(ctx, func(ctx context.Context) error {
		return c.client.Client().CallContext(ctx, &items, "eth_getLogs", filter)
	}); err != nil {
		return nil, err
	}
	var logs []types.Log
	for i, raw := range items {
		l, err := chainproof.Exactly[nodeLog](raw)
		if err != nil {
			return nil, fmt.Errorf("log %d of the response cannot be read: %w", i, err)
		}
		if l.Removed != nil && *l.Removed {
			continue // it is no longer in a block of the node's chain
		}
		logs = append(logs, types.Log{Address: l.Address, Topics: l.Topics, Data: l.Data, BlockNumber: uint64(l.BlockNumber),
			BlockHash: l.BlockHash, TxHash: l.TxHash, Index: uint(l.Index)})
	}
	slices.SortStableFunc(logs, func(a, b types.Log) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
	})
	return logs, nil
}
