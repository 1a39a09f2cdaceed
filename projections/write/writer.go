package write

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Writer writes the log into one generation. Only one goroutine may use it, except for Encode.
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
	without map[common.Address]bool       // vaults that the generation omits
	vaults  map[common.Address]bool       // vaults of the generation, known once lists is built
	mapped  *mapping.Vaults               // how logs are mapped
	states  map[common.Address]vaultState // of a vault, by its newest record in the log
	logs    map[common.Address]vaultLogs  // log counts of events; nil if not counted
	spare   chan *readmodel.Rows[readmodel.EventRow]
	changes *readmodel.Rows[readmodel.ListRow]
}

// vaultState is what a vault record of the log says: whether the vault is configured, and whether it names another
// mapping than the generation's.
type vaultState struct{ configured, differs bool }

// Counts are callbacks about a writer's work, for metrics.
type Counts struct {
	Batch       func() // a batch that is written and counts now
	Rows        func(table string, n int)
	Insert      func(table, outcome string)
	Impossible  func(event string) // a log that contradicts the state and changes nothing
	Quarantined func(n int)        // logs and samples that cannot be counted
}

// Outcomes of an insert.
const (
	outcomeAcknowledged = "ok"
	outcomeFailed       = "failed"
	outcomeAbsent       = "absent" // acknowledged, but absent
	outcomeFenced       = "fenced"
	outcomeGivenUp      = "given_up"
)

// Outcomes are all values with which Insert is called.
var Outcomes = []string{outcomeAcknowledged, outcomeFailed, outcomeAbsent, outcomeFenced, outcomeGivenUp}

// Tables are the names of the tables that a writer inserts into.
var Tables = []string{readmodel.EventsTable.Name, readmodel.ListsTable.Name}

// Open reads the positions of a generation's tables, which CheckGeneration must accept; built is its result. without
// has the vaults that the generation omits, and vaults the records by which it maps logs: every writer of the
// generation must get the same ones. Open removes the remains of an interrupted Build.
func Open(
	ctx context.Context, conn driver.Conn, ch readmodel.Config, database string, built bool, without, vaults [][]byte,
	counts Counts, log *slog.Logger,
) (*Writer, error) {
	mapped, err := mapping.Decode(vaults)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", database, err)
	}
	w := &Writer{mapped: mapped, conn: conn, ch: ch, database: database, id: rand.Uint64(), counts: counts, log: log,
		without: map[common.Address]bool{}, states: map[common.Address]vaultState{}, changes: readmodel.ListsTable.NewRows(),
		spare: make(chan *readmodel.Rows[readmodel.EventRow], 1)}
	for _, v := range without {
		w.without[common.BytesToAddress(v)] = true
	}
	if err := w.clean(ctx); err != nil {
		return nil, err
	}
	read := func(ctx context.Context, conn driver.Conn, from uint64) (m mark, err error) {
		m.seq, m.writer, err = readmodel.ReadEventsCursor(ctx, conn, from)
		return m, err
	}
	w.events = w.swapper(readmodel.EventsTable.Name, readmodel.EventsTable.Names(), read)
	w.events.readAt = time.Now()
	if w.events.cursor, err = read(ctx, conn, 0); err != nil {
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
	return w.Written()
}

// Written is the last seq of events, which may be after the position: an earlier writer may have crashed between its
// two inserts.
func (w *Writer) Written() uint64 { return w.events.cursor.seq }

// Built reports whether lists exists and is kept up to date.
func (w *Writer) Built() bool { return w.lists != nil }

// Outdated reports whether the generation, once built, has other vaults than those that the log records as
// configured, or maps their logs differently: a vault was added, removed or restored since then, or got another
// mapping. Only a new generation can represent this.
func (w *Writer) Outdated() bool {
	for v, s := range w.states {
		if has := w.vaults[v]; has != s.configured || has && s.differs {
			return true
		}
	}
	return false
}

// Restored reports whether the log, by the position of a built generation, configures a vault that the generation
// omits: it was restored after the generation had been created.
func (w *Writer) Restored() bool {
	for v := range w.without {
		if w.states[v].configured {
			return true
		}
	}
	return false
}

