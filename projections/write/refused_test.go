package write

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// refusingConn is a connection on which one question fails the first time that it is asked.
type refusingConn struct {
	driver.Conn
	question string // the one; "" for none
	how      way
	mu       sync.Mutex
	asked    map[string]bool // all questions, and whether there are rows to each
	refused  bool
}

// way is how a question fails.
type way string

const (
	unanswered way = "no answer comes"
	unreadable way = "a row of the answer cannot be read"
	broken     way = "the answer breaks off before its first row"
)

var errRefused = errors.New("the engine refuses")

// refuses tells whether a question fails here and now, in one of these ways.
func (c *refusingConn) refuses(question string, rows bool, ways ...way) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		c.asked = map[string]bool{}
	}
	c.asked[question] = rows
	if question != c.question || c.refused || !slices.Contains(ways, c.how) {
		return false
	}
	c.refused = true
	return true
}

func (c *refusingConn) Exec(ctx context.Context, query string, args ...any) error {
	if c.refuses(query, false, unanswered) {
		return errRefused
	}
	return c.Conn.Exec(ctx, query, args...)
}

func (c *refusingConn) Select(ctx context.Context, dest any, query string, args ...any) error {
	if c.refuses(query, false, unanswered) {
		return errRefused
	}
	return c.Conn.Select(ctx, dest, query, args...)
}

