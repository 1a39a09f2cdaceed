package registry

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/registry/db"
)

// TestBehindPgBouncer runs many concurrent queries with postgres.pooled through a few sessions
// that change hands after each transaction, and leases among them; a migration, which needs a session, is rejected.
func TestBehindPgBouncer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PgBouncer")
	}
	server := enginetest.Postgres(t)
	pooled := Config{URL: enginetest.PgBouncer(t, server), MaxConns: 8, Pooled: true}
	if _, err := Open(t.Context(), pooled); err == nil || !strings.Contains(err.Error(), "navlog migrate") {
		t.Errorf("tables that are missing: %v", err)
	}
	owner := open(t, server)
	queries := db.New(owner)
	for id := range int64(8) {
		if _, err := queries.CreatePartnerWithID(t.Context(),
			db.CreatePartnerWithIDParams{ID: id + 1, Name: "One"}); err != nil {
			t.Fatal(err)
		}
		if err := queries.CreateEndpoint(t.Context(),
			db.CreateEndpointParams{PartnerID: id + 1, Secret: []byte("sealed")}); err != nil {
			t.Fatal(err)
		}
		if err := queries.CreateKey(t.Context(),
			db.CreateKeyParams{PartnerID: id + 1, Hash: HashKey(string(rune('a' + id))), Last4: "last"}); err != nil {
			t.Fatal(err)
		}
	}
	pool, err := Open(t.Context(), pooled)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := Migrate(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "leads to the server itself") {
		t.Errorf("a migration behind a pooler: %v", err)
	}
	var group sync.WaitGroup
	q := db.New(pool)
	for id := range int64(8) {
		group.Go(func() {
			leases := leasesOf(pool, time.Minute)
			lease, err := leases.Take(t.Context(), id)
			if err != nil || lease == nil {
				t.Errorf("the lease %d is not available: %v", id, err)
				return
			}
			for n := range int64(30) {
				url := "https://a.example/"
				ctx := context.WithoutCancel(t.Context())
				_, err = q.PartnersByKeys(ctx, [][]byte{HashKey(string(rune('a' + id))), HashKey("none")})
				check := func(what string, err error) {
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				check("PartnersByKeys", err)
				check("RenewLeases", leases.Renew(ctx))
				other, err := leasesOf(pool, time.Minute).Take(ctx, id)
				check("TakeLease", err)
				if !lease.Safe() || other != nil {
					t.Errorf("the lease %d is not kept", id)
				}
				check("CreateBucket", q.CreateBucket(ctx, db.CreateBucketParams{PartnerID: id + 1, Policy: "sends"}))
				_, err = q.DrawTokens(ctx,
					db.DrawTokensParams{At: n, PartnerID: id + 1, Policy: "sends", Want: 1, Quota: 10, WindowNs: 5})
				check("DrawTokens", err)
				_, err = q.SetWebhookURL(ctx, db.SetWebhookURLParams{PartnerID: id + 1, Url: &url})
				check("SetWebhookURL", err)
				event := uuid.New()
				_, err = q.CreateCommand(ctx, db.CreateCommandParams{PartnerID: id + 1, Kind: "test", EventID: &event})
				check("CreateCommand", err)
				_, err = q.DeliveryAttempts(ctx, db.DeliveryAttemptsParams{EventIds: []uuid.UUID{event}, OfEach: 1})
				check("DeliveryAttempts", err)
				check("PutStatus", q.PutStatus(ctx, db.PutStatusParams{Program: "serve", Instance: "a", Status: []byte("{}")}))
				_, err = q.ListStatus(ctx)
				check("ListStatus", err)
			}
		})
	}
	group.Wait()
}
