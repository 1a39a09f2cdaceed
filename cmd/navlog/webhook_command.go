package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Only dispatch writes deliveries: these commands leave it a row, and wait for the outcome.

// orderFlags are shared by the commands that dispatch executes.
type orderFlags struct {
	changeFlags
	Wait time.Duration `default:"10s" help:"How long to wait until a dispatcher executes it; 0: do not wait. A dispatcher executes it in any case."`
}

// order is the outcome of a command.
type order struct {
	Command    int64 `json:"command"`
	PartnerID  int64 `json:"partnerId"`
	Done       bool  `json:"done"`
	Deliveries int64 `json:"deliveries"` // number of deliveries sent for it so far
	Parked     bool  `json:"parked"`     // an operator parked the partner: they wait
}

// order leaves a command for dispatch, waits for it, and prints the outcome. It leaves none for a partner to which
// dispatch would send nothing.
func (f orderFlags) order(ctx context.Context, s *cli.Streams, pool *pgxpool.Pool, d registry.Action,
	leave func(*db.Queries) (int64, error)) error {
	p, err := db.New(pool).GetPartner(ctx, d.Partner)
	switch {
	case err != nil:
		return unknownPartner(d.Partner, err)
	case p.Disabled:
		return fmt.Errorf("partner %d is disabled, so nothing is sent: `navlog partner enable %d` undoes it", p.ID, p.ID)
	case p.Url == nil:
		return fmt.Errorf("partner %d has no webhook URL, so nothing is sent: the partner registers one (docs/webhooks.md)",
			p.ID)
	}
	var id int64
	err = registry.Change(ctx, pool, f.operator(), func(q *db.Queries) (_ registry.Action, err error) {
		if id, err = leave(q); err != nil {
			return d, fmt.Errorf("store a command for partner %d: %w", d.Partner, err)
		}
		return d, nil
	})
	if err != nil {
		return err
	}
	o, q := order{Command: id, PartnerID: d.Partner, Parked: p.Held}, db.New(pool)
	f.waitUntilDone(ctx, s, f.Wait, func(ctx context.Context, steps *console.Steps) (bool, error) {
		r, err := q.CommandResult(ctx, id)
		if err != nil {
			return false, fmt.Errorf("read command %d: %w", id, err)
		}
		o.Done, o.Deliveries = r.DoneAt != nil, r.Deliveries
		steps.Report(fmt.Sprintf("waiting for a dispatcher to execute command %d: sent", id), uint64(o.Deliveries), 0)
		return o.Done, nil
	})
	deliveries := printable.Count(o.Deliveries, "delivery", "deliveries")
	return f.Print(s.Out, o, func(w io.Writer) {
		switch {
		case o.Done:
			cli.Fprintf(w, "partner %d: %s, %s pending\n", o.PartnerID, d.Detail, deliveries)
		case o.Deliveries > 0:
			cli.Fprintf(w, "partner %d: %s continues as command %d, %s pending so far\n", o.PartnerID, d.Detail, o.Command,
				deliveries)
		default:
			cli.Fprintf(w, "partner %d: %s is queued as command %d: a running dispatcher executes it (`navlog status` "+
				"shows whether one runs)\n", o.PartnerID, d.Detail, o.Command)
		}
		if o.Parked {
			cli.Fprintf(w, "the partner is parked, so nothing is sent until `navlog webhook resume %d`\n", o.PartnerID)
		}
	})
}

type webhookReplayCmd struct {
	orderFlags
	Event uuid.UUID `arg:"" help:"Event id."`
}

func (cmd webhookReplayCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		q := db.New(pool)
		d, err := q.GetDelivery(ctx, cmd.Event)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return noEvent(cmd.Event)
		case err != nil:
			return fmt.Errorf("read event %s: %w", cmd.Event, err)
		case d.State == registry.Pending || d.State == registry.Parked:
			return fmt.Errorf("event %s is %s: it is sent anyway", cmd.Event, d.State)
		}
		return cmd.order(ctx, s, pool,
			registry.Action{Command: "webhook replay", Partner: d.PartnerID, Detail: "replay of " + cmd.Event.String()},
			func(q *db.Queries) (int64, error) {
				return q.CreateCommand(ctx, db.CreateCommandParams{PartnerID: d.PartnerID, Kind: "replay", EventID: &cmd.Event})
			})
	})
}

