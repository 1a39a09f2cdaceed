package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/registry"
)

// progress shows the progress of a command on standard error. The caller ends it before writing the result, which may
// go to the same terminal.
func progress(f cli.Flags, s *cli.Streams) *console.Steps {
	screen := console.New(s.Err)
	return screen.Steps(f.Logger(screen))
}

// registryFlags are shared by the operator's commands that work on the registry.
type registryFlags struct {
	cli.Flags
	JSON bool `name:"json" help:"Write JSON."`
}

// withRegistry runs do with the registry opened for reading: a read-only command changes nothing, not even the version
// of the tables.
func (f registryFlags) withRegistry(ctx context.Context, do func(*pgxpool.Pool, config.Config) error, sections ...config.Section) error {
	return f.withOpened(ctx, registry.OpenAsItIs, do, sections...)
}

// withRegistry runs do with the registry open, after migrating it as the programs do.
func (f changeFlags) withRegistry(ctx context.Context, do func(*pgxpool.Pool, config.Config) error, sections ...config.Section) error {
	return f.withOpened(ctx, registry.Open, do, sections...)
}

func (f registryFlags) withOpened(ctx context.Context, open func(context.Context, registry.Config) (*pgxpool.Pool, error),
	do func(*pgxpool.Pool, config.Config) error, sections ...config.Section) error {
	c, err := f.Load(append(sections, config.NeedPostgres)...)
	if err != nil {
		return err
	}
	pool, err := open(ctx, c.Postgres)
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(pool, c)
}
