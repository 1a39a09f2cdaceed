package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/schemas/readmodel"
)

// plain are the tables that a record alone fills.
var plain = slices.Concat(readmodel.Facts, []string{readmodel.Spine})

// bare inserts the facts of generation 2 up to last into the same tables of a
// database of its own, all tables at once, a chunk of records after the other,
// and gives the time that the inserts took.
func (e *system) bare(ctx context.Context, b *benchmark, last uint64) (took time.Duration, rows uint64, err error) {
	const database = "bare"
	if err := e.ch.Create(ctx, e.Conn, database); err != nil {
		return 0, 0, err
	}
	for after := uint64(0); after < last; after += uint64(b.Chunk) {
		spent, err := e.chunk(ctx, database, after, min(after+uint64(b.Chunk), last))
		if err != nil {
			return 0, 0, err
		}
		took += spent
	}
	for _, table := range plain {
		var n, want uint64
		ask := fmt.Sprintf("SELECT (SELECT count() FROM bare.%s), (SELECT count() FROM %s.%s WHERE seq <= %d)", table, e.ch.Database(2), table, last)
		if err := e.Conn.QueryRow(ctx, ask).Scan(&n, &want); err != nil {
			return 0, 0, err
		}
		if n != want {
			return 0, 0, fmt.Errorf("the bare insert put %d rows into %s and not %d: it is no comparison", n, table, want)
		}
		rows += n
	}
	return took, rows, nil
}

// chunk inserts the rows of the records after one seq up to another.
func (e *system) chunk(ctx context.Context, database string, after, to uint64) (time.Duration, error) {
	answers := map[string]driver.Rows{}
	for _, table := range plain {
		from := fmt.Sprintf("FROM %s.%s WHERE seq > %d AND seq <= %d", e.ch.Database(2), table, after, to)
		var n uint64
		if err := e.Conn.QueryRow(ctx, "SELECT count() "+from).Scan(&n); err != nil {
			return 0, fmt.Errorf("count the rows of %s: %w", table, err)
		}
		if n == 1 { // the driver does not append a block of whose rows all were looked at
			if err := e.Conn.Exec(ctx, "INSERT INTO "+database+"."+table+" SELECT * "+from); err != nil {
				return 0, fmt.Errorf("copy a row of %s: %w", table, err)
			}
		}
		if n <= 1 {
			continue
		}
		rows, err := e.Conn.Query(ctx, "SELECT * "+from+" ORDER BY seq SETTINGS max_block_size = 10000000, max_threads = 1")
		if err != nil {
			return 0, fmt.Errorf("read the rows of %s: %w", table, err)
		}
		if !rows.Next() { // the block is here now
			return 0, fmt.Errorf("read the rows of %s: %w", table, errors.Join(rows.Err(), rows.Close()))
		}
		answers[table] = rows
	}
	began := time.Now()
	var group sync.WaitGroup
	faults := make([]error, len(plain))
	for i, table := range plain {
		if rows := answers[table]; rows != nil {
			group.Go(func() { faults[i] = e.send(ctx, database+"."+table, rows) })
		}
	}
	group.Wait()
	return time.Since(began), errors.Join(faults...)
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
