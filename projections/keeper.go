package projections

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/telemetry"
)

// keeper keeps one generation up to date with the log. It shares nothing with
// the keepers of other generations that one of them could use up: it has a
// connection pool, a lease, a status and metrics of its own.
type keeper struct {
	*Projections
	generation
	conn    driver.Conn // to no database: the generation's own is made here
	reg     prometheus.Registerer
	metrics *metrics
	log     *slog.Logger
	board   board
	// suspect says that the engine's disk was full, or that it could not read a part: broken
	// parts are looked for before anything is written. searched is when that was last done.
	suspect  bool
	searched time.Time
	broken   map[string][]part // by table, of a repair that has not ended
	wrote    chan struct{}     // there is something to announce; it holds one
	cancel   context.CancelFunc
	done     chan struct{} // closed when it has ended
	err      error         // why it ended; nil: it was told to. Read after done.
}

// keep starts a keeper. ended gets a word when it ends by itself.
func (p *Projections) keep(ctx context.Context, g generation, ended chan<- struct{}) (*keeper, error) {
	conn, err := p.open("")
	if err != nil {
		return nil, err
	}
	reg := prometheus.WrapRegistererWith(prometheus.Labels{"generation": fmt.Sprint(g.id)}, p.reg)
	k := &keeper{Projections: p, generation: g, conn: conn, reg: reg, metrics: newMetrics(reg),
		log: p.log.With("generation", g.id), wrote: make(chan struct{}, 1), done: make(chan struct{})}
	k.board.begin(g.id)
	ctx, k.cancel = context.WithCancel(ctx)
	go func() {
		defer close(k.done)
		defer conn.Close()
		if k.err = k.run(ctx); k.err == nil {
			return
		}
		k.log.Error("the generation is not written any more", "error", k.err)
		select {
		case ended <- struct{}{}:
		default: // there is a word already
		}
	}()
	return k, nil
}

// stop ends the keeper, with no insert under way.
func (k *keeper) stop() {
	k.cancel()
	<-k.done
}

// fault is why the keeper ended by itself, nil while it runs.
func (k *keeper) fault() error {
	select {
	case <-k.done:
		return k.err
	default:
		return nil
	}
}

// run takes the lease and writes, again and again until ctx ends or going on
// needs a person.
func (k *keeper) run(ctx context.Context) error {
	const shortest, longest = 100 * time.Millisecond, 5 * time.Second
	for wait := shortest; ; wait = min(2*wait, longest) {
		began := time.Now()
		err := k.term(ctx)
		if permanent(err) { // also where it is stopped meanwhile: nobody else knows why
			k.board.set(Bad, err)
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		k.suspect = k.suspect || corrupted(err) || diskFull(err)
		err = explained(err)
		k.board.set(Retrying, err)
		k.log.Warn("the projection stopped and begins again", "error", err)
		if time.Since(began) > time.Minute {
			wait = shortest
		}
		if pause(ctx, wait) != nil {
			return nil
		}
	}
}

// term is one time of holding the lease: from asking for it to the first error.
func (k *keeper) term(ctx context.Context) error {
	origin, err := k.origin(ctx)
	if err != nil {
		return err
	}
	if err := k.fits(k.generation, origin); err != nil {
		return err
	}
	lease, err := write.Acquire(ctx, k.pool, k.id, func() {
		k.board.set(StandingBy, nil)
		k.log.Info("another instance writes the generation")
	})
	if err != nil {
		return err
	}
	defer lease.Release()
	k.board.set(Starting, nil) // neither another one's standby, nor in the trouble of before
	if err := k.wanted(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return lease.Watch(ctx) })
	group.Go(func() error { return k.follow(ctx) })
	return group.Wait()
}

// wanted refuses to write a generation that was dropped or marked bad: its
// database may be gone, and must not come back. Whoever drops it takes the
// lease first, so that this holds for as long as the lease does.
func (k *keeper) wanted(ctx context.Context) error {
	all, err := db.New(k.pool).ListGenerations(ctx)
	if err != nil {
		return fmt.Errorf("list the generations in PostgreSQL: %w", err)
	}
	for _, g := range all {
		if g.ID == k.id && writable(g.State) {
			return nil
		}
	}
	return &permanentError{fmt.Errorf("generation %d is no longer to be written: it was dropped or marked bad", k.id)}
}