// Encoded contains whole units on their way into the tables.
type Encoded struct {
	batch decode.Batch
	rows  *readmodel.Rows[readmodel.EventRow] // of events; nil if not made yet
	// quarantined is the number of appended logs and samples that cannot be counted, and impossible has the events of
	// impossible sweeps. They are counted when the rows are written, because rows may be made twice.
	quarantined int
	impossible  []string
}

// Encode makes the rows of whole units for a generation that is being built. It may run while others are inserted.
// For a built generation, rows cannot be made before it is known where the units are split: use Whole.
func (w *Writer) Encode(batch decode.Batch) *Encoded {
	for f := range batch.All() {
		f.Skipped = f.OfVault() && w.without[f.Log.Vault]
	}
	return w.encode(batch, 0)
}

// Whole returns whole units whose rows are made when they are written.
func Whole(batch decode.Batch) *Encoded { return &Encoded{batch: batch} }

// encode makes the rows of the records after a seq, in a buffer that was used before if there is one: these buffers are
// most of the memory of a writer.
func (w *Writer) encode(batch decode.Batch, after uint64) *Encoded {
	out := &Encoded{batch: batch}
	select {
	case out.rows = <-w.spare:
	default:
		out.rows = readmodel.EventsTable.NewRows()
	}
	for f := range batch.All() {
		if f.Seq > after {
			fold.Events(f, w.id, out.rows.Add)
		}
		switch {
		case f.Sign < 0:
		case f.Quarantined:
			out.quarantined++
		case !f.Skipped && fold.ImpossibleSweep(f):
			out.impossible = append(out.impossible, f.Name())
		}
	}
	return out
}

// bulkRows is more rows than a live unit usually has. A larger buffer is released once the building is over.
const bulkRows = 4096

func (w *Writer) keep(rows *readmodel.Rows[readmodel.EventRow]) {
	if w.Built() && rows.Len() > bulkRows {
		return
	}
	rows.Reset()
	select {
	case w.spare <- rows:
	default:
	}
}

