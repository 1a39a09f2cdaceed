package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/projections/verify"
)

type verifyCmd struct {
	registryFlags
	Sample  uint64 `placeholder:"N" help:"Compare one user, request, block and range of blocks in N, chosen at random each time: fewer calls to the node and, with --no-chain, less memory. The others are not proven."`
	NoChain bool   `help:"Call no node: compare the log with itself and the read models with the log." xor:"chain,receipts"`
	// Receipts needs only the log and the nodes.
	Receipts bool `help:"Prove the amounts instead: recompute the receipts root of every final block with a log of a vault, and the block's hash from its header, and compare the hash with a second endpoint's. Costs three calls a block." xor:"receipts"`
	Headers  bool `help:"With --receipts: follow the parent hashes from a final block down, at one header for each block, instead of calling a second endpoint." xor:"chain"`
}

// Run compares the log with itself (contiguous seq), with the chain (each block whose hash the log has, the logs of all
// covered blocks by ranges, and the vaults' own totals), and the live read model with a fold of the log. It prints what
// it compared, and fails on any difference. With --receipts it proves the amounts instead.
func (cmd verifyCmd) Run(ctx context.Context, s *cli.Streams) error {
	switch {
	case cmd.Receipts:
		return cmd.proveReceipts(ctx, s)
	case cmd.Headers:
		return cli.Usage.With(errors.New("verify: --headers changes how --receipts works: give both"))
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config.Config) error {
		steps := console.Progress(cmd.Flags, s)
		defer steps.End()
		options := verify.Options{Sample: cmd.Sample, Progress: steps.Report}
		switch {
		case cmd.NoChain:
		case len(c.Chain.RPC) == 0:
			return cli.Configuration.With(errors.New("verify: chain.rpc names no node to compare the log with: give one, or " +
				"--no-chain"))
		default:
			options.Node, options.RequestsPerSecond = c.Chain.RPC[0].URL, c.Chain.RPC[0].RequestsPerSecond
			options.BatchBlocks = c.Chain.BatchBlocks
		}
		report, err := verify.Verify(ctx, c.Chain.ID, c.Kafka, c.ClickHouse, pool, options)
		steps.End()
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		err = cmd.Print(s.Out, report, func(w io.Writer) { fmt.Fprint(w, report) })
		if fault := report.Err(); fault != nil {
			return cli.Different.With(errors.Join(err,
				fmt.Errorf("not everything is equal: if the tables differ from the log, `navlog projection rebuild` builds them "+
					"again; if the log differs from itself or the chain, nothing may be appended to it before you know why:\n%w",
					fault)))
		}
		return err
	}, config.NeedChainID, config.NeedKafka, config.NeedClickHouse)
}

// proveReceipts proves that the log's amounts are the chain's, without trusting the node that they came from.
func (cmd verifyCmd) proveReceipts(ctx context.Context, s *cli.Streams) error {
	c, err := config.ReadReaching(ctx, cmd.Flags, config.NeedChain, config.NeedKafka)
	if err != nil {
		return err
	}
	i, steps := withoutRegistry(cmd.Flags, s, c)
	report, err := i.ProveReceipts(ctx,
		operate.ReceiptsOptions{Sample: cmd.Sample, Headers: cmd.Headers, Progress: steps.Report})
	steps.End()
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	err = cmd.Print(s.Out, report, func(w io.Writer) { fmt.Fprint(w, report) })
	if fault := report.Err(); fault != nil {
		return cli.Different.With(errors.Join(err,
			fmt.Errorf("%w: append nothing to it until you know why; if an endpoint was wrong, index the chain into a new log "+
				"from another one", fault)))
	}
	return err
}