// follow opens the generation and writes what the log has, and will have. It
// never returns nil.
func (k *keeper) follow(ctx context.Context) error {
	if err := k.repair(ctx); err != nil {
		return err
	}
	if err := k.clickhouse.CreateEvents(ctx, k.conn, k.database); err != nil {
		return err
	}
	built, err := k.clickhouse.CheckGeneration(ctx, k.conn, k.database)
	if err != nil {
		return err
	}
	conn, err := k.open(k.database)
	if err != nil {
		return err
	}
	defer conn.Close()
	patient, err := k.openPatient(k.database)
	if err != nil {
		return err
	}
	defer patient.Close()
	// First of all: what follows from rows that are not all there would be wrong.
	if err := k.judge(ctx, k.audited(ctx, patient)); err != nil {
		return err
	}
	w, err := write.Open(ctx, conn, k.clickhouse, k.database, built, k.without, k.vaults, k.counts(), k.log)
	if err != nil {
		return err
	}
	if err := w.CountLogs(ctx, patient); err != nil {
		return err
	}
	vaults, err := w.Mapped(ctx)
	if err != nil {
		return err
	}
	last, err := locate(ctx, k.chainID, w.Position(), vaults, k.kafka.Options())
	if err != nil {
		return err
	}
	if err := endsWith(ctx, conn, k.database, w.Position(), &last); err != nil {
		return err
	}
	// The reader gives the last record once more: that the log has answered is then known also
	// where it has no other.
	after := w.Position()
	reader, err := chainlog.NewReader(k.chainID, chainlog.Position{Seq: max(after, 1) - 1, Offset: last.Offset}, k.kafka.Options()...)
	if err != nil {
		return err
	}
	defer reader.Close()
	begins := last.Offset
	if after == 0 {
		begins = -1
	}
	k.board.open(k.id, after, begins, w.Built())
	k.warn(w)
	if err := k.report(ctx, w.Outdated()); err != nil {
		return err
	}
	k.log.Info("writing", "database", k.database, "after", after, "built", w.Built())
	f := newFeed(reader, decode.NewDecoder(k.chainID, vaults), after, k.config.MaxRows, k.board.gave)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.run(ctx) })
	group.Go(func() error { return k.write(ctx, w, f) })
	group.Go(func() error { return k.announce(ctx) })
	group.Go(func() error { return k.merge(ctx, patient) })
	group.Go(func() error { return k.proveAgain(ctx, patient) })
	return group.Wait()
}

//go:embed sql/record.sql
var sqlRecord string

// endsWith proves that the record which the log has at the position is the one
// that events was made of. A log that was restored from an older copy has
// the log's id, and goes on with other records under the same seqs.
func endsWith(ctx context.Context, conn driver.Conn, database string, position uint64, last *decode.Fact) error {
	if position == 0 {
		return nil
	}
	var row string
	if err := conn.QueryRow(readmodel.Parameters(ctx, map[string]uint64{"seq": position}), sqlRecord).Scan(&row); err != nil {
		return fmt.Errorf("read seq %d of %s.events: %w", position, database, err)
	}
	if row != last.String() {
		return &permanentError{fmt.Errorf("at seq %d %s has %q and the log has %q: the log was replaced by an older copy, and written on; restore the true log, or run `navlog projection rebuild` if this one is it", position, database, row, last)}
	}
	return nil
}

