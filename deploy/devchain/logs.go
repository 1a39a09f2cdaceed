package devchain

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/event"
)

// Logs requests the logs of some vaults in one block, by the block's hash, and returns them as a record must contain
// them: for oracles, which use nothing of the code that they judge.
func Logs(
	ctx context.Context, node ethereum.LogFilterer, h *types.Header, vaults ...common.Address,
) (logs []*event.Log, err error) {
	hash := h.Hash()
	answer, err := node.FilterLogs(ctx, ethereum.FilterQuery{BlockHash: &hash, Addresses: vaults})
	if err != nil {
		return nil, fmt.Errorf("ask for the logs of block %d (%s): %w", h.Number, hash, err)
	}
	for i := range answer {
		logs = append(logs, Record(&answer[i], h.Time))
	}
	return logs, nil
}

// Record returns a log as a record must contain it, given the time of its block.
func Record(l *types.Log, time uint64) *event.Log {
	var topics [][]byte
	for _, t := range l.Topics {
		topics = append(topics, t.Bytes())
	}
	return &event.Log{
		Address: l.Address.Bytes(), Topics: topics, Data: l.Data, BlockNumber: l.BlockNumber, BlockHash: l.BlockHash.Bytes(),
		BlockTime: time,
		TxHash:    l.TxHash.Bytes(), TxIndex: uint32(l.TxIndex), LogIndex: uint32(l.Index),
	}
}
