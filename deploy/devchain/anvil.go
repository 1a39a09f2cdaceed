package devchain

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// The methods of anvil that control a development chain: none of them exists on a real node.

// Mine mines n blocks, which are empty unless transactions are pending.
func Mine(ctx context.Context, rpcURL string, n uint64) error {
	return command(ctx, rpcURL, nil, "anvil_mine", hexutil.Uint64(n))
}

// IncreaseTime permanently moves the times of the next blocks forward by d, in whole seconds.
func IncreaseTime(ctx context.Context, rpcURL string, d time.Duration) error {
	return command(ctx, rpcURL, nil, "evm_increaseTime", hexutil.Uint64(d/time.Second))
}

// SetBlockTime makes the time of each new block d later than its parent's, in whole seconds, whatever the wall clock
// says.
func SetBlockTime(ctx context.Context, rpcURL string, d time.Duration) error {
	return command(ctx, rpcURL, nil, "anvil_setBlockTimestampInterval", uint64(d/time.Second))
}

// Snapshot saves the state of the chain; Revert restores it, once.
func Snapshot(ctx context.Context, rpcURL string) (id string, err error) {
	err = command(ctx, rpcURL, &id, "evm_snapshot")
	return id, err
}

// Revert restores a snapshot, which uses up that snapshot and all later ones.
func Revert(ctx context.Context, rpcURL, id string) error {
	var found bool
	if err := command(ctx, rpcURL, &found, "evm_revert", id); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("the chain has no snapshot %s: a snapshot can be reverted to only once", id)
	}
	return nil
}

// Kept is a transaction of the old branch that the new branch contains too, in its Block-th block, counted from 0.
type Kept struct {
	Hash  common.Hash
	Block uint64
}

// Reorg replaces the newest depth blocks with the same number of new ones, empty except for the kept transactions.
func Reorg(ctx context.Context, rpcURL string, depth uint64, kept ...Kept) error {
	pairs := make([][2]any, 0, len(kept))
	for _, k := range kept {
		var raw *hexutil.Bytes
		if err := command(ctx, rpcURL, &raw, "eth_getRawTransactionByHash", k.Hash); err != nil {
			return err
		}
		if raw == nil {
			return fmt.Errorf("the chain has no transaction %s to keep", k.Hash)
		}
		pairs = append(pairs, [2]any{raw, k.Block})
	}
	return command(ctx, rpcURL, nil, "anvil_reorg", depth, pairs)
}

func command(ctx context.Context, rpcURL string, result any, method string, arguments ...any) error {
	client, err := rpc.DialContext(ctx, rpcURL)
	if err != nil {
		return fmt.Errorf("connect to the development chain for %s: %w", method, err)
	}
	defer client.Close()
	if err := client.CallContext(ctx, result, method, arguments...); err != nil {
		return fmt.Errorf("%s on the development chain: %w", method, err)
	}
	return nil
}