func (c *refusingConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if c.refuses(query, false, unanswered) {
		return refusedRow{}
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

func (c *refusingConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if c.refuses(query, true, unanswered) {
		return nil, errRefused
	}
	rows, err := c.Conn.Query(ctx, query, args...)
	if err == nil && c.refuses(query, true, unreadable, broken) {
		return refusedRows{rows, c.how}, nil
	}
	return rows, err
}

type refusedRow struct{ driver.Row }

func (refusedRow) Err() error        { return errRefused }
func (refusedRow) Scan(...any) error { return errRefused }

type refusedRows struct {
	driver.Rows
	how way
}

func (r refusedRows) Next() bool {
	return r.how != broken && r.Rows.Next()
}

func (r refusedRows) Scan(dest ...any) error {
	if r.how == unreadable {
		return errRefused
	}
	return r.Rows.Scan(dest...)
}

func (r refusedRows) Err() error {
	if r.how == broken {
		return errRefused
	}
	return r.Rows.Err()
}

// eachRefused has something asked with every question answered, and then with each of its
// questions of which the test has something to say failing once, in each way that it can.
func eachRefused(t *testing.T, conn driver.Conn, of func(question string) bool, ask func(conn *refusingConn)) {
	t.Helper()
	all := &refusingConn{Conn: conn}
	ask(all)
	for _, question := range slices.Sorted(maps.Keys(all.asked)) {
		if !of(question) {
			continue
		}
		ways := []way{unanswered}
		if all.asked[question] {
			ways = append(ways, unreadable, broken)
		}
		for _, how := range ways {
			conn := &refusingConn{Conn: conn, question: question, how: how}
			ask(conn)
			if !conn.refused && how != unreadable { // which needs a row
				t.Fatalf("%q was not asked again: the test proves nothing", question)
			}
		}
	}
}

// TestOpenIsRefused: whatever Open asks, and however that fails, it says so. What it does
// not know it must not take for nothing.
func TestOpenIsRefused(t *testing.T) {
	t.Parallel()
	s := started()
	g := derivedGeneration(t, s.Records)
	derived, err := g.ch.CheckTables(t.Context(), g.conn, g.database)
	must(t, err)
	every := func(string) bool { return true }
	eachRefused(t, g.conn, every, func(conn *refusingConn) {
		must(t, g.conn.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS users"+draftMark+"left AS users"))
		_, err := Open(t.Context(), conn, g.ch, g.database, derived, nil, uncounted(), slog.New(slog.DiscardHandler))
		if conn.refused != errors.Is(err, errRefused) || !conn.refused && err != nil {
			t.Errorf("%q, %s: Open gives %v", conn.question, conn.how, err)
		}
	})
}

// TestOldTablesStay: derived tables that are older than the facts, and that the engine does
// not remove, are nobody's: Open fails.
func TestOldTablesStay(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	s := started()
	g.write(t, g.writer(t), s.Records)
	late := g.writer(t)
	s.Mine(deposit(4, alice, 1), request(3, bob))
	g.write(t, g.writer(t), s.Records)
	must(t, late.Derive(t.Context(), g.conn))
	conn := &refusingConn{Conn: g.conn, question: "DROP TABLE IF EXISTS " + g.database + "." + readmodel.Derived[0] + " SYNC", how: unanswered}
	_, err := Open(t.Context(), conn, g.ch, g.database, readmodel.Derived, nil, uncounted(), slog.New(slog.DiscardHandler))
	if !errors.Is(err, errRefused) {
		t.Errorf("Open gives %v", err)
	}
}

// TestDeriveIsRefused: so it is with what Derive asks, beside what it does
// (TestDeriveKilledAtEveryStep). By then the tables have their names, and the next writer
// takes them.
func TestDeriveIsRefused(t *testing.T) {
	t.Parallel()
	s := started()
	g := newGeneration(t)
	g.write(t, g.writer(t), s.Records)
	questions := func(q string) bool { return strings.HasPrefix(q, "SELECT") }
	eachRefused(t, g.conn, questions, func(conn *refusingConn) {
		for _, table := range readmodel.Derived {
			must(t, g.ch.Discard(t.Context(), g.conn, g.database, table))
		}
		w := g.writer(t)
		w.conn = conn
		err := w.Derive(t.Context(), g.conn)
		if conn.refused != errors.Is(err, errRefused) || !conn.refused && err != nil {
			t.Errorf("%q, %s: Derive gives %v", conn.question, conn.how, err)
		}
	})
	if !g.writer(t).Derived() {
		t.Error("the tables of a writer that could not go on are not the generation's")
	}
	g.equal(t, s.Records)
}

// TestWriteIsRefused: while a batch is written the engine may refuse a cursor once, which is
// asked for again. What a derived table holds it must say, or nothing of the batch counts.
func TestWriteIsRefused(t *testing.T) {
	t.Parallel()
	s := started()
	g := derivedGeneration(t, s.Records)
	few := func(q string) bool { // the cursors of two tables stand for those of all
		return !isCursor(q) || strings.Contains(q, " FROM "+readmodel.Spine+" ") || strings.Contains(q, " FROM "+readmodel.Users+" ")
	}
	eachRefused(t, g.conn, few, func(conn *refusingConn) {
		s.Mine(deposit(4, alice, 1), request(3, alice), claim(1, alice, 1), nav(1), sweep(2, 3))
		w := g.writer(t)
		w.conn = conn
		for _, tables := range []map[string]*swapper{{readmodel.Spine: w.spine}, w.facts, w.derived} {
			for _, table := range tables {
				table.conn = conn
			}
		}
		from := w.Position()
		err := w.Write(t.Context(), w.Encode(batchOf(t, s.Records[from:])))
		switch {
		case conn.refused && !isCursor(conn.question):
			if !errors.Is(err, errRefused) || w.Position() != from {
				t.Errorf("%q, %s: Write gives %v, and stands at seq %d after %d", conn.question, conn.how, err, w.Position(), from)
			}
			g.write(t, g.writer(t), s.Records)
		case err != nil:
			t.Errorf("%q, %s: Write gives %v", conn.question, conn.how, err)
			g.write(t, g.writer(t), s.Records)
		}
	})
	g.equal(t, s.Records)
}

func isCursor(question string) bool { return strings.HasPrefix(question, "SELECT max(seq)") }

// TestCursorCannotBeRead: the cursor is asked for after an insert until it is old, and as
// long as the program runs; and once more when the program is to end.
func TestCursorCannotBeRead(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	away := func() *swapper {
		w := g.writer(t)
		w.spine.conn = awayConn{g.conn}
		return w.spine
	}
	ended, end := context.WithCancel(t.Context())
	end()

	s := away()
	s.readAt = time.Now().Add(-cursorAge)
	limited, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, _, err := s.look(limited); !errors.Is(err, errRefused) || limited.Err() != nil {
		t.Errorf("an old cursor that cannot be read: %v", err)
	}
	if _, _, err := away().look(ended); !errors.Is(err, errRefused) || !errors.Is(err, context.Canceled) {
		t.Errorf("a cursor that cannot be read when the program is to end: %v", err)
	}
	if _, _, err := g.writer(t).spine.look(ended); err != nil {
		t.Errorf("a cursor that can be read when the program is to end: %v", err)
	}
	s = away()
	s.readAt = time.Now().Add(-time.Hour)
	if err := s.refresh(t.Context(), 1); !errors.Is(err, errRefused) {
		t.Errorf("a cursor that cannot be read again: %v", err)
	}
}

// awayConn answers nothing.
type awayConn struct{ driver.Conn }

func (awayConn) QueryRow(context.Context, string, ...any) driver.Row { return refusedRow{} }

// TestToldToStop: an insert fails when the program is to end. It is not sent again, and what
// it was to bring does not count.
func TestToldToStop(t *testing.T) {
	t.Parallel()
	for table, derived := range map[string]bool{readmodel.Deposits: false, readmodel.Users: true, readmodel.Spine: true} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			s := started()
			g := newGeneration(t)
			w := g.writer(t)
			g.write(t, w, s.Records)
			if derived { // of which one table alone is concerned, so that no question of another one ends the writer
				must(t, w.Derive(t.Context(), g.conn))
			}
			from := s.Seq()
			s.Mine(unattributed(4, alice))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			conn := newFaultyConn(g.conn, func(_ *faultyConn, of string, _ int, send func() error) error {
				if of == table {
					stop()
					return errors.New("the network is away")
				}
				return send()
			})
			w = g.writerOver(t, conn, uncounted())
			err := w.Write(ctx, w.Encode(batchOf(t, s.Records[from:])))
			if !errors.Is(err, context.Canceled) || conn.inserts[table] != 1 {
				t.Fatalf("Write gives %v after %d inserts", err, conn.inserts[table])
			}
			w = g.writer(t)
			if w.Position() != from {
				t.Fatalf("the spine is at seq %d, and was at %d", w.Position(), from)
			}
			g.write(t, w, s.Records)
			if !derived {
				must(t, w.Derive(t.Context(), g.conn))
			}
			g.equal(t, s.Records)
		})
	}
}

