package readtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// live is a registry in which one generation is live, and no program reports anything.
type live struct{ generation int32 }

// serve makes a generation the live one, and lets a watcher of the registry read that.
func (l *live) serve(t testing.TB, w *state.Watcher, g *Generation) {
	t.Helper()
	l.generation = g.ID
	if err := w.LookAtRegistry(t.Context()).Err; err != nil {
		t.Fatal(err)
	}
}

// watch returns a watcher of a registry and of the engine of a generation.
func watch(t testing.TB, g *Generation, pool *pgxpool.Pool, queries state.Queries) *state.Watcher {
	w := state.New(ChainID, serve.Questions(16), time.Minute, g.Config, pool, queries,
		slog.New(slog.NewTextHandler(t.Output(), nil)))
	w.LookTimeout = time.Minute // the machine may be busy with other tests
	t.Cleanup(w.Close)
	return w
}

// look makes a watcher look at the generation.
func look(t testing.TB, w *state.Watcher) *state.Snapshot {
	t.Helper()
	if err := w.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.Snapshot()
}

func (l *live) ListGenerations(context.Context) ([]db.ListGenerationsRow, error) {
	return []db.ListGenerationsRow{{ID: l.generation, Schema: readmodel.Schema(), State: registry.Live}}, nil
}

func (l *live) ListStatus(context.Context) ([]db.ListStatusRow, error) { return nil, nil }

func (l *live) ListUptime(context.Context) ([]db.ListUptimeRow, error) { return nil, nil }
