package write

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// deaths say which tables have the rows of a unit when its writer dies. All tables
// but the spine are written at once, so that any of them may be the first.
var deaths = []struct {
	name string
	has  func(table string) bool
}{
	{"before any table", func(string) bool { return false }},
	{"after some facts", func(table string) bool { return table == readmodel.Deposits }},
	{"after some derived tables and no facts", func(table string) bool {
		return table == readmodel.Withdrawals || table == readmodel.PartnerTotals
	}},
	{"after facts only", isFact},
	{"after facts and some derived tables", func(table string) bool { return isFact(table) || table == readmodel.Users }},
	{"after all but the spine", func(string) bool { return true }},
}

func isFact(table string) bool { return slices.Contains(readmodel.Facts, table) }

// TestKilled: a writer dies in the middle of a unit. Until the next one has ended
// the unit, a reader who minds the fence gets what was so before it; after it
// everything is exact, whatever batches the two cut.
func TestKilled(t *testing.T) {
	t.Parallel()
	plain := func(s *histories.Script, i int64) {
		s.Mine(deposit(10+i, bob, i), request(20+i, bob), fund(10+i), nav(i), sweep(2, 3))
	}
	rewriting := func(s *histories.Script, i int64) { // what the block before said is taken back
		s.Retract(1)
		s.Mine(deposit(10+i, bob, i), request(10+i, bob), claim(1, alice, i), nav(i), sweep(2, 4))
	}
	for _, c := range []struct {
		name      string
		unit      func(*histories.Script, int64)
		dead      int  // units in the batch of the writer that dies
		oneByOne  bool // the next writer cuts the units one by one
		rewriting bool
		but       int // so many deaths are left out
	}{
		{"a plain unit, cut again as it was", plain, 1, true, false, 0},
		{"a plain unit, then in a longer batch", plain, 1, false, false, 3},
		{"plain units, then one by one", plain, 3, true, false, 2},
		{"a unit that rewrites the past, cut again as it was", rewriting, 1, true, true, 0},
		{"a unit that rewrites the past, then in a longer batch", rewriting, 1, false, true, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := started()
			g := derivedGeneration(t, s.Records)
			for i, death := range deaths[c.but:] {
				t.Run(death.name, func(t *testing.T) {
					s.Mine(deposit(50, alice, 1), request(10+int64(i), alice), request(30+int64(i), bob), nav(9), sweep(2, 2))
					g.write(t, g.writer(t), s.Records)
					from, newest := s.Seq(), s.Number
					c.unit(s, int64(i))
					s.Mine(claim(10+int64(i), bob, 3), deposit(51, bob, 4))
					s.Mine(fund(30+int64(i)), deposit(52, alice, 4))
					units := histories.Units(s.Records[from:])
					part := batchOf(t, slices.Concat(units[:c.dead]...)).Units()
					if len(parts(part)) != 1 {
						t.Fatal("what is to die in the middle is no part of its own: the test proves nothing")
					}
					dies(t, g.writer(t), part, death.has)

					must(t, verify.Audit(t.Context(), g.conn))
					believed := len(readmodel.Derived)
					for _, table := range readmodel.Derived {
						if c.rewriting && death.has(table) {
							believed--
						}
					}
					if n := g.past(t, s.Records, newest); n != believed {
						t.Errorf("a reader believes %d tables about the newest block, and should %d", n, believed)
					}
					if n := g.past(t, s.Records, newest-1); n != len(readmodel.Derived) {
						t.Errorf("a reader believes %d tables about the block before the unit", n)
					}

					w := g.writer(t)
					if w.Position() != from {
						t.Fatalf("the next writer begins after seq %d, and the spine has %d", w.Position(), from)
					}
					if !c.oneByOne {
						units = [][]*event.Record{slices.Concat(units...)}
					}
					for _, unit := range units {
						must(t, w.Write(t.Context(), w.Encode(batchOf(t, unit))))
					}
					g.check(t)
					if n := g.past(t, s.Records, s.Number); n != len(readmodel.Derived) {
						t.Errorf("a reader believes %d tables after the unit was ended", n)
					}
				})
			}
			g.equal(t, s.Records)
		})
	}
}

