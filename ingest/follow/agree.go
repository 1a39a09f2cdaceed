package follow

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
)

// checkAgreement returns nil if an endpoint other than from has the same block at its height, with the same logs of
// these vaults, or if chain.agreement requires no second endpoint.
func (f *Follower) checkAgreement(ctx context.Context, from *rpc.Node, h *rpc.Header, vaults []common.Address,
	logs []*event.Record) error {
	if f.nodes.Agreement < 2 {
		return nil
	}
	waiting := fmt.Errorf("block %d of %s waits for a second endpoint that agrees (chain.agreement is %d)", h.Number,
		from.Name, f.nodes.Agreement)
	ours := func(logs []*event.Log) []*event.Log { return f.writer.State.Mapped.Belonging(vaults, logs) }
	for other, err := range f.nodes.Others(ctx, from) {
		if err == nil {
			err = f.nodes.Confirms(ctx, other, h, f.writer.State.Mapped.Contracts(vaults), ours, logs)
		}
		if err == nil {
			return nil
		}
		if errors.Is(err, rpc.ErrDisagree) {
			f.status.Metrics.Disagreements.WithLabelValues(other.Name).Inc()
		}
		waiting = fmt.Errorf("%w; %w", waiting, err)
	}
	return waiting
}
