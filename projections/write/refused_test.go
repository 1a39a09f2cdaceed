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
)

// refusingConn is a connection on which one query fails the first time.
type refusingConn struct {
	driver.Conn
	question string // the failing query; "" for none
	how      way
	mu       sync.Mutex
	queried  map[string]bool // all queries, and whether each returned rows
	refused  bool
}

// way is how a query fails.
type way string

const (
	unanswered way = "no response comes"
	unreadable way = "a row of the response cannot be read"
	broken     way = "the response ends before its first row"
)

var errRefused = errors.New("the engine refuses")

// refuses reports whether a query fails now, in one of these ways.
func (c *refusingConn) refuses(question string, rows bool, ways ...way) bool {
	question, _, _ = strings.Cut(question, "\nWHERE (list") // the keys of a look-up differ each time
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queried == nil {
		c.queried = map[string]bool{}
	}
	c.queried[question] = rows
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

// eachRefused calls ask once with every query successful. Then, for each query for which of is true and each way to
// fail, it calls ask with this query failing once.
func eachRefused(t *testing.T, conn driver.Conn, of func(question string) bool, ask func(conn *refusingConn)) {
	t.Helper()
	all := &refusingConn{Conn: conn}
	ask(all)
	for _, question := range slices.Sorted(maps.Keys(all.queried)) {
		if !of(question) {
			continue
		}
		ways := []way{unanswered}
		if all.queried[question] {
			ways = append(ways, unreadable, broken)
		}
		for _, how := range ways {
			conn := &refusingConn{Conn: conn, question: question, how: how}
			ask(conn)
			if !conn.refused && how != unreadable { // unreadable needs a row
				t.Fatalf("%q was not sent again: the test shows nothing", question)
			}
		}
	}
}

// TestOpenIsRefused: whichever query of Open fails, and however, Open returns an error. It must not treat an unknown
// state as an empty one.
func TestOpenIsRefused(t *testing.T) {
	t.Parallel()
	s := started()
	g := builtGeneration(t, s.Records)
	from := s.Seq()
	s.Mine(deposit(4, alice, 1))
	more := s.Records[from:]
	must(t, crash(t, g.writer(t), batchOf(t, more).Units())) // so that events is ahead, and Open checks why
	every := func(string) bool { return true }
	eachRefused(t, g.conn, every, func(conn *refusingConn) {
		must(t, g.conn.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS lists"+draftMark+"left AS lists"))
		_, err := Open(t.Context(), conn, g.ch, g.database, true, nil, nil, uncounted(), slog.New(slog.DiscardHandler))
		if conn.refused != errors.Is(err, errRefused) || !conn.refused && err != nil {
			t.Errorf("%q, %s: Open gives %v", conn.question, conn.how, err)
		}
	})
}

// TestOldListsStay: if lists lack a vault that events has, and the engine does not remove them, they are of no use:
// Open fails.
func TestOldListsStay(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	s := started()
	g.write(t, g.writer(t), s.Records)
	late := g.writer(t)
	s.Vault(histories.VaultAt(2))
	s.Mine(emitted{Vault: histories.VaultAt(2), Event: deposit(1, alice, 100).Event})
	g.write(t, g.writer(t), s.Records)
	must(t, late.Build(t.Context(), g.session(t)))
	conn := &refusingConn{Conn: g.conn, question: "DROP TABLE IF EXISTS " + g.database + ".lists SYNC", how: unanswered}
	_, err := Open(t.Context(), conn, g.ch, g.database, true, nil, nil, uncounted(), slog.New(slog.DiscardHandler))
	if !errors.Is(err, errRefused) {
		t.Errorf("Open gives %v", err)
	}
}

// TestBuildIsRefused: the same for the queries of Build; TestBuildKilledAtEveryStep covers its statements. By then
// the draft has been renamed to lists, and the next writer uses it.
func TestBuildIsRefused(t *testing.T) {
	t.Parallel()
	s := started()
	g := newGeneration(t)
	g.write(t, g.writer(t), s.Records)
	questions := func(q string) bool { return strings.HasPrefix(q, "SELECT") }
	eachRefused(t, g.conn, questions, func(conn *refusingConn) {
		must(t, g.ch.Discard(t.Context(), g.conn, g.database, "lists"))
		w := g.writer(t)
		w.conn = conn
		err := w.Build(t.Context(), g.session(t))
		if conn.refused != errors.Is(err, errRefused) || !conn.refused && err != nil {
			t.Errorf("%q, %s: Build gives %v", conn.question, conn.how, err)
		}
	})
	if !g.writer(t).Built() {
		t.Error("the generation does not use the lists of a writer that could not continue")
	}
	g.equal(t, s.Records)
}

// TestWriteIsRefused: while a batch is written, a query for a cursor may fail once, and is retried. If a query for
// the content of lists fails, the batch does not count.
func TestWriteIsRefused(t *testing.T) {
	t.Parallel()
	s := started()
	g := builtGeneration(t, s.Records)
	every := func(string) bool { return true }
	eachRefused(t, g.conn, every, func(conn *refusingConn) {
		s.Mine(deposit(4, alice, 1), request(3, alice), claim(1, alice, 1), nav(1), sweep(2, 3))
		w := g.writer(t)
		w.conn = conn
		w.events.conn, w.lists.conn = conn, conn
		from := w.Position()
		err := w.Write(t.Context(), w.Encode(batchOf(t, s.Records[from:])))
		switch {
		case conn.refused && !isCursor(conn.question):
			if !errors.Is(err, errRefused) || w.Position() != from {
				t.Errorf("%q, %s: Write gives %v, and is at seq %d after %d", conn.question, conn.how, err, w.Position(), from)
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

// TestCursorCannotBeRead: after an insert, the cursor is read until it is too old, as long as the program runs; and
// once more when the program is stopped.
func TestCursorCannotBeRead(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	unreachable := func() *swapper {
		w := g.writer(t)
		w.events.conn = unreachableConn{g.conn}
		return w.events
	}
	ended, end := context.WithCancel(t.Context())
	end()

	s := unreachable()
	s.readAt = time.Now().Add(-cursorAge)
	limited, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, _, err := s.rereadCursor(limited); !errors.Is(err, errRefused) || limited.Err() != nil {
		t.Errorf("an old cursor that cannot be read: %v", err)
	}
	if _, _, err := unreachable().rereadCursor(ended); !errors.Is(err, errRefused) || !errors.Is(err, context.Canceled) {
		t.Errorf("a cursor that cannot be read when the program is to end: %v", err)
	}
	if _, _, err := g.writer(t).events.rereadCursor(ended); err != nil {
		t.Errorf("a cursor that can be read when the program is to end: %v", err)
	}
	s = unreachable()
	s.readAt = time.Now().Add(-time.Hour)
	if err := s.refresh(t.Context(), 1); !errors.Is(err, errRefused) {
		t.Errorf("a cursor that cannot be read again: %v", err)
	}
}

// unreachableConn does not respond.
type unreachableConn struct{ driver.Conn }

func (unreachableConn) QueryRow(context.Context, string, ...any) driver.Row { return refusedRow{} }

// TestInsertFailsDuringStop: an insert fails when the program is being stopped. It is not sent again, and its batch
// does not count.
func TestInsertFailsDuringStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table string
		built bool
	}{"events while building": {"events", false}, "events": {"events", true}, "lists": {"lists", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started()
			g := newGeneration(t)
			w := g.writer(t)
			g.write(t, w, s.Records)
			if c.built {
				must(t, w.Build(t.Context(), g.session(t)))
			}
			from := s.Seq()
			s.Mine(unattributed(4, alice))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			conn := newFaultyConn(g.conn, func(_ *faultyConn, of string, _ int, send func() error) error {
				if of == c.table {
					stop()
					return errors.New("the network is unavailable")
				}
				return send()
			})
			w = g.writerOver(t, conn, uncounted())
			err := w.Write(ctx, w.Encode(batchOf(t, s.Records[from:])))
			if !errors.Is(err, context.Canceled) || conn.inserts[c.table] != 1 {
				t.Fatalf("Write gives %v after %d inserts", err, conn.inserts[c.table])
			}
			w = g.writer(t)
			if w.Position() != from {
				t.Fatalf("the generation is at seq %d, and was at %d", w.Position(), from)
			}
			g.write(t, w, s.Records)
			if !c.built {
				must(t, w.Build(t.Context(), g.session(t)))
			}
			g.equal(t, s.Records)
		})
	}
}

// TestWithout: the records of a vault that the generation omits are in events, marked, and in no list, before lists
// is built and after.
func TestWithout(t *testing.T) {
	t.Parallel()
	s := started()
	ofB := func(l emitted) emitted { return emitted{Vault: vaultB, Event: l.Event} }
	s.Mine(ofB(deposit(1, alice, 100)), ofB(request(0, alice)), ofB(nav(2)), deposit(4, bob, 1))
	g := newGeneration(t)
	open := func() *Writer {
		built, err := g.ch.CheckGeneration(t.Context(), g.conn, g.database)
		must(t, err)
		w, err := Open(t.Context(), g.conn, g.ch, g.database, built, [][]byte{vaultB[:]}, nil, uncounted(),
			slog.New(slog.DiscardHandler))
		must(t, err)
		return w
	}
	w := open()
	g.write(t, w, s.Records)
	must(t, w.Build(t.Context(), g.session(t)))
	s.Mine(ofB(deposit(2, bob, 100)), ofB(claim(0, alice, 3)), deposit(5, bob, 1))
	g.write(t, open(), s.Records)
	want := uint64(0)
	for _, r := range s.Records {
		if isOf(r, vaultB) {
			want++
		}
	}
	var passed uint64
	must(t, g.conn.QueryRow(t.Context(), "SELECT countIf(passed) FROM events").Scan(&passed))
	if passed != want || want == 0 {
		t.Errorf("%d records are passed over, want %d", passed, want)
	}
	if n := g.ofVault(t, vaultB); n != 0 {
		t.Errorf("lists has %d rows of the vault", n)
	}
	g.equal(t, s.Records)
}

// isOf reports whether a record is a log of a vault or about the vault.
func isOf(r *event.Record, vault common.Address) bool {
	return string(r.GetVault().GetAddress())+string(r.GetLog().GetAddress()) == string(vault.Bytes())
}
