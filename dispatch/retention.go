package dispatch

import (
	"context"
	"errors"
	"slices"
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
const (
	// attemptsKept bounds the storage of one event however often it is replayed: to a
	// sixth of a megabyte, with lane.MaxResponseKept and the longest URL.
	attemptsKept = 20
	// attemptsKeptOld covers one delivery: the first attempt and its retries.
	attemptsKeptOld = 4

	retentionInterval = time.Minute
	retentionTurn     = 2 * time.Second // longest run; the rest waits for the next
	retentionRows     = 1000            // rows that one statement prunes
)

// prune deletes what is older than the retention, in small transactions, so that it does
// not slow down other work. Only one dispatcher prunes at a time.
func (d *Dispatch) prune(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, d.timing.database)
	before, err := d.queries.RetentionStart(limited, int32(d.config.RetentionDays))
	cancel()
	if err == nil {
		err = d.pruneUntil(ctx, before)
	}
	d.health.note(ctx, "prune old details", err)
}

// pruner prunes a part of one kind and reports whether there is more to do.
type pruner func(ctx context.Context, before time.Time) (more bool, err error)

// pruneUntil prunes the kinds in turn, one part of each, until nothing old is left or the time is over. A kind that
// fails does not stop the others.
func (d *Dispatch) pruneUntil(ctx context.Context, before time.Time) error {
	var failures []error
	kinds := []pruner{d.pruneAttempts, d.pruneTests, d.pruneCommands}
	for started := time.Now(); len(kinds) > 0 && time.Since(started) < retentionTurn; {
		kinds = slices.DeleteFunc(kinds, func(prune pruner) bool {
			part, cancel := context.WithTimeout(ctx, d.timing.database)
			defer cancel()
			more, err := prune(part, before)
			failures = append(failures, err)
			return err != nil || !more
		})
	}
	return errors.Join(failures...)
}

func (d *Dispatch) pruneTests(ctx context.Context, before time.Time) (more bool, err error) {
	gone, err := d.queries.PruneTests(ctx, db.PruneTestsParams{Before: before, Limit: retentionRows})
	d.metrics.pruned.WithLabelValues("test").Add(float64(gone))
	return gone == retentionRows, err
}

func (d *Dispatch) pruneCommands(ctx context.Context, before time.Time) (more bool, err error) {
	gone, err := d.queries.PruneCommands(ctx, db.PruneCommandsParams{Before: before, Limit: retentionRows})
	d.metrics.pruned.WithLabelValues("command").Add(float64(gone))
	return gone == retentionRows, err
}

// pruneAttempts prunes the next retentionRows attempts, and moves the time up to which they are pruned.
func (d *Dispatch) pruneAttempts(ctx context.Context, before time.Time) (more bool, err error) {
	var pruned db.PruneAttemptsRow
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		q := d.queries.WithTx(tx)
		part, err := q.ClaimRetention(ctx, db.ClaimRetentionParams{Before: before, AtMost: retentionRows})
		if err != nil {
			return err
		}
		more = part.Until.Before(before)
		pruned, err = q.PruneAttempts(
			ctx, db.PruneAttemptsParams{First: part.First, Until: part.Until, AttemptsKept: attemptsKeptOld},
		)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		d.metrics.pruned.WithLabelValues("attempt").Add(float64(pruned.Gone))
		d.metrics.pruned.WithLabelValues("attempt-detail").Add(float64(pruned.Stripped))
	}
	return more, err
}