type webhookReplayRangeCmd struct {
	orderFlags
	Partner int64  `arg:"" help:"Partner id."`
	From    int64  `arg:"" help:"First sequence, from 1."`
	To      int64  `arg:"" help:"Last sequence."`
	State   string `placeholder:"STATE" help:"Only events in this state: delivered, failed, no_endpoint (default: all three)."`
}

func (cmd webhookReplayRangeCmd) Run(ctx context.Context, s *cli.Streams) error {
	if cmd.From < 1 || cmd.To < cmd.From {
		return cli.Usage.With(fmt.Errorf("the range is %d to %d: it must begin at 1 or later and not end before it begins",
			cmd.From, cmd.To))
	}
	if err := checkState(cmd.State, []string{registry.Delivered, registry.Failed, registry.NoEndpoint}); err != nil {
		return err
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		d := registry.Action{Command: "webhook replay-range", Partner: cmd.Partner,
			Detail: fmt.Sprintf("replay of sequences %d to %d", cmd.From, cmd.To)}
		p := db.CreateReplayRangeParams{PartnerID: cmd.Partner, FirstSequence: cmd.From, LastSequence: cmd.To}
		if cmd.State != "" {
			p.OnlyState = &cmd.State
			d.Detail += " that are " + cmd.State
		}
		return cmd.order(ctx, s, pool, d, func(q *db.Queries) (int64, error) { return q.CreateReplayRange(ctx, p) })
	})
}

type webhookTestCmd struct {
	orderFlags
	Partner int64 `arg:"" help:"Partner id."`
}

func (cmd webhookTestCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		return cmd.order(ctx, s, pool, registry.Action{Command: "webhook test", Partner: cmd.Partner, Detail: "test event"},
			func(q *db.Queries) (int64, error) {
				return q.CreateCommand(ctx, db.CreateCommandParams{PartnerID: cmd.Partner, Kind: "test"})
			})
	})
}

type webhookParkCmd struct{ partnerFlags }

func (cmd webhookParkCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.setHeld(ctx, s, "webhook park", "parked: its events wait for `navlog webhook resume`", true)
}

type webhookResumeCmd struct{ partnerFlags }

func (cmd webhookResumeCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.setHeld(ctx, s, "webhook resume", "resumed", false)
}

func (f partnerFlags) setHeld(ctx context.Context, s *cli.Streams, command, what string, held bool) error {
	return f.update(ctx, s, command, what, func(q *db.Queries) (int64, error) {
		return q.HoldEndpoint(ctx, db.HoldEndpointParams{PartnerID: f.ID, Held: held})
	})
}

// noPositionChanged explains why no position had to change for a log.
func noPositionChanged(ctx context.Context, q *db.Queries, id []byte) error {
	_, err := q.FollowedLog(ctx)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errors.New("no referral was read yet: dispatch makes deliveries from the first log that it reads, so there " +
			"is nothing to change")
	case err != nil:
		return fmt.Errorf("read from which log deliveries are made: %w", err)
	}
	return fmt.Errorf("all deliveries are made from the log %x already: there is nothing to change", id)
}

type webhookFollowLogCmd struct {
	changeFlags
	Log string `arg:"" help:"Id of the log, 32 hex digits: dispatch prints it when it rejects the log."`
}

// Run lets dispatch continue with another log. Event ids come from the chain, so events in both logs are not sent
// again.
func (cmd webhookFollowLogCmd) Run(ctx context.Context, s *cli.Streams) error {
	id, err := hex.DecodeString(cmd.Log)
	if err != nil || len(id) != 16 {
		return cli.Usage.With(fmt.Errorf("the log id is %q and must be 32 hex digits", cmd.Log))
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		err := registry.Change(ctx, pool, cmd.operator(), func(q *db.Queries) (registry.Action, error) {
			n, err := q.FollowLog(ctx, id)
			switch {
			case err != nil:
				return registry.Action{}, fmt.Errorf("follow the log %x: %w", id, err)
			case n == 0:
				return registry.Action{}, noPositionChanged(ctx, q, id)
			}
			return registry.Action{Command: "webhook follow-log",
				Detail: fmt.Sprintf("log %x, at %s", id, printable.Count(n, "position"))}, nil
		})
		if err != nil {
			return err
		}
		return cmd.Print(s.Out, map[string]any{"log": cmd.Log}, func(w io.Writer) {
			cli.Fprintf(w, "deliveries are made from the log %x from now on\n", id)
		})
	})
}
