package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Merging watches the engine merge the tables of a generation: the more parts there are, the longer a query takes. The
// zero value is ready to use.
type Merging struct {
	busy time.Time // the last check that found merges pending, or the first one
}

// quietFor is how long no merge may run before the remaining parts are taken to stay as they are.
const quietFor = 30 * time.Second

// Done reports whether the tables are in the state that they settle in after a build: each is small or has three
// quarters of its rows in one part, or no merge has run for quietFor.
func (m *Merging) Done(ctx context.Context, conn driver.Conn, database string) (bool, error) {
	now := time.Now()
	if m.busy.IsZero() {
		m.busy = now
	}
	var merges, scattered uint64
	err := conn.QueryRow(ctx, `SELECT (SELECT count() FROM system.merges WHERE database = {database:String}),
		(SELECT count() FROM (SELECT sum(rows) AS total, max(rows) AS largest FROM system.parts
			WHERE active AND database = {database:String} GROUP BY table)
		 WHERE total >= 100000 AND 4 * largest < 3 * total)`, clickhouse.Named("database", database)).
		Scan(&merges, &scattered)
	if err != nil {
		return false, fmt.Errorf("read how the tables of %s are merged: %w", database, err)
	}
	if merges > 0 {
		m.busy = now
	}
	return merges == 0 && (scattered == 0 || now.Sub(m.busy) > quietFor), nil
}
