package stack

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/navlog/navlog/deploy/engines"
)

// The engines respond, match the environment, and keep their data over a restart.
func TestStack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts all engines twice")
	}
	dir, err := engines.TempDir("stack")
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		s, err := Start(t.Context(), In(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		var partners int
		if err := s.Pool.QueryRow(t.Context(),
			"WITH made AS (INSERT INTO partner (id, name) VALUES ($1, 'Acme')) SELECT count(*) FROM partner",
			round+1).Scan(&partners); err != nil || partners != round {
			t.Errorf("round %d begins with %d partners: %v", round, partners, err)
		}
		if err := s.Conn.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		env := s.Environment("NAVLOG_CHAIN_ID=7")
		for _, want := range []string{"NAVLOG_KAFKA_BROKERS=" + s.Chainlog().Brokers[0],
			"NAVLOG_CLICKHOUSE_ADDR=" + s.ReadModel().Addr, "NAVLOG_POSTGRES_URL=" + s.Postgres.URL, "NAVLOG_CHAIN_ID=7"} {
			if !slices.Contains(env, want) {
				t.Errorf("the environment lacks %s", want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// If one engine cannot start, none keeps running.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "postgres"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Start(t.Context(), In(dir)); err == nil {
		t.Errorf("PostgreSQL started in a file: %v", s.Close())
	}
	again, err := engines.StartKafka(context.Background(), filepath.Join(dir, "kafka")) // it rejects a folder in use
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
