package ingest

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
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

// A blockRecorder remembers every block that the chain ever had, so that what ingest wrote about an orphaned branch can
// be checked too.
type blockRecorder struct {
	chain *ethclient.Client
	seen  map[common.Hash]*fact
}

// note records the chain as it is now, down to the first known block.
func (r *blockRecorder) note(ctx context.Context) error {
	_, err := r.walk(ctx, func(hash common.Hash) bool { return r.seen[hash] != nil })
	return err
}

// canonical reads the whole chain again, lowest block first.
func (r *blockRecorder) canonical(ctx context.Context) (blocks []*fact, err error) {
	blocks, err = r.walk(ctx, func(common.Hash) bool { return false })
	slices.Reverse(blocks)
	return blocks, err
}

// walk reads the chain from its head down to its first block, or to one that is known.
func (r *blockRecorder) walk(ctx context.Context, known func(common.Hash) bool) (blocks []*fact, err error) {
	header, err := r.chain.HeaderByNumber(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read the newest block: %w", err)
	}
	for !known(header.Hash()) {
		f, err := r.read(ctx, header)
		if err != nil {
			return nil, err
		}
		r.seen[f.hash] = f
		if blocks = append(blocks, f); f.number == 0 {
			break
		}
		if header, err = r.chain.HeaderByHash(ctx, f.parent); err != nil {
			return nil, fmt.Errorf("read block %s: %w", f.parent, err)
		}
	}
	return blocks, nil
}

// read reads the logs of a block in two ways, which must agree.
func (r *blockRecorder) read(ctx context.Context, h *types.Header) (*fact, error) {
	f := &fact{number: h.Number.Uint64(), hash: h.Hash(), parent: h.ParentHash, time: h.Time}
	receipts, err := r.chain.BlockReceipts(ctx, rpc.BlockNumberOrHashWithHash(f.hash, false))
	if err != nil {
		return nil, fmt.Errorf("read the receipts of block %s: %w", f.hash, err)
	}
	for _, r := range receipts {
		for _, l := range r.Logs {
			f.logs = append(f.logs, devchain.Record(l, f.time))
		}
	}
	logs, err := devchain.Logs(ctx, r.chain, h)
	if err != nil {
		return nil, err
	}
	for i := range max(len(logs), len(f.logs)) {
		if i >= len(logs) || i >= len(f.logs) || !proto.Equal(logs[i], f.logs[i]) {
			return nil, fmt.Errorf("the chain contradicts itself: block %d (%s) has %d logs in its receipts and %d by its "+
				"hash, the first difference is log %d", f.number, f.hash, len(f.logs), len(logs), i)
		}
	}
	return f, nil
}
