package projections

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
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

// keeper keeps one generation up to date with the log. It shares no resource with the keepers of other generations
// that one of them could exhaust: it has its own connection pool, lease, status and metrics.
type keeper struct {
	*Projections
	generation
	database string
	conn     driver.Conn // without a database: the generation's own is created here
	reg      prometheus.Registerer
	metrics  *metrics
	log      *slog.Logger
	board    board
	// partsSuspect means that the engine's disk was full, or that it could not read a part: before anything is written,
	// the keeper searches for broken parts. searched is the time of the last search.
	partsSuspect bool
	searched     time.Time
	broken       map[string][]part // by table, from a repair that has not ended
	wrote        chan struct{}     // holds one signal: there is something to announce
	// restored means that a vault that the generation omits is configured again. It is set before the board shows that
	// the records were written or the lists were built.
	restored atomic.Bool
	cancel   context.CancelFunc
	done     chan struct{} // closed when the keeper has ended
}

// keep starts a keeper, which runs until it is stopped.
func (p *Projections) keep(ctx context.Context, g generation) (*keeper, error) {
	conn, err := p.open("")
	if err != nil {
		return nil, err
	}
	reg := withGenerationLabel(p.reg, g.ID)
	k := &keeper{Projections: p, generation: g, database: p.clickhouse.Database(g.ID), conn: conn, reg: reg,
		metrics: newMetrics(reg), log: p.log.With("generation", g.ID), wrote: make(chan struct{}, 1),
		done: make(chan struct{})}
	k.board.reset(g.ID)
	ctx, k.cancel = context.WithCancel(ctx)
	go func() {
		defer close(k.done)
		defer conn.Close()
		k.run(ctx)
	}()
	return k, nil
}

// stop ends the keeper and waits until no insert is under way.
func (k *keeper) stop() {
	k.cancel()
	<-k.done
}

// fault returns why the generation cannot be written until an operator acts or another one replaces it; nil if it can.
func (k *keeper) fault() error {
	k.board.mu.Lock()
	defer k.board.mu.Unlock()
	if permanent(k.board.failed) {
		return k.board.failed
	}
	return nil
}

// faulty reports whether another generation would most likely have the keeper's fault too: any but a restored vault.
func (k *keeper) faulty() bool {
	err := k.fault()
	return err != nil && !is[*write.OutdatedError](err)
}

// run takes the lease and writes, again and again, until ctx ends. It also retries after a permanent fault, because an
// operator may restore the log, but seldom: to open a generation means to read all of its events. Only a successor ends
// the fault of an outdated generation.
func (k *keeper) run(ctx context.Context) {
	for wait := time.Duration(0); ; {
		began := time.Now()
		err := k.term(ctx)
		switch {
		case permanent(err): // it is reported even if ctx has ended, because only this keeper has the reason
			if k.fault() == nil {
				wait = 0
			}
			wait = min(max(2*wait, k.reopen), 60*k.reopen)
			k.board.set(Bad, err)
			if is[*write.OutdatedError](err) {
				k.log.Error("generation no longer written", "error", err)
				<-ctx.Done()
			} else if ctx.Err() == nil {
				k.log.Error("generation not written", "error", err, "retryIn", wait)
			}
		case ctx.Err() == nil:
			if time.Since(began) > time.Minute {
				wait = 0
			}
			wait = min(max(2*wait, 100*time.Millisecond), 5*time.Second)
			k.partsSuspect = k.partsSuspect || corrupted(err) || diskFull(err)
			err = explained(err)
			k.board.set(Retrying, err)
			k.log.Warn("projection failed, retrying", "error", err)
		}
		if write.Pause(ctx, wait) != nil {
			return
		}
		_, _, _ = k.kafka.Reach(ctx, reachTimeout) // other brokers may respond now; the next term has the error
	}
}

// term is one tenure of the lease: from acquiring it to the first error.
func (k *keeper) term(ctx context.Context) error {
	origin, err := k.origin(ctx)
	if err != nil {
		return err
	}
	if err := k.checkOrigin(k.generation, origin); err != nil {
		return err
	}
	lease, err := k.leases.Acquire(ctx, int64(k.ID), func() {
		k.board.set(StandingBy, nil)
		k.log.Info("another instance writes the generation")
	})
	if err != nil {
		return err
	}
	defer lease.Drop(ctx)
	k.board.set(Starting, nil) // neither in standby any more, nor with the error of the previous term
	if err := k.checkNeeded(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return lease.Watch(ctx) })
	group.Go(func() error { return k.follow(ctx) })
	return group.Wait()
}

// checkNeeded rejects a generation that was dropped or marked bad: its database may be gone, and must not be created
// again. A drop takes the lease first, so the result holds as long as the lease.
func (k *keeper) checkNeeded(ctx context.Context) error {
	all, err := k.listed(ctx)
	if err != nil {
		return err
	}
	for _, g := range all {
		if g.ID == k.ID && writable(g.State) {
			return nil
		}
	}
	return &permanentError{fmt.Errorf("generation %d must not be written any more: it was dropped or marked bad", k.ID)}
}