// Write inserts whole units, which must follow the position. After an error the writer must not be used any more. An
// *OutdatedError means that the generation cannot represent the log.
func (w *Writer) Write(ctx context.Context, e *Encoded) error {
	if first := e.batch.First().Seq; first != w.Position()+1 {
		return fmt.Errorf("the batch begins at seq %d, but %s needs seq %d", first, w.database, w.Position()+1)
	}
	if !w.Built() {
		if e.rows == nil {
			e = w.Encode(e.batch)
		}
		if err := w.insertEvents(ctx, e); err != nil {
			return err
		}
		w.wrote(e, 0)
		return nil
	}
	for _, part := range parts(e.batch.Units()) {
		if err := w.writePart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// parts splits units, of which there is at least one, so that one that retracts is a part of its own: it has its own
// ancestor.
func parts(units []decode.Unit) (out [][]decode.Unit) {
	start := 0
	for i := 1; i < len(units); i++ {
		if units[i].Rewrites || units[i-1].Rewrites {
			out, start = append(out, units[start:i]), i
		}
	}
	return append(out, units[start:])
}

// writePart writes a part of a batch into a generation whose lists are built: it inserts into events while it looks
// up the changes of lists, and then into lists, which commits the part.
func (w *Writer) writePart(ctx context.Context, part []decode.Unit) error {
	if err := w.skip(part); err != nil {
		return err
	}
	had := w.events.cursor.seq
	e := w.encode(joined(part), had)
	var change *fold.Change
	group, limited := errgroup.WithContext(ctx)
	group.Go(func() error { return w.insertEvents(ctx, e) })
	group.Go(func() (err error) {
		change, err = fold.Lists(limited, w.conn, w.cursor, part, w.id, slices.Collect(maps.Keys(w.vaults)))
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := w.insertLists(ctx, change); err != nil {
		return err
	}
	e.impossible = append(e.impossible, change.Impossible...)
	w.wrote(e, had)
	return nil
}

func joined(units []decode.Unit) (all decode.Batch) {
	for i := range units {
		all = append(all, units[i].Facts...)
	}
	return all
}

// insertEvents inserts rows into events. An earlier writer may have inserted them, and crashed before it inserted into
// lists.
func (w *Writer) insertEvents(ctx context.Context, e *Encoded) error {
	if e.rows.Len() == 0 {
		return nil
	}
	if err := w.events.swap(ctx, e.rows, e.batch.Last().Seq); err != nil {
		return err
	}
	w.counts.Rows(w.events.table, e.rows.Len())
	return nil
}

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

// wrote counts a batch that was written to the tables. had is the last seq that events had before it.
func (w *Writer) wrote(e *Encoded, had uint64) {
	w.counts.Batch()
	w.counts.Quarantined(e.quarantined)
	for _, event := range e.impossible {
		w.counts.Impossible(event)
	}
	w.countLogs(e.batch, had)
	w.keep(e.rows)
}

// skip marks the records of units that the generation skips: those of vaults that it does not have, and blocks below
// the newest one in a unit that retracts nothing. Such blocks come with the history of a vault that joined later. They
// would give indexed blocks another time, which decides what has lapsed there. skip returns an *OutdatedError if
// another record would change what the lists contain about an indexed block, which only a unit that retracts may do.
func (w *Writer) skip(units []decode.Unit) error {
	newest := w.cursor.Block
	for i := range units {
		u := &units[i]
		for f := range u.Facts.All() {
			if f.Kind == readmodel.VaultRecord && f.Sign > 0 {
				w.states[f.Log.Vault] = vaultState{!f.Removed, f.Differs}
			}
			switch {
			case f.OfVault() && !w.vaults[f.Log.Vault]:
				f.Skipped = true
			case u.Rewrites:
			case f.Kind == readmodel.BlockRecord:
				f.Skipped = f.Log.Block < newest
			case (f.Kind == readmodel.LogRecord || f.Kind == readmodel.SampleRecord) && f.Log.Block <= newest:
				return &OutdatedError{f.Log.Vault, f.Log.Block, newest}
			}
		}
		newest = newestAfter(newest, u)
	}
	return nil
}

// OutdatedError means that a generation cannot represent the log.
type OutdatedError struct {
	Vault         common.Address
	Block, Newest uint64
}

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("the log has block %d of vault %s after block %d was indexed: a vault was restored, "+
		"and only another generation can include it, which project builds by itself", e.Block, e.Vault, e.Newest)
}

func newestAfter(newest uint64, u *decode.Unit) uint64 {
	if u.Rewrites {
		newest = min(newest, u.Ancestor())
	}
	for f := range u.Facts.All() {
		if f.Kind == readmodel.BlockRecord && f.Sign > 0 {
			newest = max(newest, f.Log.Block)
		}
	}
	return newest
}

//go:embed sql/vault_logs.sql
var sqlVaultLogs string

// vaultLogs counts the live logs of a vault: those of known events, and the others.
type vaultLogs struct{ known, unknown int64 }

// CountLogs reads the counts of all vaults, over a connection with long timeouts. Without it, Foreign returns nothing.
func (w *Writer) CountLogs(ctx context.Context, patient driver.Conn) error {
	var rows []struct {
		Vault   common.Address `ch:"vault"`
		Known   int64          `ch:"known"`
		Unknown int64          `ch:"unknown"`
	}
	if err := patient.Select(ctx, &rows, sqlVaultLogs); err != nil {
		return fmt.Errorf("count the logs of the vaults in %s: %w", w.database, err)
	}
	w.logs = map[common.Address]vaultLogs{}
	for _, r := range rows {
		w.logs[r.Vault] = vaultLogs{r.Known, r.Unknown}
	}
	return nil
}

// countLogs adds the written records after a seq.
func (w *Writer) countLogs(batch decode.Batch, after uint64) {
	if w.logs == nil {
		return
	}
	for f := range batch.All() {
		if f.Kind != readmodel.LogRecord || f.Seq <= after {
			continue
		}
		n := w.logs[f.Log.Vault]
		if f.Known() {
			n.known += int64(f.Sign)
		} else {
			n.unknown += int64(f.Sign)
		}
		w.logs[f.Log.Vault] = n
	}
}

// Foreign returns the vaults that have logs but none of a known event, with the number of logs. It omits the vaults
// that the generation omits.
func (w *Writer) Foreign() map[common.Address]int64 {
	out := map[common.Address]int64{}
	for v, n := range w.logs {
		if n.known == 0 && n.unknown > 0 && !w.without[v] {
			out[v] = n.unknown
		}
	}
	return out
}
