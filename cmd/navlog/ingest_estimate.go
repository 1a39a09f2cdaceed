package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
)

// ingestEstimateCmd calls only the first endpoint of the chain that responds.
type ingestEstimateCmd struct {
	cli.Flags
	cli.Output
	Samples int `default:"10" range:"1 to 1000" help:"Number of ranges of the chain to sample: 1 to 1000."`
}

func (cmd ingestEstimateCmd) Run(ctx context.Context, s *cli.Streams) error {
	c, err := config.Read(cmd.Flags, config.NeedChain)
	if err != nil {
		return err
	}
	i, steps := withoutRegistry(cmd.Flags, s, c)
	e, err := i.Estimate(ctx, cmd.Samples, steps.Report)
	steps.End()
	if err != nil {
		return err
	}
	return cmd.Print(s.Out, e, func(w io.Writer) { writeEstimate(w, e, e.Total.Units > 0 || len(c.Chain.Prices) > 0) })
}

func writeEstimate(w io.Writer, e *operate.Estimate, priced bool) {
	if e.FromBlock > e.ToBlock {
		cli.Fprintf(w, "Of chain %d at %s nothing is final from block %d on: there is no history to read.\n\n", e.ChainID,
			e.Endpoint, e.FromBlock)
	} else {
		cli.Fprintf(w, "A backfill of chain %d from %s reads blocks %d to %d in ranges of up to %d, about %s, in about %s.\n",
			e.ChainID, e.Endpoint, e.FromBlock, e.ToBlock, e.RangeBlocks, printable.Count(e.Logs, "log"),
			time.Duration(e.Seconds)*time.Second)
		switch {
		case e.DatesLogs == nil:
			fmt.Fprintln(w, "No sample has a log, so it is unknown whether the node returns the times of logs: use more "+
				"--samples.")
		case !*e.DatesLogs:
			fmt.Fprintln(w, "The node does not return the times of logs (blockTimestamp): each block with a log costs a header.")
		}
		fmt.Fprintln(w)
	}
	writeCalls(w, "BACKFILL", e.Calls, e.Total, priced)
	writeCalls(w, "A DAY AT THE HEAD", e.FollowingPerDay, e.FollowingTotal, priced)
	if len(e.Unpriced) > 0 {
		cli.Fprintf(w, "chain.prices has no price for %s: add them.\n", strings.Join(e.Unpriced, ", "))
	}
	cli.Fprintf(w, "This estimate made %s for %s of blocks.\n", printable.Count(registry.Spent(e.Sampling).Calls, "call"),
		printable.Count(e.Samples, "range"))
}

// writeCalls lists calls by method. The bytes of a day are unknown.
func writeCalls(w io.Writer, title string, calls []registry.MethodCalls, total registry.MethodCalls, priced bool) {
	heading, cells := title+"\tCALLS\tBYTES", 3
	if priced {
		heading, cells = heading+"\tUNITS", 4
	}
	total.Method = "total"
	cli.Rows(w, append(slices.Clone(calls), total), heading,
		func(m registry.MethodCalls) []any { return []any{m.Method, m.Calls, m.Bytes, m.Units}[:cells] })
	fmt.Fprintln(w)
}
