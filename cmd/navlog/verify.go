package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/projections"
)

type verifyCmd struct{ registryFlags }

// Run compares the log with itself (contiguous seq) and the live read model
// with a fold of the log, prints what it compared, and fails on any difference.
func (cmd verifyCmd) Run(ctx context.Context, s *streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config) error {
		report, err := projections.Verify(ctx, c.Chain.ID, c.Kafka, c.ClickHouse, pool)
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		if cmd.JSON {
			err = json.NewEncoder(s.out).Encode(report)
		} else {
			_, err = fmt.Fprint(s.out, report)
		}
		if fault := report.Err(); fault != nil {
			return errors.Join(err, fmt.Errorf("the read model differs from the log; rebuild it with `navlog projection rebuild`:\n%w", fault))
		}
		return err
	}, needChainID, needKafka, needClickHouse)
}
