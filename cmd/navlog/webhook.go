package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/telemetry"
)

type webhookCmd struct {
	List        webhookListCmd        `cmd:"" help:"List deliveries, newest first."`
	Show        webhookShowCmd        `cmd:"" help:"Show one delivery and every attempt, with the time of each phase."`
	Replay      webhookReplayCmd      `cmd:"" help:"Send an event again that is delivered, failed or no_endpoint, with the same id and body."`
	ReplayRange webhookReplayRangeCmd `cmd:"" name:"replay-range" help:"Send a partner's events of a range of sequences again."`
	Test        webhookTestCmd        `cmd:"" help:"Send a partner a signed test event."`
	Park        webhookParkCmd        `cmd:"" help:"Stop sending to a partner; its events are parked."`
	Resume      webhookResumeCmd      `cmd:"" help:"Send to a parked partner again, beginning with its parked events."`
	FollowLog   webhookFollowLogCmd   `cmd:"" name:"follow-log" help:"Continue with another log that was rebuilt from the same chain."`
	Dead        webhookDeadCmd        `cmd:"" help:"List, show and retry the referral records that could not become a delivery."`
}

// deliveryRow is a delivery as shown to operators. A test event has no sequence.
type deliveryRow struct {
	ID         uuid.UUID  `json:"id"`
	PartnerID  int64      `json:"partnerId"`
	Sequence   int64      `json:"sequence,omitempty"`
	Type       string     `json:"type"`
	State      string     `json:"state"`
	Attempts   int32      `json:"attempts"`
	CreatedAt  time.Time  `json:"createdAt"`
	DueAt      time.Time  `json:"dueAt"`
	FinishedAt *time.Time `json:"finishedAt"`
}

type webhookListCmd struct {
	registryFlags
	Partner int64  `placeholder:"ID" help:"Only this partner's (default: all partners')."`
	State   string `placeholder:"STATE" help:"Only in this state: pending, parked, delivered, failed, no_endpoint."`
	rowsFlag
}

// deliveryStates are the values of --state.
var deliveryStates = []string{registry.Pending, registry.Parked, registry.Delivered, registry.Failed,
	registry.NoEndpoint}

func checkState(state string, allowed []string) error {
	if state != "" && !slices.Contains(allowed, state) {
		return cli.Usage.With(fmt.Errorf("--state is %q and must be one of %s", state, strings.Join(allowed, ", ")))
	}
	return nil
}

func (cmd webhookListCmd) Run(ctx context.Context, s *cli.Streams) error {
	if err := checkState(cmd.State, deliveryStates); err != nil {
		return err
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		q := db.New(pool)
		if cmd.Partner != 0 {
			if _, err := q.GetPartner(ctx, cmd.Partner); err != nil {
				return unknownPartner(cmd.Partner, err)
			}
		}
		found, err := q.ListDeliveriesOf(ctx,
			db.ListDeliveriesOfParams{PartnerID: cmd.Partner, State: cmd.State, Limit: cmd.Limit})
		if err != nil {
			return fmt.Errorf("list deliveries: %w", err)
		}
		rows := make([]deliveryRow, len(found))
		for i, d := range found {
			rows[i] = deliveryRow{d.EventID, d.PartnerID, d.Sequence, d.Type, d.State, d.Attempts, d.CreatedAt, d.DueAt,
				d.FinishedAt}
		}
		return cli.Table(cmd.Output, s.Out, rows, "EVENT\tPARTNER\tSEQUENCE\tTYPE\tSTATE\tATTEMPTS\tCREATED\tFINISHED",
			func(d deliveryRow) []any {
				return []any{d.ID, d.PartnerID, orDash(d.Sequence), d.Type, d.State, d.Attempts, clock(&d.CreatedAt),
					clock(d.FinishedAt)}
			})
	})
}

