package readtest

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/holiman/uint256"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// World is a log, its generation, and a watcher of the generation, which looks when the test calls Look.
type World struct {
	*state.Watcher
	Log *Log
	Gen *Generation

	t    testing.TB
	live live
}

// NewWorld returns a world with an empty log, in the engine at an address.
func NewWorld(t testing.TB, clickHouse string) *World {
	t.Helper()
	w := &World{t: t, Gen: New(t, clickHouse), Log: NewLog(ChainID)}
	w.Watcher = watch(t, w.Gen, nil, &w.live)
	w.Switch(w.Gen)
	return w
}

// Switch makes another generation the live one, which Look then finds.
func (w *World) Switch(to *Generation) {
	w.t.Helper()
	w.live.serve(w.t, w.Watcher, to)
}

// Watch replaces the watcher by one that uses a registry.
func (w *World) Watch(pool *pgxpool.Pool) { w.Watcher = watch(w.t, w.Gen, pool, db.New(pool)) }

// Write writes the new records of the log into the tables.
func (w *World) Write() {
	w.t.Helper()
	w.Gen.Write(w.Log)
}

// Look makes the watcher look.
func (w *World) Look() *state.Snapshot {
	w.t.Helper()
	return look(w.t, w.Watcher)
}

// BeforeReorganisation writes the small chain without its last unit, which is a reorganisation of the blocks above 9,
// and looks.
func (w *World) BeforeReorganisation() *state.Snapshot {
	w.t.Helper()
	all := SmallChain().Entries
	end := len(all) - 1
	for !all[end-1].Boundary {
		end--
	}
	w.Log.Entries = append(w.Log.Entries, all[:end]...)
	w.Write()
	return w.Look()
}

// Reorganisation appends that last unit to the log.
func (w *World) Reorganisation() {
	w.Log.Entries = append(w.Log.Entries, SmallChain().Entries[len(w.Log.Entries):]...)
}

// Pass makes the cursor record one more unit, which changed the rows with the given keys and, unless ancestor is
// readmodel.Never, retracted the blocks above ancestor. No other row changes.
func (w *World) Pass(ancestor uint64, keys ...readmodel.TouchedKey) {
	w.t.Helper()
	was, err := readmodel.ReadListsCursor(w.t.Context(), w.Gen.Conn, "lists")
	w.Gen.must(err)
	next := was
	next.Seq++
	touched := readmodel.ListRow{List: readmodel.TouchedList, Key: *uint256.NewInt(next.Seq), Sign: 1, Seq: next.Seq,
		Touched: readmodel.JoinTouched(slices.Values(keys))}
	if ancestor != readmodel.Never {
		touched.ID = ancestor + 1
		next.Rewrites++
	}
	w.Gen.InsertLists(slices.Concat(was.Rows(-1), next.Rows(1), []readmodel.ListRow{touched}))
}

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
