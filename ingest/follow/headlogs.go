package follow

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
)

// logsOfBlock reads the vaults' logs in one block, by its hash. A lagging node returns [] or only some logs for blocks
// that it does not know yet, so all logs of the block must make up its bloom, except with chain.proof none. Before it
// fails, the other endpoints are called; from is the endpoint whose response was accepted. proven reports whether the
// header proves that the block has no other logs of the vaults.
func (f *Follower) logsOfBlock(
	ctx context.Context, n *rpc.Node, h *rpc.Header, addresses []common.Address,
) (logs []*event.Log, from *rpc.Node, proven bool, err error) {
	level := f.Proof
	if level == proof.None {
		logs, proven, err = n.OneBlock(ctx, h, addresses, level)
		return logs, n, proven, err
	}
	if err := n.HasBloom(h); err != nil {
		return nil, n, false, err
	}
	if !proof.MayHold(&h.Bloom, addresses) {
		if h.Sealed && h.Bloom != (types.Bloom{}) {
			return nil, n, true, nil
		}
		// No log at all, a chain that does not fill its blooms, or a bloom that proves nothing.
		if logs, _, err = n.OneBlock(ctx, h, addresses, proof.None); err != nil {
			return nil, n, false, err
		}
		logs, err = n.Native(h, logs)
		return logs, n, h.Sealed, err
	}
	var faults []error
	for from, unknown := range f.nodes.StartingWith(ctx, n) {
		if unknown != nil {
			continue // its own state shows why
		}
		logs, proven, err := from.OneBlock(ctx, h, addresses, level)
		if err == nil || ctx.Err() != nil {
			return logs, from, proven, err
		}
		faults = append(faults, err)
	}
	return nil, n, false, errors.Join(faults...)
}
