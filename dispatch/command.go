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
		var ids []int64
		for _, c := range commands {
			if err := carryOut(limited, q, c); err != nil {
				return fmt.Errorf("command %d: %w", c.ID, err)
			}
			ids, partners = append(ids, c.ID), append(partners, c.PartnerID)
		}
		return q.FinishCommands(limited, ids)
	})
	d.health.set("carry out commands", err)
	if err != nil {
		return
	}
	for _, p := range partners {
		d.wake(ctx, p)
	}
}

func carryOut(ctx context.Context, q *db.Queries, c db.ClaimCommandsRow) error {
	switch {
	case c.Kind == "test":
		id := uuid.New()
		if c.EventID != nil { // the one that query has told the partner
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
		return q.InsertTest(ctx, db.InsertTestParams{EventID: envelope.ID, PartnerID: c.PartnerID, Type: envelope.Type, Body: body})
	case c.EventID != nil:
		// An event that is still to be sent, or not the partner's, is left alone.
		_, err := q.ReplayDelivery(ctx, db.ReplayDeliveryParams{EventID: *c.EventID, PartnerID: c.PartnerID})
		return err
	}
	return nil // a replay of nothing
}