// TestNotWholeRows: rows that lack a value, or have one too many, are not sent, for what
// follows would stand in the wrong columns. That is a failure, and no absent insert.
func TestNotWholeRows(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	for name, value := range map[string]func(r *rows){
		"a value is missing":     func(r *rows) { r.data[0] = r.data[0][8:] },
		"there is one too many":  func(r *rows) { r.data[0] = append(r.data[0], make([]byte, 8)...) },
		"a half one is too many": func(r *rows) { r.data[1] = append(r.data[1], make([]byte, 4)...) },
	} {
		r := newRows(readmodel.Navs, 1)
		s := histories.New(chainID)
		s.Mine(nav(1))
		for f := range batchOf(t, s.Records).All() {
			for i := range f.Effects {
				r.nav(f, &f.Effects[i])
			}
		}
		if r.count != 1 {
			t.Fatalf("there are %d rows", r.count)
		}
		value(r)
		if err := g.writer(t).facts[readmodel.Navs].send(t.Context(), r, 0); err == nil || !strings.Contains(err.Error(), readmodel.Navs+".") {
			t.Errorf("%s: %v", name, err)
		}
		if n := g.rowsIn(t, readmodel.Navs); n != 0 {
			t.Errorf("%s: the table has %d rows", name, n)
		}
	}
}

// TestWithout: a generation that is made without a vault has its records in the spine, marked,
// and nowhere else, before its tables are derived and after.
func TestWithout(t *testing.T) {
	t.Parallel()
	s := started()
	ofB := func(l said) said { return said{Vault: vaultB, Event: l.Event} }
	s.Mine(ofB(deposit(1, alice, 100)), ofB(request(0, alice)), ofB(nav(2)), deposit(4, bob, 1))
	g := newGeneration(t)
	open := func() *Writer {
		derived, err := g.ch.CheckTables(t.Context(), g.conn, g.database)
		must(t, err)
		w, err := Open(t.Context(), g.conn, g.ch, g.database, derived, []common.Address{vaultB}, uncounted(), slog.New(slog.DiscardHandler))
		must(t, err)
		return w
	}
	w := open()
	g.write(t, w, s.Records)
	must(t, w.Derive(t.Context(), g.conn))
	s.Mine(ofB(deposit(2, bob, 100)), ofB(claim(0, alice, 3)), deposit(5, bob, 1))
	g.write(t, open(), s.Records)
	want := uint64(0)
	for _, r := range s.Records {
		if isOf(r, vaultB) {
			want++
		}
	}
	var passed uint64
	must(t, g.conn.QueryRow(t.Context(), "SELECT countIf(passed) FROM records").Scan(&passed))
	if passed != want || want == 0 {
		t.Errorf("%d records are passed over, want %d", passed, want)
	}
	for _, table := range slices.Concat(readmodel.Facts, readmodel.Derived) {
		var n uint64
		must(t, g.conn.QueryRow(t.Context(), "SELECT count() FROM "+table+" WHERE vault = unhex('"+vaultB.Hex()[2:]+"')").Scan(&n))
		if n != 0 {
			t.Errorf("%s has %d rows of the vault", table, n)
		}
	}
	g.check(t)
}

// isOf tells whether a record is about a vault, or of it.
func isOf(r *event.Record, vault common.Address) bool {
	return string(r.GetVault().GetAddress())+string(r.GetLog().GetAddress()) == string(vault.Bytes())
}
