package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/stack"
)

// sparseResult is the result of the backfill of a chain with few logs.
type sparseResult struct {
	Blocks   uint64  `json:"blocks"`
	Logs     uint64  `json:"logs"`
	Build    float64 `json:"chainBuildSeconds"`
	NodePeak int64   `json:"nodePeakBytes"`
	Seconds  float64 `json:"navlogSeconds"`
	Ingested float64 `json:"ingestedSeconds"`
	Headers  int     `json:"headers"` // number of headers requested
	Spared   int     `json:"headersSpared"`
	History  int     `json:"historyCalls"`    // calls about neither the window nor the chain as a whole
	Calls    float64 `json:"callsPerMillion"` // extrapolated to a million blocks
	Traffic  traffic `json:"traffic"`
}

// sparse measures the backfill of b.SparseBlocks blocks, of which one in b.SparseEvery has a log.
func sparse(ctx context.Context, b *benchmark) (_ *sparseResult, err error) {
	bench.Say("building a chain of %d blocks with a log in each %d", b.SparseBlocks, b.SparseEvery)
	dir, err := engines.RunDir(b.Data, b.Keep)
	if err != nil {
		return nil, err
	}
	c, err := startSparse(ctx, dir, b.SparseBlocks, b.SparseEvery)
	if err != nil {
		return nil, fmt.Errorf("build the chain: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r := &sparseResult{Blocks: c.tip, Logs: c.logs, Build: c.took.Seconds()}

	bench.Say("recording what navlog asks for")
	if r.Traffic, err = record(ctx, b, c); err != nil {
		return nil, err
	}
	bench.Say("navlog, from an empty data folder")
	run, err := backfill(ctx, b, c)
	if err != nil {
		return nil, err
	}
	r.Seconds, r.Ingested, r.NodePeak = run.visible.Seconds(), run.ingested.Seconds(), stack.Peak(c.Pid)
	r.Headers = r.Traffic.Calls["eth_getBlockByNumber"] + r.Traffic.Calls["eth_getBlockByHash"] + r.Traffic.Calls["eth_getHeaderByNumber"]
	r.Spared = max(0, int(r.Blocks)-r.Headers)
	r.History, r.Calls, err = r.Traffic.history(c.start, c.tip, func(hash common.Hash) (uint64, error) {
		var block struct {
			Number hexutil.Uint64 `json:"number"`
		}
		err := c.rpc.CallContext(ctx, &block, "eth_getBlockByHash", hash, false)
		return uint64(block.Number), err
	})
	return r, err
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
func (t traffic) history(first, tip uint64, numberOf func(common.Hash) (uint64, error)) (calls int, perMillion float64, err error) {
	if tip < first+window {
		return 0, 0, fmt.Errorf("count the calls of the history: %d blocks are all in the window", tip-first+1)
	}
	below := tip - window
	for _, number := range t.blocks {
		if number > 0 && number <= below { // block 0 identifies the chain
			calls++
		}
	}
	for _, hash := range t.hashes {
		number, err := numberOf(hash)
		if err != nil {
			return 0, 0, fmt.Errorf("count the calls of the history: %w", err)
		}
		if number <= below {
			calls++
		}
	}
	longest := uint64(1)
	for _, r := range t.ranges {
		if r.from <= below {
			calls, longest = calls+1, max(longest, r.to+1-r.from)
		}
	}
	more := (1_000_000 - float64(below+1-first)) / float64(longest)
	return calls, float64(calls) + more*(1+1./rangesAtOnce), nil
}
