package write

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/histories"
	"github.com/navlog/navlog/deploy/local/localtest"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	plays = flag.Int("histories", 6, "how many random histories TestRandomHistories plays")
	seed  = flag.Uint64("seed", 0, "seed of the first random history; 0: by the clock")
)

const chainID = 31337

var prefixes atomic.Int64

// generation is a database of the test's own.
type generation struct {
	ch       readmodel.Config
	database string
	conn     driver.Conn
}

func newGeneration(t testing.TB) *generation {
	t.Helper()
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.Prefix = localtest.ClickHouse(t), fmt.Sprintf("w%d_%d", os.Getpid(), prefixes.Add(1))
	g := &generation{ch: ch, database: ch.Database(1)}
	server, err := ch.Open("")
	must(t, err)
	must(t, ch.Create(t.Context(), server, g.database))
	g.conn, err = ch.Open(g.database)
	must(t, err)
	t.Cleanup(func() {
		if err := server.Exec(context.Background(), "DROP DATABASE "+g.database); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
		g.conn.Close()
		server.Close()
	})
	return g
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writer opens a writer as a projector does.
func (g *generation) writer(t testing.TB) *Writer {
	t.Helper()
	derived, err := g.ch.CheckTables(t.Context(), g.conn, g.database)
	must(t, err)
	w, err := Open(t.Context(), g.conn, g.ch, g.database, derived, uncounted(), slog.New(slog.DiscardHandler))
	must(t, err)
	return w
}

func uncounted() Counts {
	return Counts{Rows: func(string, int) {}, Insert: func(string, string) {}, Impossible: func(string) {}, Quarantined: func(string) {}}
}

// batchOf is records as the feed gives them.
func batchOf(t testing.TB, records []*event.Record) decode.Batch {
	t.Helper()
	var raw []chainlog.Raw
	for _, r := range records {
		value, err := proto.Marshal(r)
		must(t, err)
		raw = append(raw, chainlog.Raw{Seq: r.GetSeq(), Boundary: r.GetBoundary(), Offset: int64(r.GetSeq()), Value: value})
	}
	facts, err := decode.All(chainID, raw)
	must(t, err)
	return decode.Batch{facts}
}

// TestRandomHistories plays random histories, cut into random batches, with a
// writer that dies at random places: before a table has its rows, before the spine
// has, in the middle of a unit that rewrites the past. Some units come before the
// tables are derived, the others after. What the derived tables hold then is
// compared with their definitions.
func TestRandomHistories(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for i := range uint64(*plays) {
		t.Run(fmt.Sprintf("seed=%d", first+i), func(t *testing.T) {
			t.Parallel() // the engine's disk is what takes time
			rng := rand.New(rand.NewPCG(first+i, 1))
			g := newGeneration(t)
			s := histories.Random(rng, chainID, 30)
			play(t, rng, g, s.Records)
		})
	}
}

// play writes all records.
func play(t *testing.T, rng *rand.Rand, g *generation, records []*event.Record) {
	t.Helper()
	var w *Writer
	rest := histories.Units(records)
	deriveAt := rng.IntN(len(rest))
	for w == nil || w.Position() < uint64(len(records)) {
		if w == nil || rng.IntN(6) == 0 {
			w = g.writer(t)
		}
		rest := histories.Units(records[w.Position():])
		if !w.Derived() && len(histories.Units(records))-len(rest) >= deriveAt {
			if w.Position() == 0 || outstanding(records, w.Position()) {
				deriveAt++
			} else {
				must(t, w.Derive(t.Context(), g.conn))
			}
		}
		var batch []*event.Record
		for _, unit := range rest[:1+rng.IntN(min(6, len(rest)))] {
			batch = append(batch, unit...)
		}
		if rng.IntN(3) == 0 {
			kill(t, rng, w, batchOf(t, batch))
			w = nil
			continue
		}
		if err := w.Write(t.Context(), w.Encode(batchOf(t, batch))); err != nil {
			t.Fatal(err)
		}
		if w.Derived() {
			g.check(t)
		}
	}
	if !w.Derived() {
		must(t, w.Derive(t.Context(), g.conn))
	}
	g.check(t)
}

// outstanding tells whether a vault's history is still to come at a seq, which is
// when ingest's cursor keeps a generation from being derived.
func outstanding(records []*event.Record, seq uint64) bool {
	last := records[seq-1]
	return last.GetVault() != nil
}

// kill gives a batch to some of the tables only, as a writer that dies.
func kill(t *testing.T, rng *rand.Rand, w *Writer, batch decode.Batch) {
	t.Helper()
	e := w.Encode(batch)
	units := [][]decode.Unit{nil}
	if w.Derived() {
		units = parts(batch.Units())
	}
	whole := rng.IntN(len(units)) // these are written, of the next one a part
	for i, part := range units[:whole+1] {
		if i < whole {
			must(t, w.writeDerived(t.Context(), part))
			continue
		}
		for table := range w.facts {
			if rng.IntN(2) == 0 {
				delete(w.facts, table)
			}
		}
		for table := range w.derived {
			if rng.IntN(2) == 0 {
				delete(w.derived, table)
			}
		}
		var err error
		if part == nil {
			err = w.insertAhead(t.Context(), e.rows, nil)
		} else {
			var all decode.Batch
			for _, u := range part {
				all = append(all, u.Facts...)
			}
			err = w.insertAhead(t.Context(), w.encode(all, w.vaults), w.kept(part))
		}
		must(t, err)
	}
}

// check compares the derived tables with their definitions, both ways.
func (g *generation) check(t *testing.T) {
	t.Helper()
	spine, err := readmodel.ReadCursor(t.Context(), g.conn, readmodel.Spine, 0)
	must(t, err)
	for _, table := range readmodel.Derived {
		cursor, err := readmodel.ReadCursor(t.Context(), g.conn, table, 0)
		must(t, err)
		if cursor.Seq > spine.Seq {
			continue // a killed writer's rows, which the facts may not have yet
		}
		columns := dataColumns(table)
		question := "SELECT toString(tuple(" + columns + ")) AS row, toInt64(sum(s)) AS n FROM (SELECT " + columns + ", toInt64(sign) AS s FROM " + table +
			" WHERE NOT (" + readmodel.CursorRow(table) + ") UNION ALL SELECT " + columns + ", toInt64(-1) FROM (" + readmodel.Definition(table) + ")) GROUP BY " + columns + " HAVING n != 0 LIMIT 5"
		var rows []struct {
			Row string `ch:"row"`
			N   int64  `ch:"n"`
		}
		must(t, g.conn.Select(readmodel.Parameters(t.Context(), map[string]uint64{"seq": cursor.Seq}), &rows, question))
		if len(rows) > 0 {
			t.Fatalf("%s at seq %d: of the rows that differ, how many more the table has than its definition: %v", table, cursor.Seq, rows)
		}
	}
}

// TestParts: a unit that rewrites stands alone.
func TestParts(t *testing.T) {
	unit := func(rewrites bool) decode.Unit { return decode.Unit{Rewrites: rewrites} }
	for _, c := range []struct{ units, want string }{
		{"", ""}, {"p", "p"}, {"ppp", "ppp"}, {"r", "r"}, {"prp", "p r p"}, {"rr", "r r"}, {"pprrp", "pp r r p"}, {"pr", "p r"},
	} {
		var units []decode.Unit
		for _, k := range c.units {
			units = append(units, unit(k == 'r'))
		}
		var got []string
		for _, part := range parts(units) {
			var word string
			for _, u := range part {
				word += map[bool]string{false: "p", true: "r"}[u.Rewrites]
			}
			got = append(got, word)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q is cut into %q, want %q", c.units, got, c.want)
		}
	}
}

// TestLayouts: what the writer thinks the tables are like is what they are.
func TestLayouts(t *testing.T) {
	g := newGeneration(t)
	for _, table := range readmodel.Derived {
		must(t, g.ch.CreateDerived(t.Context(), g.conn, g.database, table, table))
	}
	for _, table := range readmodel.All {
		var have []string
		rows, err := g.conn.Query(t.Context(), "SELECT name FROM system.columns WHERE database = '"+g.database+"' AND table = '"+table+"' ORDER BY position")
		must(t, err)
		for rows.Next() {
			var name string
			must(t, rows.Scan(&name))
			have = append(have, name)
		}
		rows.Close()
		if want := strings.Split(newRows(table, 0).names(), ", "); !slices.Equal(have, want) {
			t.Errorf("%s has columns %q and the writer fills %q", table, have, want)
		}
	}
}
