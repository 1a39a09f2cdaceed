package projections

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const chainID = 31337

var prefixes atomic.Int64

// clickhouseAt returns a configuration with databases of the test's own, which are dropped at its end.
func clickhouseAt(t testing.TB, addr string) readmodel.Config {
	t.Helper()
	c := readmodel.DefaultConfig()
	c.Addr, c.Prefix = addr, fmt.Sprintf("t%d_%d", os.Getpid(), prefixes.Add(1))
	return c
}

// open connects, and drops the test's databases at its end.
func open(t testing.TB, c readmodel.Config) driver.Conn {
	t.Helper()
	conn, err := c.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for id := range int32(9) { // a vault that is added later makes another generation
			if err := conn.Exec(context.Background(), "DROP DATABASE IF EXISTS "+c.Database(id)); err != nil {
				t.Errorf("drop the test's database: %v", err)
			}
		}
		conn.Close()
	})
	return conn
}

// written is a generation that a test writes without a projector.
type written struct {
	ch       readmodel.Config
	conn     driver.Conn // to its database
	database string
}

func newGeneration(t testing.TB) *written {
	t.Helper()
	c := clickhouseAt(t, enginetest.ClickHouse(t))
	g := &written{ch: c, database: c.Database(1)}
	must(t, c.CreateEvents(t.Context(), open(t, c), g.database))
	var err error
	g.conn, err = c.Open(g.database)
	must(t, err)
	t.Cleanup(func() { g.conn.Close() })
	return g
}

// session opens a session in the generation's database.
func (g *written) session(t testing.TB) driver.Conn {
	t.Helper()
	session, err := g.ch.OpenSession(g.database)
	must(t, err)
	t.Cleanup(func() { session.Close() })
	return session
}

func (g *written) writer(t testing.TB) *write.Writer {
	t.Helper()
	built, err := g.ch.CheckGeneration(t.Context(), g.conn, g.database)
	must(t, err)
	uncounted := write.Counts{Batch: func() {}, Rows: func(string, int) {}, Insert: func(string, string) {},
		Impossible: func(string) {}, Quarantined: func(int) {}}
	w, err := write.Open(t.Context(), g.conn, g.ch, g.database, built, nil, nil, uncounted, slog.New(slog.DiscardHandler))
	must(t, err)
	return w
}

// world is everything that a projector needs.
type world struct {
	kafka    chainlog.Config
	ch       readmodel.Config
	pool     *pgxpool.Pool
	conn     driver.Conn
	producer *kgo.Client
	records  []*event.Record // that were committed to the log
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldAt(t, enginetest.ClickHouse(t))
}

func newWorldAt(t *testing.T, clickhouse string) *world {
	t.Helper()
	w := &world{kafka: chainlog.DefaultConfig(), ch: clickhouseAt(t, clickhouse)}
	w.conn = open(t, w.ch)
	pg := registry.DefaultConfig()
	pg.URL = registrytest.Postgres(t)
	var err error
	if w.pool, err = registry.Open(t.Context(), pg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pool.Close)
	w.newLog(t)
	return w
}

// newLog gives the world a Kafka with an empty log.
func (w *world) newLog(t *testing.T) {
	t.Helper()
	w.kafka.Brokers = enginetest.Kafka(t)
	w.emptyLog(t)
}

// replacedLog deletes the log and gives the world an empty one on the same Kafka.
func (w *world) replacedLog(t *testing.T) {
	t.Helper()
	answers, err := kadm.NewClient(w.producer).DeleteTopics(t.Context(), chainlog.LogTopic(chainID),
		chainlog.CursorTopic(chainID))
	must(t, err)
	must(t, answers.Error())
	w.emptyLog(t)
}

