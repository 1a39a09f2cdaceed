package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/child"
	"github.com/navlog/navlog/deploy/local"
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
	Traffic  traffic `json:"traffic"`
}

// sparse measures the backfill of b.SparseBlocks blocks of which each b.SparseEvery-th has one log.
func sparse(ctx context.Context, b *benchmark) (_ *sparseResult, err error) {
	bench.Say("building a chain of %d blocks with a log in each %d", b.SparseBlocks, b.SparseEvery)
	dir, err := local.RunDir(b.Data, b.Keep)
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
	return r, nil
}
