package enginetest

import (
	"context"
	"errors"
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
	return dropped(t, server, name)
}

// A PostgresTemplate is a database of the shared server that tests get copies of. A copy of the registry's tables takes
// a quarter of the processor time of its migrations.
type PostgresTemplate struct {
	// Fill creates what is in the database. It runs once in a test binary, and closes its connections.
	Fill func(ctx context.Context, url string) error

	once sync.Once
	name string
	err  error
}

// Copy returns the URL of a new database with what Fill created. It is dropped like that of Postgres.
func (p *PostgresTemplate) Copy(t testing.TB) string {
	t.Helper()
	server := must(t, sharedPostgres)
	if p.once.Do(func() { p.err = p.create(server) }); p.err != nil {
		t.Fatal(p.err)
	}
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.Add(1))
	if err := execPostgres(server.URL, "CREATE DATABASE "+name+" TEMPLATE "+p.name); err != nil {
		t.Fatalf("copy a database for the test: %v", err)
	}
	return dropped(t, server, name)
}

func (p *PostgresTemplate) create(server *engines.Postgres) error {
	p.name = fmt.Sprintf("template_%d_%d", os.Getpid(), databases.Add(1))
	if err := execPostgres(server.URL, "CREATE DATABASE "+p.name); err != nil {
		return fmt.Errorf("create a database to copy: %w", err)
	}
	at, err := withDatabase(server, p.name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Fill(ctx, at); err != nil {
		return fmt.Errorf("fill a database to copy: %w", err)
	}
	return nil
}

// dropped returns the URL of a database that is dropped when the test ends.
func dropped(t testing.TB, server *engines.Postgres, name string) string {
	t.Helper()
	t.Cleanup(func() {
		if err := execPostgres(server.URL, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	at, err := withDatabase(server, name)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func withDatabase(server *engines.Postgres, name string) (string, error) {
	u, err := url.Parse(server.URL)
	if err != nil {
		return "", errors.New("parse the URL of the shared PostgreSQL") // err would contain the password
	}
	u.Path = name
	return u.String(), nil
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
