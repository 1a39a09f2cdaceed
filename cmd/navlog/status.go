package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry/db"
)

// staleAfter is when what a program said of itself is no longer believed.
const staleAfter = 5 * time.Second

type statusCmd struct{ registryFlags }

type statusRow struct {
	Program  string          `json:"program"`
	Instance string          `json:"instance"`
	AgeMs    int64           `json:"ageMs"`
	Known    bool            `json:"known"`
	Status   json.RawMessage `json:"status"`
}

// Run prints one line a program, and how many deliveries are in which state.
func (cmd statusCmd) Run(ctx context.Context, s *streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config) error {
		q := db.New(pool)
		found, err := q.ListStatus(ctx)
		if err != nil {
			return fmt.Errorf("read the programs' status: %w", err)
		}
		counts, err := q.CountDeliveriesByState(ctx)
		if err != nil {
			return fmt.Errorf("count deliveries: %w", err)
		}
		rows := make([]statusRow, 0, len(found))
		for _, f := range found {
			rows = append(rows, statusRow{f.Program, f.Instance, f.AgeMs, f.AgeMs <= staleAfter.Milliseconds(), f.Status})
		}
		deliveries := map[string]int64{}
		for _, c := range counts {
			deliveries[c.State] = c.Deliveries
		}
		if cmd.JSON {
			return json.NewEncoder(s.out).Encode(map[string]any{"programs": rows, "deliveries": deliveries})
		}
		w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "PROGRAM\tINSTANCE\tAGE\tSTATUS")
		for _, r := range rows {
			status := string(r.Status)
			if !r.Known {
				status = "unknown (last: " + status + ")"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Program, r.Instance, time.Duration(r.AgeMs)*time.Millisecond, status)
		}
		fmt.Fprintln(w)
		for _, c := range counts {
			fmt.Fprintf(w, "deliveries\t%s\t%d\t\n", c.State, c.Deliveries)
		}
		return w.Flush()
	})
}
