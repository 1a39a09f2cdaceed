package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/schemas/registry"
)

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
	c, err := config.Read(f.Flags, append(sections, config.NeedPostgres)...)
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
