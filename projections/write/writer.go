package write

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Writer writes the log into one generation. Only one goroutine may use it, but
// for Encode.
type Writer struct {
	conn     driver.Conn // to the generation's database
	ch       readmodel.Config
	database string
	id       uint64
	counts   Counts
	log      *slog.Logger

	events  *swapper
	lists   *swapper                      // nil while the generation is being built
	cursor  readmodel.ListsCursor         // of lists
	without map[common.Address]bool       // vaults that the generation is made without
	vaults  map[common.Address]bool       // those that it has, known once lists is built
	mapped  *mapping.Vaults               // how logs are mapped
	differs map[common.Address]bool       // whether the newest record of a vault names another mapping
	said    map[common.Address]bool       // whether the log has a vault among the configured ones, by its newest record
	logs    map[common.Address]*VaultLogs // those of events, nil if they are not counted
	spare   chan *encoded
	changes *readmodel.Rows[readmodel.ListRow]
}

// Counts hear of what a writer does, for metrics.
type Counts struct {
	Batch       func() // a batch that counts now
	Rows        func(table string, n int)
	Insert      func(table, outcome string)
	Impossible  func(event string) // a log that cannot be, and changes nothing
	Quarantined func(event string) // a log that cannot be counted
}

// Outcomes of an insert.
const (
	outcomeAcknowledged = "ok"
	outcomeFailed       = "failed"
	outcomeAbsent       = "absent" // acknowledged, and not there
	outcomeFenced       = "fenced"
	outcomeGivenUp      = "given_up"
)

// Outcomes are all that Insert may hear.
var Outcomes = []string{outcomeAcknowledged, outcomeFailed, outcomeAbsent, outcomeFenced, outcomeGivenUp}

// Tables are the names of the tables that a writer inserts into.
var Tables = []string{readmodel.EventsTable.Name, readmodel.ListsTable.Name}

// Open reads where the tables of a generation stand. They must be as CheckGeneration
// wants them; built is what it reported, and without the vaults that the generation is
// made without, and vaults the records by which it maps logs: every writer of it must be
// given the same. What was left of an
// interrupted Build is removed.
func Open(
	ctx context.Context, conn driver.Conn, ch readmodel.Config, database string, built bool, without []common.Address,
	vaults [][]byte, counts Counts, log *slog.Logger,
) (*Writer, error) {
	mapped, err := mapping.Decode(vaults)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", database, err)
	}
	w := &Writer{mapped: mapped, differs: map[common.Address]bool{}, conn: conn, ch: ch, database: database, id: rand.Uint64(), counts: counts, log: log,
		without: map[common.Address]bool{}, said: map[common.Address]bool{},
		spare: make(chan *encoded, 1), changes: readmodel.ListsTable.NewRows()}
	for _, v := range without {
		w.without[v] = true
	}
	if err := w.clean(ctx); err != nil {
		return nil, err
	}
	read := func(ctx context.Context, conn driver.Conn, from uint64) (m mark, err error) {
		m.seq, m.writer, err = readmodel.ReadEventsCursor(ctx, conn, from)
		return m, err
	}
	w.events = w.swapper(readmodel.EventsTable.Name, readmodel.EventsTable.Names(), read)
	if err := w.events.open(ctx); err != nil {
		return nil, err
	}
	if !built {
		return w, nil
	}
	if err := w.openLists(ctx); err != nil {
		return nil, err
	}
	return w, w.fits(ctx)
}

func (w *Writer) swapper(table, names string, read func(context.Context, driver.Conn, uint64) (mark, error)) *swapper {
	return &swapper{conn: w.conn, table: table, names: names, read: read, writer: w.id, log: w.log,
		processes: w.ch.Processes(), outcome: func(outcome string) { w.counts.Insert(table, outcome) }}
}

// Position is the seq up to which the generation is written.
func (w *Writer) Position() uint64 {
	if w.Built() {
		return w.cursor.Seq
	}
	return w.events.cursor.seq
}

// Built reports whether lists is there, and kept.
func (w *Writer) Built() bool { return w.lists != nil }

// Outdated tells whether the generation, once built, has other vaults than the log
// says are configured, or maps their logs in another way: one joined since, was removed, came
// back, or has another mapping. Only another generation will have what they have.
func (w *Writer) Outdated() bool {
	for v, configured := range w.said {
		if w.vaults[v] != configured {
			return true
		}
	}
	for v, differs := range w.differs {
		if differs && w.vaults[v] {
			return true
		}
	}
	return false
}

