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

// obey carries out what partners asked for through query: test events and
// replays. What it makes is a delivery like any other, in the transaction that
// ends the command, so a crash neither loses nor doubles it.
//
// Each command has a transaction of its own and partners take turns, so that one
// that fails or takes long holds up no other. One that fails stays, and is tried
// again later and later; the rest of its partner's, which may fail as slowly,
// wait for the next look.
func (d *Dispatch) obey(ctx context.Context) {
	err := d.obeyDue(ctx)
	if ctx.Err() == nil {
		d.health.set("carry out commands", err)
	}
}

// obeyDue gives every command that is due its turn. It fails when PostgreSQL
// does, not when a command does.
func (d *Dispatch) obeyDue(ctx context.Context) error {
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
		done, err := d.obeyOne(ctx, c.ID)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed[c.PartnerID] = true
			d.metrics.failedTurns.Inc()
			d.log.Warn("a command failed and is tried again later", "command", c.ID, "partner", c.PartnerID, "error", err)
			if err := d.putOff(ctx, c.ID); err != nil {
				return err
			}
		case done:
			d.wake(c.PartnerID)
		}
	}
	return nil
}

// obeyOne carries out a command, or the next part of a long one; false: another
// dispatcher has it.
func (d *Dispatch) obeyOne(ctx context.Context, id int64) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*d.timing.command) // the server is to end it first
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
		return carryOut(ctx, q, c)
	})
	return done, err
}

func (d *Dispatch) putOff(ctx context.Context, id int64) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return d.queries.PutOffCommand(ctx, id)
}

// rangePart is how many sequences of a replay-range one transaction looks at, and so
// behind how many of them at most, or about so many, a new event has its turn.
const rangePart = 5000

// partPause is how long the next part of a replay-range waits at least while the one
// before is being sent.
const partPause = time.Second

// carryOut makes what a command asks for, and ends the command with the number
// of deliveries that are sent for it.
func carryOut(ctx context.Context, q *db.Queries, c db.ClaimCommandRow) error {
	var n int64
	var err error
	switch {
	case c.Kind == "test":
		n, err = 1, makeTest(ctx, q, c)
	case c.Kind == "replay-range" && c.FirstSequence != nil && c.LastSequence != nil:
		return replayPart(ctx, q, c)
	case c.EventID != nil:
		// An event that is still to be sent, or not the partner's, is left alone.
		n, err = q.ReplayDelivery(ctx, db.ReplayDeliveryParams{EventID: *c.EventID, PartnerID: c.PartnerID})
	}
	if err != nil {
		return err
	}
	return q.FinishCommand(ctx, db.FinishCommandParams{ID: c.ID, Deliveries: n})
}

// makeTest makes a test event under the id that its partner was promised, where
// it was promised one: navlog webhook promises none.
func makeTest(ctx context.Context, q *db.Queries, c db.ClaimCommandRow) error {
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
		return err
	}
	return q.InsertTest(ctx, db.InsertTestParams{EventID: id, PartnerID: c.PartnerID, Type: envelope.Type, Body: body})
}

// replayPart replays the first part of a range and leaves the rest of it to the
// next turn, so that a long range keeps nothing locked for long. Each part waits until the
// one before is sent, or has failed: what is due first is sent first, and new events would
// come behind the whole range, also where all of it waits for a receiver that is down. It
// does not wait where nobody sends.
func replayPart(ctx context.Context, q *db.Queries, c db.ClaimCommandRow) error {
	if c.Deliveries > 0 {
		before := db.PartIsBeingSentParams{PartnerID: c.PartnerID, FirstSequence: *c.FirstSequence - rangePart, LastSequence: *c.FirstSequence - 1}
		if sent, err := q.PartIsBeingSent(ctx, before); err != nil {
			return err
		} else if sent {
			return q.AdvanceCommand(ctx, db.AdvanceCommandParams{ID: c.ID, FirstSequence: *c.FirstSequence, WaitMs: partPause.Milliseconds()})
		}
	}
	last, err := q.LastSequence(ctx, c.PartnerID)
	if err != nil {
		return err
	}
	last = min(last, *c.LastSequence)
	end := min(last, min(last, *c.FirstSequence)+rangePart-1) // a first beyond the last may be any number
	only := ""
	if c.OnlyState != nil {
		only = *c.OnlyState
	}
	n, err := q.ReplayRange(ctx, db.ReplayRangeParams{PartnerID: c.PartnerID, FirstSequence: *c.FirstSequence, LastSequence: end, OnlyState: only})
	if err != nil {
		return err
	}
	if end >= last {
		return q.FinishCommand(ctx, db.FinishCommandParams{ID: c.ID, Deliveries: n})
	}
	return q.AdvanceCommand(ctx, db.AdvanceCommandParams{ID: c.ID, FirstSequence: end + 1, Deliveries: n})
}