// TestKilledBetweenRequests: a writer dies when withdrawals alone has a request and its end.
// The next one writes both again together with another request of that index, which comes
// too late: the first one of an index wins.
func TestKilledBetweenRequests(t *testing.T) {
	t.Parallel()
	s := started()
	g := derivedGeneration(t, s.Records)
	from := s.Seq()
	s.Mine(request(5, alice))
	s.Mine(claim(5, alice, 3))
	dies(t, g.writer(t), batchOf(t, s.Records[from:]).Units(), func(table string) bool { return table == readmodel.Withdrawals })
	s.Mine(request(5, bob))
	g.write(t, g.writer(t), s.Records)
	g.equal(t, s.Records)
}

// TestKilledWhileBuilding: while a generation is built only facts can be ahead of
// the spine, and each gets exactly what it lacks.
func TestKilledWhileBuilding(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	s := started()
	s.Retract(2)
	s.Mine(deposit(2, alice, 1), request(2, alice), nav(2), sweep(1, 2))
	units := histories.Units(s.Records)
	for i := range units {
		w := g.writer(t)
		rest := batchOf(t, s.Records[w.Position():]).Units()
		dies(t, w, rest[:min(3, len(rest))], func(table string) bool { return table == readmodel.Facts[i%len(readmodel.Facts)] })
		w = g.writer(t)
		must(t, w.Write(t.Context(), w.Encode(rest[0].Facts)))
	}
	w := g.writer(t)
	must(t, w.Derive(t.Context(), g.conn))
	g.equal(t, s.Records)
}

// rowsIn counts the rows of a table that a merge has not taken away.
func (g *generation) rowsIn(t *testing.T, table string) (n uint64) {
	t.Helper()
	must(t, g.conn.QueryRow(t.Context(), "SELECT count() FROM "+table).Scan(&n))
	return n
}

// unmerged keeps the engine from merging, so that rows can be counted.
func (g *generation) unmerged(t *testing.T) {
	t.Helper()
	for _, table := range readmodel.All {
		must(t, g.conn.Exec(t.Context(), "SYSTEM STOP MERGES "+table))
	}
}

// TestLostNewestPart: the newest part of a table goes while the engine is down. Of
// the spine its deduplication token stays: the cursor falls back, the replay is taken
// for a duplicate, and is written under another token. What other tables lose is
// found by an audit, for the spine says that they have it.
func TestLostNewestPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	engine, err := engines.StartClickHouse(ctx, dir, 0)
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.Prefix = engine.Addr, "lost"
	g := &generation{ch: ch, database: ch.Database(1)}
	server, err := ch.Open("")
	must(t, err)
	must(t, ch.Create(ctx, server, g.database))
	server.Close()
	g.conn, err = ch.Open(g.database)
	must(t, err)
	s := started()
	w := g.writer(t)
	g.write(t, w, s.Records)
	must(t, w.Derive(ctx, g.conn))
	g.unmerged(t)
	for i := range int64(2) {
		s.Mine(deposit(4+i, alice, 1), request(4+i, bob), nav(1))
		g.write(t, w, s.Records)
	}
	position := w.Position()
	lose := func(table string) {
		t.Helper()
		var newest string
		must(t, g.conn.QueryRow(ctx, "SELECT argMax(path, max_block_number) FROM system.parts WHERE active AND table = {table:String} AND database = currentDatabase()",
			clickhouse.Named("table", table)).Scan(&newest))
		g.conn.Close()
		must(t, engine.Close())
		must(t, os.RemoveAll(newest))
		engine, err = engines.StartClickHouse(ctx, dir, 0)
		must(t, err)
		g.ch.Addr = engine.Addr
		g.conn, err = g.ch.Open(g.database)
		must(t, err)
	}
	lose(readmodel.Spine)
	var counts tally
	w = g.writerOver(t, g.conn, counts.hear())
	if w.Position() >= position {
		t.Fatalf("position %d after the newest part up to %d went", w.Position(), position)
	}
	g.write(t, w, s.Records)
	if n := counts.of(readmodel.Spine, "absent"); n != 1 {
		t.Errorf("%v alarms, want 1", n)
	}
	g.equal(t, s.Records)
	lose(readmodel.Deposits)
	var broken *verify.BrokenError
	if err := verify.Audit(ctx, g.conn); !errors.As(err, &broken) || !strings.Contains(err.Error(), readmodel.Deposits) {
		t.Errorf("the newest deposits are lost, and an audit says %v", err)
	}
	g.conn.Close()
}