// encoded is records of the log as rows of events.
type encoded struct {
	rows *readmodel.Rows[readmodel.EventRow]
	odd
}

// odd are the events of appended logs that cannot be counted, and of sweeps that cannot
// be: counted when the rows are written, for rows may be encoded twice.
type odd struct{ quarantined, impossible []string }

// Encode makes the rows of whole units for a generation that is being built. It
// may run while others are inserted. For one that is built there is nothing to be
// made before it is known where the units are to be cut: Whole is as good.
func (w *Writer) Encode(batch decode.Batch) *Encoded {
	return &Encoded{batch, w.encode(batch, 0, nil)}
}

// Whole is whole units whose rows are made when they are written.
func Whole(batch decode.Batch) *Encoded { return &Encoded{batch: batch} }

// Encoded is whole units on their way into the tables.
type Encoded struct {
	batch decode.Batch
	rows  *encoded // nil: not made yet
}

// Len is the number of records.
func (e *Encoded) Len() int { return e.batch.Len() }

// encode makes the rows of the records after a seq. vaults are those whose records are
// not passed over; nil for all that the generation is not made without.
func (w *Writer) encode(batch decode.Batch, after uint64, vaults map[common.Address]bool) *encoded {
	out := w.empty()
	for f := range batch.All() {
		passed := w.passes(f, vaults)
		if f.Seq > after {
			fold.Events(f, w.id, passed, out.rows.Add)
		}
		switch {
		case f.Sign < 0:
		case f.Quarantined:
			out.quarantined = append(out.quarantined, cmp.Or(f.Name(), f.Kind.String()))
		case !passed && fold.ImpossibleSweep(f):
			out.impossible = append(out.impossible, f.Name())
		}
	}
	return out
}

// passes reports whether a record is passed over: it is of a vault that the generation
// is made without, or that joined after its lists were built.
func (w *Writer) passes(f *decode.Fact, vaults map[common.Address]bool) bool {
	return (f.Kind == decode.LogKind || f.Kind == decode.VaultKind || f.Kind == decode.SampleKind) && w.passesVault(f.Log.Vault, vaults)
}

func (w *Writer) passesVault(v common.Address, vaults map[common.Address]bool) bool {
	return w.without[v] || vaults != nil && !vaults[v]
}

// empty is room for rows: their memory is most of what a writer needs.
func (w *Writer) empty() *encoded {
	select {
	case out := <-w.spare:
		return out
	default:
		return &encoded{rows: readmodel.EventsTable.NewRows()}
	}
}

// bulkRows is how many rows a live unit hardly has. The memory of more is given back:
// building is over.
const bulkRows = 4096

// keep takes room back.
func (w *Writer) keep(e *encoded) {
	if w.Built() && e.rows.Len() > bulkRows {
		return
	}
	e.rows.Reset()
	e.quarantined, e.impossible = e.quarantined[:0], e.impossible[:0]
	select {
	case w.spare <- e:
	default:
	}
}

