package query

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/query/partner"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const testChain = readtest.ChainID

// Short names for this package's tests.
var (
	vaultA, vaultB, vaultC     = readtest.VaultA, readtest.VaultB, readtest.VaultC
	alice, bob, carol, unknown = readtest.Alice, readtest.Bob, readtest.Carol, readtest.Unknown
	router, tx, blockTime      = readtest.Router, readtest.Tx, readtest.BlockTime
	same                       = readtest.Same
)

type (
	fact   = readtest.Fact
	reply  = readtest.Reply
	object = map[string]any
)

// clock is a clock that only the test advances.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time        { return time.Unix(0, c.ns.Load()) }
func (c *clock) add(d time.Duration)   { c.ns.Add(int64(d)) }
func newClock(at time.Time) (c *clock) { c = &clock{}; c.ns.Store(at.UnixNano()); return c }

// logBuffer collects log output.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is a Query on real engines, without its loops: the test decides when to look.
type world struct {
	*Query
	*readtest.Client
	t      testing.TB
	pool   *pgxpool.Pool
	g      *readtest.Generation
	chain  *readtest.Log
	clock  *clock
	logged *logBuffer
	reg    *prometheus.Registry

	checkURL partner.CheckURL
}

func testConfig() Config {
	c := DefaultConfig()
	c.Listen, c.Router, c.PublicRateLimit, c.PublicEngineTime = "127.0.0.1:0", router.Hex(), 0, 0
	c.StatementConfirmations = 0                                    // the chains of tests are short
	c.RequestTimeout, c.WriteTimeout = 2*time.Minute, 3*time.Minute // the machine may be busy with other tests
	c.StatementKey = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	return c
}

// newFixture returns a world with the small chain of readtest.
func newFixture(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	w := newWorld(t, change...)
	w.chain = readtest.SmallChain()
	w.publish()
	return w
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	return newWorldOn(t, enginetest.ClickHouse(t), registrytest.Postgres(t), change...)
}

func newWorldOn(t testing.TB, clickHouse, postgres string, change ...func(*Config)) *world {
	t.Helper()
	w := newWorldOf(t, readtest.New(t, clickHouse), postgres, change...)
	w.register(w.g, registry.Live)
	return w
}

// newWorldOf returns a world with a generation that is not registered yet.
func newWorldOf(t testing.TB, g *readtest.Generation, postgres string, change ...func(*Config)) *world {
	t.Helper()
	pool, err := registry.Open(context.Background(), registry.Config{URL: postgres, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := &world{t: t, pool: pool, g: g, chain: readtest.NewLog(testChain), clock: newClock(time.Now()),
		logged: &logBuffer{}, checkURL: acceptHTTPS}
	w.serve(change...)
	return w
}

// serve creates the program on the engines of the world.
func (w *world) serve(change ...func(*Config)) {
	cfg := testConfig()
	for _, c := range change {
		c(&cfg)
	}
	w.reg = prometheus.NewRegistry()
	checkURL := func(ctx context.Context, raw string) (string, error) { return w.checkURL(ctx, raw) }
	w.Query = New(cfg, testChain, w.g.Config, w.pool, checkURL, w.reg,
		slog.New(slog.NewTextHandler(w.logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	w.setClock(w.clock.now)
	w.watcher.LookTimeout = time.Minute // the machine may be busy with other tests
	w.t.Cleanup(w.watcher.Close)
	w.Client = &readtest.Client{T: w.t, Watcher: w.watcher, Handler: w.Query.Handler()}
}

func (w *world) setClock(now func() time.Time) {
	w.watcher.Now, w.access.Now, w.server.Now = now, now, now
}

// acceptHTTPS replaces the guard: it only rejects by scheme, with the guard's message.
func acceptHTTPS(ctx context.Context, raw string) (string, error) {
	if !strings.HasPrefix(raw, "https://") {
		g, err := guard.New(guard.Config{})
		if err != nil {
			return "", err
		}
		return g.CheckURL(ctx, raw)
	}
	return strings.ToLower(raw), nil
}

// register adds a generation to the registry.
func (w *world) register(g *readtest.Generation, state string) {
	w.t.Helper()
	p := db.CreateGenerationParams{ID: g.ID, LogID: make([]byte, 16), Schema: readmodel.Schema(), State: state}
	if err := db.New(w.pool).CreateGeneration(context.Background(), p); err != nil {
		w.t.Fatal(err)
	}
}

// publish writes the log to the generation and makes the watcher look.
func (w *world) publish() {
	w.t.Helper()
	w.g.Write(w.chain)
	w.look()
}

func (w *world) look() {
	w.t.Helper()
	if r := w.watcher.LookAtRegistry(context.Background()); r.Err != nil {
		w.t.Fatal(r.Err)
	}
	if err := w.watcher.Look(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// final reports, as ingest, that a block is final, until end is called.
func (w *world) final(block uint64) (end func()) { return w.finalUpTo(block, 0) }

// finalUpTo is final with a report about the log up to a seq.
func (w *world) finalUpTo(block, seq uint64) (end func()) {
	return w.setIngestState("following", block, seq)
}

// setIngestState reports, as ingest, a final block with a given state and additional fields.
func (w *world) setIngestState(state string, block, seq uint64, more ...string) (end func()) {
	fields := fmt.Sprintf(`"state":"%s","finalBlock":%d,"seq":%d,"logId":"%032x"`, state, block, seq, 0)
	return w.setIngestStatus(strings.Join(append([]string{fields}, more...), ","))
}

// setIngestStatus writes a report of ingest with the given fields; the last one of a name counts.
func (w *world) setIngestStatus(fields string) (end func()) {
	w.exec(`INSERT INTO program_status (program, instance, at, status) VALUES ('ingest', 'final', now(), '{%s}')`, fields)
	w.look()
	return func() {
		w.exec(`DELETE FROM program_status WHERE instance = 'final'`)
		w.look()
	}
}

func (w *world) get(path string, header ...string) reply { return w.Get(path, header...) }

// partner creates a partner with one key.
func (w *world) partner(id int64, name string) (key string) {
	w.t.Helper()
	made, err := partners.Make(context.Background(), w.pool, id, name, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return made.APIKey
}

// key adds a key to a partner.
func (w *world) key(partner int64) string {
	w.t.Helper()
	issued, err := registry.RotateKey(context.Background(), w.pool, registry.Author{Name: "tests"}, partner, true)
	if err != nil {
		w.t.Fatal(err)
	}
	return issued.APIKey
}

// exec runs SQL in the test's Postgres.
func (w *world) exec(format string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(context.Background(), fmt.Sprintf(format, args...)); err != nil {
		w.t.Fatal(err)
	}
}

// metric returns the value of a counter or gauge with the given label values.
func (w *world) metric(name string, labels ...string) float64 {
	w.t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(values, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// methods returns the methods of a route, including HEAD.
func methods(e serve.Route) (out []string) {
	if e.Get != nil {
		out = append(out, "GET", "HEAD")
	}
	if e.Post != nil {
		out = append(out, "POST")
	}
	if !e.Partner {
		out = append(out, "OPTIONS")
	}
	return out
}

// withoutDetector leaves out a test under the race detector with -short: it sends one request after the other, and the
// detector sees the same goroutines in other tests.
func withoutDetector(t *testing.T) {
	if raceDetector && testing.Short() {
		t.Skip("the race detector sees the same goroutines in other tests")
	}
}
