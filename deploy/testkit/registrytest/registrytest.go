// Package registrytest provides databases with the registry's tables for tests.
package registrytest

import (
	"context"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/registry"
)

var migrated = enginetest.NewPostgresTemplate(func(ctx context.Context, url string) error {
	pool, err := registry.Open(ctx, registry.Config{URL: url, MaxConns: 2})
	if err == nil {
		pool.Close()
	}
	return err
})

// Postgres returns the URL of a new database with empty tables of the newest version. It is dropped when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	return migrated.Postgres(t)
}
