package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
)

// agreed returns nil if an endpoint other than from has the same block at its height, with the same logs of these
// vaults, or if chain.agreement requires no second endpoint. Otherwise the block must not be appended, and is read
// again.
func (s *session) agreed(ctx context.Context, from *rpc.Node, h *rpc.Header, vaults []common.Address, logs []*event.Record) error {
	if s.ingest.config.Agreement < 2 {
		return nil
	}
	waiting := fmt.Errorf("block %d of %s waits for a second endpoint that agrees (chain.agreement is %d)", h.Number, from.Name, s.ingest.config.Agreement)
	ours := func(logs []*event.Log) []*event.Log { return s.state.mapped.Belonging(vaults, logs) }
	for _, other := range s.nodes.Others(from) {
		err := s.nodes.Identified(ctx, other)
		if err == nil {
			err = s.nodes.Confirms(ctx, other, h, s.state.mapped.Contracts(vaults), ours, logs)
		}
		if err == nil {
			return nil
		}
		if errors.Is(err, rpc.ErrDisagree) {
			s.ingest.metrics.disagreements.WithLabelValues(other.Name).Inc()
		}
		waiting = fmt.Errorf("%w; %w", waiting, err)
	}
	return waiting
}
