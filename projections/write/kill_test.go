package write

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestKilled: a writer crashes between its two inserts, or before them. Until the next writer has completed the units,
// lists has the state before them; after that everything is exact, however the two cut the batches.
func TestKilled(t *testing.T) {
	t.Parallel()
	plain := func(s *histories.Script, i int64) {
		s.Mine(deposit(10+i, bob, i), request(20+i, bob), fund(10+i), nav(i), sweep(2, 3))
	}
	rewriting := func(s *histories.Script, i int64) { // retracts the previous block
		s.Retract(1)
		s.Mine(deposit(10+i, bob, i), request(10+i, bob), claim(1, alice, i), nav(i), sweep(2, 4))
	}
	for _, c := range []struct {
		name     string
		unit     func(*histories.Script, int64)
		dead     int  // number of units in the batch of the writer that crashes
		oneByOne bool // the next writer writes the units one by one
	}{
		{"a plain unit, cut again as it was", plain, 1, true},
		{"a plain unit, then in a longer batch", plain, 1, false},
		{"plain units, then one by one", plain, 3, true},
		{"a unit that retracts, cut again as it was", rewriting, 1, true},
		{"a unit that retracts, then in a longer batch", rewriting, 1, false},
	} {
		if testing.Short() && c.oneByOne {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := started()
			g := builtGeneration(t, s.Records)
			for i, has := range []bool{false, true} {
				t.Run(fmt.Sprintf("events has its rows: %t", has), func(t *testing.T) {
					s.Mine(deposit(50, alice, 1), request(10+int64(i), alice), request(30+int64(i), bob), nav(9), sweep(2, 2))
					g.write(t, g.writer(t), s.Records)
					from := s.Seq()
					c.unit(s, int64(i))
					s.Mine(claim(10+int64(i), bob, 3), deposit(51, bob, 4))
					s.Mine(fund(30+int64(i)), deposit(52, alice, 4))
					units := histories.Units(s.Records[from:])
					part := batchOf(t, slices.Concat(units[:c.dead]...)).Units()
					if len(parts(part)) != 1 {
						t.Fatal("the batch that is cut off is not one part: the test shows nothing")
					}
					if has {
						must(t, crash(t, g.writer(t), part))
					}
					oracletest.Listed(t, g.conn, s.Records[:from])

					w := g.writer(t)
					if w.Position() != from || (w.events.cursor.seq > from) != has {
						t.Fatalf("the next writer begins after seq %d, and events ends at %d; lists ends at %d", w.Position(),
							w.events.cursor.seq, from)
					}
					if !c.oneByOne {
						units = [][]*event.Record{slices.Concat(units...)}
					}
					for _, unit := range units {
						must(t, w.Write(t.Context(), w.Encode(batchOf(t, unit))))
					}
				})
			}
			g.equal(t, s.Records)
		})
	}
}

// rowsIn counts the rows of a table that no merge has removed.
func (g *generation) rowsIn(t *testing.T, table string) (n uint64) {
	t.Helper()
	must(t, g.conn.QueryRow(t.Context(), "SELECT count() FROM "+table).Scan(&n))
	return n
}

// unmerged prevents the engine from merging, so that rows can be counted.
func (g *generation) unmerged(t *testing.T) {
	t.Helper()
	for _, table := range Tables {
		must(t, g.conn.Exec(t.Context(), "SYSTEM STOP MERGES "+table))
	}
}