// TestStalledWriter: the inserts of a stalled writer arrive when another one has
// written the same unit, and perhaps more. Their tokens are used up, also where the
// unit changed no row of a derived table.
func TestStalledWriter(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]func(*histories.Script){
		"rows change": func(s *histories.Script) {
			s.Mine(deposit(4, alice, 1), request(3, alice), nav(1), sweep(2, 3))
		},
		"no row changes": func(s *histories.Script) { // a branch is left, and entered again
			gone := s.Retract(1)
			s.Enter(gone[0])
			s.Boundary()
		},
	} {
		for _, more := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the other one further %t", name, more), func(t *testing.T) {
				t.Parallel()
				s := started()
				s.Mine(deposit(5, bob, 1), request(4, bob), nav(1), sweep(2, 2))
				g := derivedGeneration(t, s.Records)
				g.unmerged(t)
				unit(s)
				stalledAt := s.Seq()
				if more {
					s.Mine(deposit(6, bob, 1), request(5, bob), nav(2), sweep(3, 3))
				}
				arrived, woken := make(chan string, len(readmodel.All)), make(chan struct{})
				conn := newFaultyConn(g.conn, func(_ *faultyConn, table string, n int, send func() error) error {
					if n == 1 {
						arrived <- table
						select {
						case <-woken:
						case <-t.Context().Done():
						}
					}
					return send()
				})
				late := g.writerOver(t, conn, uncounted())
				answer := make(chan error, 1)
				go func() {
					answer <- late.Write(t.Context(), late.Encode(batchOf(t, s.Records[late.Position():stalledAt])))
				}()
				for range len(readmodel.All) - 1 { // the spine comes after them
					select {
					case table := <-arrived:
						if table == readmodel.Spine {
							t.Fatal("the spine is written before the other tables have their rows")
						}
					case <-time.After(patience):
						t.Fatal("not all tables are written at once")
					}
				}
				g.write(t, g.writer(t), s.Records)
				before := map[string]uint64{}
				for _, table := range readmodel.All {
					before[table] = g.rowsIn(t, table)
				}
				close(woken)
				var fenced *fencedError
				if err := <-answer; !errors.As(err, &fenced) {
					t.Fatalf("the stalled writer got %v, want to be fenced", err)
				}
				for _, table := range readmodel.All {
					if n := g.rowsIn(t, table); n != before[table] {
						t.Errorf("%s: %d rows after the stalled insert, and %d before", table, n, before[table])
					}
				}
				g.equal(t, s.Records)
			})
		}
	}
}

// TestStalledBeforeNothing: a stalled writer has rows of a unit, and for another
// one, which took more units at once, nothing changes. The cursor moves all the
// same, and the stalled rows are refused.
func TestStalledBeforeNothing(t *testing.T) {
	t.Parallel()
	s := started()
	g := derivedGeneration(t, s.Records)
	from := s.Seq()
	s.Mine(deposit(4, alice, 77), request(3, bob))
	s.Retract(1)
	s.Boundary()
	units := batchOf(t, s.Records[from:]).Units()
	for _, table := range readmodel.Derived {
		late, other := g.writer(t), g.writer(t)
		rows, err := late.difference(t.Context(), table, nil, concerned(table, units[:1]))
		must(t, err)
		if rows.count == 0 {
			t.Fatalf("%s: the unit changes nothing: the test proves nothing", table)
		}
		cursor := late.derived[table].cursor
		rows.cursor(cursor, -1)
		rows.cursor(readmodel.Cursor{Seq: units[0].End, Writer: late.id}, 1)
		must(t, other.derive(t.Context(), table, other.derived[table], units))
		if nothing, err := other.difference(t.Context(), table, nil, units); err != nil || nothing.count != 0 {
			t.Fatalf("%s: both units together change %d rows, %v: the test proves nothing", table, nothing.count, err)
		}
		var fenced *fencedError
		if err := late.derived[table].swap(t.Context(), rows, 0, units[0].End); !errors.As(err, &fenced) {
			t.Errorf("%s: the stalled writer got %v, want to be fenced", table, err)
		}
	}
	g.write(t, g.writer(t), s.Records)
	g.equal(t, s.Records)
}

