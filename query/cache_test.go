package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestCacheAsksOnce(t *testing.T) {
	c := newCache(1 << 20)
	var made atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			f, err := c.answer(t.Context(), cacheKey{path: "k"}, nil, func() (*finished, error) {
				if made.Add(1) == 1 {
					close(begun)
				}
				<-release
				return &finished{plain: form{body: []byte("x")}}, nil
			})
			if err != nil || string(f.plain.body) != "x" {
				t.Errorf("%v, %v", f, err)
			}
		})
	}
	<-begun
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.answer(gone, cacheKey{path: "k"}, nil, nil); err == nil {
		t.Error("a client that is gone waits")
	}
	close(release)
	group.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestCacheKeepsNoFailure(t *testing.T) {
	c := newCache(1 << 20)
	if _, err := c.answer(t.Context(), cacheKey{path: "k"}, nil, func() (*finished, error) { return nil, errors.New("no") }); err == nil {
		t.Error("no error")
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = c.answer(t.Context(), cacheKey{path: "k"}, nil, func() (*finished, error) { panic("boom") })
	}()
	f, err := c.answer(t.Context(), cacheKey{path: "k"}, nil, func() (*finished, error) { return &finished{plain: form{body: []byte("x")}}, nil })
	if err != nil || string(f.plain.body) != "x" {
		t.Errorf("%v, %v", f, err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	const limit = 100 << 10
	c := newCache(limit)
	put := func(key string, size int) {
		t.Helper()
		if _, err := c.answer(t.Context(), cacheKey{path: key}, nil, func() (*finished, error) { return &finished{plain: form{body: make([]byte, size)}}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		put(fmt.Sprint(i), 2000)
		if c.size > limit {
			t.Fatalf("%d bytes after %d answers", c.size, i)
		}
	}
	held := 0
	for key, e := range c.entries {
		held += e.cost(key)
	}
	if held != c.size || len(c.entries) < 20 {
		t.Errorf("%d entries with %d bytes, counted %d", len(c.entries), held, c.size)
	}
	put("long", maxCachedAnswer+1)
	if _, kept := c.entries[cacheKey{path: "long"}]; kept {
		t.Error("one answer takes the room of many")
	}
}

// TestCachedAnswersAreTheSame: with the cache and without it, for every route,
// and for two partners.
func TestCachedAnswersAreTheSame(t *testing.T) {
	w := newFixture(t)
	keys := []string{w.partner(7, "Seven"), w.partner(8, "Eight")}
	ask := func() map[string]string {
		out := map[string]string{}
		for _, key := range keys {
			for _, c := range goldenCases() {
				if c.post == "" && c.name != "status" {
					r := w.get(c.path, "x-api-key", key, "X-Request-Id", "same")
					h := r.Header().Clone()
					for _, name := range []string{"Ratelimit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
						h.Del(name)
					}
					out[key+c.path] = fmt.Sprint(r.Code, h, r.Body)
				}
			}
		}
		return out
	}
	first, second := ask(), ask()
	if len(w.snapshot.Load().cache.entries) < 15 {
		t.Errorf("%d answers in the cache", len(w.snapshot.Load().cache.entries))
	}
	w.cfg.CacheBytes = 0
	for path, want := range ask() {
		same(t, path, first[path], want)
		same(t, path, second[path], want)
	}
}

func TestCacheFollowsTheState(t *testing.T) {
	w := newFixture(t)
	path := "/api/v1/vaults/" + vaultA.Hex()
	before := w.get(path)
	w.get(path)
	w.ledger.append(fact{kind: aNav, vault: vaultA, price: 2_000_000_000_000_000_000, assets: 1, supply: 1, block: 12, index: 0, tx: tx(40)}, fact{kind: aBlock, block: 12})
	w.publish()
	eventually(t, "the popular answer is made without being asked for", func() bool {
		return w.snapshot.Load().cache.finished(cacheKey{path: path}) != nil
	})
	after := w.get(path)
	if after.Header().Get("X-Indexed-Block") != "12" || after.Body.String() == before.Body.String() {
		t.Errorf("%v %s", after.Header(), after.Body)
	}
}

// TestPopularAnswerThatPanics is logged, and the program goes on.
func TestPopularAnswerThatPanics(t *testing.T) {
	w := newFixture(t)
	s := w.snapshot.Load()
	for range 2 {
		_, _ = s.cache.answer(t.Context(), cacheKey{path: "/"}, func(context.Context, *snapshot) { panic("boom") },
			func() (*finished, error) { return &finished{}, nil })
	}
	w.warm(t.Context(), s, s)
	eventually(t, "the panic is in the log", func() bool { return strings.Contains(w.log.String(), "boom") })
	eventually(t, "the next round may begin", func() bool {
		free := w.warming.TryLock()
		if free {
			w.warming.Unlock()
		}
		return free
	})
}

// TestCachedRequestKeepsNoHeaders: what a client adds to a request takes no room
// in the cache.
func TestCachedRequestKeepsNoHeaders(t *testing.T) {
	w := newFixture(t)
	freed := make(chan struct{})
	func() {
		filler := new([1 << 20]byte)
		runtime.AddCleanup(filler, func(freed chan struct{}) { close(freed) }, freed)
		request := httptest.NewRequestWithContext(context.WithValue(t.Context(), filler, filler), http.MethodGet, "/api/v1/vaults", nil)
		w.handle.ServeHTTP(httptest.NewRecorder(), request)
	}()
	c := w.snapshot.Load().cache
	defer runtime.KeepAlive(c)
	if c.finished(cacheKey{path: "/api/v1/vaults"}) == nil {
		t.Fatal("the answer is not in the cache")
	}
	eventually(t, "the request is let go", func() bool {
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	})
}

// TestOverload: with every place taken and the queue full, what is not in the
// cache is 503 and everything else goes on; then it recovers by itself.
func TestOverload(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.Concurrency = 1 })
	w.get("/api/v1/users").body(t)
	release, err := w.slots.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.slots.waiting.Add(waitersPerSlot)
	r := w.get("/api/v1/users?page=2")
	r.failed(t, 503, "UNAVAILABLE")
	if r.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", r.Header().Get("Retry-After"))
	}
	if n := testutil.ToFloat64(w.metrics.refused); n != 1 {
		t.Errorf("refused_total is %v", n)
	}
	for _, path := range []string{"/healthz", "/readyz", "/status", "/metrics", "/api/v1/users", "/openapi.json"} {
		if r := w.get(path); r.Code != 200 {
			t.Errorf("%s: %d under overload", path, r.Code)
		}
	}
	if strings.Contains(w.log.String(), "Too many requests are being answered") {
		t.Error("a crowd fills the log")
	}
	release()
	w.slots.waiting.Add(-waitersPerSlot)
	w.get("/api/v1/users?page=2").body(t)
}

func TestSlotsAreTakenInTurn(t *testing.T) {
	s := newSlots(2, func() {})
	first, _ := s.acquire(t.Context())
	second, _ := s.acquire(t.Context())
	entered := make(chan func())
	go func() {
		release, err := s.acquire(t.Context())
		if err != nil {
			t.Error(err)
		}
		entered <- release
	}()
	first()
	(<-entered)()
	gone, cancel := context.WithCancel(t.Context())
	again, _ := s.acquire(t.Context())
	cancel()
	if _, err := s.acquire(gone); err == nil {
		t.Error("a client that is gone has entered")
	}
	second()
	again()
	if len(s.taken) != 0 || s.waiting.Load() != 0 {
		t.Errorf("%d places taken, %d waiting", len(s.taken), s.waiting.Load())
	}
}

// TestReadersOfOneAddress: one address has a part of the places of long answers, and
// who wants more of them waits for one of its own.
func TestReadersOfOneAddress(t *testing.T) {
	refused := 0
	r := newReaders(func() { refused++ })
	one, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	enter := func(ctx context.Context, ip netip.Addr) func() {
		t.Helper()
		leave, err := r.enter(ctx, ip)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	var leaves []func()
	for range clientStreams {
		leaves = append(leaves, enter(t.Context(), one))
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.enter(impatient, one); err == nil {
		t.Error("one address has more than its places")
	}
	enter(impatient, other)()
	same(t, "addresses, and requests of the one", []any{len(r.of), r.of[one].inside}, []any{1, clientStreams})
	waits := make(chan func())
	go func() { leave, _ := r.enter(t.Context(), one); waits <- leave }()
	eventually(t, "it waits", func() bool { return r.of[one].places.waiting.Load() == 1 })
	leaves[0]()
	leaves[0] = <-waits
	for _, leave := range leaves {
		leave()
	}
	same(t, "addresses, and refused", []any{len(r.of), refused}, []any{0, 0})
}

// TestLongAnswerBeyondAnAddress is refused after a while, and frees nobody else's place.
func TestLongAnswerBeyondAnAddress(t *testing.T) {
	w := newFixture(t)
	ip := w.clientIP(httptest.NewRequest(http.MethodGet, "/", nil))
	var leave func()
	for range clientStreams {
		var err error
		if leave, err = w.readers.enter(t.Context(), ip); err != nil {
			t.Fatal(err)
		}
	}
	w.get("/api/v1/queues/deposits").failed(t, 503, "UNAVAILABLE")
	leave()
	w.get("/api/v1/queues/deposits").data(t)
	same(t, "places", w.readers.of[ip].inside, clientStreams-1)
}

// TestSlowReaderIsCutOff: a client asks for a long answer and takes nothing, or
// a little now and then.
func TestSlowReaderIsCutOff(t *testing.T) {
	w := newWorld(t)
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1), fact{kind: aBlock, block: 9})
	w.ledger.insert(t, w.writer, w.database())
	rows := make([][]any, maxUnswept)
	for i := range rows {
		hash := common.BigToHash(big.NewInt(int64(i + 1)))
		rows[i] = []any{uint64(2), uint8(0), int8(1), uint64(0), writer, vaultA.Bytes(), uint64(i + 1), alice.Bytes(), alice.Bytes(), uint32(0), big.NewInt(1), big.NewInt(1), int8(0), uint64(9), uint32(1_700_000_012), hash.Bytes(), uint32(i)}
	}
	insertRows(t, w.writer, fmt.Sprintf("INSERT INTO %s.deposits (%s)", w.database(), columns["deposits"]), rows)
	w.look()
	cut := make(chan any, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer func() { v := recover(); cut <- v; panic(http.ErrAbortHandler) }()
		w.handle.ServeHTTP(rw, r)
	}), ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(streamChunk); err != nil {
			t.Error(err)
		}
		return ctx
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	ask := func(read func(net.Conn)) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(streamChunk); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /api/v1/queues/deposits HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		go read(conn)
		if v := <-cut; v != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v: the client got it all", v)
		}
		if len(w.streams.taken) != 0 {
			t.Error("its place is still taken")
		}
	}
	patience, whole := w.patience, w.cfg.WriteTimeout
	w.patience = patience / 100
	ask(func(net.Conn) {})
	w.patience, w.cfg.WriteTimeout = patience, time.Second
	ask(func(conn net.Conn) { // each piece well in time, and all of them in ten seconds
		pace := time.NewTicker(100 * time.Millisecond)
		defer pace.Stop()
		for b := make([]byte, streamChunk); ; <-pace.C {
			if _, err := conn.Read(b); err != nil {
				return
			}
		}
	})
	w.cfg.WriteTimeout = whole
	w.get("/api/v1/queues/deposits").body(t)
}
