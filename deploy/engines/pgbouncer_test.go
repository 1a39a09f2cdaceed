package engines

import (
	"context"
	"os"
	"testing"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

func needPgBouncer(t *testing.T) {
	t.Helper()
	if err := PgBouncerAvailable(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func TestPgBouncerGoesWithItsParent(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PgBouncer")
	}
	needPgBouncer(t)
	p := startParent(t, "pgbouncer", engineDir(t))
	connectPostgres(t, p.Addr)
	p.kill()
	wait.Until(t, func() error { return gone(p.Pid) })
}

// If the server behind it does not respond, the start waits as long as it may take, and no longer.
func TestPgBouncerWithoutAServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PgBouncer")
	}
	needPgBouncer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := StartPgBouncer(ctx, t.TempDir(), "postgres://navlog@127.0.0.1:1/navlog?sslmode=disable")
	wantMessage(t, err, "start PgBouncer", context.Canceled.Error(), "pgbouncer.log")
}

func TestPgBouncerAvailable(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	wantMessage(t, PgBouncerAvailable(), "no pgbouncer in PATH", "apt-get install pgbouncer")
}