// follow opens the generation and writes the present and future records of the log. It never returns nil.
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
	// First audit the generation: anything derived from incomplete rows would be wrong.
	if err := verify.MarkIfBroken(ctx, k.pool, k.ID, k.audited(ctx, patient)); err != nil {
		return err
	}
	w, err := write.Open(ctx, conn, k.clickhouse, k.database, built, k.Without, k.Vaults, k.counts(), k.log)
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
	var last decode.Fact
	for _, seq := range []uint64{w.Written(), w.Position()} {
		if last.Seq == seq && seq > 0 {
			continue // the same record
		}
		if last, err = locate(ctx, k.chainID, seq, vaults, k.kafka.Options()); err != nil {
			return err
		}
		if err := checkLastRecord(ctx, conn, k.database, seq, &last); err != nil {
			return err
		}
	}
	// The reader starts with the last record again, so that the log is known to have responded even if it has no
	// other record.
	after := w.Position()
	reader, err := chainlog.NewReader(k.chainID, chainlog.Position{Seq: max(after, 1) - 1, Offset: last.Offset},
		k.kafka.Options()...)
	if err != nil {
		return err
	}
	defer reader.Close()
	begins := last.Offset
	if after == 0 {
		begins = -1
	}
	if err := k.report(ctx, w, w.Outdated()); err != nil {
		return err
	}
	k.board.open(after, begins, w.Built())
	k.warn(w)
	k.log.Info("writing", "database", k.database, "after", after, "built", w.Built())
	f := newFeed(reader, decode.NewDecoder(k.chainID, vaults), after, k.config.MaxRows, k.board.noteRead)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.run(ctx) })
	group.Go(func() error { return k.write(ctx, w, f) })
	group.Go(func() error { return k.announce(ctx) })
	group.Go(func() error { return k.merge(ctx, patient) })
	group.Go(func() error { return k.auditAgain(ctx, patient) })
	return group.Wait()
}

//go:embed sql/record.sql
var sqlRecord string

// checkLastRecord proves that the log's record at a seq is the one from which events was written. A log that was
// restored from an older copy has the same id, and continues with other records under the same seqs.
func checkLastRecord(ctx context.Context, conn driver.Conn, database string, seq uint64, last *decode.Fact) error {
	if seq == 0 {
		return nil
	}
	var row string
	if err := conn.QueryRow(readmodel.Parameters(ctx, map[string]uint64{"seq": seq}),
		sqlRecord).Scan(&row); err != nil {
		return fmt.Errorf("read seq %d of %s.events: %w", seq, database, err)
	}
	if row != last.String() {
		return &permanentError{fmt.Errorf("at seq %d %s has %q and the log has %q: the log was replaced by an older copy "+
			"and then continued; restore the true log, or run `navlog projection rebuild` if this is the true one", seq,
			database, row, last)}
	}
	return nil
}

// write encodes each batch while the previous one is inserted, and builds the lists when the log is complete for
// every vault (build).
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
			case ready <- batch{facts, units, parents}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	group.Go(func() error { return k.insert(ctx, w, ready) })
	return group.Wait()
}

// batch contains whole units on their way into the tables.
type batch struct {
	facts   decode.Batch
	units   *write.Encoded
	parents []string // trace contexts of its records
}

// lookToBuild is the interval at which insert checks whether the lists can be built.
const lookToBuild = 100 * time.Millisecond

