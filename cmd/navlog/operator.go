package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry"
)

// registryFlags are common to the operator's commands, which all work on the
// registry.
type registryFlags struct {
	common
	JSON bool `name:"json" help:"Write JSON."`
}

// withRegistry runs do on an open registry.
func (f registryFlags) withRegistry(ctx context.Context, do func(*pgxpool.Pool, config) error, sections ...section) error {
	c, err := f.load(append(sections, needPostgres)...)
	if err != nil {
		return err
	}
	pool, err := registry.Open(ctx, c.Postgres)
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(pool, c)
}
