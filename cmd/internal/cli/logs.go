package cli

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/schemas/contracts"
)

// NodeFlags name the node of the commands for authors of mappings.
type NodeFlags struct {
	RPCFile string `name:"rpc-file" type:"path" placeholder:"FILE" help:"File with the HTTP URL of a node that has the logs of these blocks (default: the URL in NAVLOG_MAPPING_RPC)."`
	RPC     string `name:"rpc" secret:"--rpc-file FILE or NAVLOG_MAPPING_RPC" placeholder:"URL" help:"The node's URL, if it contains no key: other users of this machine can read it in the process list."`
}

// Dial connects to the node, and also returns its URL.
func (f NodeFlags) Dial(ctx context.Context) (*ethclient.Client, string, error) {
	return Node{RPC: f.RPC, File: f.RPCFile, Variable: "NAVLOG_MAPPING_RPC"}.Dial(ctx)
}

// ReadLogs reads the logs of emitters, in shorter ranges if the node rejects one. It calls visit for each range, with
// the logs in the order of the chain and the last block of the range.
func ReadLogs(ctx context.Context, node *ethclient.Client, emitters []common.Address, from, to uint64,
	visit func(logs []types.Log, to uint64) error) error {
	read := func(from, to uint64) ([]types.Log, error) {
		return node.FilterLogs(ctx, ethereum.FilterQuery{Addresses: emitters,
			FromBlock: new(big.Int).SetUint64(from), ToBlock: new(big.Int).SetUint64(to)})
	}
	return contracts.ReadInRanges(ctx, from, to, read, func(logs []types.Log, from, to uint64) error {
		for _, l := range logs {
			if !slices.Contains(emitters, l.Address) || l.BlockNumber < from || l.BlockNumber > to || l.Index >= 1<<24 {
				return fmt.Errorf("the request was for the logs of blocks %d to %d, but the node returned log %d of block %d, "+
					"of contract %s",
					from, to, l.Index, l.BlockNumber, l.Address)
			}
		}
		return visit(logs, to)
	})
}

// Transactions splits logs, which are in the order of the chain, by their transactions.
func Transactions(logs []types.Log) (out [][]types.Log) {
	for start, i := 0, 1; i <= len(logs); i++ {
		if i == len(logs) || logs[i].TxHash != logs[start].TxHash || logs[i].BlockNumber != logs[start].BlockNumber {
			out = append(out, logs[start:i])
			start = i
		}
	}
	return out
}
