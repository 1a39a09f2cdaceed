package cli

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
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

// widestTry is the number of blocks in one request for logs, until the node rejects it. Many providers allow this many.
const widestTry = 10_000

// ReadLogs reads the logs of contracts, in shorter ranges if the node rejects one. It calls visit for each range, with
// the logs in the order of the chain and the last block of the range.
func ReadLogs(ctx context.Context, node *ethclient.Client, contracts []common.Address, from, to uint64,
	visit func(logs []types.Log, to uint64) error) error {
	for at, width := from, uint64(widestTry); ; {
		end := to
		if end-at >= width {
			end = at + width - 1
		}
		logs, err := node.FilterLogs(ctx, ethereum.FilterQuery{Addresses: contracts,
			FromBlock: new(big.Int).SetUint64(at), ToBlock: new(big.Int).SetUint64(end)})
		if err != nil && width > 1 && ctx.Err() == nil {
			width /= 2
			continue
		}
		if err != nil {
			return fmt.Errorf("request the logs of blocks %d to %d from the node: %w", at, end, err)
		}
		logs = slices.DeleteFunc(logs, func(l types.Log) bool { return l.Removed })
		for _, l := range logs {
			if !slices.Contains(contracts, l.Address) || l.BlockNumber < at || l.BlockNumber > end || l.Index >= 1<<24 {
				return fmt.Errorf("the request was for the logs of blocks %d to %d, but the node returned log %d of block %d, "+
					"of contract %s",
					at, end, l.Index, l.BlockNumber, l.Address)
			}
		}
		slices.SortStableFunc(logs, func(a, b types.Log) int {
			return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
		})
		if err := visit(logs, end); err != nil {
			return err
		}
		if end == to {
			return nil
		}
		at, width = end+1, min(2*width, widestTry)
	}
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
