package enginetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/deploy/engines"
)

// Postgres returns the URL of a new, empty database on the shared server. It is dropped when the test ends, even if
// clients are still connected.
func Postgres(t testing.TB) string {
	t.Helper()
	server := must(t, sharedPostgres)
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.Add(1))
	if err := execPostgres(server.URL, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := execPostgres(server.URL, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal("parse the URL of the shared PostgreSQL") // the error would contain the password
	}
	u.Path = name
	return u.String()
}

var (
	databases      atomic.Int64
	sharedPostgres = sync.OnceValues(func() (*engines.Postgres, error) {
		return shared("postgres", func(ctx context.Context, dir string) (*engines.Postgres, error) {
			return engines.StartPostgres(ctx, dir, 0)
		})
	})
)

func execPostgres(url, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}
