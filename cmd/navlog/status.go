package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry/db"
)

// staleAfter is when what a program said of itself is no longer believed.
const staleAfter = 5 * time.Second

type statusCmd struct{ partnerFlags }

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

type projectionCmd struct {
	List projectionListCmd `cmd:"" help:"List the generations and how far each one is."`
}

type projectionListCmd struct{ partnerFlags }

type generationRow struct {
	ID        int32     `json:"id"`
	State     string    `json:"state"`
	Schema    string    `json:"schema"`
	Database  string    `json:"database"`
	LogID     string    `json:"logId"`
	Seq       uint64    `json:"seq"`
	CreatedAt time.Time `json:"createdAt"`
}

// Run lists the generations.
func (cmd projectionListCmd) Run(ctx context.Context, s *streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config) error {
		found, err := db.New(pool).ListGenerations(ctx)
		if err != nil {
			return fmt.Errorf("list generations: %w", err)
		}
		conn, err := c.ClickHouse.Open()
		if err != nil {
			return err
		}
		defer conn.Close()
		rows := make([]generationRow, len(found))
		for i, g := range found {
			database := c.ClickHouse.Database(g.ID)
			seq, _, err := readmodel.Cursor(ctx, conn, database, "records")
			if err != nil {
				return err
			}
			rows[i] = generationRow{g.ID, g.State, g.Schema, database, hex.EncodeToString(g.LogID), seq, g.CreatedAt}
		}
		if cmd.JSON {
			return json.NewEncoder(s.out).Encode(rows)
		}
		w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tSTATE\tSEQ\tDATABASE\tSCHEMA\tCREATED")
		for _, g := range rows {
			fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\n", g.ID, g.State, g.Seq, g.Database, g.Schema, g.CreatedAt.UTC().Format(time.RFC3339))
		}
		return w.Flush()
	}, needClickHouse)
}