// TestLostNewestPart: the newest part of a table is lost while the engine is down. For lists, the deduplication token
// remains: the cursor falls back, the replay is treated as a duplicate, and is then written under another token. A
// writer rejects a table events that ends before the cursor of lists.
func TestLostNewestPart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	engine, err := engines.StartClickHouse(ctx, t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, engine.Close()) })
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.Prefix = engine.Addr, "lost"
	g := &generation{ch: ch, database: ch.Database(1)}
	server, err := ch.Open("")
	must(t, err)
	must(t, ch.CreateEvents(ctx, server, g.database))
	server.Close()
	g.conn, err = ch.Open(g.database)
	must(t, err)
	s := started()
	w := g.writer(t)
	g.write(t, w, s.Records)
	must(t, w.Build(ctx, g.session(t)))
	g.unmerged(t)
	for i := range int64(2) {
		s.Mine(deposit(4+i, alice, 1), request(4+i, bob), nav(1))
		g.write(t, w, s.Records)
	}
	position := w.Position()
	lose := func(table string) {
		t.Helper()
		var newest string
		must(t, g.conn.QueryRow(ctx,
			"SELECT argMax(path, max_block_number) FROM system.parts WHERE active AND table = {table:String} AND database = "+
				"currentDatabase()", clickhouse.Named("table", table)).Scan(&newest))
		g.conn.Close()
		must(t, engine.Close())
		must(t, os.RemoveAll(newest))
		must(t, engine.Restart(ctx))
		g.conn, err = g.ch.Open(g.database)
		must(t, err)
	}
	lose("lists")
	var counts tally
	w = g.writerOver(t, g.conn, counts.callbacks())
	if w.Position() >= position {
		t.Fatalf("position %d after the newest part up to %d went", w.Position(), position)
	}
	g.write(t, w, s.Records)
	if n := counts.of("lists", "absent"); n != 1 {
		t.Errorf("%v alarms, want 1", n)
	}
	g.equal(t, s.Records)
	lose("events")
	_, err = Open(ctx, g.conn, g.ch, g.database, true, nil, nil, uncounted(), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "the newest rows of events are lost") {
		t.Errorf("the newest rows of events are lost, and Open gives %v", err)
	}
	g.conn.Close()
}