// write encodes batch after batch while the one before is inserted, and builds the
// lists when the log has all of every vault (build).
func (k *keeper) write(ctx context.Context, w *write.Writer, f *feed) error {
	ready := make(chan batch)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for {
			facts, parents, err := f.next(ctx, k.config.MaxRows, k.config.Linger)
			if err != nil {
				return err
			}
			units := write.Whole(facts)
			if !k.board.get().Built {
				units = w.Encode(facts)
			}
			select {
			case ready <- batch{units, reached(facts), parents}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	group.Go(func() error { return k.insert(ctx, w, ready) })
	return group.Wait()
}

// batch is whole units on their way into the tables.
type batch struct {
	units   *write.Encoded
	reaches progress
	parents []string // the trace contexts that its records carry
}

// lookToBuild is the pause between looks whether the lists can be built.
const lookToBuild = 100 * time.Millisecond

func (k *keeper) insert(ctx context.Context, w *write.Writer, ready <-chan batch) error {
	look := time.NewTicker(lookToBuild)
	defer look.Stop()
	var known lookout
	for {
		if w.Built() {
			look.Stop()
		}
		select {
		case <-look.C:
			if err := k.build(ctx, w, &known); err != nil {
				return err
			}
			continue
		case b := <-ready:
			err := k.writeTraced(ctx, w, b)
			var late *write.OutdatedError
			if err == nil || errors.As(err, &late) {
				if err := k.report(ctx, err != nil || w.Outdated()); err != nil {
					return err // which begins the term again, and comes back here
				}
			}
			if err != nil {
				return err
			}
			k.board.wrote(b.reaches)
			k.warn(w)
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case k.wrote <- struct{}{}:
		default: // what is announced next is this as well
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// writeTraced inserts a batch in a span: in the trace of its transaction, or, with links, in one of its own.
func (k *keeper) writeTraced(ctx context.Context, w *write.Writer, b batch) error {
	ctx, span := telemetry.Gather(ctx, b.parents, telemetry.Consumer, "project batch")
	telemetry.Number(span, telemetry.Generation, k.id)
	telemetry.Number(span, telemetry.Records, b.units.Len())
	telemetry.Number(span, telemetry.Seq, b.reaches.seq)
	err := w.Write(ctx, b.units)
	telemetry.End(span, err)
	return err
}

// warn says which vaults have logs and none of a known event: those of another protocol, most
// likely, of which nothing is in any answer.
func (k *keeper) warn(w *write.Writer) {
	vaults, logs := w.Foreign()
	var warnings []registry.VaultWarning
	for i, v := range vaults {
		warnings = append(warnings, registry.VaultWarning{Address: v.Hex(),
			Warning: fmt.Sprintf("it has %d logs and none is a known event, so nothing of it is in the answers: is it a vault of a protocol that navlog knows?", logs[i])})
	}
	k.metrics.foreign.Set(float64(len(vaults)))
	k.board.warn(warnings)
}

// report says in the registry that the generation is outdated, once it is: the successor
// may be another instance's to write, and to make live.
func (k *keeper) report(ctx context.Context, outdated bool) error {
	if !outdated || k.outdated {
		return nil
	}
	if err := db.New(k.pool).MarkGenerationOutdated(ctx, k.id); err != nil {
		return fmt.Errorf("say in PostgreSQL that generation %d cannot have all that the log says: %w", k.id, err)
	}
	k.outdated = true
	k.log.Info("the vaults of the generation are not those that are configured: another one takes its place")
	return nil
}

// lookout is what is known of when the lists can be built: the cursor of ingest's that
// was read last, and when. The whole topic is read for it, so one that covers too little is
// good for k.every, and until the generation has all that it speaks of.
type lookout struct {
	cursor *event.Cursor
	read   time.Time
}

// build builds the lists as soon as that can be done once and for all: when the
// generation has all records up to a cursor of ingest's at which every vault was read up
// to the head. Whatever is appended after it is of a newer block, or is a retraction, and
// both can be added unit by unit. What earlier calls have learnt is in known.
func (k *keeper) build(ctx context.Context, w *write.Writer, known *lookout) error {
	if w.Position() < known.cursor.GetSeq() {
		return nil
	}
	if !covered(known.cursor) {
		if time.Since(known.read) < k.every {
			return nil
		}
		cursor, err := chainlog.ReadCursor(ctx, k.chainID, k.kafka.Options()...)
		if err != nil {
			return err
		}
		known.cursor, known.read = cursor, time.Now()
		if !covered(cursor) || w.Position() < cursor.GetSeq() {
			return nil
		}
	}
	if all, err := k.names(ctx, w, known.cursor); err != nil || !all {
		known.cursor = nil
		return err
	}
	began := time.Now()
	k.board.build(true, false)
	session, err := k.clickhouse.OpenSession(k.database)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := w.Build(ctx, session); err != nil {
		return err
	}
	k.board.build(false, true)
	k.log.Info("lists built", "database", k.database, "seq", w.Position(), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// covered tells whether the log has all of every vault at a cursor: up to the head,
// which is past the history.
func covered(cursor *event.Cursor) bool {
	if cursor == nil || cursor.GetHead() == nil || cursor.GetHead().GetNumber() < cursor.GetFinalBlock() {
		return false
	}
	for _, v := range cursor.GetVaults() {
		if v.GetCoveredTo() < cursor.GetHead().GetNumber() && !v.GetRemoved() {
			return false
		}
	}
	return true
}

// names tells whether a cursor names every vault that the log tells of up to the
// position: one that it does not came after it, and its history with it.
func (k *keeper) names(ctx context.Context, w *write.Writer, cursor *event.Cursor) (bool, error) {
	vaults, err := w.LogVaults(ctx)
	if err != nil {
		return false, err
	}
	for _, a := range vaults {
		if !slices.ContainsFunc(cursor.GetVaults(), func(v *event.Coverage) bool { return common.BytesToAddress(v.GetAddress()) == a }) {
			return false, nil
		}
	}
	return true, nil
}

// announceTimeout bounds an announcement that PostgreSQL does not take.
const announceTimeout = time.Second

// announce tells query that there are new rows, until ctx ends. One that fails
// is no loss: query looks by itself as well.
func (k *keeper) announce(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.wrote:
		}
		limited, cancel := context.WithTimeout(ctx, announceTimeout)
		if err := registry.AnnounceWritten(limited, k.pool, k.id); err != nil && ctx.Err() == nil {
			k.log.Debug("an announcement was not taken", "error", err)
		}
		cancel()
	}
}

// auditTimeout bounds an audit, which takes the longer the more rows there are.
const auditTimeout = 10 * time.Minute

// audited audits the generation for as long as that may take.
func (k *keeper) audited(ctx context.Context, patient driver.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	return verify.Audit(ctx, patient)
}

// proveAgain audits the generation now and then beside the writer, until ctx ends
// or the generation is broken. An audit that cannot be made is an alarm and no
// more: the rows are none the worse for it.
func (k *keeper) proveAgain(ctx context.Context, patient driver.Conn) error {
	for {
		if err := pause(ctx, k.audit); err != nil {
			return err
		}
		err := k.audited(sparing(ctx), patient)
		broken := new(verify.BrokenError)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			k.metrics.audits.WithLabelValues("sound").Inc()
		case errors.As(err, &broken):
			return k.judge(ctx, err)
		default:
			k.metrics.audits.WithLabelValues("failed").Inc()
			k.log.Error("the generation is written and could not be audited, trying again later", "error", err, "in", k.audit)
		}
	}
}

// sparing asks with one thread, and leaves the others to the writer and to query.
func sparing(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1}))
}

// judge says of an audit's verdict what it means for the keeper: a broken
// generation is marked bad and not written any more.
func (k *keeper) judge(ctx context.Context, verdict error) error {
	err := verify.Condemn(ctx, k.pool, k.id, verdict)
	if broken := new(verify.BrokenError); errors.As(err, &broken) {
		return &permanentError{err}
	}
	return err
}

// permanentError says that trying again cannot help.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// permanent tells whether err needs a person or another generation: the log is
// broken, or the generation and the log do not belong together.
func permanent(err error) bool {
	var p *permanentError
	var corrupt *chainlog.CorruptError
	var hole *chainlog.HoleError
	var table *readmodel.TableError
	var outdated *write.OutdatedError
	return errors.As(err, &p) || errors.As(err, &corrupt) || errors.As(err, &hole) || errors.As(err, &table) || errors.As(err, &outdated)
}

// pause waits, or gives ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
