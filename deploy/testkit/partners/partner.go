package partners

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// SealKey is the NAVLOG_SECRET_KEY with which a program can decrypt the signing secrets of these partners.
	SealKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	// Network contains their receivers' addresses. The guard must be configured to allow it, because it is not public.
	Network = "127.0.0.0/8"
)

// Sealer returns a sealer that uses SealKey.
func Sealer() *registry.Sealer {
	sealer, err := registry.NewSealer(SealKey)
	if err != nil {
		panic(err) // SealKey is invalid
	}
	return sealer
}

// Make creates a partner with an API key for tests and a signing secret, which it returns, and registers its URL if
// there is one.
func Make(ctx context.Context, pool *pgxpool.Pool, id int64, name, url string) (registry.NewPartner, error) {
	made, err := registry.CreatePartner(ctx, pool, "testkit", Sealer(), id, name, true)
	if err == nil && url != "" {
		err = Register(ctx, pool, id, url)
	}
	return made, err
}

// Register sets the URL that a partner's webhooks are sent to, without asking the guard.
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
