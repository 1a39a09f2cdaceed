package ingest

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

// A fact is a block with all its logs, read from the chain itself.
type fact struct {
	number uint64
	hash   common.Hash
	parent common.Hash
	time   uint64
	logs   []*event.Log
}

// of returns the logs of some contracts.
func (f *fact) of(addresses ...common.Address) (logs []*event.Log) {
	for _, l := range f.logs {
		if slices.Contains(addresses, common.Address(l.GetAddress())) {
			logs = append(logs, l)
		}
	}
	return logs
}

// A witness remembers every block that the chain ever had, so that what ingest wrote about an orphaned branch can be
// checked too.
type witness struct {
	chain *rpc.Client
	seen  map[common.Hash]*fact
}

// note records the chain as it is now, down to the first known block.
func (w *witness) note(ctx context.Context) error {
	for next := any("latest"); ; {
		f, err := w.read(ctx, next)
		if err != nil {
			return err
		}
		if w.seen[f.hash] != nil {
			return nil
		}
		w.seen[f.hash] = f
		if f.number == 0 {
			return nil
		}
		next = f.parent
	}
}

// canonical reads the whole chain again, lowest block first.
func (w *witness) canonical(ctx context.Context) (blocks []*fact, err error) {
	for next := any("latest"); ; {
		f, err := w.read(ctx, next)
		if err != nil {
			return nil, err
		}
		w.seen[f.hash] = f
		blocks, next = append(blocks, f), f.parent
		if f.number == 0 {
			slices.Reverse(blocks)
			return blocks, nil
		}
	}
}

type receiptLog struct {
	Address  common.Address  `json:"address"`
	Topics   []hexutil.Bytes `json:"topics"`
	Data     hexutil.Bytes   `json:"data"`
	Hash     common.Hash     `json:"blockHash"`
	Number   hexutil.Uint64  `json:"blockNumber"`
	TxHash   common.Hash     `json:"transactionHash"`
	TxIndex  hexutil.Uint64  `json:"transactionIndex"`
	LogIndex hexutil.Uint64  `json:"logIndex"`
}

func (l *receiptLog) log(time uint64) *event.Log {
	out := &event.Log{
		Address: l.Address[:], Data: l.Data, BlockNumber: uint64(l.Number), BlockHash: l.Hash[:], BlockTime: time,
		TxHash: l.TxHash[:], TxIndex: uint32(l.TxIndex), LogIndex: uint32(l.LogIndex),
	}
	for _, t := range l.Topics {
		out.Topics = append(out.Topics, t)
	}
	return out
}

// read reads one block, "latest" or by hash, and its logs in two ways, which must agree.
func (w *witness) read(ctx context.Context, which any) (*fact, error) {
	var b struct {
		Number hexutil.Uint64
		Hash   common.Hash
		Parent common.Hash    `json:"parentHash"`
		Time   hexutil.Uint64 `json:"timestamp"`
	}
	method := "eth_getBlockByHash"
	if which == "latest" {
		method = "eth_getBlockByNumber"
	}
	if err := w.chain.CallContext(ctx, &b, method, which, false); err != nil {
		return nil, fmt.Errorf("read block %v: %w", which, err)
	}
	if b.Hash == (common.Hash{}) {
		return nil, fmt.Errorf("the chain has no block %v", which)
	}
	var receipts []struct{ Logs []receiptLog }
	var logs []receiptLog
	if err := w.chain.CallContext(ctx, &receipts, "eth_getBlockReceipts", b.Hash); err != nil {
		return nil, fmt.Errorf("read the receipts of block %s: %w", b.Hash, err)
	}
	if err := w.chain.CallContext(ctx, &logs, "eth_getLogs", map[string]any{"blockHash": b.Hash}); err != nil {
		return nil, fmt.Errorf("read the logs of block %s: %w", b.Hash, err)
	}
	f := &fact{number: uint64(b.Number), hash: b.Hash, parent: b.Parent, time: uint64(b.Time)}
	for _, r := range receipts {
		for i := range r.Logs {
			f.logs = append(f.logs, r.Logs[i].log(f.time))
		}
	}
	for i := range max(len(logs), len(f.logs)) {
		if i >= len(logs) || i >= len(f.logs) || !proto.Equal(logs[i].log(f.time), f.logs[i]) {
			return nil, fmt.Errorf("the chain contradicts itself: block %d (%s) has %d logs in its receipts and %d by its hash, the first difference is log %d", f.number, f.hash, len(f.logs), len(logs), i)
		}
	}
	return f, nil
}
