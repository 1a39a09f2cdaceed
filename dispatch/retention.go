package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry/db"
)

// What is kept, and for how long:
//
//	deliveries    forever, with their bodies: the pull stream and replays need them
//	attempts      the last attemptsKept of each event; of those past the retention
//	              only the last attemptsKeptOld, without response body and phases
//	test events   until they have been finished for the retention; they are in no
//	              stream
//	commands      until they have been done for the retention
//	unclaimed     deliveries without a partner, which dispatchers older than migration
//	              00009 inserted: for the retention. The topics keep the referrals
const (
	// attemptsKept bounds the storage of one event however often it is replayed: to a
	// sixth of a megabyte, with lane.MaxResponseKept and the longest URL.
	attemptsKept = 20
	// attemptsKeptOld covers one delivery: the first attempt and its retries.
	attemptsKeptOld = 4

	retentionInterval = time.Minute
	retentionTurn     = 2 * time.Second // longest run; the rest waits for the next
	retentionSpan     = time.Hour       // time range of the attempts that one transaction prunes
	retentionRows     = 1000            // other rows that one statement deletes
	retentionIDs      = 100             // unclaimed ids that one statement prunes, with as many rows each
)

// prune deletes what is older than the retention, in small transactions, so that it does
// not slow down other work. Only one dispatcher prunes at a time.
func (d *Dispatch) prune(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*retentionTurn)
	defer cancel()
	before, err := d.queries.RetentionStart(ctx, int32(d.config.RetentionDays))
	if err == nil {
		err = d.pruneUntil(ctx, before)
	}
	d.health.note("prune old details", err)
}

func (d *Dispatch) pruneUntil(ctx context.Context, before time.Time) error {
	for started := time.Now(); time.Since(started) < retentionTurn; {
		more, err := d.pruneAttempts(ctx, before)
		if err != nil {
			return err
		}
		tests, err := d.queries.PruneTests(ctx, db.PruneTestsParams{Before: before, Limit: retentionRows})
		if err != nil {
			return err
		}
		d.metrics.pruned.WithLabelValues("test").Add(float64(tests))
		commands, err := d.queries.PruneCommands(ctx, db.PruneCommandsParams{Before: before, Limit: retentionRows})
		if err != nil {
			return err
		}
		d.metrics.pruned.WithLabelValues("command").Add(float64(commands))
		unclaimed, err := d.queries.PruneUnclaimed(
			ctx, db.PruneUnclaimedParams{Before: before, Ids: retentionIDs, Rows: retentionRows},
		)
		if err != nil {
			return err
		}
		d.metrics.pruned.WithLabelValues("unclaimed").Add(float64(unclaimed.Gone))
		if !more && tests < retentionRows && commands < retentionRows && unclaimed.Streams == 0 {
			return nil
		}
	}
	return nil
}

// pruneAttempts prunes the next time range and reports whether there is more to do.
func (d *Dispatch) pruneAttempts(ctx context.Context, before time.Time) (more bool, err error) {
	var pruned db.PruneAttemptsRow
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		q := d.queries.WithTx(tx)
		first, err := q.ClaimRetention(ctx)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || !first.Before(before) {
			return err
		}
		until := first.Add(retentionSpan)
		if !until.Before(before) {
			until = before
		}
		more = until.Before(before)
		pruned, err = q.PruneAttempts(ctx, db.PruneAttemptsParams{First: first, Until: until, AttemptsKept: attemptsKeptOld})
		if err != nil {
			return err
		}
		return q.MoveRetention(ctx, until)
	})
	if err == nil {
		d.metrics.pruned.WithLabelValues("attempt").Add(float64(pruned.Gone))
		d.metrics.pruned.WithLabelValues("attempt-detail").Add(float64(pruned.Stripped))
	}
	return more, err
}