// TestStalledWriter: the insert of a stalled writer arrives after another writer has written the same unit, and
// perhaps more. Its token is used up, even if the units together changed no row but the cursor.
func TestStalledWriter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ unit, more func(*histories.Script) }{
		"rows change": {func(s *histories.Script) {
			s.Mine(deposit(4, alice, 1), request(3, alice), nav(1), sweep(2, 3))
		}, nil},
		"the other one is further": {func(s *histories.Script) {
			s.Mine(deposit(4, alice, 1), request(3, alice), nav(1), sweep(2, 3))
		}, func(s *histories.Script) {
			s.Mine(deposit(6, bob, 1), request(5, bob), nav(2), sweep(3, 3))
		}},
		"no row changes": {func(s *histories.Script) { // a branch is abandoned, and becomes the chain again
			gone := s.Retract(1)
			s.Enter(gone[0])
			s.Boundary()
		}, nil},
		"the other one retracts it": {func(s *histories.Script) {
			s.Mine(deposit(4, alice, 77), request(3, bob))
		}, func(s *histories.Script) {
			s.Retract(1)
			s.Boundary()
		}},
	} {
		for _, stalls := range Tables {
			if testing.Short() && name != "the other one is further" {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s", name, stalls), func(t *testing.T) {
				t.Parallel()
				s := started()
				s.Mine(deposit(5, bob, 1), request(4, bob), nav(1), sweep(2, 2))
				g := builtGeneration(t, s.Records)
				g.unmerged(t)
				c.unit(s)
				stalledAt := s.Seq()
				if c.more != nil {
					c.more(s)
				}
				arrived, woken := make(chan bool, 1), make(chan struct{})
				conn := newFaultyConn(g.conn, func(_ *faultyConn, table string, n int, send func() error) error {
					if table == stalls && n == 1 {
						arrived <- true
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
				select {
				case <-arrived:
				case <-time.After(patience):
					t.Fatalf("%s is not written", stalls)
				}
				g.write(t, g.writer(t), s.Records)
				before := map[string]uint64{}
				for _, table := range Tables {
					before[table] = g.rowsIn(t, table)
				}
				close(woken)
				var fenced *fencedError
				if err := <-answer; !errors.As(err, &fenced) {
					t.Fatalf("the stalled writer got %v, want to be fenced", err)
				}
				for _, table := range Tables {
					if n := g.rowsIn(t, table); n != before[table] {
						t.Errorf("%s: %d rows after the stalled insert, and %d before", table, n, before[table])
					}
				}
				g.equal(t, s.Records)
			})
		}
	}
}

// crashingConn is the connections of a process that crashes before its n-th statement that changes something. Of the
// statements for temporary tables, which end with their session, it counts the first ones only.
type crashingConn struct {
	driver.Conn
	mu        sync.Mutex
	left      int
	temporary int    // how many such statements there were
	last      string // the statement that was not executed
}

var errDied = errors.New("the process ended")

func (c *crashingConn) goesOn(statement string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left < 0 {
		return false
	}
	if strings.Contains(statement, "TEMPORARY TABLE") {
		if c.temporary++; c.temporary > 2 {
			return true
		}
	}
	if c.left--; c.left < 0 {
		c.last = statement
		return false
	}
	return true
}

func (c *crashingConn) Exec(ctx context.Context, query string, args ...any) error {
	if !c.goesOn(query) {
		return errDied
	}
	return c.Conn.Exec(ctx, query, args...)
}

func (c *crashingConn) PrepareBatch(
	ctx context.Context, query string, opts ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	if !c.goesOn(query) {
		return nil, errDied
	}
	return c.Conn.PrepareBatch(ctx, query, opts...)
}

// tables returns the names of the existing tables.
func (g *generation) tables(t *testing.T) (names []string) {
	t.Helper()
	rows, err := g.conn.Query(t.Context(),
		"SELECT name FROM system.tables WHERE database = currentDatabase() AND engine != 'View' ORDER BY name")
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

// TestBuildKilledAtEveryStep: a writer crashes before each statement that builds lists: when a draft exists, when it
// derives, when some of its lists are filled, when it has its cursor. The next writer sees nothing of the draft,
// continues, and in the end lists is exact.
func TestBuildKilledAtEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("crashes at one statement after the other")
	}
	t.Parallel()
	g := newGeneration(t)
	s := started()
	g.write(t, g.writer(t), s.Records)
	bare := g.tables(t)
	var steps []string
	for {
		conn := &crashingConn{Conn: g.conn, left: len(steps)}
		w := g.writerOver(t, conn, uncounted())
		if w.Built() { // it crashed after the rename to lists, and the next writer created the missing views
			if last := steps[len(steps)-1]; last != "CREATE VIEW IF" {
				t.Fatalf("built after it crashed at %q", last)
			}
			break
		}
		if there := g.tables(t); !slices.Equal(there, bare) {
			t.Fatalf("after it crashed at %q there are the tables %q", steps[len(steps)-1], there)
		}
		conn.Conn, conn.left = g.session(t), len(steps)
		err := w.Build(t.Context(), conn)
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
	if len(steps) < 6+len(readmodel.Definitions) {
		t.Errorf("it crashed at %q, want a draft, what its lists are derived from, its lists, its name and a view", steps)
	}
	views := oracletest.Lines(t, g.conn,
		"SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View'", nil)
	if len(views) != len(readmodel.Views) {
		t.Errorf("there are the views %q", views)
	}
	g.equal(t, s.Records)
	s.Mine(claim(1, alice, 1), deposit(5, bob, 1))
	g.write(t, g.writer(t), s.Records)
	g.equal(t, s.Records)
}

// TestTwoWritersBuild: if two writers build at once, one of them wins, and lists has only the rows of one.
func TestTwoWritersBuild(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	s := started()
	g.write(t, g.writer(t), s.Records)
	var wait sync.WaitGroup
	var answers [2]error
	writers := [2]*Writer{g.writer(t), g.writer(t)}
	for i, w := range writers {
		wait.Go(func() { answers[i] = w.Build(t.Context(), g.session(t)) })
	}
	wait.Wait()
	if (answers[0] == nil) == (answers[1] == nil) {
		t.Fatalf("two writers built at once and got %v and %v", answers[0], answers[1])
	}
	g.equal(t, s.Records)
	s.Mine(deposit(4, alice, 1), request(3, bob))
	g.write(t, g.writer(t), s.Records)
	g.equal(t, s.Records)
	if there := g.tables(t); !slices.Equal(there, slices.Sorted(slices.Values(Tables))) {
		t.Errorf("the other writer's drafts are left: there are the tables %q", there)
	}
}

// TestStalledBuild: a writer stalls before it builds lists, and is resumed when another one has continued. Its lists
// have an older seq than events, and are brought up to date unit by unit, unless events has the history of a vault
// that these lists will never have: then they are removed and built again.
func TestStalledBuild(t *testing.T) {
	t.Parallel()
	for name, joins := range map[string]bool{"while units came": false, "while a vault joined": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGeneration(t)
			s := started()
			g.write(t, g.writer(t), s.Records)
			late, other := g.writer(t), g.writer(t)
			stalledAt := late.Position()
			s.Mine(deposit(4, alice, 1), request(3, bob), claim(1, alice, 3))
			next := s.Records[stalledAt:]
			if joins {
				s.Vault(histories.VaultAt(2))
				s.Backfill(s.First, emitted{Vault: histories.VaultAt(2), Event: deposit(1, alice, 100).Event})
			}
			s.Mine(deposit(5, alice, 1), request(4, bob), claim(2, bob, 3))
			g.write(t, other, s.Records)
			must(t, late.Build(t.Context(), g.session(t)))
			var fenced *fencedError
			if err := late.Write(t.Context(), late.Encode(batchOf(t, next))); !errors.As(err, &fenced) {
				t.Errorf("the late writer got %v, want to be fenced", err)
			}
			if err := other.Build(t.Context(), g.session(t)); err == nil {
				t.Error("both writers built lists")
			}
			w := g.writer(t)
			switch {
			case !joins && w.Position() != stalledAt:
				t.Errorf("the next writer begins at seq %d, and lists ends at %d", w.Position(), stalledAt)
			case !joins:
				g.write(t, w, s.Records)
			case w.Built():
				t.Error("the generation uses lists that lack a vault")
			default:
				must(t, w.Build(t.Context(), g.session(t)))
			}
			g.equal(t, s.Records)
		})
	}
}

