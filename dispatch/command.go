package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook"
)

// runCommands runs the commands that partners gave through query: test events and replays.
// It makes a command's deliveries in the transaction that finishes the command, so a
// crash neither loses nor doubles them.
//
// Each command has its own transaction and partners take turns, so that a failing or
// slow command does not delay other partners. A failed command is retried with growing
// delays; the partner's other commands, which may fail as slowly, wait for the next round.
func (d *Dispatch) runCommands(ctx context.Context) {
	d.health.set(ctx, "run commands", d.runDueCommands(ctx))
}

// runDueCommands runs every command that is due. It returns an error if PostgreSQL
// fails, not if a command does.
func (d *Dispatch) runDueCommands(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	commands, err := d.queries.DueCommands(limited)
	if err != nil {
		return err
	}
	failed := map[int64]bool{} // partners
	for _, c := range commands {
		if failed[c.PartnerID] {
			continue
		}
		done, err := d.runCommand(ctx, c.ID)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed[c.PartnerID] = true
			d.metrics.failedTurns.Inc()
			d.log.Warn("command failed, retrying later", "command", c.ID, "partner", c.PartnerID, "error", err)
			limited, cancel := context.WithTimeout(ctx, 5*time.Second)
			err = d.queries.PutOffCommand(limited, c.ID)
			cancel()
			if err != nil {
				return err
			}
		case done:
			d.wake(c.PartnerID)
		}
	}
	return nil
}

// runCommand runs a command, or the next part of a long one, and reports whether it did; false means that another
// dispatcher runs it.
func (d *Dispatch) runCommand(ctx context.Context, id int64) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*d.timing.command) // longer than the server's own limit
	defer cancel()
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		q := d.queries.WithTx(tx)
		if err := q.LimitStatements(ctx, d.timing.command.Milliseconds()); err != nil {
			return err
		}
		c, err := q.ClaimCommand(ctx, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		done = true
		return execute(ctx, q, c)
	})
	return done, err
}

// rangePart is how many sequences of a replay-range one transaction replays, and so
// about how many deliveries a new event queues behind at most.
const rangePart = 5000

// partPause is the minimum wait for the next part of a replay-range while the previous
// part is being sent.
const partPause = time.Second

// execute makes a command's deliveries and finishes the command with their number.
func execute(ctx context.Context, q *db.Queries, c db.ClaimCommandRow) error {
	var n int64
	var err error
	switch {
	case c.Kind == "test":
		n, err = makeTest(ctx, q, c)
	case c.Kind == "replay-range" && c.FirstSequence != nil && c.LastSequence != nil:
		return replayPart(ctx, q, c)
	case c.EventID != nil:
		// An event that is still pending, or that belongs to another partner, is not replayed.
		n, err = q.ReplayDelivery(ctx, db.ReplayDeliveryParams{EventID: *c.EventID, PartnerID: c.PartnerID})
	}
	if err != nil {
		return err
	}
	return q.FinishCommand(ctx, db.FinishCommandParams{ID: c.ID, Deliveries: n})
}

// unfinishedTests is how many unfinished test events a partner may have. While its receiver is down they are parked,
// and nothing prunes them.
const unfinishedTests = 100

// makeTest inserts a test event and returns 1, or 0 if the partner has unfinishedTests already. It uses the id that
// query promised to the partner; navlog webhook promises none.
func makeTest(ctx context.Context, q *db.Queries, c db.ClaimCommandRow) (int64, error) {
	id := uuid.New()
	if c.EventID != nil {
		id = *c.EventID
	}
	envelope := webhook.Envelope{
		ID: id, Version: webhook.Version, Type: webhook.Test, PartnerID: uint32(c.PartnerID),
		CreatedAt: webhook.FormatTime(uint64(time.Now().Unix())), Data: struct{}{},
	}
	body, err := envelope.Body()
	if err != nil {
		return 0, err
	}
	return q.InsertTest(ctx, db.InsertTestParams{
		EventID: id, PartnerID: c.PartnerID, Type: envelope.Type, Body: body, Unfinished: unfinishedTests,
	})
}

// replayPart replays the first part of a range and leaves the rest to the next turn, so
// that a long range holds no lock for long. Each part waits until the previous one is
// sent or has failed: deliveries are sent in the order in which they fall due, so a new
// event would otherwise queue behind the whole range, even if all of it waits for a
// receiver that is down. A part does not wait if no dispatcher holds the partner's lease.
func replayPart(ctx context.Context, q *db.Queries, c db.ClaimCommandRow) error {
	if c.Deliveries > 0 {
		before := db.PartIsBeingSentParams{
			PartnerID: c.PartnerID, FirstSequence: *c.FirstSequence - rangePart, LastSequence: *c.FirstSequence - 1,
		}
		if sent, err := q.PartIsBeingSent(ctx, before); err != nil {
			return err
		} else if sent {
			return q.AdvanceCommand(
				ctx, db.AdvanceCommandParams{ID: c.ID, FirstSequence: *c.FirstSequence, WaitMs: partPause.Milliseconds()},
			)
		}
	}
	last := min(c.NewestSequence, *c.LastSequence)
	end := min(last, min(last, *c.FirstSequence)+rangePart-1) // first may lie beyond the last sequence
	only := ""
	if c.OnlyState != nil {
		only = *c.OnlyState
	}
	n, err := q.ReplayRange(ctx, db.ReplayRangeParams{
		PartnerID: c.PartnerID, FirstSequence: *c.FirstSequence, LastSequence: end, OnlyState: only,
	})
	if err != nil {
		return err
	}
	if end >= last {
		return q.FinishCommand(ctx, db.FinishCommandParams{ID: c.ID, Deliveries: n})
	}
	return q.AdvanceCommand(ctx, db.AdvanceCommandParams{ID: c.ID, FirstSequence: end + 1, Deliveries: n})
}