// Write inserts whole units, the next ones after the position. After an error the
// writer is of no further use. An *OutdatedError says that the generation cannot
// have what the log says.
func (w *Writer) Write(ctx context.Context, e *Encoded) error {
	if first := e.batch.First().Seq; first != w.Position()+1 {
		return fmt.Errorf("a batch begins at seq %d where %s needs %d", first, w.database, w.Position()+1)
	}
	if !w.Built() {
		if e.rows == nil {
			e.rows = w.encode(e.batch, 0, nil)
		}
		if err := w.insertEvents(ctx, e.rows, e.batch.Last().Seq); err != nil {
			return err
		}
		w.wrote(e.rows)
		w.countLogs(e.batch, 0)
		return nil
	}
	for _, part := range parts(e.batch.Units()) {
		if err := w.writePart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// parts cuts units so that one that retracts stands alone: it has an ancestor of its own.
func parts(units []decode.Unit) (out [][]decode.Unit) {
	for start, i := 0, 0; i < len(units); i++ {
		if units[i].Rewrites && i > start {
			out = append(out, units[start:i])
			start = i
		}
		if units[i].Rewrites || i == len(units)-1 {
			out = append(out, units[start:i+1])
			start = i + 1
		}
	}
	return out
}

// writePart writes a part of a batch into a generation whose lists are built: events,
// while what changes in lists is looked up, and then lists, which makes it count.
func (w *Writer) writePart(ctx context.Context, part []decode.Unit) error {
	units := w.kept(part)
	if err := w.above(units); err != nil {
		return err
	}
	batch, had := joined(part), w.events.cursor.seq
	e := w.encode(batch, had, w.vaults)
	last := part[len(part)-1].End
	var change *fold.Change
	group, limited := errgroup.WithContext(ctx)
	group.Go(func() error { return w.insertEvents(ctx, e, last) })
	group.Go(func() (err error) {
		kept := fold.Batch{Units: units, Last: last, Writer: w.id, Vaults: slices.Collect(maps.Keys(w.vaults))}
		change, err = fold.Lists(limited, w.conn, w.cursor, kept)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := w.insertLists(ctx, change); err != nil {
		return err
	}
	e.impossible = append(e.impossible, change.Impossible...)
	w.wrote(e)
	w.countLogs(batch, had)
	return nil
}

// joined is the records of units as one batch.
func joined(units []decode.Unit) (all decode.Batch) {
	for i := range units {
		all = append(all, units[i].Facts...)
	}
	return all
}

// insertEvents inserts rows into events, up to a seq. A writer before this one may have
// inserted them, and died before it inserted into lists.
func (w *Writer) insertEvents(ctx context.Context, e *encoded, last uint64) error {
	if e.rows.Len() == 0 {
		return nil
	}
	if err := w.events.swap(ctx, e.rows, last); err != nil {
		return err
	}
	w.counts.Rows(w.events.table, e.rows.Len())
	return nil
}

// insertLists inserts what units change in lists.
func (w *Writer) insertLists(ctx context.Context, change *fold.Change) error {
	change.Rows(w.changes)
	if err := w.lists.swap(ctx, w.changes, change.Cursor.Seq); err != nil {
		return err
	}
	w.cursor = change.Cursor
	w.counts.Rows(w.lists.table, w.changes.Len())
	if w.changes.Len() > bulkRows {
		w.changes = readmodel.ListsTable.NewRows()
	}
	w.changes.Reset()
	return nil
}

// wrote counts a batch that the tables have.
func (w *Writer) wrote(e *encoded) {
	w.counts.Batch()
	for _, event := range e.quarantined {
		w.counts.Quarantined(event)
	}
	for _, event := range e.impossible {
		w.counts.Impossible(event)
	}
	w.keep(e)
}

// kept is units without what is passed over.
func (w *Writer) kept(part []decode.Unit) (units []decode.Unit) {
	for _, u := range part {
		for f := range u.Facts.All() {
			if f.Kind == decode.VaultKind && f.Sign > 0 {
				w.said[f.Log.Vault] = !f.Removed
				w.differs[f.Log.Vault] = f.Differs
			}
		}
		units = append(units, u.Keep(func(f *decode.Fact) bool { return !w.passes(f, w.vaults) }))
	}
	return units
}

// OutdatedError says that a generation cannot have what the log says.
type OutdatedError struct {
	Vault         common.Address
	Block, Newest uint64
}

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("the log brings block %d of vault %s after block %d was indexed: a vault came back, "+
		"and only another generation can have it", e.Block, e.Vault, e.Newest)
}

// above makes sure that what retracts nothing lies above the newest block: what the
// lists say of a block never changes by it.
func (w *Writer) above(units []decode.Unit) error {
	newest := w.cursor.Block
	for i := range units {
		for f := range units[i].Facts.All() {
			if (f.Kind == decode.LogKind || f.Kind == decode.SampleKind) && !units[i].Rewrites && f.Log.Block <= newest {
				return &OutdatedError{f.Log.Vault, f.Log.Block, newest}
			}
		}
		newest = newestAfter(newest, &units[i])
	}
	return nil
}

// newestAfter is the newest indexed block after a unit.
func newestAfter(newest uint64, u *decode.Unit) uint64 {
	if u.Rewrites {
		newest = min(newest, u.Ancestor())
	}
	for f := range u.Facts.All() {
		if f.Kind == decode.BlockKind && f.Sign > 0 {
			newest = max(newest, f.Log.Block)
		}
	}
	return newest
}
