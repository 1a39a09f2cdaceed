package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
)

// logsOfBlock reads the vaults' logs in one block, by its hash. A lagging node returns [] or only some logs for blocks
// that it does not know yet, so a response is accepted only if it matches the block's bloom, as strictly as chain.proof
// requires. Before it fails, another endpoint is called; from is the endpoint whose response was accepted.
func (s *session) logsOfBlock(ctx context.Context, n *rpc.Node, h *rpc.Header, addresses []common.Address) (logs []*event.Log, from *rpc.Node, err error) {
	w, level := proof.Watch(addresses), s.ingest.config.Proof
	if level == proof.None {
		logs, err = n.OneBlock(ctx, h, w, level)
		return logs, n, err
	}
	if err := n.HasBloom(h); err != nil {
		return nil, n, err
	}
	if !w.MayHold(&h.Bloom) {
		if h.Sealed && h.Bloom != (types.Bloom{}) {
			return nil, n, nil
		}
		// No log at all, a chain that does not fill its blooms, or a bloom that proves nothing.
		if logs, err = n.LogsByHash(ctx, h, addresses); err != nil {
			return nil, n, err
		}
		logs, err = n.Native(h, logs)
		return logs, n, err
	}
	read := func(n *rpc.Node) ([]*event.Log, *rpc.Node, error) {
		if level == proof.Bloom {
			return s.plausibly(ctx, n, h, w)
		}
		logs, err := n.OneBlock(ctx, h, w, level)
		return logs, n, err
	}
	logs, from, err = read(n)
	if err == nil || ctx.Err() != nil {
		return logs, from, err
	}
	other, noOther := s.nodes.Other(ctx, n)
	if noOther != nil {
		return nil, n, err
	}
	logs, from, second := read(other)
	if second != nil {
		return nil, n, errors.Join(err, second)
	}
	return logs, from, nil
}

// plausibly reads the vaults' logs by the block's hash. If the bloom shows more, it reads them again, and accepts the
// same result twice if the block is still in the chain. It returns the endpoint whose response it accepted.
func (s *session) plausibly(ctx context.Context, n *rpc.Node, h *rpc.Header, w *proof.Watched) (logs []*event.Log, from *rpc.Node, err error) {
	logs, err = n.OneBlock(ctx, h, w, proof.Bloom)
	if err != nil || !w.Lacks(&h.Bloom, logs) {
		return logs, n, err
	}
	from = n
	asked := []*rpc.Node{n}
	if other, err := s.nodes.Other(ctx, n); err == nil {
		asked = []*rpc.Node{other, n}
	}
	for _, n := range asked {
		again, err := n.OneBlock(ctx, h, w, proof.Bloom)
		if err != nil && n == asked[len(asked)-1] {
			return nil, n, err
		}
		if len(again) > len(logs) {
			logs, from = again, n
		}
	}
	now, err := n.ByNumber(ctx, h.Number)
	if err != nil {
		return nil, n, err
	}
	if !bytes.Equal(now.Hash[:], h.Hash[:]) {
		return nil, n, fmt.Errorf("block %d (%s) left the chain of %s while its logs were read", h.Number, h.Hash, n.Name)
	}
	logs, err = n.Native(h, logs)
	return logs, from, err
}