// dyingConn is the connections of a process that ends before its n-th statement
// that changes something.
type dyingConn struct {
	driver.Conn
	mu   sync.Mutex
	left int
	last string // what it would have done
}

var errDied = errors.New("the process ended")

func (c *dyingConn) goesOn(statement string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left < 0 {
		return false
	}
	if c.left--; c.left < 0 {
		c.last = statement
		return false
	}
	return true
}

func (c *dyingConn) Exec(ctx context.Context, query string, args ...any) error {
	if !c.goesOn(query) {
		return errDied
	}
	return c.Conn.Exec(ctx, query, args...)
}

func (c *dyingConn) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	if !c.goesOn(query) {
		return nil, errDied
	}
	return c.Conn.PrepareBatch(ctx, query, opts...)
}

// tables are the names of the tables that there are.
func (g *generation) tables(t *testing.T) (names []string) {
	t.Helper()
	rows, err := g.conn.Query(t.Context(), "SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		must(t, rows.Scan(&name))
		names = append(names, name)
	}
	must(t, rows.Err())
	return names
}

// TestDeriveKilledAtEveryStep: a writer dies before each statement by which the
// derived tables are made: there is a draft, it is filled, it has its cursor, one
// of them or two have their names. The next writer finds nothing of it, writes on,
// and in the end the tables are exact.
func TestDeriveKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	s := started()
	g.write(t, g.writer(t), s.Records)
	bare := g.tables(t)
	var steps []string
	for {
		conn := &dyingConn{Conn: g.conn, left: len(steps)}
		w := g.writerOver(t, conn, uncounted())
		if w.Derived() {
			t.Fatalf("derived after it died at %q", steps[len(steps)-1])
		}
		if there := g.tables(t); !slices.Equal(there, bare) {
			t.Fatalf("after it died at %q there are the tables %q", steps[len(steps)-1], there)
		}
		conn.left = len(steps)
		err := w.Derive(t.Context(), conn)
		if err == nil {
			break
		}
		if !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		words := strings.Fields(conn.last)
		steps = append(steps, strings.Join(words[:min(3, len(words))], " "))
		s.Mine(deposit(4, alice, 1), request(int64(len(steps)), bob))
		g.write(t, g.writer(t), s.Records)
	}
	if kinds := len(steps); kinds != 4*len(readmodel.Derived) {
		t.Errorf("it died at %q, want a draft, its rows, its cursor and its name of each table", steps)
	}
	g.equal(t, s.Records)
	s.Mine(claim(1, alice, 1), deposit(5, bob, 1))
	g.write(t, g.writer(t), s.Records)
	g.equal(t, s.Records)
}

// TestTwoWritersDerive: of two writers that derive at once one wins, and the tables
// are its alone.
func TestTwoWritersDerive(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	s := started()
	g.write(t, g.writer(t), s.Records)
	var wait sync.WaitGroup
	var answers [2]error
	writers := [2]*Writer{g.writer(t), g.writer(t)}
	for i, w := range writers {
		wait.Go(func() { answers[i] = w.Derive(t.Context(), g.conn) })
	}
	wait.Wait()
	if (answers[0] == nil) == (answers[1] == nil) {
		t.Fatalf("two writers derived at once and got %v and %v", answers[0], answers[1])
	}
	g.equal(t, s.Records)
	s.Mine(deposit(4, alice, 1), request(3, bob))
	g.write(t, g.writer(t), s.Records)
	g.equal(t, s.Records)
	if there := g.tables(t); !slices.Equal(there, slices.Sorted(slices.Values(readmodel.All))) {
		t.Errorf("the loser's drafts are left: there are the tables %q", there)
	}
}

