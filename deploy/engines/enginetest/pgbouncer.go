package enginetest

import (
	"context"
	"testing"

	"github.com/navlog/navlog/deploy/engines"
)

// PgBouncer returns the URL of a database behind a PgBouncer that belongs to the test, in transaction mode. If this
// machine does not have one, the test is skipped, or fails if the environment says CI=true.
func PgBouncer(t testing.TB, database string) string {
	t.Helper()
	if err := engines.PgBouncerAvailable(); err != nil {
		LeaveOut(t, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	p, err := engines.StartPgBouncer(ctx, t.TempDir(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p.URL
}