// TestLateBlock: a block of a late vault's history that the log did not have is in events, marked, and not in the list
// of blocks, so no response about an indexed block changes. The same holds after it became the newest block, because
// those above it were retracted, and after it was retracted with those around it.
func TestLateBlock(t *testing.T) {
	t.Parallel()
	s := started()
	// As after a backfill, the log has no record of block 3.
	s.Records = slices.DeleteFunc(s.Records, func(r *event.Record) bool { return r.GetBlock().GetNumber() == s.First+2 })
	for i, r := range s.Records {
		r.Seq = uint64(i + 1)
	}
	g := builtGeneration(t, s.Records)
	blocks := func() []string {
		return oracletest.Lines(t, g.conn, "SELECT toString((key, ts)) FROM lists FINAL WHERE list = 'blocks'", nil)
	}
	before := blocks()
	vaultC := histories.VaultAt(2)
	of := func(l emitted) emitted { return emitted{Vault: vaultC, Event: l.Event} }
	s.Vault(vaultC)
	s.Backfill(s.First, of(deposit(1, alice, 100)), of(request(0, alice)))
	g.write(t, g.writer(t), s.Records)
	oracletest.Same(t, "blocks after the history of a late vault", blocks(), before)
	g.equal(t, s.Records)
	next := builtGeneration(t, s.Records)
	if n := len(oracletest.Lines(t, next.conn, "SELECT toString(key) FROM lists FINAL WHERE list = 'blocks'",
		nil)); n != len(before)+1 {
		t.Errorf("a generation with the late vault has %d blocks, want %d", n, len(before)+1)
	}

	retract := func(above uint64) { // without a new branch, so that this is the newest block
		fold := oracle.New(nil)
		for _, r := range s.Records {
			must(t, fold.Apply(r))
		}
		for _, r := range slices.Backward(fold.Records()) {
			if max(r.GetBlock().GetNumber(), r.GetLog().GetBlockNumber()) > above {
				s.Records = append(s.Records, &event.Record{Seq: s.Seq() + 1, ChainId: chainID, Retracts: r.GetSeq(), Fact: r.Fact})
			}
		}
		s.Boundary()
		for _, g := range []*generation{g, next} {
			g.write(t, g.writer(t), s.Records)
			if c, err := readmodel.ReadListsCursor(t.Context(), g.conn, readmodel.ListsTable.Name); err != nil ||
				c.Block != above {
				t.Errorf("the newest block is %d, want %d: %v", c.Block, above, err)
			}
			g.equal(t, s.Records)
			g.check(t)
		}
	}
	retract(s.First + 2)
	// The newest block is recorded again: this generation does not skip the new record, so it has the time of the block.
	i := slices.IndexFunc(s.Records, func(r *event.Record) bool { return r.GetBlock().GetNumber() == s.First+2 })
	s.Records = append(s.Records, &event.Record{Seq: s.Seq() + 1, ChainId: chainID, Fact: s.Records[i].Fact})
	s.Boundary()
	for _, g := range []*generation{g, next} {
		g.write(t, g.writer(t), s.Records)
		g.equal(t, s.Records)
		g.check(t)
	}
	retract(s.First)
}

