package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Merging watches the engine merge the tables of a generation, of which a question takes the longer the more parts there
// are. Its zero value has seen nothing.
type Merging struct {
	began, busy time.Time // the first look, and the last one that found something to wait for
}

// quietFor is how long nothing is merged before what is left in parts is taken to stay so.
const quietFor = 30 * time.Second

// Done tells whether the tables lie as they do a while after they were built: each has three quarters of its rows in one
// part, or is small, or nothing was merged for a while.
func (m *Merging) Done(ctx context.Context, conn driver.Conn, database string) (bool, error) {
	now := time.Now()
	if m.began.IsZero() {
		m.began, m.busy = now, now
	}
	var merges, scattered uint64
	err := conn.QueryRow(ctx, `SELECT (SELECT count() FROM system.merges WHERE database = {database:String}),
		(SELECT count() FROM (SELECT sum(rows) AS total, max(rows) AS largest FROM system.parts WHERE active AND database = {database:String} GROUP BY table)
		 WHERE total >= 100000 AND 4 * largest < 3 * total)`, clickhouse.Named("database", database)).Scan(&merges, &scattered)
	if err != nil {
		return false, fmt.Errorf("read how the tables of %s are merged: %w", database, err)
	}
	if merges > 0 {
		m.busy = now
	}
	return merges == 0 && (scattered == 0 || now.Sub(m.busy) > quietFor), nil
}

// Took is how long merges went on after the first look.
func (m *Merging) Took() time.Duration { return m.busy.Sub(m.began) }
