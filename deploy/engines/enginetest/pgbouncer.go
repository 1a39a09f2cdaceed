package enginetest

import (
	"context"
	"testing"

	"github.com/navlog/navlog/deploy/engines"
)

// PgBouncer is the URL of a database behind a PgBouncer of the test's own, in transaction mode. Where this machine has
// none the test is skipped, or fails where the environment says CI=true.
func PgBouncer(t testing.TB, database string) string {
	t.Helper()
	if err := engines.PgBouncerAvailable(); err != nil {
		leaveOut(t, err)
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
