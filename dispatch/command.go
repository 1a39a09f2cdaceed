package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook"
)

// obey carries out what partners asked for through query: test events and
// replays. What it makes is a delivery like any other, in the transaction that
// ends the command, so a crash neither loses nor doubles it.
func (d *Dispatch) obey(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var partners []int64
	err := pgx.BeginFunc(limited, d.pool, func(tx pgx.Tx) error {
		q := d.queries.WithTx(tx)
		commands, err := q.ClaimCommands(limited)
		if err != nil || len(commands) == 0 {
			return err
		}
		for _, c := range commands {
			if err := carryOut(limited, q, c); err != nil {
				return fmt.Errorf("command %d: %w", c.ID, err)
			}
			partners = append(partners, c.PartnerID)
		}
		return nil
	})
	d.health.set("carry out commands", err)
	if err != nil {
		return
	}
	for _, p := range partners {
		d.wake(ctx, p)
	}
}

// rangePart is how many sequences of a replay-range one transaction looks at.
const rangePart = 5000

// carryOut makes what a command asks for, and ends the command with the number
// of deliveries that are sent for it.
func carryOut(ctx context.Context, q *db.Queries, c db.ClaimCommandsRow) error {
	var n int64
	var err error
	switch {
	case c.Kind == "test":
		n, err = 1, makeTest(ctx, q, c.PartnerID)
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

func makeTest(ctx context.Context, q *db.Queries, partner int64) error {
	envelope := webhook.Envelope{
		ID: uuid.New(), Version: webhook.Version, Type: webhook.Test, PartnerID: uint32(partner),
		CreatedAt: webhook.FormatTime(uint64(time.Now().Unix())), Data: struct{}{},
	}
	body, err := envelope.Body()
	if err != nil {
		return err
	}
	return q.InsertTest(ctx, db.InsertTestParams{EventID: envelope.ID, PartnerID: partner, Type: envelope.Type, Body: body})
}

// replayPart replays the first part of a range and leaves the rest of it to the
// next turn, so that a long range keeps nothing locked for long.
func replayPart(ctx context.Context, q *db.Queries, c db.ClaimCommandsRow) error {
	last, err := q.LastSequence(ctx, c.PartnerID)
	if err != nil {
		return err
	}
	last = min(last, *c.LastSequence)
	end := min(last, *c.FirstSequence+rangePart-1)
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
