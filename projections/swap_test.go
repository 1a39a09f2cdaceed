package projections

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/readmodel"
)

// faultyConn lets a test come between the writer and the engine.
type faultyConn struct {
	driver.Conn
	// send is called instead of Send with the n-th insert into a table (from
	// 1); it may call the real one.
	send func(table string, n int, real func() error) error

	mu      sync.Mutex
	inserts map[string]int
	asked   chan struct{} // one for each question about system.processes
}

func newFaultyConn(conn driver.Conn, send func(table string, n int, real func() error) error) *faultyConn {
	return &faultyConn{Conn: conn, send: send, inserts: map[string]int{}, asked: make(chan struct{}, 1000)}
}

func (c *faultyConn) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	batch, err := c.Conn.PrepareBatch(ctx, query, opts...)
	if err != nil {
		return nil, err
	}
	_, table, _ := strings.Cut(strings.Fields(query)[2], ".")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inserts[table]++
	return &faultyBatch{Batch: batch, conn: c, table: table, n: c.inserts[table]}, nil
}

func (c *faultyConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if strings.Contains(query, "system.processes") {
		c.asked <- struct{}{}
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

type faultyBatch struct {
	driver.Batch
	conn  *faultyConn
	table string
	n     int
	busy  bool // the real batch is still in use after the writer gave it up
}

// errLater tells the batch that its real one is sent later.
var errLater = errors.New("no answer in time")

func (b *faultyBatch) Send() error {
	err := b.conn.send(b.table, b.n, b.Batch.Send)
	b.busy = errors.Is(err, errLater)
	return err
}

func (b *faultyBatch) Close() error {
	if b.busy {
		return nil
	}
	return b.Batch.Close()
}

// writeAll writes a random history in batches of some units, and gives it.
func writeAll(t *testing.T, conn driver.Conn, database string, m *metrics) *script {
	t.Helper()
	s := randomHistory(rand.New(rand.NewPCG(21, 4)), 25)
	_, log := quiet()
	w, err := openWriter(t.Context(), conn, database, atMost(1000), m, log)
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range units(s.Records) {
		if err := w.write(t.Context(), entries(unit)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func outcomes(m *metrics, table, outcome string) float64 {
	return testutil.ToFloat64(m.inserts.WithLabelValues(table, outcome))
}

// TestFailedInsertIsSentAgainOnce: the engine never got the block.
func TestFailedInsertIsSentAgainOnce(t *testing.T) {
	t.Parallel()
	real, database := newGeneration(t)
	conn := newFaultyConn(real, func(table string, n int, send func() error) error {
		if n == 3 {
			return errors.New("the network is away")
		}
		return send()
	})
	m, _ := quiet()
	s := writeAll(t, conn, database, m)
	for _, table := range readmodel.Tables {
		if n, want := outcomes(m, table, "failed"), 1.0; n != want {
			t.Errorf("%s: %v failed inserts, want %v", table, n, want)
		}
		if n, want := outcomes(m, table, "ok"), float64(len(units(s.Records))); n != want {
			t.Errorf("%s: %v inserts, want %v", table, n, want)
		}
	}
	check(t, real, database, s.Records, fold.Newest)
}

// TestLostAnswer: the engine has the block and its answer does not arrive.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	real, database := newGeneration(t)
	conn := newFaultyConn(real, func(table string, n int, send func() error) error {
		if err := send(); err != nil || n%3 != 0 {
			return err
		}
		return errors.New("the answer is lost")
	})
	m, _ := quiet()
	s := writeAll(t, conn, database, m)
	for _, table := range readmodel.Tables {
		if sent, want := conn.inserts[table], len(units(s.Records)); sent != want {
			t.Errorf("%s: %d inserts for %d batches: one was sent although the engine had it", table, sent, want)
		}
	}
	check(t, real, database, s.Records, fold.Newest)
}

// TestAcknowledgedAndAbsent: the engine says that it has the block and has not,
// as when a deduplication record outlived its part.
func TestAcknowledgedAndAbsent(t *testing.T) {
	t.Parallel()
	real, database := newGeneration(t)
	conn := newFaultyConn(real, func(table string, n int, send func() error) error {
		if table == "flows" && n == 2 {
			return nil
		}
		return send()
	})
	m, _ := quiet()
	s := writeAll(t, conn, database, m)
	if n := outcomes(m, "flows", "absent"); n != 1 {
		t.Errorf("%v alarms, want 1", n)
	}
	check(t, real, database, s.Records, fold.Newest)
}

// TestStillRunning: the insert goes on in the engine after the writer gave up
// waiting for its answer; the writer must not send it again beside it.
func TestStillRunning(t *testing.T) {
	t.Parallel()
	real, database := newGeneration(t)
	var conn *faultyConn
	late := make(chan error, 1)
	conn = newFaultyConn(real, func(table string, n int, send func() error) error {
		if table != "requests" || n != 2 {
			return send()
		}
		go func() {
			for range 3 { // the writer has looked three times by then
				<-conn.asked
			}
			late <- send()
		}()
		return errLater
	})
	m, _ := quiet()
	s := writeAll(t, conn, database, m)
	select {
	case err := <-late:
		must(t, err)
	case <-time.After(patience):
		t.Fatal("the writer went on without the late insert")
	}
	if sent, want := conn.inserts["requests"], len(units(s.Records)); sent != want {
		t.Errorf("%d inserts for %d batches", sent, want)
	}
	check(t, real, database, s.Records, fold.Newest)
}

// TestLateWriter: a writer that slept through the work of another one wakes up.
// It loses, by the token and by the cursor, and the rows stay exact.
func TestLateWriter(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]int{"same batch": 1, "further": 3} {
		t.Run(name, func(t *testing.T) {
			conn, database := newGeneration(t)
			m, log := quiet()
			s := randomHistory(rand.New(rand.NewPCG(8, 2)), 20)
			parts := units(s.Records)
			late, err := openWriter(t.Context(), conn, database, atMost(1000), m, log)
			if err != nil {
				t.Fatal(err)
			}
			other, err := openWriter(t.Context(), conn, database, atMost(1000), m, log)
			if err != nil {
				t.Fatal(err)
			}
			for _, unit := range parts[:ahead] {
				if err := other.write(t.Context(), entries(unit)); err != nil {
					t.Fatal(err)
				}
			}
			err = late.write(t.Context(), entries(parts[0]))
			var fenced *fencedError
			if !errors.As(err, &fenced) || !strings.Contains(err.Error(), "another projector writes this generation") {
				t.Fatalf("the late writer got %v, want to be fenced", err)
			}
			for _, unit := range parts[ahead:] {
				if err := other.write(t.Context(), entries(unit)); err != nil {
					t.Fatal(err)
				}
			}
			check(t, conn, database, s.Records, fold.Newest)
		})
	}
}

// TestOldCursorIsReadAgain: before an insert whose cursor was read long ago,
// the writer reads it again and finds that another one has moved it.
func TestOldCursorIsReadAgain(t *testing.T) {
	t.Parallel()
	real, database := newGeneration(t)
	m, log := quiet()
	s := randomHistory(rand.New(rand.NewPCG(8, 2)), 10)
	parts := units(s.Records)
	conn := newFaultyConn(real, func(_ string, _ int, send func() error) error { return send() })
	late, err := openWriter(t.Context(), conn, database, atMost(1000), m, log)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range late.tables {
		table.cursor.readAt = time.Now().Add(-time.Hour)
	}
	if err := late.write(t.Context(), entries(parts[0])); err != nil {
		t.Fatalf("nobody else wrote: %v", err)
	}
	other, err := openWriter(t.Context(), real, database, atMost(1000), m, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.write(t.Context(), entries(parts[1])); err != nil {
		t.Fatal(err)
	}
	for _, table := range late.tables {
		table.cursor.readAt = time.Now().Add(-time.Hour)
	}
	var fenced *fencedError
	if err := late.write(t.Context(), entries(parts[1])); !errors.As(err, &fenced) {
		t.Fatalf("got %v, want to be fenced", err)
	}
	if n := conn.inserts["records"]; n != 1 {
		t.Errorf("%d inserts, want the first one only", n)
	}
	check(t, real, database, s.Records[:len(parts[0])+len(parts[1])], fold.Newest)
}

// TestWritersRace: two writers with the same batch at the same time, again and
// again. Each table takes one of the two, and the rows are exact.
func TestWritersRace(t *testing.T) {
	t.Parallel()
	conn, database := newGeneration(t)
	s := randomHistory(rand.New(rand.NewPCG(5, 9)), 25)
	m, log := quiet()
	for _, unit := range units(s.Records) {
		var wait sync.WaitGroup
		answers := make([]error, 2)
		var writers [2]*writer
		for i := range writers {
			var err error
			if writers[i], err = openWriter(t.Context(), conn, database, atMost(1000), m, log); err != nil {
				t.Fatal(err)
			}
		}
		for i, w := range writers {
			wait.Go(func() { answers[i] = w.write(t.Context(), entries(unit)) })
		}
		wait.Wait()
		for _, err := range answers {
			var fenced *fencedError
			if err != nil && !errors.As(err, &fenced) {
				t.Fatal(err)
			}
		}
		if answers[0] == nil && answers[1] == nil {
			t.Fatal("both writers say that they wrote the same batch")
		}
	}
	check(t, conn, database, s.Records, fold.Newest)
}

// TestGivenUp: an engine that refuses every insert is not asked for ever.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	real, database := newGeneration(t)
	conn := newFaultyConn(real, func(string, int, func() error) error { return errors.New("disk full") })
	m, log := quiet()
	w, err := openWriter(t.Context(), conn, database, atMost(1000), m, log)
	if err != nil {
		t.Fatal(err)
	}
	w.tables = w.tables[:1]
	w.tables[0].cursor.readAt = time.Now().Add(300*time.Millisecond - cursorAge/2) // 5 s are left
	s := newScript()
	s.Mine()
	err = w.write(t.Context(), entries(s.Records))
	if !errors.Is(err, errGivenUp) {
		t.Fatalf("got %v, want to give up", err)
	}
	if n := outcomes(m, "records", "given_up"); n != 1 {
		t.Errorf("%v given up, want 1", n)
	}
}
