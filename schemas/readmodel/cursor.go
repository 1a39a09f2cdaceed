package readmodel

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Cursor says how far a table is written. Zeros mean that it holds nothing.
type Cursor struct {
	// Seq is the last one of the log that the table holds: of facts and the spine
	// that of a record, of derived tables that of the end of a unit.
	Seq uint64
	// Writer is the id of the writer that wrote it.
	Writer uint64
	// Fence is that of a derived table.
	Fence Fence
}

// Fence says which unit was the last that rewrote a part of the past in a derived table.
// It stands in the columns fence_seq, fence_block and fence_before of the table's
// cursor row; in a question it is max((fence_seq, fence_block, fence_before)) over
// rows among which the cursor row is.
type Fence struct {
	Seq    uint64 // the last one of that unit; 0: there was none
	Block  uint64 // the past up to this block was left as it was
	Before uint64 // Seq of the fence before
}

// FenceOf is what a question gives as (fence_seq, fence_block, fence_before).
func FenceOf(tuple []uint64) Fence {
	return Fence{Seq: tuple[0], Block: tuple[1], Before: tuple[2]}
}

// Holds tells whether what the table says of a block is what the log up to seq
// says of it. The table must be no older than seq, and the block no newer than the
// newest one at seq.
func (f Fence) Holds(seq, block uint64) bool {
	return f.Seq <= seq || f.Before <= seq && block <= f.Block
}

// cursorRows is the condition that a table's cursor row meets and no other one.
// The values are those of a row that no question about users, requests or partners
// can mean, at a place that the questions pass anyway.
var cursorRows = map[string]string{
	Withdrawals:   "list = 'cursor'",
	Users:         "list = 'cursor'",
	PartnerTotals: "partner = 0",
}

// CursorRow is the condition (never is Never) that the cursor row of a derived table
// meets, and no other row.
func CursorRow(table string) string { return cursorRows[table] }

// ReadCursor reads the cursor of a table of the connection's database. Of a table
// whose seqs only grow (facts and the spine) it looks at seqs from one on, where
// the cursor was last seen: the nearer that is to the last seq, the less is read.
func ReadCursor(ctx context.Context, conn driver.Conn, table string, from uint64) (c Cursor, err error) {
	if where, derived := cursorRows[table]; derived {
		ctx = Parameters(ctx, nil)
		err = conn.QueryRow(ctx, "SELECT max(seq), argMax(writer, seq), max(fence_seq), argMax(fence_block, fence_seq), argMax(fence_before, fence_seq) FROM "+table+
			" WHERE "+where+" SETTINGS max_threads = 1").Scan(&c.Seq, &c.Writer, &c.Fence.Seq, &c.Fence.Block, &c.Fence.Before)
	} else {
		ctx = Parameters(ctx, map[string]uint64{"from": from})
		err = conn.QueryRow(ctx, "SELECT max(seq), argMax(writer, seq) FROM "+table+
			" WHERE seq >= {from:UInt64} SETTINGS max_threads = 1, optimize_use_projections = 0").Scan(&c.Seq, &c.Writer)
	}
	if err != nil {
		return Cursor{}, fmt.Errorf("read the cursor of %s from seq %d on: %w", table, from, err)
	}
	return c, nil
}

// LastSeq is the highest seq of the spine or of a table of facts; 0 for an empty one.
func LastSeq(ctx context.Context, conn driver.Conn, table string) (seq uint64, err error) {
	if err := conn.QueryRow(ctx, "SELECT max(seq) FROM "+table+" SETTINGS max_threads = 1").Scan(&seq); err != nil {
		return 0, fmt.Errorf("read the last seq of %s: %w", table, err)
	}
	return seq, nil
}

// Parameters gives a question numbers by name, and Never as never.
func Parameters(ctx context.Context, numbers map[string]uint64) context.Context {
	p := clickhouse.Parameters{"never": fmt.Sprint(Never)}
	for name, n := range numbers {
		p[name] = fmt.Sprint(n)
	}
	return clickhouse.Context(ctx, clickhouse.WithParameters(p))
}
