// Package partner makes the partners of tests, checks and benchmarks: by the transaction that `navlog partner create` makes
// them by, so that nothing about one is as it never is in a registry that people use.
package partner

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// SealKey is what NAVLOG_SECRET_KEY has to be for whoever opens the signing secrets of these partners.
	SealKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	// Network is where their receivers are. The guard has to be told to allow it, for it is not public.
	Network = "127.0.0.0/8"
)

// Sealer seals with SealKey.
func Sealer() *registry.Sealer {
	sealer, err := registry.NewSealer(SealKey)
	if err != nil {
		panic(err) // SealKey is no key
	}
	return sealer
}

// Make makes a partner with an API key for tests and a signing secret, which it gives, and registers its URL where there is
// one.
func Make(ctx context.Context, pool *pgxpool.Pool, id int64, name, url string) (registry.NewPartner, error) {
	made, err := registry.CreatePartner(ctx, pool, "testkit", Sealer(), id, name, true)
	if err == nil && url != "" {
		err = Register(ctx, pool, id, url)
	}
	return made, err
}

// Register makes a URL the one that a partner's webhooks go to, whatever the guard thinks of it.
func Register(ctx context.Context, pool *pgxpool.Pool, id int64, url string) error {
	n, err := db.New(pool).SetWebhookURL(ctx, db.SetWebhookURLParams{PartnerID: id, Url: &url})
	if err == nil && n == 0 {
		err = registry.NoPartner(id)
	}
	if err != nil {
		return fmt.Errorf("register a URL of partner %d: %w", id, err)
	}
	return nil
}
