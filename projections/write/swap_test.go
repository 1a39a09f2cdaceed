package write

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// faultyConn lets a test intercept the writer's calls to the engine.
type faultyConn struct {
	driver.Conn
	// send is called instead of Send with the n-th insert into a table (from
	// 1); it may call the real one.
	send func(c *faultyConn, table string, n int, real func() error) error

	mu      sync.Mutex
	inserts map[string]int
	queried chan struct{} // one for each query of system.processes
}

func newFaultyConn(conn driver.Conn,
	send func(c *faultyConn, table string, n int, real func() error) error) *faultyConn {
	return &faultyConn{Conn: conn, send: send, inserts: map[string]int{}, queried: make(chan struct{}, 1000)}
}

func (c *faultyConn) PrepareBatch(
	ctx context.Context, query string, opts ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	batch, err := c.Conn.PrepareBatch(ctx, query, opts...)
	if err != nil {
		return nil, err
	}
	table := strings.Fields(query)[2]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inserts[table]++
	return &faultyBatch{Batch: batch, conn: c, table: table, n: c.inserts[table]}, nil
}

func (c *faultyConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if strings.Contains(query, "system.processes") {
		c.queried <- struct{}{}
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

type faultyBatch struct {
	driver.Batch
	conn  *faultyConn
	table string
	n     int
	busy  bool // the real batch is still in use after the writer has abandoned it
}

// errLater makes the batch send its real one later.
var errLater = errors.New("no response in time")

func (b *faultyBatch) Send() error {
	err := b.conn.send(b.conn, b.table, b.n, b.Batch.Send)
	b.busy = errors.Is(err, errLater)
	return err
}

func (b *faultyBatch) Close() error {
	if b.busy {
		return nil
	}
	return b.Batch.Close()
}

// written is a random history, written unit by unit into a built generation
// through a faulty connection.
type written struct {
	*generation
	conn    *faultyConn
	counts  tally
	records []*event.Record
}

func writeAll(t *testing.T, send func(c *faultyConn, table string, n int, real func() error) error) *written {
	t.Helper()
	s := started()
	rng := rand.New(rand.NewPCG(21, 4))
	first := s.Seq()
	for range 7 {
		if rng.IntN(3) == 0 {
			s.Retract(1 + rng.IntN(3)) // the next units belong to another branch
		}
		s.Mine(deposit(4, alice, rng.Int64N(50)), request(rng.Int64N(4), bob), histories.Anything(rng, 2, 5), nav(4),
			sweep(2, 3))
	}
	all := &written{generation: builtGeneration(t, s.Records[:first]), records: s.Records}
	all.conn = newFaultyConn(all.generation.conn, send)
	w := all.writerOver(t, all.conn, all.counts.callbacks())
	for _, unit := range histories.Units(s.Records[first:]) {
		must(t, w.Write(t.Context(), w.Encode(batchOf(t, unit))))
	}
	return all
}

// TestFailedInsertIsSentAgainOnce: the engine never got the block, for example because the replicas of a cluster are
// down.
func TestFailedInsertIsSentAgainOnce(t *testing.T) {
	t.Parallel()
	refusals := map[string]error{
		"events": &clickhouse.Exception{Code: 285,
			Message: "Number of alive replicas (1) is less than requested quorum (2/2)."},
		"lists": &clickhouse.Exception{Code: 242, Message: "Table is in readonly mode"},
	}
	all := writeAll(t, func(_ *faultyConn, table string, n int, send func() error) error {
		if n == 3 {
			return refusals[table]
		}
		return send()
	})
	for _, table := range Tables {
		if n := all.counts.of(table, "failed"); n != 1 {
			t.Errorf("%s: %v failed inserts, want 1", table, n)
		}
		if sent, ok := all.conn.inserts[table], all.counts.of(table, "ok"); sent != ok+1 {
			t.Errorf("%s: %d inserts for %d batches, of which one was to fail", table, sent, ok)
		}
	}
	all.equal(t, all.records)
}

// TestLostResponse: the engine has the block, but its response is lost, or the number of replicas that have it is
// unknown.
func TestLostResponse(t *testing.T) {
	t.Parallel()
	var lost tally
	all := writeAll(t, func(_ *faultyConn, table string, n int, send func() error) error {
		if err := send(); err != nil || n%3 != 0 {
			return err
		}
		lost.add(1, table)
		if n%2 == 0 {
			return errors.New("the response is lost")
		}
		return &clickhouse.Exception{Code: 319, Message: "Unknown status of the part. Data may have been written."}
	})
	for _, table := range Tables {
		if sent, ok := all.conn.inserts[table], all.counts.of(table, "ok"); sent != ok || lost.of(table) == 0 {
			t.Errorf("%s: %d inserts for %d batches, of which %d got no response: one was sent although the engine had it",
				table, sent, ok, lost.of(table))
		}
	}
	all.equal(t, all.records)
}

// TestAcknowledgedAndAbsent: the engine acknowledges a block that it does not have, as when a deduplication record
// outlives its part.
func TestAcknowledgedAndAbsent(t *testing.T) {
	t.Parallel()
	all := writeAll(t, func(_ *faultyConn, _ string, n int, send func() error) error {
		if n == 2 {
			return nil
		}
		return send()
	})
	for _, table := range Tables {
		if n := all.counts.of(table, "absent"); n != 1 {
			t.Errorf("%s: %v alarms, want 1", table, n)
		}
	}
	all.equal(t, all.records)
}

// TestStillRunning: the engine still runs an insert after the writer stopped waiting for the response; the writer
// must not send it again at the same time.
func TestStillRunning(t *testing.T) {
	t.Parallel()
	for _, slow := range Tables {
		t.Run(slow, func(t *testing.T) {
			late := make(chan error, 1)
			all := writeAll(t, func(conn *faultyConn, table string, n int, send func() error) error {
				if table != slow || n != 2 {
					return send()
				}
				go func() {
					for range 3 { // the writer has checked three times by then
						<-conn.queried
					}
					late <- send()
				}()
				return errLater
			})
			select {
			case err := <-late:
				must(t, err)
			case <-time.After(patience):
				t.Fatal("the writer continued without the late insert")
			}
			if sent, ok := all.conn.inserts[slow], all.counts.of(slow, "ok"); sent != ok {
				t.Errorf("%d inserts for %d batches", sent, ok)
			}
			all.equal(t, all.records)
		})
	}
}

// TestLateWriter: a writer was suspended while another one worked, and is then resumed. It is fenced, by the token and
// by the cursor, and the rows stay exact.
func TestLateWriter(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]int{"same batch": 1, "further": 3} {
		for _, built := range []bool{false, true} {
			if testing.Short() && ahead > 1 {
				continue
			}
			t.Run(fmt.Sprintf("%s, built %t", name, built), func(t *testing.T) {
				t.Parallel()
				s := started()
				first := s.Seq()
				s.Mine(deposit(4, alice, 1), request(3, alice), nav(1), sweep(2, 3))
				s.Retract(1)
				s.Mine(deposit(4, bob, 2))
				s.Mine(claim(1, alice, 2))
				g := builtGeneration(t, s.Records[:first])
				if !built {
					g = newGeneration(t)
					g.write(t, g.writer(t), s.Records[:first])
				}
				rest := histories.Units(s.Records[first:])
				late, other := g.writer(t), g.writer(t)
				for _, unit := range rest[:ahead] {
					must(t, other.Write(t.Context(), other.Encode(batchOf(t, unit))))
				}
				err := late.Write(t.Context(), late.Encode(batchOf(t, rest[0])))
				var fenced *fencedError
				if !errors.As(err, &fenced) || !strings.Contains(err.Error(), "another projector writes this generation") {
					t.Fatalf("the late writer got %v, want to be fenced", err)
				}
				for _, unit := range rest[ahead:] {
					must(t, other.Write(t.Context(), other.Encode(batchOf(t, unit))))
				}
				if !built {
					must(t, other.Build(t.Context(), g.session(t)))
				}
				g.equal(t, s.Records)
			})
		}
	}
}

// TestOldCursorIsReadAgain: before an insert whose cursor was read long ago, the writer reads it again and detects
// that another writer has moved it.
func TestOldCursorIsReadAgain(t *testing.T) {
	t.Parallel()
	s := started()
	first := s.Seq()
	for i := range int64(2) {
		s.Mine(deposit(4+i, alice, 1), request(3+i, alice), nav(1), sweep(2, 3))
	}
	g := builtGeneration(t, s.Records[:first])
	rest := histories.Units(s.Records[first:])
	conn := newFaultyConn(g.conn, func(_ *faultyConn, _ string, _ int, send func() error) error { return send() })
	late := g.writerOver(t, conn, uncounted())
	age := func() {
		for _, table := range []*swapper{late.events, late.lists} {
			table.readAt = time.Now().Add(-time.Hour)
		}
	}
	age()
	if err := late.Write(t.Context(), late.Encode(batchOf(t, rest[0]))); err != nil {
		t.Fatalf("no other writer wrote: %v", err)
	}
	g.write(t, g.writer(t), s.Records)
	age()
	var fenced *fencedError
	if err := late.Write(t.Context(), late.Encode(batchOf(t, rest[1]))); !errors.As(err, &fenced) {
		t.Fatalf("got %v, want to be fenced", err)
	}
	for _, table := range Tables {
		if n := conn.inserts[table]; n != 1 {
			t.Errorf("%s: %d inserts, want the first one only", table, n)
		}
	}
	g.equal(t, s.Records)
}

// blindConn is the connection of a login that cannot see running queries.
type blindConn struct {
	driver.Conn
	blind driver.Conn
}

func (c blindConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if strings.Contains(query, "system.processes") {
		return c.blind.QueryRow(ctx, query, args...)
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

// TestGivenUp: if the engine rejects every insert, the writer does not retry for ever, and the error has the reason;
// so does the error if the engine does not report whether it still runs one.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		blind bool
		words []string
	}{
		"the insert is refused": {false, []string{"disk full"}},
		"and what runs is not shown": {true,
			[]string{"disk full", "ask system.processes", "Not enough privileges", "grant SELECT"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGeneration(t)
			base := g.conn
			if c.blind {
				ch := g.ch
				ch.QueryUser = "navlog_query"
				reader, err := ch.OpenReader("", 1)
				must(t, err)
				defer reader.Close()
				base = blindConn{g.conn, reader}
			}
			conn := newFaultyConn(base, func(*faultyConn, string, int, func() error) error { return errors.New("disk full") })
			var counts tally
			w := g.writerOver(t, conn, counts.callbacks())
			w.events.readAt = time.Now().Add(300*time.Millisecond - cursorAge/2) // 5 s are left
			s := histories.New(chainID)
			s.Mine()
			err := w.Write(t.Context(), w.Encode(batchOf(t, s.Records)))
			if !errors.Is(err, errGivenUp) {
				t.Fatalf("got %v, want to give up", err)
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("got %v, which lacks %q", err, word)
				}
			}
			if n := counts.of("events", "given_up"); n != 1 {
				t.Errorf("%v abandoned, want 1", n)
			}
		})
	}
}

