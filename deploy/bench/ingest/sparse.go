package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/engines"
)

const (
	sparseBlocks = 200_000
	sparseEvery  = 1000 // blocks for each log
)

// sparse measures the backfill of a chain of which one block in sparseEvery has a log.
func (b *benchmark) sparse(ctx context.Context) (_ []bench.Bar, err error) {
	bench.Say("building a chain of %d blocks with a log in each %d", sparseBlocks, sparseEvery)
	dir, err := engines.RunDir(b.Data, b.Keep)
	if err != nil {
		return nil, err
	}
	c, err := startSparse(ctx, dir, sparseBlocks, sparseEvery)
	if err != nil {
		return nil, fmt.Errorf("build the chain: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	bench.Say("recording what navlog asks for")
	asked, err := b.record(ctx, c)
	if err != nil {
		return nil, err
	}
	bench.Say("navlog, from an empty data folder")
	run, err := b.backfill(ctx, c)
	if err != nil {
		return nil, err
	}
	history, perMillion, err := asked.history(c.start, c.tip, func(hash common.Hash) (uint64, error) {
		var block struct {
			Number hexutil.Uint64 `json:"number"`
		}
		err := c.rpc.CallContext(ctx, &block, "eth_getBlockByHash", hash, false)
		return uint64(block.Number), err
	})
	if err != nil {
		return nil, err
	}
	ingested := run.ingested.Seconds()
	fmt.Printf("sparse: %d logs in %d blocks\n", c.logs, c.tip)
	row("navlog", "all in the log after %.2f s, %.0f blocks/s; in an answer after %.2f s", ingested,
		float64(c.tip)/ingested, run.visible.Seconds())
	row("calls of the node", "%v", asked.methods())
	row("of the history", "%d, and %.0f for a million blocks; the window costs %d headers beside that", history,
		perMillion, window)
	return []bench.Bar{
		{Name: "calls-per-million-sparse-blocks", Value: perMillion, Bound: 120},
		{Name: "sparse-blocks-s", Value: float64(c.tip) / ingested, Bound: 200_000, Least: true},
	}, nil
}

const (
	// window is the default of chain.window: each of its blocks is requested, however long the history is.
	window = 1024
	// rangesAtOnce ranges share a commit, and so the header at its end.
	rangesAtOnce = 16
)

// history counts the calls about blocks below the window, from first to the tip, whatever they request and however they
// name the block. It also extrapolates the count to a million blocks, because a longer history adds only ranges of the
// maximum length and the headers of their commits. numberOf returns the number of a block by its hash, or 0 if the hash
// is not a block's, for example a transaction's: such calls count too.
func (t traffic) history(
	first, tip uint64, numberOf func(common.Hash) (uint64, error),
) (calls int, perMillion float64, err error) {
	if tip < first+window {
		return 0, 0, fmt.Errorf("count the calls of the history: %d blocks are all in the window", tip-first+1)
	}
	below, longest := tip-window, uint64(1)
	for _, c := range t {
		from, to, ok, err := c.about(numberOf)
		if err != nil {
			return 0, 0, fmt.Errorf("count the calls of the history: %w", err)
		}
		genesis := c.Method == "eth_getBlockByNumber" && to == 0 // identifies the chain
		if ok && from <= below && !genesis {
			calls, longest = calls+1, max(longest, to+1-from)
		}
	}
	more := (1_000_000 - float64(below+1-first)) / float64(longest)
	return calls, float64(calls) + more*(1+1./rangesAtOnce), nil
}
