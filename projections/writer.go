package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"

	"github.com/ClickHouse/clickhouse-go/v2"
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
	entries  func() int // bound of the state
	metrics  *metrics
	tables   []*swapper
	state    *state
	folded   uint64 // the state has all records up to this seq
	position uint64 // every table has all rows up to this seq
	// spare are outputs that were inserted, to be filled again: their memory is
	// most of what a writer needs beside its state.
	spare chan *output
}

// openWriter reads where the tables of a generation stand.
func openWriter(ctx context.Context, conn driver.Conn, database string, entries func() int, m *metrics, log *slog.Logger) (*writer, error) {
	w := &writer{conn: conn, database: database, entries: entries, metrics: m, position: math.MaxUint64, spare: make(chan *output, 1)}
	id := rand.Uint64()
	for _, table := range readmodel.Tables {
		s := &swapper{conn: conn, database: database, table: table, writer: id, log: log, processes: "system.processes",
			outcome: func(outcome string) { m.inserts.WithLabelValues(table, outcome).Inc() }}
		if err := s.open(ctx); err != nil {
			return nil, err
		}
		w.tables = append(w.tables, s)
		w.position = min(w.position, s.cursor.seq)
	}
	w.folded = w.position
	w.state = newState(w.position == 0)
	return w, nil
}

// endsWith proves that the record which the log has at the position is the one
// that the tables were made of. A log that was restored from an older copy has
// the log's id, and goes on with other records under the same seqs.
func (w *writer) endsWith(ctx context.Context, last *fact) error {
	if w.position == 0 {
		return nil
	}
	var row string
	ask := clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"seq": fmt.Sprint(w.position)}))
	if err := w.conn.QueryRow(ask, question("record", w.database)).Scan(&row); err != nil {
		return fmt.Errorf("read seq %d of %s.records: %w", w.position, w.database, err)
	}
	if row != last.line() {
		return &permanentError{fmt.Errorf("at seq %d %s has %q and the log has %q: the log was replaced by an older copy, and written on; restore the true log, or run `navlog projection rebuild` if this one is it", w.position, w.database, row, last.line())}
	}
	return nil
}

// across names the table of the queries that are running, where the generation
// has replicas.
func (w *writer) across(processes string) {
	for _, s := range w.tables {
		s.processes = processes
	}
}

// folded is a batch of whole units as rows, on its way into the tables.
type folded struct {
	out   *output
	last  uint64
	wrote progress
}

// write folds whole units of the log, the next ones after the position, and
// inserts their rows. After an error the writer is of no further use: its state
// may be ahead of the tables.
func (w *writer) write(ctx context.Context, facts facts) error {
	batch, err := w.fold(ctx, facts)
	if err != nil {
		return err
	}
	return w.insert(ctx, batch)
}

// fold turns whole units of the log, the next ones after those folded before,
// into rows. It may run while the batch before is being inserted: what that one
// touched is in the state, and the rest is read as of the position.
func (w *writer) fold(ctx context.Context, facts facts) (*folded, error) {
	first, last := facts.first().seq, facts.last().seq
	if first != w.folded+1 {
		return nil, fmt.Errorf("a batch begins at seq %d where %s needs %d", first, w.database, w.folded+1)
	}
	if err := (loader{w.conn, w.database, w.folded}).load(ctx, w.state, facts); err != nil {
		return nil, err
	}
	f := folding{state: w.state, out: w.output(), impossible: w.metrics.impossible, quarantined: w.metrics.quarantined}
	if err := f.fold(facts); err != nil {
		return nil, &permanentError{err}
	}
	w.folded = last
	w.state.trim(w.entries())
	return &folded{f.out, last, reached(facts)}, nil
}

// output is an empty one.
func (w *writer) output() *output {
	select {
	case out := <-w.spare:
		return out
	default:
		return newOutput()
	}
}

// insert gives each table what it lacks of a batch, all tables at once. One
// that fails does not stop the others: what they have need not be sent again.
func (w *writer) insert(ctx context.Context, batch *folded) error {
	var group errgroup.Group
	for _, s := range w.tables {
		group.Go(func() error {
			all, before := batch.out.table(s.table), s.cursor.seq
			if err := s.swap(ctx, all, batch.last); err != nil {
				return err
			}
			w.metrics.rows.WithLabelValues(s.table).Add(float64(all.len() - all.after(before)))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.position = batch.last
	w.metrics.batches.Inc()
	if !batch.out.roomy() { // else the replay is over, and its memory is given back
		batch.out.reset()
		select {
		case w.spare <- batch.out:
		default:
		}
	}
	return nil
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