func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func clock(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

type webhookShowCmd struct {
	registryFlags
	Event uuid.UUID `arg:"" help:"Event id."`
}

// attemptRow is one POST. Times are in milliseconds; null if the phase did not happen, as for a reused connection.
type attemptRow struct {
	Number      int32     `json:"number"`
	StartedAt   time.Time `json:"startedAt"`
	URL         string    `json:"url"`
	Status      *int32    `json:"status"`
	Error       *string   `json:"error"`
	DurationMs  int32     `json:"durationMs"`
	DNSMs       *float64  `json:"dnsMs"`
	ConnectMs   *float64  `json:"connectMs"`
	TLSMs       *float64  `json:"tlsMs"`
	FirstByteMs *float64  `json:"firstByteMs"`
	Response    string    `json:"response"` // its first 4 KiB
}

func (cmd webhookShowCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		q := db.New(pool)
		d, err := q.GetDelivery(ctx, cmd.Event)
		if errors.Is(err, pgx.ErrNoRows) {
			return noEvent(cmd.Event)
		}
		if err != nil {
			return fmt.Errorf("read event %s: %w", cmd.Event, err)
		}
		log, err := q.AttemptLog(ctx, cmd.Event)
		if err != nil {
			return fmt.Errorf("read the attempts of event %s: %w", cmd.Event, err)
		}
		attempts := make([]attemptRow, len(log))
		for i, a := range log {
			attempts[i] = attemptRow{
				a.Number, a.StartedAt, a.Url, a.Status, a.Error, a.DurationMs,
				inMs(a.DnsUs), inMs(a.ConnectUs), inMs(a.TlsUs), inMs(a.FirstByteUs), strings.ToValidUTF8(string(a.Response), "?"),
			}
		}
		replaced, err := q.Corrections(ctx, cmd.Event)
		if err != nil {
			return fmt.Errorf("read the corrections of event %s: %w", cmd.Event, err)
		}
		before := make([]json.RawMessage, len(replaced))
		for i, body := range replaced {
			before[i] = body
		}
		row := deliveryRow{d.EventID, d.PartnerID, d.Sequence, d.Type, d.State, d.Attempts, d.CreatedAt, d.DueAt,
			d.FinishedAt}
		result := struct {
			deliveryRow
			Body        json.RawMessage   `json:"body"`
			CorrectedAt *time.Time        `json:"correctedAt,omitempty"`
			Before      []json.RawMessage `json:"bodiesBefore,omitempty"` // oldest first
			TraceID     string            `json:"traceId,omitempty"`
			Log         []attemptRow      `json:"attemptLog"`
		}{row, d.Body, d.CorrectedAt, before, telemetry.TraceID(d.Traceparent), attempts}
		return cmd.Print(s.Out, result, func(w io.Writer) {
			cli.Fprintf(w, "event     %s, %s, partner %d, sequence %s\nstate     %s, created %s, finished %s\nbody      %s\n",
				d.EventID, d.Type, d.PartnerID, orDash(d.Sequence), d.State, clock(&d.CreatedAt), clock(d.FinishedAt),
				string(d.Body))
			if result.TraceID != "" {
				cli.Fprintf(w, "trace     %s\n", result.TraceID)
			}
			if d.CorrectedAt != nil {
				cli.Fprintf(w, "corrected %s: its transaction was mined again, and an attempt before then carries an older body\n",
					clock(d.CorrectedAt))
			}
			for _, body := range before {
				cli.Fprintf(w, "before    %s\n", string(body))
			}
			writeAttempts(w, attempts)
		})
	})
}

func noEvent(id uuid.UUID) error {
	return fmt.Errorf("there is no event %s: `navlog webhook list` shows them", id)
}

func inMs(us *int32) *float64 {
	if us == nil {
		return nil
	}
	ms := float64(*us) / 1000
	return &ms
}

func writeAttempts(w io.Writer, attempts []attemptRow) {
	if len(attempts) == 0 {
		return
	}
	cli.Rows(w, attempts, "#\tSTARTED\tRESULT\tTOOK\tDNS\tCONNECT\tTLS\tFIRST BYTE\tURL", func(a attemptRow) []any {
		result := "no response"
		switch {
		case a.Status != nil:
			result = fmt.Sprint(*a.Status)
		case a.Error != nil:
			result = *a.Error
		}
		return []any{a.Number, clock(&a.StartedAt), result, fmt.Sprintf("%d ms", a.DurationMs), milliseconds(a.DNSMs),
			milliseconds(a.ConnectMs), milliseconds(a.TLSMs), milliseconds(a.FirstByteMs), a.URL}
	})
	for _, a := range attempts {
		if a.Response != "" {
			cli.Fprintf(w, "response %d  %s\n", a.Number, a.Response)
		}
	}
}

func milliseconds(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", *ms)
}
