package write

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/telemetry"
)

// cursorAge is the maximum age of the cursor that an insert follows. It keeps a writer that was suspended for a while
// from using a token so old that the engine may have forgotten it (100,000 inserts later).
const cursorAge = 10 * time.Second

// insertTimeout bounds one insert. It is a deadline and does not follow the program's cancellation, so that a program
// that is stopped finishes the insert that it has begun.
const insertTimeout = 30 * time.Second

// errGivenUp means that a batch could not be inserted while its cursor was fresh.
var errGivenUp = errors.New("insert abandoned: the cursor that it follows is older than 10 s")

// fencedError means that another writer has moved the cursor.
type fencedError struct {
	table         string
	now           mark
	cursor, wrote uint64
}

func (e *fencedError) Error() string {
	return fmt.Sprintf("fenced: %s is at seq %d of writer %x, although this writer inserted rows after %d up to %d: "+
		"another projector writes this generation", e.table, e.now.seq, e.now.writer, e.cursor, e.wrote)
}

// mark is a table's cursor: its last seq, and the writer of it.
type mark struct{ seq, writer uint64 }

// block is a set of rows that are inserted at once.
type block interface {
	Len() int
	Fill([]column.Interface) error
}

// swapper inserts into one table by compare-and-swap.
type swapper struct {
	conn   driver.Conn
	table  string
	names  string // columns of the table
	writer uint64
	// read reads the cursor, which never goes backwards: the table has at least the rows that it had at seq from.
	read    func(ctx context.Context, conn driver.Conn, from uint64) (mark, error)
	cursor  mark
	readAt  time.Time // when the cursor was read
	outcome func(string)
	log     *slog.Logger
	// processes is the system table of running queries.
	processes string
}

// swap inserts rows exactly once, which moves the table's cursor to seq last. A *fencedError means that another
// process writes; after any other error it is unknown what was inserted.
func (s *swapper) swap(ctx context.Context, rows block, last uint64) error {
	if err := s.refresh(ctx, last); err != nil {
		return err
	}
	token := fmt.Sprintf("%s:after:%d", s.table, s.cursor.seq)
	var failure error // of the last insert
	for absent := 0; time.Since(s.readAt) < cursorAge; {
		failure = s.insert(ctx, rows, token, absent)
		seen, at, err := s.rereadCursor(ctx)
		switch {
		case err != nil:
			return errors.Join(failure, err)
		case seen == mark{last, s.writer}:
			s.cursor, s.readAt = seen, at
			s.outcome(outcomeAcknowledged)
			return nil
		case seen.seq != s.cursor.seq:
			s.outcome(outcomeFenced)
			return &fencedError{s.table, seen, s.cursor.seq, last}
		case failure == nil:
			absent++
			s.outcome(outcomeAbsent)
			s.log.ErrorContext(ctx, "acknowledged insert absent, sending it again under another token",
				"table", s.table, "after", s.cursor.seq, "last", last)
		default:
			s.outcome(outcomeFailed)
			s.log.WarnContext(ctx, "insert failed, sending it again",
				"table", s.table, "after", s.cursor.seq, "last", last, "error", failure)
		}
		if err := Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	s.outcome(outcomeGivenUp)
	return errors.Join(fmt.Errorf("insert into %s after seq %d: %w", s.table, s.cursor.seq, errGivenUp), failure)
}

// refresh reads the cursor again if the last read was too long ago.
func (s *swapper) refresh(ctx context.Context, last uint64) error {
	if time.Since(s.readAt) < cursorAge/2 {
		return nil
	}
	seen, at, err := s.rereadCursor(ctx)
	if err != nil {
		return err
	}
	if seen.seq != s.cursor.seq {
		s.outcome(outcomeFenced)
		return &fencedError{s.table, seen, s.cursor.seq, last}
	}
	s.readAt = at
	return nil
}

// insert sends rows as one block, and then makes sure that the insert is no longer running.
func (s *swapper) insert(ctx context.Context, rows block, token string, absent int) (err error) {
	ctx, span := telemetry.Child(ctx, telemetry.Client, "insert "+s.table)
	defer func() { telemetry.End(span, err) }()
	telemetry.Text(span, telemetry.Database, "clickhouse")
	telemetry.Text(span, telemetry.Collection, s.table)
	telemetry.Number(span, telemetry.Records, rows.Len())
	if absent > 0 {
		token = fmt.Sprintf("%s:retry%d", token, absent)
	}
	queryID := uuid.NewString()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), insertTimeout)
	defer cancel()
	err = send(clickhouse.Context(readmodel.Traced(limited), clickhouse.WithQueryID(queryID),
		clickhouse.WithSettings(clickhouse.Settings{
			"insert_deduplication_token": token,
			"async_insert":               0,
		})), s.conn, s.table, s.names, rows)
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("insert into %s after seq %d: %w", s.table, s.cursor.seq, err),
		s.waitForInsertEnd(ctx, queryID))
}

// send inserts rows as one block.
func send(ctx context.Context, conn driver.Conn, table, names string, rows block) error {
	batch, err := conn.PrepareBatch(ctx, fmt.Sprintf("INSERT INTO %s (%s)", table, names))
	if err != nil {
		return err
	}
	defer batch.Close()
	if err := rows.Fill(batch.Columns()); err != nil {
		return err
	}
	return batch.Send()
}

// waitForInsertEnd waits until the engine no longer runs the insert. If this is not known before the cursor is too
// old, it returns the reason.
func (s *swapper) waitForInsertEnd(ctx context.Context, queryID string) (unknown error) {
	for time.Since(s.readAt) < cursorAge {
		var running uint64
		question := "SELECT count() FROM " + s.processes + " WHERE query_id = {id:String}"
		err := s.conn.QueryRow(ctx, question, clickhouse.Named("id", queryID)).Scan(&running)
		if err == nil && running == 0 {
			return nil
		}
		if unknown = errors.New("the engine still runs it"); err != nil {
			unknown = fmt.Errorf("ask %s whether the engine still runs it: %w", s.processes, err)
		}
		if err := Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return unknown // the next insert is not sent, and the batch fails
}

// rereadCursor reads the cursor again, which is at seq 0 if the table has lost the row of the previous one, and
// retries for as long as that is not too old.
func (s *swapper) rereadCursor(ctx context.Context) (mark, time.Time, error) {
	// This does not follow the program's cancellation: the outcome of the last insert is worth waiting for.
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), insertTimeout)
	defer cancel()
	for {
		at := time.Now()
		seen, err := s.read(limited, s.conn, s.cursor.seq)
		if err == nil || time.Since(s.readAt) >= cursorAge {
			return seen, at, err
		}
		if stopped := Pause(ctx, 50*time.Millisecond); stopped != nil {
			return seen, at, errors.Join(err, stopped)
		}
	}
}

// Pause waits for d, or returns ctx's error.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
