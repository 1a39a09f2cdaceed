package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/registry"
)

// progress shows on standard error how far a command is. It is ended before the answer is
// written, which may go to the same terminal.
func progress(f cli.Flags, s *cli.Streams) *console.Steps {
	screen := console.New(s.Err)
	return screen.Steps(f.Logger(screen))
}

// registryFlags are common to the operator's commands, which all work on the
// registry.
type registryFlags struct {
	cli.Flags
	JSON bool `name:"json" help:"Write JSON."`
}

// withRegistry runs do on a registry that is open for reading: a command that only
// looks changes nothing, the tables' version neither.
func (f registryFlags) withRegistry(ctx context.Context, do func(*pgxpool.Pool, config.Config) error, sections ...config.Section) error {
	return f.withOpened(ctx, registry.OpenAsItIs, do, sections...)
}

// withRegistry runs do on an open registry, brought up to date before like by the
// programs.
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