// TestLateVault: records of a vault that joined after lists was built are in events, marked, and in no list, whatever
// later records contain about the vault.
func TestLateVault(t *testing.T) {
	t.Parallel()
	s := started()
	g := builtGeneration(t, s.Records)
	from := s.Seq()
	vaultC := histories.VaultAt(2)
	of := func(l emitted) emitted { return emitted{Vault: vaultC, Event: l.Event} }
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
		t.Errorf("the writer has noticed the other vault: %t, the next one: %t", w.Outdated(), g.writer(t).Outdated())
	}
	want := uint64(1) // the block at the end of its history
	for _, r := range s.Records[from:] {
		if isOf(r, vaultC) {
			want++
		}
	}
	var passed uint64
	must(t, g.conn.QueryRow(t.Context(), "SELECT countIf(passed) FROM events").Scan(&passed))
	if passed != want {
		t.Errorf("%d records are passed over, want %d", passed, want)
	}
	if n := g.ofVault(t, vaultC); n != 0 {
		t.Errorf("lists has %d rows of the late vault", n)
	}
	g.equal(t, s.Records)
	last, err := w.LastVault(t.Context())
	must(t, err)
	if last == 0 || !slices.Equal(s.Records[last-1].GetVault().GetAddress(), vaultC[:]) {
		t.Errorf("the last record about a vault has seq %d", last)
	}
	// A generation that is built from the log has them like any other's.
	next := builtGeneration(t, s.Records)
	if next.writer(t).Outdated() {
		t.Error("the next generation has other vaults than the log")
	}
	next.equal(t, s.Records)
}

// ofVault counts the rows of lists about a vault.
func (g *generation) ofVault(t *testing.T, vault common.Address) (n uint64) {
	t.Helper()
	must(t, g.conn.QueryRow(t.Context(),
		"SELECT countIf(unhex('"+vault.Hex()[2:]+"') IN (owner, scope, vault)) FROM lists").Scan(&n))
	return n
}

