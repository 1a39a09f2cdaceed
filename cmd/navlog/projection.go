package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/registry"
)

type projectionCmd struct {
	List     projectionListCmd     `cmd:"" help:"List the generations and the progress of each."`
	Rebuild  projectionRebuildCmd  `cmd:"" help:"Build a new generation from the log, compare it with the live one, and switch to it if they are equal."`
	Switch   projectionSwitchCmd   `cmd:"" help:"Make a standby generation live."`
	Rollback projectionRollbackCmd `cmd:"" help:"Switch back to the newest standby generation of this version's schema, or else of any."`
	Show     projectionShowCmd     `cmd:"" help:"Show what the rebuild of a generation compared, and the differences."`
	Drop     projectionDropCmd     `cmd:"" help:"Remove a generation that is not live."`
}

// withOperator runs do with an open operator, on a registry that is opened for reading.
func (f registryFlags) withOperator(ctx context.Context, do func(*projections.Operator) error,
	sections ...config.Section) error {
	return f.openOperator(ctx, registry.OpenAsItIs, func(o *projections.Operator, _ *pgxpool.Pool) error { return do(o) },
		sections)
}

func (f registryFlags) openOperator(ctx context.Context,
	open func(context.Context, registry.Config) (*pgxpool.Pool, error),
	do func(*projections.Operator, *pgxpool.Pool) error, sections []config.Section) error {
	return f.withOpened(ctx, open, func(pool *pgxpool.Pool, c config.Config) error {
		o, err := projections.NewOperator(c.Chain.ID, c.Kafka, c.ClickHouse, pool)
		if err != nil {
			return err
		}
		defer o.Close()
		if err := o.Reach(ctx); err != nil {
			return err
		}
		return do(o, pool)
	}, append(sections, config.NeedClickHouse)...)
}

// withAuditedOperator runs do with an open operator, between two rows of the audit, because a generation is more than
// rows of the registry. do prints nothing: a result that cannot be written is not a change that failed.
func (f changeFlags) withAuditedOperator(ctx context.Context, s *cli.Streams, d registry.Action,
	do func(*projections.Operator) error, sections ...config.Section) error {
	return f.openOperator(ctx, registry.Open, func(o *projections.Operator, pool *pgxpool.Pool) error {
		return f.audited(ctx, s, pool, d, func() error { return do(o) })
	}, sections)
}

// changeGeneration changes one generation, which do returns, and prints what it is now, with a note if it is live and
// outdated.
func (f changeFlags) changeGeneration(ctx context.Context, s *cli.Streams, d registry.Action, what string,
	do func(*projections.Operator) (int32, error)) error {
	var id int32
	result, note := map[string]any{"changed": what}, ""
	err := f.withAuditedOperator(ctx, s, d, func(o *projections.Operator) (err error) {
		steps := console.Progress(f.Flags, s)
		o.Progress = steps.Report
		id, err = do(o)
		steps.End()
		if err != nil {
			return err
		}
		all, err := o.List(ctx) // without a list there is no note
		isOutdated := func(g projections.Generation) bool { return g.ID == id && g.State == registry.Live && g.Outdated }
		if err == nil && slices.ContainsFunc(all, isOutdated) {
			note = "it lacks later changes of vaults: project builds another generation with them, and makes that one live " +
				"by itself"
			result["note"] = note
		}
		return nil
	})
	if err != nil {
		return err
	}
	result["generation"] = id
	return f.Print(s.Out, result, func(w io.Writer) {
		fmt.Fprintf(w, "generation %d: %s\n", id, what)
		if note != "" {
			fmt.Fprintln(w, note)
		}
	})
}

type projectionListCmd struct{ registryFlags }

func (cmd projectionListCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withOperator(ctx, func(o *projections.Operator) error {
		all, err := o.List(ctx)
		if err != nil {
			return err
		}
		return cli.Table(cmd.Output, s.Out, all, "ID\tSTATE\tSEQ\tDATABASE\tSCHEMA\tCREATED\tNOTE",
			func(g projections.Generation) []any {
				seq := "none" // no tables
				if g.Seq != nil {
					seq = fmt.Sprint(*g.Seq)
				}
				return []any{g.ID, g.State, seq, g.Database, g.Schema, clock(&g.CreatedAt), g.Note}
			})
	})
}

