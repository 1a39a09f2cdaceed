package write

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/derive"
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

	spine   *swapper
	facts   map[string]*swapper
	derived map[string]*swapper     // empty while the generation is being built
	without map[common.Address]bool // vaults that the generation is made without
	vaults  map[common.Address]bool // those that it has, known while derived
	said    map[common.Address]bool // whether the log has a vault among the configured ones, by its newest record
	newest  uint64                  // newest indexed block, kept while derived
	logs    map[common.Address]*VaultLogs
	spare   chan *encoded
}

// Counts hear of what a writer does, for metrics.
type Counts struct {
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

// Open reads where the tables of a generation stand. They must be as CheckTables
// wants them; derived are the names that it gave, and without the vaults that the
// generation is made without: every writer of it must be given the same. What was left
// of an interrupted Derive is removed.
func Open(ctx context.Context, conn driver.Conn, ch readmodel.Config, database string, derived []string, without []common.Address, counts Counts, log *slog.Logger) (*Writer, error) {
	w := &Writer{conn: conn, ch: ch, database: database, id: rand.Uint64(), counts: counts, log: log, without: map[common.Address]bool{}, said: map[common.Address]bool{},
		facts: map[string]*swapper{}, derived: map[string]*swapper{}, spare: make(chan *encoded, 1)}
	for _, v := range without {
		w.without[v] = true
	}
	if err := w.clean(ctx, derived); err != nil {
		return nil, err
	}
	var err error
	if w.spine, err = w.open(ctx, readmodel.Spine); err != nil {
		return nil, err
	}
	for _, table := range readmodel.Facts {
		if w.facts[table], err = w.open(ctx, table); err != nil {
			return nil, err
		}
	}
	if len(derived) < len(readmodel.Derived) {
		return w, nil
	}
	for _, table := range readmodel.Derived {
		if w.derived[table], err = w.open(ctx, table); err != nil {
			return nil, err
		}
	}
	if whole, err := w.whole(ctx); err != nil || !whole {
		return w, err
	}
	return w, w.know(ctx)
}

func (w *Writer) open(ctx context.Context, table string) (*swapper, error) {
	s := &swapper{conn: w.conn, table: table, writer: w.id, log: w.log, processes: w.ch.Processes(),
		outcome: func(outcome string) { w.counts.Insert(table, outcome) }}
	return s, s.open(ctx)
}

// Position is the seq up to which the generation is written.
func (w *Writer) Position() uint64 { return w.spine.cursor.Seq }

// Derived tells whether the derived tables are there, and kept.
func (w *Writer) Derived() bool { return len(w.derived) > 0 }

// Outdated tells whether the generation, once derived, has other vaults than the log
// says are configured: one joined since, was removed, or came back. Only another
// generation will have what they have.
func (w *Writer) Outdated() bool {
	for v, configured := range w.said {
		if w.vaults[v] != configured {
			return true
		}
	}
	return false
}

// encoded is whole units of the log as rows of the spine and of facts.
type encoded struct {
	rows map[string]*rows
	// Events of appended logs that cannot be counted, and of sweeps that cannot be:
	// counted when the rows are written, for rows may be encoded twice.
	quarantined, impossible []string
}

// Encode makes the rows of whole units for a generation that is being built. It
// may run while others are inserted. For one that is derived there is nothing to be
// made before it is known where the units are to be cut: Whole is as good.
func (w *Writer) Encode(batch decode.Batch) *Encoded {
	return &Encoded{batch, w.encode(batch, nil)}
}

// Whole is whole units whose rows are made when they are written.
func Whole(batch decode.Batch) *Encoded { return &Encoded{batch: batch} }

// Encoded is whole units on their way into the tables.
type Encoded struct {
	batch decode.Batch
	rows  *encoded // nil: not made yet
}

// encode makes rows. vaults are those whose records are not passed over; nil for all
// that the generation is not made without.
func (w *Writer) encode(batch decode.Batch, vaults map[common.Address]bool) *encoded {
	out := w.empty()
	for f := range batch.All() {
		passed := w.passes(f, vaults)
		out.rows[readmodel.Spine].spine(f, passed)
		if f.Quarantined && f.Sign > 0 {
			out.quarantined = append(out.quarantined, f.Name())
		}
		if passed {
			continue
		}
		for i := range f.Effects {
			out.add(f, &f.Effects[i])
		}
	}
	return out
}

// add makes the row of what a log does, in the table that has such effects.
func (e *encoded) add(f *decode.Fact, does *decode.Effect) {
	switch does.Kind {
	case decode.Deposit:
		e.rows[readmodel.Deposits].deposit(f, does)
	case decode.Requested, decode.Funded, decode.Claimed, decode.Cancelled, decode.Expired:
		e.rows[readmodel.WithdrawalEvents].withdrawalEvent(f, does)
	case decode.NAV:
		e.rows[readmodel.Navs].nav(f, does)
	case decode.Sweep:
		e.rows[readmodel.Sweeps].sweep(f, does)
		if f.Sign > 0 && (does.ID == 0 || does.ID > does.To) {
			e.impossible = append(e.impossible, f.Name())
		}
	}
}

// passes tells whether a record is passed over: it is of a vault that the generation
// is made without, or that joined after its tables were derived.
func (w *Writer) passes(f *decode.Fact, vaults map[common.Address]bool) bool {
	if f.Kind != decode.LogKind && f.Kind != decode.VaultKind {
		return false
	}
	return w.without[f.Log.Vault] || vaults != nil && !vaults[f.Log.Vault]
}

// empty is room for rows: their memory is most of what a writer needs.
func (w *Writer) empty() *encoded {
	select {
	case out := <-w.spare:
		return out
	default:
	}
	out := &encoded{rows: map[string]*rows{}}
	for _, table := range slices.Concat([]string{readmodel.Spine}, readmodel.Facts) {
		out.rows[table] = newRows(table, w.id)
	}
	return out
}

// keep takes room back, unless it is much more than the rows needed: then building
// is over, and its memory is given back.
func (w *Writer) keep(e *encoded) {
	spine := e.rows[readmodel.Spine]
	if cap(spine.seqs) > 4096 && spine.count < cap(spine.seqs)/8 {
		return
	}
	for _, r := range e.rows {
		r.reset()
	}
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
	if !w.Derived() {
		if e.rows == nil {
			e.rows = w.encode(e.batch, nil)
		}
		return w.insert(ctx, e.batch, e.rows, nil)
	}
	for _, part := range parts(e.batch.Units()) {
		if err := w.writeDerived(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// parts cuts units so that one that rewrites the past stands alone: while its rows
// are inserted the fence has to say what it rewrites, and nothing else.
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

// writeDerived writes a part of a batch into a generation that is derived.
func (w *Writer) writeDerived(ctx context.Context, part []decode.Unit) error {
	var batch decode.Batch
	for _, u := range part {
		batch = append(batch, u.Facts...)
	}
	units := w.kept(part)
	if err := w.above(units); err != nil {
		return err
	}
	return w.insert(ctx, batch, w.encode(batch, w.vaults), units)
}

// kept is units without what is passed over.
func (w *Writer) kept(part []decode.Unit) (units []decode.Unit) {
	for _, u := range part {
		for f := range u.Facts.All() {
			if f.Kind == decode.VaultKind && f.Sign > 0 {
				w.said[f.Log.Vault] = !f.Removed
			}
		}
		if kept, ok := u.Keep(func(f *decode.Fact) bool { return !w.passes(f, w.vaults) }); ok {
			units = append(units, kept)
		}
	}
	return units
}

// OutdatedError says that a generation cannot have what the log says.
type OutdatedError struct {
	Vault         common.Address
	Block, Newest uint64
}

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("the log brings block %d of vault %s after block %d was indexed: a vault came back, and only another generation can have it", e.Block, e.Vault, e.Newest)
}

// above makes sure that what takes nothing back lies above the newest block: what
// derived tables say of a block never changes by it.
func (w *Writer) above(units []decode.Unit) error {
	newest := w.newest
	for i := range units {
		for f := range units[i].Facts.All() {
			if f.Kind == decode.LogKind && !units[i].Rewrites && f.Log.Block <= newest {
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

// insert gives each table what it lacks of a batch, the spine last, which makes it
// count.
func (w *Writer) insert(ctx context.Context, batch decode.Batch, e *encoded, units []decode.Unit) error {
	if err := w.insertAhead(ctx, e, units); err != nil {
		return err
	}
	spine := e.rows[readmodel.Spine]
	if err := w.spine.swap(ctx, spine, 0, batch.Last().Seq); err != nil {
		return err
	}
	w.counts.Rows(readmodel.Spine, spine.count)
	w.countLogs(batch)
	for _, event := range e.quarantined {
		w.counts.Quarantined(event)
	}
	for _, event := range e.impossible {
		w.counts.Impossible(event)
	}
	for i := range units {
		w.newest = newestAfter(w.newest, &units[i])
	}
	w.keep(e)
	return nil
}

// insertAhead gives all tables but the spine what they lack, at once. One that
// fails does not stop the others: what they have need not be sent again.
func (w *Writer) insertAhead(ctx context.Context, e *encoded, units []decode.Unit) error {
	var group errgroup.Group
	for table, s := range w.facts {
		all := e.rows[table]
		from := all.after(s.cursor.Seq)
		if from == all.count {
			continue // the batch does not concern the table, or the table has it
		}
		group.Go(func() error {
			if err := s.swap(ctx, all, from, all.seqs[all.count-1]); err != nil {
				return err
			}
			w.counts.Rows(table, all.count-from)
			return nil
		})
	}
	for table, s := range w.derived {
		group.Go(func() error { return w.derive(ctx, table, s, units) })
	}
	return group.Wait()
}

// concerned gives the units that concern a derived table. Each of them moves the table's
// cursor, also where no row changes: so the token of a late insert is used up, and which
// units do follows from the log alone. A unit that rewrites the past concerns every table.
// Its new blocks have the numbers of blocks that were there before, and whoever still asks
// about the old ones must see by the fence that they are gone.
func concerned(table string, units []decode.Unit) (out []decode.Unit) {
	for _, u := range units {
		concerned := u.Rewrites
		for _, e := range u.Facts.Effects() {
			concerned = concerned || concerns(table, e)
		}
		if concerned {
			out = append(out, u)
		}
	}
	return out
}

func concerns(table string, e *decode.Effect) bool {
	switch table {
	case readmodel.Withdrawals:
		return e.Kind.Withdrawal()
	case readmodel.Users:
		return e.Kind == decode.Deposit || e.Kind == decode.Requested || e.Kind == decode.Claimed
	case readmodel.PartnerTotals:
		return e.Kind == decode.Deposit && e.Partner > 0
	}
	return false
}

// derive gives a derived table what it lacks of some units. It has those before them
// already where a writer died.
func (w *Writer) derive(ctx context.Context, table string, s *swapper, units []decode.Unit) error {
	units = concerned(table, units)
	n := slices.IndexFunc(units, func(u decode.Unit) bool { return u.End > s.cursor.Seq })
	if n < 0 {
		return nil
	}
	had, lacking := units[:n], units[n:]
	changes, err := w.difference(ctx, table, had, lacking)
	if err != nil {
		return err
	}
	last := &lacking[len(lacking)-1]
	after := readmodel.Cursor{Seq: last.End, Writer: w.id, Fence: s.cursor.Fence}
	if last.Rewrites {
		after.Fence = readmodel.Fence{Seq: last.End, Block: last.Ancestor(), Before: s.cursor.Fence.Seq}
	}
	changes.cursor(s.cursor, -1)
	changes.cursor(after, 1)
	if err := s.swap(ctx, changes, 0, after.Seq); err != nil {
		return err
	}
	w.counts.Rows(table, changes.count)
	return nil
}

// difference is the rows that some units add to a derived table, which had those between
// the position and them already. What goes stands before what comes: of the rows with one
// key the engine keeps the last.
func (w *Writer) difference(ctx context.Context, table string, had, units []decode.Unit) (*rows, error) {
	r := newRows(table, w.id)
	switch table {
	case readmodel.Withdrawals:
		d, err := derive.Withdrawals(ctx, w.conn, w.Position(), had, units, func(f *decode.Fact) { w.counts.Impossible(f.Name()) })
		addRows(d, r.withdrawal)
		return r, err
	case readmodel.Users:
		d, err := derive.Users(ctx, w.conn, units)
		addRows(d, r.user)
		return r, err
	default:
		d, err := derive.PartnerTotals(ctx, w.conn, units)
		addRows(d, r.partnerTotal)
		return r, err
	}
}

func addRows[Row comparable](d derive.Difference[Row], add func(*Row, int8)) {
	for i := range d.Gone {
		add(&d.Gone[i], -1)
	}
	for i := range d.Come {
		add(&d.Come[i], 1)
	}
}