// TestOutdated: a vault of the generation is restored below the newest block, which lists cannot represent: no row of
// it is written.
func TestOutdated(t *testing.T) {
	t.Parallel()
	s := started()
	g := builtGeneration(t, s.Records)
	s.Mine(deposit(4, alice, 1)) // this can be written
	good, newest := s.Seq(), s.Number
	s.Backfill(s.First+1, emitted{Vault: vaultB, Event: deposit(1, bob, 2).Event})
	w := g.writer(t)
	err := w.Write(t.Context(), w.Encode(batchOf(t, s.Records[w.Position():good])))
	must(t, err)
	err = w.Write(t.Context(), w.Encode(batchOf(t, s.Records[good:])))
	var outdated *OutdatedError
	if !errors.As(err, &outdated) || *outdated != (OutdatedError{vaultB, s.First + 1, newest}) {
		t.Fatalf("a vault that came back: %v", err)
	}
	g.equal(t, s.Records[:good])
	// The same in one batch with the block that makes it too late.
	w = g.writer(t)
	s.Records = s.Records[:good]
	s.Mine(deposit(5, alice, 1))
	s.Backfill(s.Number, emitted{Vault: vaultB, Event: deposit(1, bob, 2).Event})
	if err := w.Write(t.Context(), w.Encode(batchOf(t, s.Records[good:]))); !errors.As(err, &outdated) ||
		outdated.Block != s.Number {
		t.Fatalf("a vault that came back to the newest block: %v", err)
	}
	g.equal(t, s.Records[:good])
}

// TestAbove: a unit that retracts nothing must lie above the newest block.
func TestAbove(t *testing.T) {
	t.Parallel()
	log := func(block uint64, sign int8) decode.Fact {
		return decode.Fact{Kind: readmodel.LogRecord, Sign: sign, Log: decode.Log{Block: block}}
	}
	block := func(number uint64, sign int8) decode.Fact {
		return decode.Fact{Kind: readmodel.BlockRecord, Sign: sign, Log: decode.Log{Block: number}}
	}
	unit := func(facts ...decode.Fact) decode.Unit {
		facts[len(facts)-1].Boundary = true
		return decode.Batch{facts}.Units()[0]
	}
	for name, c := range map[string]struct {
		units  []decode.Unit
		newest uint64 // newest block after the units; 0 if they are rejected
	}{
		"the next block":            {[]decode.Unit{unit(log(11, 1), block(11, 1))}, 11},
		"a block after a gap":       {[]decode.Unit{unit(log(15, 1), block(15, 1)), unit(log(16, 1), block(16, 1))}, 16},
		"the newest block again":    {[]decode.Unit{unit(log(10, 1), block(10, 1))}, 0},
		"a backfill":                {[]decode.Unit{unit(log(3, 1), block(5, 1))}, 0},
		"an old block without logs": {[]decode.Unit{unit(block(5, 1))}, 10},
		"another branch": {[]decode.Unit{unit(block(10, -1), log(9, -1), block(9, -1), log(9, 1),
			block(9, 1))}, 9},
		"a branch that only takes":  {[]decode.Unit{unit(block(10, -1), block(9, -1)), unit(log(9, 1), block(9, 1))}, 9},
		"what that branch has left": {[]decode.Unit{unit(block(10, -1), block(9, -1)), unit(log(8, 1), block(9, 1))}, 0},
		"a longer branch, then its head": {[]decode.Unit{unit(block(10, -1), block(10, 1), block(11, 1)),
			unit(log(11, 1), block(12, 1))}, 0},
	} {
		w := &Writer{cursor: readmodel.ListsCursor{Block: 10}, vaults: map[common.Address]bool{{}: true}}
		err := w.skip(c.units)
		newest := w.cursor.Block
		for i := range c.units {
			newest = newestAfter(newest, &c.units[i])
		}
		if (err != nil) != (c.newest == 0) || err == nil && newest != c.newest {
			t.Errorf("%s: %v, and the newest block is %d", name, err, newest)
		}
	}
}