func (w *world) emptyLog(t *testing.T) {
	t.Helper()
	w.records = nil
	var err error
	w.producer, err = kgo.NewClient(append([]kgo.Opt{kgo.TransactionalID("test"),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}, w.kafka.Options()...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.producer.Close)
	if err := chainlog.EnsureTopics(t.Context(), kadm.NewClient(w.producer), chainID, w.kafka.Topology()); err != nil {
		t.Fatal(err)
	}
}

// append writes records to the log, one transaction for each unit, with the cursor
// that ingest would commit with it.
func (w *world) append(t *testing.T, records []*event.Record) {
	t.Helper()
	for _, unit := range units(records) {
		w.transaction(t, unit, kgo.TryCommit)
	}
}

func (w *world) transaction(t *testing.T, unit []*event.Record, end kgo.TransactionEndTry) {
	t.Helper()
	if err := w.producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	var topics []string
	produce := func(out *kgo.Record) {
		topics = append(topics, out.Topic)
		w.producer.Produce(t.Context(), out, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	for _, r := range unit {
		out, err := chainlog.Encode(r)
		must(t, err)
		produce(out)
	}
	all := slices.Concat(w.records, unit)
	produce(encoded(t, cursorOf(all)))
	if err := w.producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := chainlog.EndTransaction(t.Context(), w.producer, end, topics...); err != nil {
		t.Fatal(err)
	}
	if end == kgo.TryCommit {
		w.records = all
	}
}

// encoded returns a cursor as ingest writes it.
func encoded(t *testing.T, cursor *event.Cursor) *kgo.Record {
	t.Helper()
	value, err := proto.Marshal(cursor)
	must(t, err)
	return &kgo.Record{Topic: chainlog.CursorTopic(chainID), Key: []byte(fmt.Sprint(chainID)), Value: value}
}

// projector creates a projector with short intervals, and its metrics.
func (w *world) projector(t *testing.T) (*Projections, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	p := New(DefaultConfig(), chainID, w.kafka, w.ch, w.pool, reg, slog.New(slog.NewTextHandler(testWriter{t}, nil)))
	p.every = 50 * time.Millisecond
	return p, reg
}

// measured returns the metrics of the live generation.
func (p *Projections) measured() *metrics {
	p.roster.mu.Lock()
	defer p.roster.mu.Unlock()
	return p.roster.keepers[p.roster.liveID].metrics
}

// start runs p until stop is called, which returns the result of Run; at the latest it is called at the test's end.
func start(t *testing.T, p *Projections) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	var stopped bool
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(wait.Patience):
			return fmt.Errorf("Run did not return after its context ended")
		}
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return stop
}

// reaches waits until p has written up to seq and follows the log.
func reaches(t *testing.T, p *Projections, seq uint64) {
	t.Helper()
	wait.Until(t, func() error {
		if s := p.Status(); s.Seq != seq || s.State != Following {
			return fmt.Errorf("status is %+v, want seq %d and following", s, seq)
		}
		return p.Ready()
	})
}

// equal fails the test unless the live generation equals the oracle's result for the log, which ends at seq.
func (w *world) equal(t *testing.T, seq uint64) {
	t.Helper()
	live, err := db.New(w.pool).LiveGeneration(t.Context())
	must(t, err)
	conn, err := w.ch.Open(w.ch.Database(live.ID))
	must(t, err)
	defer conn.Close()
	if n := uint64(len(w.records)); n != seq {
		t.Fatalf("the log ends at seq %d, want %d", n, seq)
	}
	oracletest.Equal(t, conn, w.records)
}

// verify fails the test unless `navlog verify` finds that the live generation equals the log.
func (w *world) verify(t *testing.T, seq uint64) *verify.Report {
	t.Helper()
	r, err := verify.Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Seq != seq || r.Err() != nil {
		t.Fatalf("want all equal at seq %d, got\n%s", seq, r)
	}
	return r
}

// failing runs p, which must end by itself with an error that contains all words.
func failing(t *testing.T, p *Projections, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	err := p.Run(ctx)
	if err == nil {
		t.Fatalf("Run returned nil, want an error with %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("Run returned %q, which lacks %q", err, word)
		}
	}
}

// refuses runs p, which must report that it is not ready, with a reason that contains all words, and continue until
// stop is called.
func refuses(t *testing.T, p *Projections, words ...string) (stop func() error) {
	t.Helper()
	stop = start(t, p)
	refusing(t, p, words...)
	return stop
}

// refusing waits until p reports that it is not ready, with a reason that contains all words.
func refusing(t *testing.T, p *Projections, words ...string) {
	t.Helper()
	wait.Until(t, func() error {
		err := p.Ready()
		if s := p.Status(); s.State != Bad || err == nil {
			return fmt.Errorf("status is %+v, ready %v", s, err)
		}
		for _, word := range append(words, "bad: ") {
			if !strings.Contains(err.Error(), word) {
				return fmt.Errorf("ready is %q, which lacks %q", err, word)
			}
		}
		return nil
	})
}

// batchOf returns records as the feed does.
func batchOf(t testing.TB, records []*event.Record) decode.Batch {
	t.Helper()
	raw, err := histories.AsRead(records)
	must(t, err)
	facts, err := decode.NewDecoder(chainID, unmapped(t)).All(raw)
	must(t, err)
	return decode.Batch{facts}
}

// listsOf returns the rows of lists for the records, by the oracle.
func listsOf(t testing.TB, records []*event.Record) (lines []string) {
	t.Helper()
	f := oracle.New(nil)
	for _, r := range records {
		must(t, f.Apply(r))
	}
	for _, row := range f.Lists() {
		lines = append(lines, readmodel.ListsTable.Line(&row))
	}
	return lines
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	if w.t.Context().Err() == nil { // a log line after the test's end would panic
		w.t.Logf("%s", b)
	}
	return len(b), nil
}

func number(t testing.TB, conn driver.Conn, question string) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), question).Scan(&n); err != nil {
		t.Fatalf("%s: %v", question, err)
	}
	return n
}

// unmapped returns the mappings that are known before the log is read.
func unmapped(t testing.TB) *mapping.Vaults {
	t.Helper()
	vaults, err := mapping.NewVaults()
	must(t, err)
	return vaults
}
