package readtest

import (
	"context"

	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// live is a registry in which one generation is live, and no program reports anything.
type live struct{ generation int32 }

// serve makes a generation the live one, and lets a watcher of the registry read that.
func (l *live) serve(ctx context.Context, w *state.Watcher, g *Generation) error {
	l.generation = g.ID
	return w.LookAtRegistry(ctx).Err
}

// ListGenerations implements state.Queries.
func (l *live) ListGenerations(context.Context) ([]db.ListGenerationsRow, error) {
	return []db.ListGenerationsRow{{ID: l.generation, Schema: readmodel.Schema(), State: registry.Live}}, nil
}

// ListStatus implements state.Queries.
func (l *live) ListStatus(context.Context) ([]db.ListStatusRow, error) { return nil, nil }

// ListUptime implements state.Queries.
func (l *live) ListUptime(context.Context) ([]db.ListUptimeRow, error) { return nil, nil }