// TestBatchThatDoesNotFollow: a batch that does not follow the position is rejected.
func TestBatchThatDoesNotFollow(t *testing.T) {
	t.Parallel()
	w := newGeneration(t).writer(t)
	s := started()
	if err := w.Write(t.Context(), w.Encode(batchOf(t, s.Records[1:]))); err == nil ||
		!strings.Contains(err.Error(), "begins at seq 2, but") {
		t.Errorf("got %v", err)
	}
}

// TestCounts: a writer reports how many rows it inserted, and which logs are impossible. For requests it does so only
// once lists is built, because before that their state is unknown.
func TestCounts(t *testing.T) {
	t.Parallel()
	for built, want := range map[bool]map[string]int{
		true: {"impossible WithdrawalClaimed": 2, "impossible WithdrawalFunded": 1, "impossible WithdrawalRequested": 1,
			"impossible DepositsSwept": 1,
			"quarantined":              1, "rows events": 11, "rows lists": 48, "batch": 2},
		false: {"impossible WithdrawalClaimed": 0, "impossible DepositsSwept": 1, "quarantined": 1, "rows events": 11,
			"rows lists": 0, "batch": 2},
	} {
		t.Run(fmt.Sprintf("built %t", built), func(t *testing.T) {
			t.Parallel()
			s := started()
			g := newGeneration(t)
			w := g.writer(t)
			g.write(t, w, s.Records)
			if built {
				must(t, w.Build(t.Context(), g.session(t)))
			}
			var counts tally
			w = g.writerOver(t, g.conn, counts.callbacks())
			s.Mine(claim(9, alice, 5), fund(8), sweep(6, 5), sweep(5, 6), request(7, alice), request(7, bob))
			tooMuch := contracts.DepositAccepted{DepositID: whole(5), Owner: alice, Sender: bob, Assets: histories.Power(191, 0),
				Shares: whole(1)}
			s.Mine(claim(9, alice, 5), emitted{Vault: vaultA, Event: tooMuch})
			g.write(t, w, s.Records)
			s.Mine() // without odd logs
			g.write(t, w, s.Records)
			for what, n := range want {
				if got := counts.of(what); got != n {
					t.Errorf("%s: %d are counted, want %d", what, got, n)
				}
			}
		})
	}
}
