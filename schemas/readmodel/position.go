package readmodel

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/schemas/telemetry"
)

// ListsCursor is the cursor row of lists: how far the lists of a generation are written. Seq 0 means that they are not
// built yet.
type ListsCursor struct {
	Seq      uint64 // end of the newest unit
	Block    uint64 // newest indexed block
	TS       uint32 // its time
	Rewrites uint64 // units so far that retracted records
	Writer   uint64 // id of the writer
}

// Rows returns the cursor as rows of lists: one before all lists, and one after them.
func (c ListsCursor) Rows(sign int8) []ListRow {
	row := ListRow{List: CursorList, Sign: sign,
		Seq: c.Seq, Block: c.Block, TS: c.TS, Rewrites: c.Rewrites, Writer: c.Writer}
	end := row
	end.List = CursorEnd
	return []ListRow{row, end}
}

// ReadListsCursor reads the cursor of lists, a table or a draft of it. The seq only grows, so among rows that are not
// merged yet the one with the highest seq is live.
func ReadListsCursor(ctx context.Context, conn driver.Conn, table string) (c ListsCursor, err error) {
	err = conn.QueryRow(ctx, "SELECT max(seq), argMax(block, seq), argMax(ts, seq), argMax(rewrites, seq), "+
		"argMax(writer, seq) FROM "+table+" WHERE list = 'cursor' SETTINGS max_threads = 1").Scan(&c.Seq, &c.Block, &c.TS,
		&c.Rewrites, &c.Writer)
	if err != nil {
		return ListsCursor{}, fmt.Errorf("read the cursor of %s: %w", table, err)
	}
	return c, nil
}

// ReadEventsCursor reads the last seq of events and the id of its writer. from is a seq up to which the table is known
// to be written: the closer it is to the last, the less is read.
func ReadEventsCursor(ctx context.Context, conn driver.Conn, from uint64) (seq, writer uint64, err error) {
	ctx = Parameters(ctx, map[string]uint64{"from": from})
	err = conn.QueryRow(ctx, "SELECT max(seq), argMax(writer, seq) FROM events WHERE seq >= {from:UInt64}"+
		" SETTINGS max_threads = 1").Scan(&seq, &writer)
	if err != nil {
		return 0, 0, fmt.Errorf("read the cursor of events from seq %d on: %w", from, err)
	}
	return seq, writer, nil
}

// Position is how far a generation is written.
type Position struct {
	Seq   uint64 // of the cursor of its lists or, before they are built, the last one of its events
	Found bool   // it has tables
	Built bool   // it has lists
}

// ReadPosition reads the position of the generation in a database; empty: that of the connection.
func ReadPosition(ctx context.Context, conn driver.Conn, database string) (p Position, err error) {
	tables, err := Tables(ctx, conn, database)
	if err != nil {
		return p, err
	}
	prefix := ""
	if database != "" {
		prefix = database + "."
	}
	p.Found, p.Built = tables[EventsTable.Name] != "", tables[ListsTable.Name] != ""
	switch {
	case !p.Found:
	case p.Built:
		var cursor ListsCursor
		cursor, err = ReadListsCursor(ctx, conn, prefix+ListsTable.Name)
		p.Seq = cursor.Seq
	default:
		if err = conn.QueryRow(ctx,
			"SELECT max(seq) FROM "+prefix+EventsTable.Name+" SETTINGS max_threads = 1").Scan(&p.Seq); err != nil {
			err = fmt.Errorf("read the last seq of %sevents: %w", prefix, err)
		}
	}
	return p, err
}

// Traced passes the trace of ctx to the engine, if its spans are collected: the engine then writes what it does for the
// query to system.opentelemetry_span_log, if the operator has configured that table.
func Traced(ctx context.Context) context.Context {
	if at := telemetry.Collected(ctx); at.IsValid() {
		return clickhouse.Context(ctx, clickhouse.WithSpan(at))
	}
	return ctx
}

// Parameters sets named numbers as parameters of a query, and Never as never.
func Parameters(ctx context.Context, numbers map[string]uint64) context.Context {
	p := clickhouse.Parameters{"never": fmt.Sprint(Never)}
	for name, n := range numbers {
		p[name] = fmt.Sprint(n)
	}
	return clickhouse.Context(ctx, clickhouse.WithParameters(p))
}

// SmallQuery returns the settings of a query that reads few rows, which takes longer to plan than to run. One thread
// reads. The older analyzer plans, in four fifths of the time. Nothing is compiled: after a few queries of a kind, the
// engine would compile their sums and conditions again and again, for 15 to 20 ms each time.
func SmallQuery() clickhouse.Settings {
	return clickhouse.Settings{"max_threads": 1, "enable_analyzer": 0,
		"compile_expressions": 0, "compile_aggregate_expressions": 0, "compile_sort_description": 0}
}
