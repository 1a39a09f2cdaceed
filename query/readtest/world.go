package readtest

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/holiman/uint256"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
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
	w.watch(nil, &w.live)
	w.Switch(w.Gen)
	return w
}

// Switch makes another generation the live one, which Look then finds.
func (w *World) Switch(to *Generation) {
	w.t.Helper()
	if err := w.live.serve(w.t.Context(), w.Watcher, to); err != nil {
		w.t.Fatal(err)
	}
}

// Watch replaces the watcher by one that uses a registry.
func (w *World) Watch(pool *pgxpool.Pool) { w.watch(pool, db.New(pool)) }

func (w *World) watch(pool *pgxpool.Pool, queries state.Queries) {
	w.Watcher = state.New(ChainID, 16, time.Minute, w.Gen.Config, pool, queries,
		slog.New(slog.NewTextHandler(w.t.Output(), nil)))
	w.LookTimeout = time.Minute // the machine may be busy with other tests
	w.t.Cleanup(w.Watcher.Close)
}

// Write writes the new records of the log into the tables.
func (w *World) Write() {
	w.t.Helper()
	w.Gen.Write(w.Log)
}

// Look makes the watcher look.
func (w *World) Look() *state.Snapshot {
	w.t.Helper()
	if err := w.Watcher.Look(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return w.Snapshot()
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
	var was struct {
		Seq, Block, Rewrites uint64
		TS                   uint32
	}
	row := w.Gen.Conn.QueryRow(w.t.Context(),
		"SELECT seq, block, rewrites, ts FROM lists WHERE list = 'cursor' GROUP BY ALL HAVING sum(sign) > 0")
	w.Gen.must(row.Scan(&was.Seq, &was.Block, &was.Rewrites, &was.TS))
	touched := readmodel.ListRow{List: readmodel.TouchedList, Key: *uint256.NewInt(was.Seq + 1), Sign: 1, Seq: was.Seq + 1,
		Touched: readmodel.JoinTouched(slices.Values(keys))}
	rewrites := was.Rewrites
	if ancestor != readmodel.Never {
		touched.ID = ancestor + 1
		rewrites++
	}
	var rows []readmodel.ListRow
	for _, list := range []readmodel.List{readmodel.CursorList, readmodel.CursorEnd} {
		rows = append(rows, readmodel.ListRow{List: list, Sign: -1, Seq: was.Seq, Block: was.Block, TS: was.TS,
			Rewrites: was.Rewrites},
			readmodel.ListRow{List: list, Sign: 1, Seq: was.Seq + 1, Block: was.Block, TS: was.TS, Rewrites: rewrites})
	}
	w.Gen.InsertLists(append(rows, touched))
}