// TestStalledDerive: a writer that was stopped before it derived wakes up when
// another one has written on. Its tables are of an older seq than the spine, and
// nobody takes them for the generation's, whatever it still puts into them.
func TestStalledDerive(t *testing.T) {
	t.Parallel()
	for name, goesOn := range map[string]bool{"and is gone": false, "and goes on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGeneration(t)
			s := started()
			g.write(t, g.writer(t), s.Records)
			late, other := g.writer(t), g.writer(t)
			s.Mine(deposit(4, alice, 1), request(3, bob), claim(1, alice, 3))
			next := s.Records[late.Position():]
			s.Mine(deposit(5, alice, 1), request(4, bob), claim(2, bob, 3))
			g.write(t, other, s.Records)
			must(t, late.Derive(t.Context(), g.conn))
			var fenced *fencedError
			if goesOn {
				if err := late.Write(t.Context(), late.Encode(batchOf(t, next))); !errors.As(err, &fenced) {
					t.Errorf("the late writer got %v, want to be fenced", err)
				}
			}
			if err := other.Derive(t.Context(), g.conn); err == nil {
				t.Error("both writers derived")
			}
			w := g.writer(t)
			if w.Derived() {
				t.Error("tables of an older seq are the generation's")
			} else {
				must(t, w.Derive(t.Context(), g.conn))
			}
			g.equal(t, s.Records)
		})
	}
}

// TestLateVault: records of a vault that joined after the tables were derived are
// in the spine, marked, and nowhere else, whatever is said of it later.
func TestLateVault(t *testing.T) {
	t.Parallel()
	s := started()
	g := derivedGeneration(t, s.Records)
	from := s.Seq()
	vaultC := histories.VaultAt(2)
	of := func(l said) said { return said{Vault: vaultC, Event: l.Event} }
	s.Vault(vaultC)
	s.Backfill(s.First, of(deposit(1, alice, 100)), of(request(0, alice)))
	s.Mine(of(deposit(2, bob, 100)), deposit(4, bob, 1), of(nav(5)))
	s.Retract(1)
	s.Mine(of(deposit(2, alice, 3)), of(sweep(1, 2)), request(3, bob))
	s.Mine(of(claim(0, alice, 4)))
	w := g.writer(t)
	if w.Outdated() {
		t.Error("the generation has other vaults than the log before there were any")
	}
	for _, unit := range histories.Units(s.Records[from:]) {
		must(t, w.Write(t.Context(), w.Encode(batchOf(t, unit))))
	}
	if !w.Outdated() || !g.writer(t).Outdated() {
		t.Errorf("the writer knows of the other vault: %t, the next one: %t", w.Outdated(), g.writer(t).Outdated())
	}
	want := uint64(0)
	for _, r := range s.Records[from:] {
		if isOf(r, vaultC) {
			want++
		}
	}
	var passed uint64
	must(t, g.conn.QueryRow(t.Context(), "SELECT countIf(passed) FROM records").Scan(&passed))
	if passed != want {
		t.Errorf("%d records are passed over, want %d", passed, want)
	}
	for _, table := range readmodel.Facts {
		var n uint64
		must(t, g.conn.QueryRow(t.Context(), "SELECT count() FROM "+table+" WHERE vault = unhex('"+vaultC.Hex()[2:]+"')").Scan(&n))
		if n != 0 {
			t.Errorf("%s has %d rows of the late vault", table, n)
		}
	}
	g.equal(t, s.Records)
	vaults, err := w.LogVaults(t.Context())
	must(t, err)
	if !slices.Contains(vaults, vaultC) || len(vaults) != 3 {
		t.Errorf("the log tells of the vaults %v", vaults)
	}
	// A generation that is made from the log has them like any other's.
	next := derivedGeneration(t, s.Records)
	if next.writer(t).Outdated() {
		t.Error("the next generation has other vaults than the log")
	}
	next.equal(t, s.Records)
}