type projectionRebuildCmd struct {
	changeFlags
	NoSwitch   bool `help:"Leave the new generation in standby."`
	AcceptDiff bool `help:"Switch even if the new generation differs from the live one, after a change of the decoding."`
}

// Run rebuilds. It writes progress to standard error, and the report to standard output.
func (cmd projectionRebuildCmd) Run(ctx context.Context, s *cli.Streams) error {
	d := registry.Action{Command: "projection rebuild",
		Detail: fmt.Sprintf("no switch %t, differences accepted %t", cmd.NoSwitch, cmd.AcceptDiff)}
	var rebuilt *projections.Rebuilt
	err := cmd.withAuditedOperator(ctx, s, d, func(o *projections.Operator) (err error) {
		screen := console.New(s.Err)
		steps := screen.Steps(cmd.Logger(screen))
		defer steps.End()
		o.Progress = steps.Report
		rebuilt, err = o.Rebuild(ctx,
			projections.RebuildOptions{NoSwitch: cmd.NoSwitch, AcceptDiff: cmd.AcceptDiff,
				Notice: func(sentence string) { fmt.Fprintln(screen, sentence) }})
		return err
	}, config.NeedChainID, config.NeedKafka)
	if rebuilt == nil {
		return err
	}
	if errors.Is(err, projections.ErrDiffers) {
		err = cli.Different.With(err)
	}
	return errors.Join(printRebuilt(cmd.Output, s.Out, rebuilt, err == nil), err)
}

// printRebuilt prints a report. switchable says that a generation in standby can be made live.
func printRebuilt(o cli.Output, out io.Writer, r *projections.Rebuilt, switchable bool) error {
	return o.Print(out, r, func(w io.Writer) {
		if r.Parity != nil {
			fmt.Fprint(w, r.Parity)
		}
		if r.Verified != nil {
			fmt.Fprint(w, r.Verified)
		}
		if r.Accepted {
			fmt.Fprintln(w, "the difference was accepted with --accept-diff")
		}
		switch {
		case r.Live:
			fmt.Fprintf(w, "generation %d is live\n", r.Generation)
		case switchable:
			fmt.Fprintf(w, "generation %d is in standby: `navlog projection switch %d` makes it live\n", r.Generation,
				r.Generation)
		}
	})
}

type projectionShowCmd struct {
	registryFlags
	ID int32 `arg:"" help:"Generation id."`
}

func (cmd projectionShowCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withOperator(ctx, func(o *projections.Operator) error {
		r, err := o.Show(ctx, cmd.ID)
		if err != nil {
			return err
		}
		return printRebuilt(cmd.Output, s.Out, r, false)
	})
}

type projectionSwitchCmd struct {
	changeFlags
	ID int32 `arg:"" help:"Generation id."`
}

func (cmd projectionSwitchCmd) Run(ctx context.Context, s *cli.Streams) error {
	d := registry.Action{Command: "projection switch", Detail: fmt.Sprintf("generation %d", cmd.ID)}
	return cmd.changeGeneration(ctx, s, d, registry.Live,
		func(o *projections.Operator) (int32, error) { return cmd.ID, o.Switch(ctx, cmd.ID) })
}

type projectionRollbackCmd struct{ changeFlags }

func (cmd projectionRollbackCmd) Run(ctx context.Context, s *cli.Streams) error {
	d := registry.Action{Command: "projection rollback", Detail: "a standby generation"}
	return cmd.changeGeneration(ctx, s, d, registry.Live,
		func(o *projections.Operator) (int32, error) { return o.Rollback(ctx) })
}

type projectionDropCmd struct {
	changeFlags
	ID int32 `arg:"" help:"Generation id."`
}

func (cmd projectionDropCmd) Run(ctx context.Context, s *cli.Streams) error {
	d := registry.Action{Command: "projection drop", Detail: fmt.Sprintf("generation %d", cmd.ID)}
	return cmd.changeGeneration(ctx, s, d, registry.Dropped,
		func(o *projections.Operator) (int32, error) { return cmd.ID, o.Drop(ctx, cmd.ID) })
}
