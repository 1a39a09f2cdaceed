package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
)

// writer folds the log into one generation. It is told which database that
// is, so that several can run beside each other.
type writer struct {
	conn     driver.Conn
	database string
	entries  int // bound of the state
	metrics  *metrics
	tables   []*swapper
	state    *state
	position uint64 // every table has all rows up to this seq
}

// openWriter reads where the tables of a generation stand.
func openWriter(ctx context.Context, conn driver.Conn, database string, entries int, m *metrics, log *slog.Logger) (*writer, error) {
	w := &writer{conn: conn, database: database, entries: entries, metrics: m, position: math.MaxUint64}
	id := rand.Uint64()
	for _, table := range readmodel.Tables {
		s := &swapper{conn: conn, database: database, table: table, writer: id, log: log,
			outcome: func(outcome string) { m.inserts.WithLabelValues(table, outcome).Inc() }}
		var err error
		if s.cursor, err = s.read(ctx); err != nil {
			return nil, err
		}
		w.tables = append(w.tables, s)
		w.position = min(w.position, s.cursor.seq)
	}
	w.state = newState(w.position == 0)
	return w, nil
}

// write folds whole units of the log, the next ones after the position, and
// inserts their rows. After an error the writer is of no further use: its state
// may be ahead of the tables.
func (w *writer) write(ctx context.Context, entries []chainlog.Entry) error {
	first, last := entries[0].GetSeq(), entries[len(entries)-1].GetSeq()
	if first != w.position+1 {
		return fmt.Errorf("a batch begins at seq %d where %s needs %d", first, w.database, w.position+1)
	}
	facts := make([]fact, len(entries))
	for i := range entries {
		facts[i] = decode(entries[i].Record)
	}
	if err := (loader{w.conn, w.database, w.position}).load(ctx, w.state, facts); err != nil {
		return err
	}
	f := folding{state: w.state, out: new(output), impossible: w.metrics.impossible, quarantined: w.metrics.quarantined}
	if err := f.fold(facts); err != nil {
		return &permanentError{err}
	}
	if err := w.insert(ctx, f.out, last); err != nil {
		return err
	}
	w.position = last
	w.state.trim(w.entries)
	w.metrics.batches.Inc()
	return nil
}

// insert gives each table what it lacks, all tables at once. One that fails
// does not stop the others: what they have need not be sent again.
func (w *writer) insert(ctx context.Context, out *output, last uint64) error {
	var group errgroup.Group
	for _, s := range w.tables {
		group.Go(func() error {
			all, before := out.table(s.table), s.cursor.seq
			if err := s.swap(ctx, all, last); err != nil {
				return err
			}
			w.metrics.rows.WithLabelValues(s.table).Add(float64(after(all, before)))
			return nil
		})
	}
	return group.Wait()
}

// after counts the rows of a seq larger than seq.
func after(all rows, seq uint64) (n int) {
	for i := all.len() - 1; i >= 0 && all.seq(i) > seq; i-- {
		n++
	}
	return n
}

// permanentError says that trying again cannot help.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// permanent tells whether err needs a person: the log is broken, or the
// generation and the log do not belong together.
func permanent(err error) bool {
	var p *permanentError
	var corrupt *chainlog.CorruptError
	var hole *chainlog.HoleError
	var table *readmodel.TableError
	return errors.As(err, &p) || errors.As(err, &corrupt) || errors.As(err, &hole) || errors.As(err, &table)
}
