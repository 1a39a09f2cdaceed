package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/projections/verify"
)

type verifyCmd struct {
	registryFlags
	Sample  uint64 `placeholder:"N" help:"Compare one user, request, block and range of blocks in N, chosen anew each time: fewer questions to the node and, with --no-chain, less memory. What is not chosen is not proven."`
	NoChain bool   `help:"Ask the chain nothing: compare the log with itself and the read models with the log."`
}

// Run compares the log with itself (contiguous seq), with the chain (each block
// that the log knows of by its hash, the logs of all covered blocks by ranges, and
// the vaults' own totals), and the live read model with a fold of the log. It
// prints what it compared, and fails on any difference.
func (cmd verifyCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config.Config) error {
		options := verify.Options{Sample: cmd.Sample}
		switch {
		case cmd.NoChain:
		case len(c.Chain.RPC) == 0:
			return cli.Configuration.With(errors.New("verify: chain.rpc names no node to compare the log with: give one, or --no-chain"))
		default:
			options.Node, options.RequestsPerSecond = c.Chain.RPC[0].URL, c.Chain.RPC[0].RequestsPerSecond
			options.BatchBlocks = c.Chain.BatchBlocks
		}
		report, err := verify.Verify(ctx, c.Chain.ID, c.Kafka, c.ClickHouse, pool, options)
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		if cmd.JSON {
			err = json.NewEncoder(s.Out).Encode(report)
		} else {
			_, err = fmt.Fprint(s.Out, report)
		}
		if fault := report.Err(); fault != nil {
			return cli.Different.With(errors.Join(err, fmt.Errorf("not everything is equal: where the tables differ from the log, `navlog projection rebuild` makes them anew, and where the log differs from itself or the chain, nothing may be appended to it before you know why:\n%w", fault)))
		}
		return err
	}, config.NeedChainID, config.NeedKafka, config.NeedClickHouse)
}