func (k *keeper) insert(ctx context.Context, w *write.Writer, ready <-chan batch) error {
	look := time.NewTicker(lookToBuild)
	defer look.Stop()
	var known seenCursor
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
			if err == nil || is[*write.OutdatedError](err) {
				if err := k.report(ctx, w, err != nil || w.Outdated()); err != nil {
					return err // the next term starts at the beginning and comes back here
				}
			}
			if err != nil {
				return err
			}
			k.board.noteWritten(b.facts)
			k.warn(w)
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case k.wrote <- struct{}{}:
		default: // the pending announcement covers this one too
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// writeTraced inserts a batch within a span: in the trace of its transaction, or in a trace of its own with links.
func (k *keeper) writeTraced(ctx context.Context, w *write.Writer, b batch) error {
	ctx, span := telemetry.Gather(ctx, b.parents, telemetry.Consumer, "project batch")
	telemetry.Number(span, telemetry.Generation, k.ID)
	telemetry.Number(span, telemetry.Records, b.facts.Len())
	telemetry.Number(span, telemetry.Seq, b.facts.Last().Seq)
	err := w.Write(ctx, b.units)
	telemetry.End(span, err)
	return err
}

// warn reports the vaults that have logs but none of a known event: most likely they belong to another protocol, and
// no response includes anything of them.
func (k *keeper) warn(w *write.Writer) {
	logs := w.Foreign()
	var warnings []registry.VaultWarning
	for _, v := range slices.SortedFunc(maps.Keys(logs), common.Address.Cmp) {
		warnings = append(warnings, registry.VaultWarning{Address: v.Hex(),
			Warning: fmt.Sprintf("it has %d logs and none is a known event, so no response includes anything of it: is it a "+
				"vault of a protocol that navlog supports?", logs[v])})
	}
	k.board.warn(warnings)
}

// report marks the generation as outdated in the registry, once it is: another instance may have to write its
// successor and make it live.
func (k *keeper) report(ctx context.Context, w *write.Writer, outdated bool) error {
	k.restored.Store(w.Restored())
	if !outdated || k.Outdated {
		return nil
	}
	if err := db.New(k.pool).MarkGenerationOutdated(ctx, k.ID); err != nil {
		return fmt.Errorf("mark generation %d as outdated in PostgreSQL: %w", k.ID, err)
	}
	k.Outdated = true
	k.log.Info("vaults of the generation are outdated, another one will replace it")
	return nil
}

// seenCursor has the cursor of ingest that was last read, and when, to decide when the lists can be built. Reading
// it means reading the whole topic, so a cursor that does not cover every vault is reused for k.every, and until the
// generation has all records up to it.
type seenCursor struct {
	cursor *event.Cursor
	read   time.Time
}

// build builds the lists as soon as the result is final: when the generation has all records up to a cursor of ingest
// at which every vault was read up to the head. Anything that is appended later belongs to a newer block or is a
// retraction, and both can be added unit by unit. known has what earlier calls have read.
func (k *keeper) build(ctx context.Context, w *write.Writer, known *seenCursor) error {
	if w.Position() < known.cursor.GetSeq() {
		return nil
	}
	if !coversAllVaults(known.cursor) {
		if time.Since(known.read) < k.every {
			return nil
		}
		cursor, err := chainlog.ReadCursor(ctx, k.chainID, k.kafka.Options()...)
		if err != nil {
			return err
		}
		known.cursor, known.read = cursor, time.Now()
		if !coversAllVaults(cursor) || w.Position() < cursor.GetSeq() {
			return nil
		}
	}
	if all, err := hasVaults(ctx, w, known.cursor); err != nil || !all {
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
	// The log may have got a record about a vault since the generation was created.
	if err := k.report(ctx, w, w.Outdated()); err != nil {
		return err
	}
	k.board.build(false, true)
	k.log.Info("lists built", "database", k.database, "seq", w.Position(), "took",
		time.Since(began).Round(time.Millisecond))
	return nil
}

// coversAllVaults reports whether the log is complete for every vault at a cursor: up to the head, which must be
// past the history.
func coversAllVaults(cursor *event.Cursor) bool {
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

// hasVaults reports whether the log up to the position has no vault record after a cursor: the log may lack a part of
// the history of a vault that was added or restored after it.
func hasVaults(ctx context.Context, w *write.Writer, cursor *event.Cursor) (bool, error) {
	last, err := w.LastVault(ctx)
	return last <= cursor.GetSeq(), err
}

// announceTimeout bounds an announcement if PostgreSQL does not respond.
const announceTimeout = time.Second

// announce notifies query of new rows, until ctx ends. A failed announcement does no harm, because query also polls.
func (k *keeper) announce(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.wrote:
		}
		limited, cancel := context.WithTimeout(ctx, announceTimeout)
		if err := registry.AnnounceWritten(limited, k.pool, k.ID); err != nil && ctx.Err() == nil {
			k.log.Debug("an announcement was not taken", "error", err)
		}
		cancel()
	}
}

// auditTimeout bounds an audit, which takes longer the more rows there are.
const auditTimeout = 10 * time.Minute

func (k *keeper) audited(ctx context.Context, patient driver.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	return verify.Audit(ctx, patient)
}

// auditAgain repeats the audit at intervals while the writer works, until ctx ends or the generation is broken. An
// audit that cannot run raises an alarm, no more: it does not make the rows wrong.
func (k *keeper) auditAgain(ctx context.Context, patient driver.Conn) error {
	for {
		if err := write.Pause(ctx, k.audit); err != nil {
			return err
		}
		// One thread: the others are for the writer and for query.
		err := k.audited(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1})), patient)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			k.metrics.audits.WithLabelValues("sound").Inc()
		case is[*verify.BrokenError](err):
			return verify.MarkIfBroken(ctx, k.pool, k.ID, err)
		default:
			k.metrics.audits.WithLabelValues("failed").Inc()
			k.log.Error("audit failed, retrying later", "error", err, "in", k.audit)
		}
	}
}

// permanentError is an error that does not end by itself.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// permanent reports whether err needs an operator or another generation: the log is broken, the generation was
// marked bad, or the two do not belong together.
func permanent(err error) bool {
	return is[*permanentError](err) || is[*chainlog.CorruptError](err) || is[*chainlog.HoleError](err) ||
		is[*readmodel.TableError](err) || is[*write.OutdatedError](err) || is[*verify.BrokenError](err)
}

// is reports whether an error is of a type or wraps one that is.
func is[T error](err error) bool {
	_, found := errors.AsType[T](err)
	return found
}
