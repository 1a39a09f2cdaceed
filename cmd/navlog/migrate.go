package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

type migrateCmd struct {
	changeFlags
	Roles bool `help:"Also grant each program's database role the rights that it needs, and revoke all others; create missing roles."`
}

// Run updates the registry's tables, with the login that owns them. All other logins set postgres.skipMigrations.
func (cmd migrateCmd) Run(ctx context.Context, s *cli.Streams) error {
	var before int64
	open := func(ctx context.Context, c registry.Config) (*pgxpool.Pool, error) {
		pool, err := registry.Connect(ctx, c)
		if err != nil {
			return nil, err
		}
		if before, err = registry.Version(ctx, pool); err == nil {
			steps := console.Progress(cmd.Flags, s)
			steps.Report(fmt.Sprintf("PostgreSQL: tables from version %d on", before), 0, 0)
			err = registry.Migrate(ctx, pool)
			steps.End()
		}
		if err != nil {
			registry.Close(pool)
			return nil, err
		}
		return pool, nil
	}
	return cmd.withOpened(ctx, open, func(pool *pgxpool.Pool, _ config.Config) error {
		after, err := registry.Version(ctx, pool)
		if err != nil {
			return err
		}
		var refused error
		if cmd.Roles {
			refused = registry.GrantRoles(ctx, pool)
		}
		granted := cmd.Roles && refused == nil
		d := registry.Action{Command: "migrate",
			Detail: fmt.Sprintf("tables from version %d to %d, roles granted %t", before, after, granted)}
		if before != after || granted {
			// a migration is recorded even if the grants fail: the next run finds nothing to migrate
			if err := registry.RecordAction(ctx, db.New(pool), cmd.operator(), d, registry.ActionDone); err != nil {
				return errors.Join(refused, err)
			}
		}
		if refused != nil {
			return refused
		}
		result := map[string]any{"before": before, "version": after, "roles": cmd.Roles}
		return cmd.Print(s.Out, result, func(w io.Writer) { cli.Fprintf(w, "%s\n", d.Detail) })
	}, config.NeedSession)
}