// TestOutdated: a vault of the generation comes back below the newest block, which
// derived tables cannot take: nothing of it is written.
func TestOutdated(t *testing.T) {
	t.Parallel()
	s := started()
	g := derivedGeneration(t, s.Records)
	s.Mine(deposit(4, alice, 1)) // can be written
	good, newest := s.Seq(), s.Number
	s.Backfill(s.First+1, said{Vault: vaultB, Event: deposit(1, bob, 2).Event})
	w := g.writer(t)
	err := w.Write(t.Context(), w.Encode(batchOf(t, s.Records[w.Position():good])))
	must(t, err)
	err = w.Write(t.Context(), w.Encode(batchOf(t, s.Records[good:])))
	var outdated *OutdatedError
	if !errors.As(err, &outdated) || *outdated != (OutdatedError{vaultB, s.First + 1, newest}) {
		t.Fatalf("a vault that came back: %v", err)
	}
	g.equal(t, s.Records[:good])
	// In one batch with the block that makes it too late, too.
	w = g.writer(t)
	s.Records = s.Records[:good]
	s.Mine(deposit(5, alice, 1))
	s.Backfill(s.Number, said{Vault: vaultB, Event: deposit(1, bob, 2).Event})
	if err := w.Write(t.Context(), w.Encode(batchOf(t, s.Records[good:]))); !errors.As(err, &outdated) || outdated.Block != s.Number {
		t.Fatalf("a vault that came back to the newest block: %v", err)
	}
	g.equal(t, s.Records[:good])
}

// TestAbove: only what takes nothing back must lie above the newest block.
func TestAbove(t *testing.T) {
	t.Parallel()
	log := func(block uint64, sign int8) decode.Fact {
		return decode.Fact{Kind: decode.LogKind, Sign: sign, Log: decode.Log{Block: block}}
	}
	block := func(number uint64, sign int8) decode.Fact {
		return decode.Fact{Kind: decode.BlockKind, Sign: sign, Log: decode.Log{Block: number}}
	}
	unit := func(facts ...decode.Fact) decode.Unit {
		facts[len(facts)-1].Boundary = true
		return decode.Batch{facts}.Units()[0]
	}
	for name, c := range map[string]struct {
		units  []decode.Unit
		newest uint64 // after them; 0: they are refused
	}{
		"the next block":                 {[]decode.Unit{unit(log(11, 1), block(11, 1))}, 11},
		"a block after a gap":            {[]decode.Unit{unit(log(15, 1), block(15, 1)), unit(log(16, 1), block(16, 1))}, 16},
		"the newest block again":         {[]decode.Unit{unit(log(10, 1), block(10, 1))}, 0},
		"a backfill":                     {[]decode.Unit{unit(log(3, 1), block(5, 1))}, 0},
		"an old block without logs":      {[]decode.Unit{unit(block(5, 1))}, 10},
		"another branch":                 {[]decode.Unit{unit(block(10, -1), log(9, -1), block(9, -1), log(9, 1), block(9, 1))}, 9},
		"a branch that only takes":       {[]decode.Unit{unit(block(10, -1), block(9, -1)), unit(log(9, 1), block(9, 1))}, 9},
		"what that branch has left":      {[]decode.Unit{unit(block(10, -1), block(9, -1)), unit(log(8, 1), block(9, 1))}, 0},
		"a longer branch, then its head": {[]decode.Unit{unit(block(10, -1), block(10, 1), block(11, 1)), unit(log(11, 1), block(12, 1))}, 0},
	} {
		w := &Writer{newest: 10}
		err := w.above(c.units)
		newest := w.newest
		for i := range c.units {
			newest = newestAfter(newest, &c.units[i])
		}
		if (err != nil) != (c.newest == 0) || err == nil && newest != c.newest {
			t.Errorf("%s: %v, and the newest block is %d", name, err, newest)
		}
	}
}
