package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// ledgerWriters is the number of concurrent transactions that write results:
	// while one waits for the disk, the next fills.
	ledgerWriters = 2
	// ledgerBatch is the maximum number of results in one transaction.
	ledgerBatch  = 500
	writeTimeout = 5 * time.Second
	// writeGrace is how long a result that cannot be written delays a shutdown.
	writeGrace = 5 * time.Second
	// lockWait is how long a transaction waits for a locked row. The server enforces
	// it, so that the error is known to be a refusal and not a lost connection.
	lockWait = 100 * time.Millisecond
)

// ledger writes the results of POSTs, many in one transaction: all that ended while the previous transaction was
// written. It never waits for a batch to fill.
//
// The order of writes is the same as with one transaction per result: a result is written after its POST, and its lane
// learns of the end of the POST, and starts another one, only after the result is written. A crash can therefore repeat
// only the POSTs that the lanes have in flight, whether or not they have got a response.
//
// A result that could not be written is retried, and retries have their own writer, so that a write that keeps failing
// does not slow down the others.
type ledger struct {
	d       *Dispatch
	first   chan entry
	repeats chan entry
}

// entry is a result to be written.
type entry struct {
	attempt lane.Attempt
	written chan<- writeOutcome // with a capacity of one
}

// key identifies a result in its batch, which may hold two of one event, sent under two leases.
func (e entry) key() db.FinishAttemptsRow {
	return db.FinishAttemptsRow{EventID: e.attempt.Delivery.EventID, Fence: e.attempt.Fence}
}

type writeOutcome struct {
	fenced bool // the attempt is stored, but the delivery belongs to another owner
	err    error
}

// run writes until close.
func (l *ledger) run() {
	var writers sync.WaitGroup
	for range ledgerWriters {
		writers.Go(func() { l.writeAll(l.first) })
	}
	writers.Go(func() { l.writeAll(l.repeats) })
	writers.Wait()
}

func (l *ledger) close() {
	close(l.first)
	close(l.repeats)
}

// record writes the result of an attempt and reports whether the fence still held.
// While PostgreSQL cannot be reached the write is retried, never the POST, until it
// succeeds or the program has been stopping for writeGrace. In the latter case the
// event is sent again after the next start.
func (l *ledger) record(ctx context.Context, a lane.Attempt) bool {
	// The grace period begins when the program should stop.
	lasting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(writeGrace, giveUp) })()

	of := fmt.Sprintf("%s %d", a.Delivery.EventID, a.Fence)
	written, entries := make(chan writeOutcome, 1), l.first
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		entries <- entry{attempt: a, written: written}
		outcome := <-written
		// setOf and not set: another lane's success does not clear this failure.
		l.d.health.setOf(lasting, "write results", of, outcome.err)
		if outcome.err == nil {
			return !outcome.fenced
		}
		l.d.metrics.writeRetries.Inc()
		entries = l.repeats
		select {
		case <-lasting.Done():
			return false
		case <-time.After(wait):
		}
	}
}

// writeAll writes until entries is closed.
func (l *ledger) writeAll(entries <-chan entry) {
	for first := range entries {
		batch := append(make([]entry, 0, 16), first)
	gather:
		for len(batch) < ledgerBatch {
			select {
			case e, ok := <-entries:
				if !ok {
					break gather
				}
				batch = append(batch, e)
			default:
				break gather
			}
		}
		l.write(batch)
	}
}

// write writes a batch. If PostgreSQL refuses it, a single result may be at fault and must
// not block those of other partners, so write retries with one transaction per result.
func (l *ledger) write(batch []entry) {
	done, err := l.commit(batch)
	var refusal *pgconn.PgError
	if len(batch) > 1 && errors.As(err, &refusal) {
		for _, e := range batch {
			l.write([]entry{e})
		}
		return
	}
	for _, e := range batch {
		_, written := done[e.key()]
		e.written <- writeOutcome{fenced: err == nil && !written, err: err}
	}
}

// commit writes results in one transaction and returns those whose fence still held.
func (l *ledger) commit(batch []entry) (map[db.FinishAttemptsRow]struct{}, error) {
	// A fixed order prevents deadlocks: a partner's former owner writes the same events.
	slices.SortFunc(batch, func(a, b entry) int {
		return bytes.Compare(a.attempt.Delivery.EventID[:], b.attempt.Delivery.EventID[:])
	})
	rows := db.FinishAttemptsParams{Owner: l.d.owner, AttemptsKept: attemptsKept}
	for _, e := range batch {
		appendResult(&rows, e)
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	var written []db.FinishAttemptsRow
	err := pgx.BeginFunc(ctx, l.d.pool, func(tx pgx.Tx) (err error) {
		q := l.d.queries.WithTx(tx)
		if err = q.LimitLocks(ctx, lockWait.Milliseconds()); err != nil {
			return err
		}
		written, err = q.FinishAttempts(ctx, rows)
		return err
	})
	if err == nil {
		l.d.metrics.writes.Observe(float64(len(batch)))
	}
	done := make(map[db.FinishAttemptsRow]struct{}, len(written))
	for _, w := range written {
		done[w] = struct{}{}
	}
	return done, err
}

func appendResult(rows *db.FinishAttemptsParams, e entry) {
	v, r := e.attempt.Verdict, e.attempt.Result
	rows.EventIds = append(rows.EventIds, e.attempt.Delivery.EventID)
	rows.PartnerIds = append(rows.PartnerIds, e.attempt.Partner)
	rows.Fences = append(rows.Fences, e.attempt.Fence)
	rows.States = append(rows.States, v.State)
	rows.Attempts = append(rows.Attempts, v.Attempts)
	rows.Revisions = append(rows.Revisions, e.attempt.Delivery.Revision)
	rows.WaitMs = append(rows.WaitMs, v.Wait.Milliseconds())
	rows.Finished = append(rows.Finished, v.Finished)
	rows.Urls = append(rows.Urls, e.attempt.Endpoint.URL)
	rows.EndpointVersions = append(rows.EndpointVersions, e.attempt.Endpoint.Version)
	rows.StartedAt = append(rows.StartedAt, r.Started)
	rows.DurationMs = append(rows.DurationMs, int32(r.Took.Milliseconds()))
	rows.Statuses = append(rows.Statuses, int32(r.Status))
	rows.Errors = append(rows.Errors, r.Err)
	rows.Responses = append(rows.Responses, r.Response)
	rows.DnsUs = append(rows.DnsUs, microseconds(r.Phases.DNS))
	rows.ConnectUs = append(rows.ConnectUs, microseconds(r.Phases.Connect))
	rows.TlsUs = append(rows.TlsUs, microseconds(r.Phases.TLS))
	rows.FirstByteUs = append(rows.FirstByteUs, microseconds(r.Phases.FirstByte))
}

// microseconds returns the length of a phase, or -1 if the phase did not happen. If the process was suspended, a phase
// may have lasted longer than the column can hold.
func microseconds(d time.Duration) int32 {
	if d < 0 {
		return -1
	}
	return int32(min(d.Microseconds(), math.MaxInt32))
}
