package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/child"
)

// sparseResult is the backfill of a chain with few logs.
type sparseResult struct {
	Blocks   uint64  `json:"blocks"`
	Logs     uint64  `json:"logs"`
	Build    float64 `json:"chainBuildSeconds"`
	NodePeak int64   `json:"nodePeakBytes"`
	Seconds  float64 `json:"navlogSeconds"`
	Ingested float64 `json:"ingestedSeconds"`
	Headers  int     `json:"headers"` // that were asked for
	Spared   int     `json:"headersSpared"`
	History  int     `json:"historyCalls"`    // those that are not about the window and not about the chain as a whole
	Calls    float64 `json:"callsPerMillion"` // what they would be for a million blocks
	Traffic  traffic `json:"traffic"`
}

// sparse measures the backfill of b.SparseBlocks blocks of which each b.SparseEvery-th has one log.
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
	r.Seconds, r.Ingested, r.NodePeak = run.visible.Seconds(), run.ingested.Seconds(), child.Peak(c.Pid)
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
	// window is chain.window as navlog has it: each block of it is asked for, however long the history is.
	window = 1024
	// rangesAtOnce share a commit, and so the header that it ends with.
	rangesAtOnce = 16
)

// history counts the calls about blocks below the window, from the first to the tip, whatever they ask of a block and
// however they name it, and says what they would be for a million blocks: what a longer history adds is ranges as long as
// the longest, and the headers of their commits. numberOf is the number of a block by its hash, 0 of what is none, as a
// transaction: that counts too.
func (t traffic) history(first, tip uint64, numberOf func(common.Hash) (uint64, error)) (calls int, perMillion float64, err error) {
	if tip < first+window {
		return 0, 0, fmt.Errorf("count the calls of the history: %d blocks are all in the window", tip-first+1)
	}
	below := tip - window
	for _, number := range t.blocks {
		if number > 0 && number <= below { // block 0 tells which chain it is
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
