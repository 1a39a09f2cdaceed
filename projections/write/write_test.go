package write

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	plays = flag.Int("histories", 3, "how many random histories TestRandomHistories plays")
	seed  = flag.Uint64("seed", 0, "seed of the first random history; 0: by the clock")
)

// TestRandomHistories plays random histories, cut into random batches, with a
// writer that dies at random places: before a table has its rows, before the spine
// has, in the middle of a unit that rewrites the past. Some units come before the
// tables are derived, the others after. What the derived tables hold meanwhile is
// compared with their definitions, and with the oracle at random past blocks, as a
// reader may ask for them; and in the end every table is compared with the log.
func TestRandomHistories(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for i := range uint64(*plays) {
		t.Run(fmt.Sprintf("seed=%d", first+i), func(t *testing.T) {
			t.Parallel() // the engine's disk is what takes time
			rng := rand.New(rand.NewPCG(first+i, 1))
			h := &playing{g: newGeneration(t), rng: rng, script: histories.Random(rng, chainID, 30)}
			h.play(t)
			h.g.equal(t, h.script.Records)
			for range 3 {
				h.past(t)
			}
			if h.compared == 0 {
				t.Error("no past block was compared")
			}
		})
	}
}

// playing is a history that is being played.
type playing struct {
	g        *generation
	rng      *rand.Rand
	script   *histories.Script
	passed   []common.Address // vaults that joined after the tables were derived
	compared int
}

// play writes all records.
func (h *playing) play(t *testing.T) {
	t.Helper()
	records := h.script.Records
	var w *Writer
	deriveAt := h.rng.IntN(len(histories.Units(records)))
	for w == nil || w.Position() < uint64(len(records)) {
		if w == nil || h.rng.IntN(6) == 0 {
			w = h.g.writer(t)
		}
		rest := histories.Units(records[w.Position():])
		if !w.Derived() && len(histories.Units(records))-len(rest) >= deriveAt {
			if !h.script.Covered(w.Position()) { // ingest's cursor then keeps a generation from being derived
				deriveAt++
			} else {
				h.derive(t, w)
			}
		}
		batch := batchOf(t, slices.Concat(rest[:1+h.rng.IntN(min(6, len(rest)))]...))
		dead := h.rng.IntN(3) == 0
		if dead {
			h.kill(t, w, batch)
			w = nil
		} else {
			must(t, w.Write(t.Context(), w.Encode(batch)))
		}
		if !h.derived() {
			continue
		}
		h.g.check(t)
		if dead {
			h.past(t)
		}
	}
	if !w.Derived() {
		h.derive(t, w)
	}
}

func (h *playing) derived() bool { return h.passed != nil }

func (h *playing) derive(t *testing.T, w *Writer) {
	t.Helper()
	must(t, w.Derive(t.Context(), h.g.conn))
	h.passed = []common.Address{}
	for _, r := range h.script.Records[w.Position():] {
		if r.GetVault() != nil {
			h.passed = append(h.passed, common.BytesToAddress(r.GetVault().GetAddress()))
		}
	}
}

// past compares a random block that was.
func (h *playing) past(t *testing.T) {
	t.Helper()
	h.compared += h.g.past(t, h.script.Records, h.script.First-1+h.rng.Uint64N(h.script.Number+2-h.script.First), h.passed...)
}

// kill gives a batch to some of the tables only, as a writer that dies.
func (h *playing) kill(t *testing.T, w *Writer, batch decode.Batch) {
	t.Helper()
	some := func(string) bool { return h.rng.IntN(2) == 0 }
	if !w.Derived() {
		dies(t, w, batch.Units(), some)
		return
	}
	units := parts(batch.Units())
	whole := h.rng.IntN(len(units)) // these are written, of the next one a part
	for _, part := range units[:whole] {
		must(t, w.writeDerived(t.Context(), part))
	}
	dies(t, w, units[whole], some)
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

// TestConcerned: which units concern which derived table, and that the tables of facts, asked
// for what a derived table lacks, say the same.
func TestConcerned(t *testing.T) {
	t.Parallel()
	s := started()
	from := s.Seq()
	users, totals, withdrawals := readmodel.Users, readmodel.PartnerTotals, readmodel.Withdrawals
	units := []struct {
		says said
		of   []string
	}{
		{deposit(4, alice, 1), []string{users, totals}},
		{unattributed(5, alice), []string{users}},
		{request(3, alice), []string{withdrawals, users}},
		{fund(1), []string{withdrawals}},
		{claim(1, alice, 1), []string{withdrawals, users}},
		{nav(1), nil},
		{sweep(2, 3), nil},
	}
	for _, u := range units {
		s.Mine(u.says)
	}
	all := batchOf(t, s.Records[from:]).Units()
	s.Retract(1)
	s.Mine()
	rewriting := batchOf(t, s.Records[all[len(all)-1].End:]).Units()
	g := newGeneration(t)
	g.write(t, g.writer(t), s.Records)
	for _, table := range readmodel.Derived {
		for i, u := range units {
			is, want := len(concerned(table, all[i:i+1])) == 1, slices.Contains(u.of, table)
			if is != want {
				t.Errorf("%T concerns %s: %t", u.says.Event, table, is)
			}
			rows := uint64(0)
			for facts, of := range concerning[table] {
				var n uint64
				between := readmodel.Parameters(t.Context(), map[string]uint64{"after": all[i].Facts.First().Seq - 1, "to": all[i].End})
				must(t, g.conn.QueryRow(between, "SELECT count() FROM "+facts+" WHERE seq > {after:UInt64} AND seq <= {to:UInt64} AND "+of).Scan(&n))
				rows += n
			}
			if (rows > 0) != want {
				t.Errorf("%T: %d rows of facts concern %s", u.says.Event, rows, table)
			}
		}
		if len(concerned(table, rewriting[:1])) != 1 {
			t.Errorf("a unit that rewrites the past does not concern %s", table)
		}
	}
}

// TestFence: a unit that rewrites the past moves the fence of every derived table, which has the seq of
// the one before, and other units leave the fences as they are.
func TestFence(t *testing.T) {
	t.Parallel()
	s := started()
	g := derivedGeneration(t, s.Records)
	var want readmodel.Fence
	for i := range int64(4) {
		rewrites := i%2 == 1
		if rewrites {
			s.Retract(1)
		}
		ancestor := s.Number
		s.Mine(deposit(4+i, alice, 1), request(3+i, alice))
		w := g.writer(t)
		g.write(t, w, s.Records)
		if rewrites {
			want = readmodel.Fence{Seq: s.Seq(), Block: ancestor, Before: want.Seq}
		}
		for _, table := range readmodel.Derived {
			cursor, err := readmodel.ReadCursor(t.Context(), g.conn, table, 0)
			must(t, err)
			if cursor.Fence != want || cursor.Seq != s.Seq() || w.derived[table].cursor != cursor {
				t.Errorf("unit %d, which rewrites: %t: the cursor of %s is %+v, the writer's %+v, want seq %d with the fence %+v",
					i, rewrites, table, cursor, w.derived[table].cursor, s.Seq(), want)
			}
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
