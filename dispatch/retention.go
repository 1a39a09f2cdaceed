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
//	deliveries     for ever, with their bodies: the pull stream and replays need them
//	attempts       the last attemptsKept of each event; of those that are older than
//	               the retention the last attemptsKeptOld, without the body of the
//	               answer and the times of the phases
//	test events    until they have been finished for the retention: they are in no
//	               stream
//	commands       until they have been done for the retention
//	what is no partner's   as long: dispatchers before 00009 made deliveries of every
//	               id that the chain names. The topics keep them (adopt.go)
const (
	// attemptsKept bounds what one event costs however often it is replayed: with
	// lane.MaxResponseKept and the longest URL to a sixth of a megabyte.
	attemptsKept = 20
	// attemptsKeptOld are those of one delivery: the first and its retries.
	attemptsKeptOld = 4

	retentionInterval = time.Minute
	retentionTurn     = 2 * time.Second // then the rest waits for the next time
	retentionSpan     = time.Hour       // of attempts that one transaction looks at
	retentionRows     = 1000            // of other things that one takes out
	retentionIDs      = 100             // that are no partner's, each with as many rows
)

// forget takes out what is older than the retention, in parts, so that it keeps
// PostgreSQL from nobody for long. One dispatcher at a time does.
func (d *Dispatch) forget(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*retentionTurn)
	defer cancel()
	d.health.note("take out old details", d.forgetUntil(ctx, time.Now().AddDate(0, 0, -d.config.RetentionDays)))
}

func (d *Dispatch) forgetUntil(ctx context.Context, before time.Time) error {
	for started := time.Now(); time.Since(started) < retentionTurn; {
		more, err := d.forgetAttempts(ctx, before)
		if err != nil {
			return err
		}
		tests, err := d.queries.PruneTests(ctx, db.PruneTestsParams{Before: before, Limit: retentionRows})
		if err != nil {
			return err
		}
		d.metrics.forgotten.WithLabelValues("test").Add(float64(tests))
		commands, err := d.queries.PruneCommands(ctx, db.PruneCommandsParams{Before: before, Limit: retentionRows})
		if err != nil {
			return err
		}
		d.metrics.forgotten.WithLabelValues("command").Add(float64(commands))
		unclaimed, err := d.queries.PruneUnclaimed(ctx, db.PruneUnclaimedParams{Before: before, Ids: retentionIDs, Rows: retentionRows})
		if err != nil {
			return err
		}
		d.metrics.forgotten.WithLabelValues("unclaimed").Add(float64(unclaimed.Gone))
		if !more && tests < retentionRows && commands < retentionRows && unclaimed.Streams == 0 {
			return nil
		}
	}
	return nil
}

// forgetAttempts looks at the next span of time, and tells whether there is more.
func (d *Dispatch) forgetAttempts(ctx context.Context, before time.Time) (more bool, err error) {
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
		d.metrics.forgotten.WithLabelValues("attempt").Add(float64(pruned.Gone))
		d.metrics.forgotten.WithLabelValues("attempt-detail").Add(float64(pruned.Stripped))
	}
	return more, err
}
