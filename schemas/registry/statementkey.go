package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry/db"
)

// ErrStatementKeyRetired reports that another key has replaced a signing key.
var ErrStatementKeyRetired = errors.New("the statement key is retired: another key has replaced it")

// UseStatementKey registers a public key as the one that signs statements, and retires the
// previous key. It must succeed before each signature, so that no unregistered or retired
// key signs a statement.
func UseStatementKey(ctx context.Context, pool *pgxpool.Pool, key []byte) error {
	switch retired, err := db.New(pool).StatementKeyRetired(ctx, key); {
	case err == nil && retired:
		return ErrStatementKeyRetired
	case err == nil:
		return nil
	case !errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("read the statement key in the registry: %w", err)
	}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		if err := q.RetireStatementKey(ctx); err != nil {
			return err
		}
		return q.AddStatementKey(ctx, key)
	})
	if err != nil {
		return fmt.Errorf("register the statement key: %w", err)
	}
	return nil
}
