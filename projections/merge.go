package projections

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/projections/write"
)

//go:embed sql/scattered.sql
var sqlScattered string

// merge keeps the tables of the generation in few parts until ctx ends.
//
// ClickHouse merges in a way that saves writes: a table that was filled in one go stays in parts with about a half, a
// tenth and another tenth of its rows, and a look-up of keys searches each of them for every key: at ten million
// events, a single large part halved the processor time of a query for a hundred users. So once the generation is at
// the end of the log, a table whose largest part has less than three quarters of its rows is merged as a whole: soon
// after a rebuild, and then whenever the table has grown by a third. On average this rewrites a row four times,
// however long the log gets.
//
// The generation does not depend on merges: a failed one is retried.
func (k *keeper) merge(ctx context.Context, conn driver.Conn) error {
	for {
		if err := write.Pause(ctx, k.mergeInterval); err != nil {
			return err
		}
		if k.board.get().State != Following {
			continue
		}
		began := time.Now()
		merged, err := mergeScattered(ctx, conn, k.database, k.mergeMinRows)
		if len(merged) > 0 {
			k.log.Info("tables merged", "tables", merged, "took", time.Since(began).Round(time.Millisecond))
		}
		if err != nil && ctx.Err() == nil {
			k.log.Warn("table not merged, retrying", "error", err)
		}
	}
}

// mergeScattered merges each table that is worth it, the smallest first, and returns the names of those that it
// merged. A table that the engine refuses to merge, perhaps always, does not stop the others. New rows may arrive at
// the same time.
func mergeScattered(ctx context.Context, conn driver.Conn, database string, least uint64) (merged []string, err error) {
	var tables []struct {
		Table string `ch:"table"`
		Rows  uint64 `ch:"total"`
	}
	if err := conn.Select(ctx, &tables, sqlScattered, clickhouse.Named("database", database),
		clickhouse.Named("least", least)); err != nil {
		return nil, fmt.Errorf("read the parts of %s: %w", database, err)
	}
	for _, t := range tables {
		if failed := mergeTable(ctx, conn, database, t.Table); failed != nil {
			err = errors.Join(err, fmt.Errorf("merge the %d rows of %s.%s: %w", t.Rows, database, t.Table, failed))
			continue
		}
		merged = append(merged, t.Table)
	}
	return merged, err
}

// mergeTable merges a table into one part, and fails if the engine does not merge: without the setting, the engine
// reports success.
func mergeTable(ctx context.Context, conn driver.Conn, database, table string) error {
	return conn.Exec(ctx, "OPTIMIZE TABLE "+database+"."+table+" FINAL SETTINGS optimize_throw_if_noop = 1")
}
