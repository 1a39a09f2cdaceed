package query

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/local/localtest"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const testChain = 31337

var (
	vaultA = common.HexToAddress("0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1")
	vaultB = common.HexToAddress("0xb2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2")
	vaultC = common.HexToAddress("0xc3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3")
	router = common.HexToAddress("0x4444444444444444444444444444444444444444")
	alice  = common.HexToAddress("0x1111111111111111111111111111111111111111")
	bob    = common.HexToAddress("0x2222222222222222222222222222222222222222")
	carol  = common.HexToAddress("0x3333333333333333333333333333333333333333")
	nobody = common.HexToAddress("0x9999999999999999999999999999999999999999")
)

func vaultMeta(address common.Address, name string, start uint64) fact {
	return fact{kind: aVault, meta: &event.Vault{
		Address: address.Bytes(), StartBlock: start, Name: name, Symbol: "nv" + name, Decimals: 18,
		Asset: &event.Token{Address: common.HexToAddress("0x5555555555555555555555555555555555555555").Bytes(), Symbol: "USDX", Decimals: 6},
	}}
}

// clock is a clock that only the test moves.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time        { return time.Unix(0, c.ns.Load()) }
func (c *clock) add(d time.Duration)   { c.ns.Add(int64(d)) }
func newClock(at time.Time) (c *clock) { c = &clock{}; c.ns.Store(at.UnixNano()); return c }

// logBuffer keeps what was logged.
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

// world is a Query on real engines, without its loops: the test says when to
// look.
type world struct {
	*Query
	t      testing.TB
	conn   driver.Conn // of the reader
	writer driver.Conn
	pool   *pgxpool.Pool
	gen    int32
	ledger *ledger
	clock  *clock
	log    *logBuffer
	reg    *prometheus.Registry
	handle http.Handler
}

// generations keeps the tests apart: they share the engine and the prefix that
// the read-only login may read.
var generations atomic.Int32

func testConfig() Config {
	c := DefaultConfig()
	c.Listen, c.Router, c.PublicRateLimit = "127.0.0.1:0", router.Hex(), 0
	return c
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	return newWorldOn(t, localtest.ClickHouse(t), localtest.Postgres(t), change...)
}

func newWorldOn(t testing.TB, clickHouse, postgres string, change ...func(*Config)) *world {
	t.Helper()
	ctx := context.Background()
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.QueryUser = clickHouse, "navlog_query"
	reader, err := ch.OpenReader(conns(16))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	writer, err := ch.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	pool, err := registry.Open(ctx, registry.Config{URL: postgres, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	cfg := testConfig()
	for _, c := range change {
		c(&cfg)
	}
	w := &world{t: t, conn: reader, writer: writer, pool: pool, gen: generations.Add(1), ledger: newLedger(testChain),
		clock: newClock(time.Now()), log: &logBuffer{}, reg: prometheus.NewRegistry()}
	w.Query = New(cfg, testChain, ch, pool, acceptHTTPS, w.reg, w.reg, slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	w.Query.now = w.clock.now
	w.looks, w.prepares = time.Minute, time.Minute // the machine may be busy with other tests
	w.handle = w.Handler()
	if err := readmodel.Create(ctx, writer, ch.Database(w.gen)); err != nil {
		t.Fatal(err)
	}
	err = db.New(pool).CreateGeneration(ctx, db.CreateGenerationParams{ID: w.gen, LogID: make([]byte, 16), Schema: readmodel.Schema(), State: registry.Live})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// acceptHTTPS stands in for the guard: it refuses by scheme only, in the guard's
// words.
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

func (w *world) database() string { return w.readModel.Database(w.gen) }

// publish inserts what the ledger holds and looks at it.
func (w *world) publish() {
	w.t.Helper()
	w.ledger.insert(w.t, w.writer, w.database())
	w.look()
}

func (w *world) look() {
	w.t.Helper()
	view := w.askRegistry(context.Background(), w.registry.Load())
	w.registry.Store(view)
	if view.err != nil {
		w.t.Fatal(view.err)
	}
	if err := w.refresh(context.Background(), w.conn); err != nil {
		w.t.Fatal(err)
	}
}

// partner makes a partner with one key.
func (w *world) partner(id int64, name string) (key string) {
	w.t.Helper()
	ctx, queries := context.Background(), db.New(w.pool)
	if _, err := queries.CreatePartnerWithID(ctx, db.CreatePartnerWithIDParams{ID: id, Name: name}); err != nil {
		w.t.Fatal(err)
	}
	if err := queries.CreateEndpoint(ctx, db.CreateEndpointParams{PartnerID: id, Secret: []byte("sealed")}); err != nil {
		w.t.Fatal(err)
	}
	return w.key(id)
}

func (w *world) key(partner int64) string {
	w.t.Helper()
	key := registry.NewAPIKey(true)
	err := db.New(w.pool).CreateKey(context.Background(), db.CreateKeyParams{PartnerID: partner, Hash: registry.HashKey(key), Last4: key[len(key)-4:]})
	if err != nil {
		w.t.Fatal(err)
	}
	return key
}

type reply struct {
	*httptest.ResponseRecorder
	path string
}

// do sends a request and has the contract judge the answer; header is name,
// value, name, value.
func (w *world) do(method, path string, body io.Reader, header ...string) reply {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = io.ReadAll(body); err != nil {
			w.t.Fatal(err)
		}
	}
	r := httptest.NewRequest(method, path, bytes.NewReader(sent))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.handle.ServeHTTP(rec, r)
	r.Body = io.NopCloser(bytes.NewReader(sent))
	theContract().judge(w.t, r, sent, rec)
	return reply{rec, path}
}

func (w *world) get(path string, header ...string) reply { return w.do("GET", path, nil, header...) }

// body decodes an answer that must be 200 with ok true.
func (r reply) body(t testing.TB) map[string]any {
	t.Helper()
	if r.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", r.path, r.Code, r.Body)
	}
	out := decode(t, r.Body.Bytes())
	if out["ok"] != true {
		t.Fatalf("%s: ok is %v", r.path, out["ok"])
	}
	return out
}

func (r reply) data(t testing.TB) any { t.Helper(); return r.body(t)["data"] }

// failed checks an error answer and gives its details.
func (r reply) failed(t testing.TB, status int, code string) any {
	t.Helper()
	if r.Code != status {
		t.Fatalf("%s: status is %d and should be %d: %s", r.path, r.Code, status, r.Body)
	}
	out := decode(t, r.Body.Bytes())
	e, _ := out["error"].(map[string]any)
	if out["ok"] != false || e["code"] != code || e["message"] == "" || e["message"] == nil {
		t.Fatalf("%s: error should be %s: %s", r.path, code, r.Body)
	}
	if id := e["requestId"]; id == "" || id != r.Header().Get("X-Request-Id") {
		t.Fatalf("%s: requestId is %v and the header %q", r.path, id, r.Header().Get("X-Request-Id"))
	}
	return e["details"]
}

func decode(t testing.TB, b []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("not JSON: %v: %s", err, b)
	}
	return out
}
