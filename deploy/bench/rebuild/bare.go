package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// bare inserts the events of generation 2 up to last into the same table of a separate database, one chunk of records
// after the other, and returns the time that the inserts took.
func (e *system) bare(ctx context.Context, b *benchmark, last uint64) (took time.Duration, rows uint64, err error) {
	const database = "bare"
	if err := e.ch.CreateEvents(ctx, e.Conn, database); err != nil {
		return 0, 0, err
	}
	for after := uint64(0); after < last; after += uint64(b.Chunk) {
		spent, err := e.chunk(ctx, database, after, min(after+uint64(b.Chunk), last))
		if err != nil {
			return 0, 0, err
		}
		took += spent
	}
	var want uint64
	ask := fmt.Sprintf("SELECT (SELECT count() FROM bare.events), (SELECT count() FROM %s.events WHERE seq <= %d)", e.ch.Database(2), last)
	if err := e.Conn.QueryRow(ctx, ask).Scan(&rows, &want); err != nil {
		return 0, 0, err
	}
	if rows != want {
		return 0, 0, fmt.Errorf("the bare insert put %d rows into events instead of %d, so the two cannot be compared", rows, want)
	}
	return took, rows, nil
}

// chunk inserts the rows of the records after one seq up to and including another.
func (e *system) chunk(ctx context.Context, database string, after, to uint64) (time.Duration, error) {
	from := fmt.Sprintf("FROM %s.events WHERE seq > %d AND seq <= %d", e.ch.Database(2), after, to)
	var n uint64
	if err := e.Conn.QueryRow(ctx, "SELECT count() "+from).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the rows of events: %w", err)
	}
	if n == 1 { // the driver does not append a block whose rows were all read
		if err := e.Conn.Exec(ctx, "INSERT INTO "+database+".events SELECT * "+from); err != nil {
			return 0, fmt.Errorf("copy a row of events: %w", err)
		}
	}
	if n <= 1 {
		return 0, nil
	}
	rows, err := e.Conn.Query(ctx, "SELECT * "+from+" ORDER BY seq SETTINGS max_block_size = 10000000, max_threads = 1")
	if err != nil {
		return 0, fmt.Errorf("read the rows of events: %w", err)
	}
	if !rows.Next() { // the block is loaded now
		return 0, fmt.Errorf("read the rows of events: %w", errors.Join(rows.Err(), rows.Close()))
	}
	began := time.Now()
	err = e.send(ctx, database+".events", rows)
	return time.Since(began), err
}

func (e *system) send(ctx context.Context, table string, rows driver.Rows) error {
	defer rows.Close()
	batch, err := e.Conn.PrepareBatch(ctx, "INSERT INTO "+table)
	if err != nil {
		return err
	}
	defer batch.Close()
	if err := batch.Append(rows); err != nil {
		return err
	}
	return batch.Send()
}
