// Command ingest is the benchmark `make bench-ingest`: how fast navlog indexes a chain, compared with the speed of its
// node and with another indexer, and how soon a new block is visible at the head.
//
//	              ┌─ record: `navlog ingest` through a proxy that records the requested ranges
//	chain (anvil) ┼─ plain HTTP: the same eth_getLogs requests, one in flight, bodies thrown away
//	              ├─ navlog: ingest, project, serve, until the last log is visible in the API
//	              └─ Ponder: until its tables hold the last log
//
// Three more parts measure how many requests a sparse chain costs, how far the API lags behind a chain that does not
// wait for it, and whether receipts reveal a single amount that a node has changed.
//
// Every run starts from empty engines, and its clock starts when they respond. If the read models do not hold exactly
// the logs of the chain, the benchmark ends with an error instead of a figure.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/engines"
)

// parts of the benchmark, in the order in which they run.
var parts = []string{"dense", "ponder", "receipts", "sparse", "head", "fast"}

// benchmark holds the command-line options.
type benchmark struct {
	Data   string   `type:"path" default:"build/bench-ingest" help:"Folder for the engines of each run; removed when it ends."`
	Navlog string   `type:"existingfile" default:"bin/navlog" help:"The binary to measure."`
	Keep   bool     `help:"Keep the data and the logs of each run in --data."`
	Only   []string `placeholder:"PART" enum:"${parts}" default:"${parts}" help:"Run these parts only: ${enum}. Ponder indexes the dense chain, and receipts proves one like it."`

	Logs   int `default:"1000000" help:"Logs of the dense chain."`
	Blocks int `default:"2000" help:"Blocks of the dense chain; each has the same number of logs, a multiple of 20."`
}

func main() {
	var b benchmark
	bench.Main("bench-ingest", "Measure navlog's way from the chain to the API.", &b, parts, b.run)
}

// run measures the requested parts, each on a chain of its own.
func (b *benchmark) run(ctx context.Context) error {
	if b.Blocks < 1 || b.Logs%b.Blocks != 0 || b.Logs/b.Blocks%logsPerRound != 0 || b.Logs < b.Blocks {
		return fmt.Errorf("--logs %d in --blocks %d: each block must have the same multiple of %d logs", b.Logs, b.Blocks,
			logsPerRound)
	}
	if b.wants("ponder") {
		b.Only = append(b.Only, "dense") // which Ponder is a part of
	}
	return bench.Run(ctx, []string{"dense", "receipts", "sparse", "head", "fast"}, b.Only,
		map[string]bench.Part{"dense": b.dense, "receipts": b.receipts, "sparse": b.sparse, "head": b.head, "fast": b.fast})
}

func (b *benchmark) wants(part string) bool { return slices.Contains(b.Only, part) }

// chain starts a chain of blocks with the same number of logs each. Its few files are removed when the process ends.
func (b *benchmark) chain(ctx context.Context, blocks, logs int) (*chain, error) {
	bench.Say("building a chain of %d logs in %d blocks", logs, blocks)
	dir, err := engines.RunDir(b.Data, b.Keep)
	if err != nil {
		return nil, err
	}
	c, err := newChain(ctx, dir, userCount, true)
	if err != nil {
		return nil, err
	}
	if err := c.dense(ctx, blocks, logs); err != nil {
		return nil, errors.Join(fmt.Errorf("build the chain: %w", err), c.Close())
	}
	return c, nil
}

const mib = 1 << 20

// row prints a figure for human readers.
func row(name, format string, a ...any) {
	fmt.Printf("  %-22s %s\n", name, fmt.Sprintf(format, a...))
}
