package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

type webhookDeadCmd struct {
	List  deadListCmd  `cmd:"" help:"List the referral records that could not become a delivery, newest first."`
	Show  deadShowCmd  `cmd:"" help:"Show a referral record that could not become a delivery, with its content."`
	Retry deadRetryCmd `cmd:"" help:"Have a dispatcher process such records again, for example after an upgrade."`
}

// deadRow is a record that could not become a delivery.
type deadRow struct {
	ID         int64           `json:"id"`
	Topic      string          `json:"topic"`
	Partition  int32           `json:"partition"`
	Offset     int64           `json:"offset"`
	Reason     string          `json:"reason"`
	Error      string          `json:"error"`
	At         time.Time       `json:"at"`
	RetriedAt  *time.Time      `json:"retriedAt"`
	ResolvedAt *time.Time      `json:"resolvedAt"`
	Value      string          `json:"value,omitempty"`    // hex, only for `webhook dead show`
	Referral   json.RawMessage `json:"referral,omitempty"` // the fields that this version of navlog can read
}

type deadListCmd struct {
	registryFlags
	All bool `help:"Include those that have become deliveries since."`
	rowsFlag
}

func (cmd deadListCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		found, err := db.New(pool).ListDeadRecords(ctx, db.ListDeadRecordsParams{ResolvedToo: cmd.All, Limit: cmd.Limit})
		if err != nil {
			return fmt.Errorf("list dead records: %w", err)
		}
		rows := make([]deadRow, len(found))
		for i, r := range found {
			rows[i] = deadRow{ID: r.ID, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Reason: r.Reason,
				Error: r.Error, At: r.At, RetriedAt: r.RetriedAt, ResolvedAt: r.ResolvedAt}
		}
		return cli.Table(cmd.Output, s.Out, rows, "ID\tTOPIC\tPARTITION\tOFFSET\tREASON\tAT\tRETRIED\tRESOLVED\tERROR",
			func(r deadRow) []any {
				return []any{r.ID, r.Topic, r.Partition, r.Offset, r.Reason, clock(&r.At), clock(r.RetriedAt), clock(r.ResolvedAt),
					r.Error}
			})
	})
}

type deadShowCmd struct {
	registryFlags
	ID int64 `arg:"" help:"Id of the record, from webhook dead list."`
}

func (cmd deadShowCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		r, err := db.New(pool).GetDeadRecord(ctx, cmd.ID)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("there is no dead record %d: `navlog webhook dead list --all` shows them", cmd.ID)
		}
		if err != nil {
			return fmt.Errorf("read dead record %d: %w", cmd.ID, err)
		}
		row := deadRow{
			ID: r.ID, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Reason: r.Reason, Error: r.Error,
			At: r.At, RetriedAt: r.RetriedAt, ResolvedAt: r.ResolvedAt, Value: hex.EncodeToString(r.Value),
			Referral: readReferral(r.Value),
		}
		held := "nothing that this version of navlog can read"
		if row.Referral != nil {
			held = string(row.Referral)
		}
		return cmd.Print(s.Out, row, func(w io.Writer) {
			cli.Fprintf(w, "record    %d: offset %d in partition %d of %s, topic id %s\nreason    %s: %s\ntimes     found "+
				"%s, retried %s, resolved %s\nholds     %s\nbytes     %s\n",
				row.ID, row.Offset, row.Partition, row.Topic, r.TopicID, row.Reason, row.Error, clock(&row.At),
				clock(row.RetriedAt), clock(row.ResolvedAt), held, row.Value)
		})
	})
}

// readReferral returns the readable fields of a record as JSON, or nil if there are none.
func readReferral(value []byte) json.RawMessage {
	referral := new(event.Referral)
	if proto.Unmarshal(value, referral) != nil {
		return nil
	}
	b, _ := protojson.Marshal(referral)
	return b
}

type deadRetryCmd struct {
	changeFlags
	Wait time.Duration `default:"10s" help:"How long to wait until a dispatcher processes them; 0: do not wait. A dispatcher processes them in any case."`
	IDs  []int64       `arg:"" optional:"" name:"id" help:"Ids of the records, from webhook dead list."`
	All  bool          `help:"All records that are not resolved."`
}

func (cmd deadRetryCmd) Run(ctx context.Context, s *cli.Streams) error {
	if cmd.All != (len(cmd.IDs) == 0) {
		return cli.Usage.With(errors.New("name the dead records to retry: their ids, or --all"))
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		var requested []int64
		err := registry.Change(ctx, pool, cmd.operator(), func(q *db.Queries) (registry.Action, error) {
			var err error
			if requested, err = q.RetryDeadRecords(ctx, append([]int64{}, cmd.IDs...)); err != nil {
				return registry.Action{}, fmt.Errorf("request the retry of dead records: %w", err)
			}
			for _, id := range cmd.IDs {
				if !slices.Contains(requested, id) {
					return registry.Action{}, fmt.Errorf("there is no unresolved dead record %d: `navlog webhook dead list` shows "+
						"the unresolved ones", id)
				}
			}
			detail := fmt.Sprintf("%s, all %t: %s", printable.Count(len(requested), "record"), cmd.All, firstOf(requested))
			return registry.Action{Command: "webhook dead retry", Detail: detail}, nil
		})
		if err != nil {
			return err
		}
		all, q := int64(len(requested)), db.New(pool)
		found := db.RetriedDeadRecordsRow{Waiting: all}
		cmd.waitUntilDone(ctx, s, cmd.Wait, func(ctx context.Context, steps *console.Steps) (bool, error) {
			now, err := q.RetriedDeadRecords(ctx, requested)
			if err != nil {
				return false, fmt.Errorf("read the outcome of %d dead records: %w", all, err)
			}
			found = now
			steps.Report("waiting for a dispatcher: dead records", uint64(all-found.Waiting), uint64(all))
			return found.Waiting == 0, nil
		})
		still := all - found.Waiting - found.Resolved
		result := map[string]any{"asked": len(requested), "resolved": found.Resolved, "refused": still,
			"waiting": found.Waiting}
		return cmd.Print(s.Out, result, func(w io.Writer) {
			cli.Fprintf(w, "%s: became deliveries: %d; did not (`navlog webhook dead list` has the reasons): %d; waiting for a "+
				"running dispatcher: %d\n",
				printable.Count(len(requested), "record"), found.Resolved, still, found.Waiting)
		})
	})
}

// firstOf formats the first ids of a list.
func firstOf(ids []int64) string {
	const most = 20
	if len(ids) > most {
		return fmt.Sprintf("%v and %d more", ids[:most], len(ids)-most)
	}
	return fmt.Sprint(ids)
}
