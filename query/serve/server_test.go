package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
)

// block returns an answer with the block that it is pinned to.
func block(r *serve.Request) (*serve.Answer, error) {
	page := r.Params.Page()
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		return r.List([]string{serve.Decimal(p.Block)}, page, 1), nil
	})
}

// startAPI starts a server for some routes, with the given concurrency, over the small chain.
func startAPI(t *testing.T, concurrency int, routes ...serve.Route) *readtest.Client {
	t.Helper()
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(readtest.SmallChain())
	return readtest.ServeBy(t, serve.New(concurrency, 1<<20, prometheus.NewRegistry()), g, routes...)
}

// TestOverload: with every slot taken and the queue full, requests that are not cached fail with 503 and everything
// else works; then the server recovers by itself.
func TestOverload(t *testing.T) {
	c := startAPI(t, 1, serve.Route{Path: "/blocks", Get: block})
	var log bytes.Buffer
	c.Server.Log = slog.New(slog.NewTextHandler(&log, nil))
	c.Serve("/blocks").JSON(t)
	release, err := c.Server.Occupy(t.Context(), netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	disperse := c.Server.Crowd()
	r := c.Serve("/blocks?page=2")
	r.Failed(t, 503, "UNAVAILABLE")
	if r.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", r.Header().Get("Retry-After"))
	}
	if n := c.Server.Refused(); n != 1 {
		t.Errorf("refused_total is %v", n)
	}
	c.Serve("/blocks").JSON(t)
	c.Serve("/blocks?page=").JSON(t) // the same request
	if log.Len() > 0 {
		t.Errorf("overload fills the log: %s", log.String())
	}
	release()
	disperse()
	c.Serve("/blocks?page=2").JSON(t)
}

// TestCachedRequestIsReleased: headers that a client adds to a request, and parameters that do not count, use no memory
// in the cache.
func TestCachedRequestIsReleased(t *testing.T) {
	c := startAPI(t, 1, serve.Route{Path: "/blocks", Get: block})
	freed := make(chan struct{})
	func() {
		const path, first = "/blocks", "?page=1&page="
		line := new([1 << 20]byte) // net/http reads it as one string, and paths and parameters are parts of it
		copy(line[:], path+first+strings.Repeat("2", len(line)))
		runtime.AddCleanup(line, func(freed chan struct{}) { close(freed) }, freed)
		request := httptest.NewRequestWithContext(context.WithValue(t.Context(), line, line), http.MethodGet, path, nil)
		request.RequestURI = unsafe.String(&line[0], len(line))
		request.URL.Path, request.URL.RawQuery = request.RequestURI[:len(path)], request.RequestURI[len(path)+1:]
		c.Handler.ServeHTTP(httptest.NewRecorder(), request)
	}()
	if c.Server.Cached() != 1 {
		t.Fatal("the response is not in the cache")
	}
	for done := false; !done; {
		runtime.GC()
		select {
		case <-freed:
			done = true
		case <-time.After(10 * time.Millisecond):
			if t.Context().Err() != nil {
				t.Fatal("the request is not released")
			}
		}
	}
	if c.Server.Cached() != 1 {
		t.Error("the response was evicted")
	}
}

// TestTornAnswers: a handler's error is discarded if a query read a state other than the pin's, and the answer is not
// cached under the state that was read first.
func TestTornAnswers(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.SmallChain()
	g.Write(l)
	tries := 0
	c := readtest.ServeBy(t, serve.New(16, 1<<20, prometheus.NewRegistry()), g,
		serve.Route{Path: "/torn", Get: func(r *serve.Request) (*serve.Answer, error) {
			return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
				if tries++; tries == 1 { // the new state is written, and the watcher has not seen it
					l.Retract(10)
					l.Append(readtest.BlockRecord(11), readtest.BlockRecord(12))
					g.Write(l)
				}
				totals, err := ask.TotalsOf(ctx, p, readtest.VaultA)
				if err == nil && p.Block == 11 {
					err = serve.NotFound("There is no such thing.")
				}
				return &serve.Answer{Data: []uint64{totals.Of(readtest.VaultA, readtest.VaultA).Deposits}}, err
			})
		}})
	for range 2 {
		r := c.Serve("/torn")
		if got := fmt.Sprintln(r.Data(t), r.Header().Get("X-Indexed-Block"), tries,
			c.Server.Cached()); got != "[2] 12 2 1\n" {
			t.Errorf("the response is %s", got)
		}
	}
}

func brokenPart() error { panic("boom") }

// TestPanics: panics, also those in a goroutine of the handler, get the response 500, are logged with their origin, and
// counted. A response that has begun to be sent is cut off: a client would mistake an error or a regular end for the
// rest of the response.
func TestPanics(t *testing.T) {
	c := startAPI(t, 1,
		serve.Route{Path: "/broken", Get: func(*serve.Request) (*serve.Answer, error) { return nil, brokenPart() }},
		serve.Route{Path: "/part", Get: func(*serve.Request) (*serve.Answer, error) {
			return nil, ask.Together(func() error { return errors.New("another part") },
				func() error { return ask.Together(brokenPart) })
		}},
		serve.Route{Path: "/begun", Expensive: serve.Always, Get: func(r *serve.Request) (*serve.Answer, error) {
			return r.Pinned(func(context.Context, *ask.Pin) (*serve.Answer, error) {
				return &serve.Answer{Stream: func(_ context.Context, w io.Writer) error {
					if _, err := io.WriteString(w, `{"ok":true,`); err != nil {
						return err
					}
					return ask.Together(brokenPart)
				}}, nil
			})
		}},
		serve.Route{Path: "/live", Live: true, Get: func(r *serve.Request) (*serve.Answer, error) {
			return r.Following(func(uint64) *serve.Answer {
				return &serve.Answer{Kind: "text/event-stream",
					Live: func(context.Context, *serve.Live) error { return brokenPart() }}
			})
		}},
	)
	var log bytes.Buffer
	c.Server.Log = slog.New(slog.NewTextHandler(&log, nil))
	for i, path := range []string{"/broken", "/part", "/begun", "/live"} {
		log.Reset()
		cut := func() (v any) {
			defer func() { v = recover() }()
			c.Serve(path).Failed(t, 500, "INTERNAL_ERROR")
			return nil
		}()
		if begun := path == "/begun" || path == "/live"; begun != (cut == http.ErrAbortHandler) {
			t.Errorf("%s ends with the panic %v", path, cut)
		}
		if !strings.Contains(log.String(), "panic=boom") || !strings.Contains(log.String(), "brokenPart") {
			t.Errorf("%s: the log lacks the panic and its origin: %s", path, log.String())
		}
		if n := c.Server.Panics(); n != float64(i+1) {
			t.Errorf("%s: %v panics were counted", path, n)
		}
		if n := c.Server.Counted(path, "GET", "500"); n != 1 {
			t.Errorf("%s: counted %v times", path, n)
		}
	}
	if c.Server.Cached() != 0 {
		t.Error("a panic is cached")
	}
}

// long is a response of many pieces.
func long(r *serve.Request) (*serve.Answer, error) {
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		return &serve.Answer{Stream: func(ctx context.Context, w io.Writer) error {
			out := bufio.NewWriterSize(w, serve.StreamChunk)
			out.WriteString(`{"ok":true,"data":["`)
			for range 2000 {
				out.WriteString(strings.Repeat("x", 1000))
			}
			out.WriteString("\"]}\n")
			return out.Flush()
		}}, nil
	})
}

// TestTimeOfALongResponse: the time until a long response begins is counted from the request on, as for all others. If
// it were counted from the moment at which the response is known to be long, the connection could end before an error
// is sent.
func TestTimeOfALongResponse(t *testing.T) {
	var called []time.Time
	var limit time.Time
	c := startAPI(t, 1, serve.Route{Path: "/long", Expensive: serve.Always, Get: func(r *serve.Request) (*serve.Answer, error) {
		called = append(called, time.Now())
		limit, _ = r.Context.Deadline()
		return long(r)
	}})
	c.Serve("/long").JSON(t)
	if len(called) != 2 || limit.IsZero() || limit.After(called[0].Add(c.Server.RequestTimeout)) {
		t.Errorf("called at %v, the second time until %v", called, limit)
	}
}

// TestStreams: the ETag of a long response is made from its inputs, because its bytes are not known before they are
// sent.
func TestStreams(t *testing.T) {
	c := startAPI(t, 1, serve.Route{Path: "/long", Get: long, Expensive: serve.Always},
		serve.Route{Path: "/cut", Expensive: serve.Always, Get: func(r *serve.Request) (*serve.Answer, error) {
			return r.Pinned(func(context.Context, *ask.Pin) (*serve.Answer, error) {
				return &serve.Answer{Stream: func(_ context.Context, w io.Writer) error {
					if r.HTTP.URL.Query().Has("early") {
						_, _ = io.WriteString(w, "{")
						return errors.New("no more")
					}
					_, _ = w.Write(make([]byte, 2*serve.StreamChunk))
					return errors.New("no more")
				}}, nil
			})
		}})
	first := c.Serve("/long")
	first.JSON(t)
	tags := map[string]bool{}
	for _, path := range []string{"/long", "/long?asOfBlock=10", "/long?asOfBlock=9", "/long?x=1"} {
		tags[c.Serve(path).Header().Get("ETag")] = true
	}
	if len(tags) != 4 || !tags[first.Header().Get("ETag")] {
		t.Errorf("tags are %v", tags)
	}
	head, _ := http.NewRequest("HEAD", "/long", nil)
	rec := httptest.NewRecorder()
	c.Handler.ServeHTTP(rec, head)
	if rec.Code != 200 || rec.Body.Len() > 0 || rec.Header().Get("ETag") != first.Header().Get("ETag") {
		t.Errorf("HEAD: %d with %d bytes and %v", rec.Code, rec.Body.Len(), rec.Header())
	}
	again := httptest.NewRequest("GET", "/long", nil)
	again.Header.Set("If-None-Match", first.Header().Get("ETag"))
	rec = httptest.NewRecorder()
	c.Handler.ServeHTTP(rec, again)
	if rec.Code != 304 || rec.Body.Len() > 0 {
		t.Errorf("second request: %d with %d bytes", rec.Code, rec.Body.Len())
	}
	early := c.Serve("/cut?early") // nothing was sent
	early.Failed(t, 500, "INTERNAL_ERROR")
	if early.Header().Get("ETag") != "" {
		t.Errorf("an error has the tag %s", early.Header().Get("ETag"))
	}
	defer func() {
		if v := recover(); v != http.ErrAbortHandler || c.Server.StreamsTaken() != 0 {
			t.Errorf("a truncated response ends with the panic %v, with %d slots taken", v, c.Server.StreamsTaken())
		}
	}()
	c.Serve("/cut")
}

// TestLongAnswerBecomesShort: a response that was long when the server looked for its length, and is short after a
// reorganisation, is sent like any short one.
func TestLongAnswerBecomesShort(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.SmallChain()
	g.Write(l)
	tries := 0
	queue := func(r *serve.Request) (*serve.Answer, error) {
		return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
			switch tries++; tries {
			case 1:
				return &serve.Answer{Stream: func(context.Context, io.Writer) error { return errors.New("it is streamed") }}, nil
			case 2:
				l.Retract(10)
				l.Append(readtest.BlockRecord(11), readtest.BlockRecord(12))
				g.Write(l)
			}
			totals, err := ask.TotalsOf(ctx, p, readtest.VaultA)
			return &serve.Answer{Data: []uint64{totals.Of(readtest.VaultA, readtest.VaultA).Deposits}}, err
		})
	}
	c := readtest.ServeBy(t, serve.New(1, 1<<20, prometheus.NewRegistry()), g,
		serve.Route{Path: "/queue", Get: queue, Expensive: serve.Always})
	r := c.Serve("/queue")
	if got := fmt.Sprintln(r.Data(t), r.Header().Get("X-Indexed-Block"), tries); got != "[2] 12 3\n" ||
		r.Header().Get("ETag") == "" {
		t.Errorf("the response is %s with %v", got, r.Header())
	}
	if streams, slots := c.Server.StreamsTaken(), c.Server.EngineTaken(); streams+slots != 0 {
		t.Errorf("%d places and %d slots are taken", streams, slots)
	}
}

// TestLongAnswerBeyondAnAddress: a response beyond the share of an address is rejected after a while, whether it is
// streamed or finished before it is sent, and those of others are not. Short ones need no place.
func TestLongAnswerBeyondAnAddress(t *testing.T) {
	finished := func(bytes int) serve.Handler {
		return func(*serve.Request) (*serve.Answer, error) {
			return &serve.Answer{Data: strings.Repeat("x", bytes)}, nil
		}
	}
	c := startAPI(t, 1, serve.Route{Path: "/long", Get: long, Expensive: serve.Always},
		serve.Route{Path: "/finished", Get: finished(256 << 10)}, serve.Route{Path: "/short", Get: finished(255 << 10)})
	var ip netip.Addr // the address of all clients in this test
	var leave func()
	tag := c.Serve("/finished").Header().Get("ETag")
	for range serve.LongPerAddress {
		var err error
		if leave, err = c.Server.OccupyStream(t.Context(), ip); err != nil {
			t.Fatal(err)
		}
	}
	c.Serve("/long").Failed(t, 503, "UNAVAILABLE")
	c.Serve("/finished").Failed(t, 503, "UNAVAILABLE")
	c.Serve("/short").JSON(t)
	if r := c.Serve("/finished", "If-None-Match", tag); r.Code != http.StatusNotModified {
		t.Errorf("a response that the client has returns %d", r.Code)
	}
	other, err := c.Server.OccupyStream(t.Context(), netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	other()
	leave()
	c.Serve("/long").JSON(t)
	c.Serve("/finished").JSON(t)
	if n := c.Server.StreamsTaken(); n != serve.LongPerAddress-1 {
		t.Errorf("%d slots taken", n)
	}
}

// TestPartnersDoNotWaitForThePublic: with every slot of the public taken and its queue full, a partner's request is
// handled.
func TestPartnersDoNotWaitForThePublic(t *testing.T) {
	c := startAPI(t, 1, serve.Route{Path: "/blocks", Get: block}, serve.Route{Path: "/mine", Get: block, Partner: true})
	release, err := c.Server.Occupy(t.Context(), netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	defer c.Server.Crowd()()
	c.Serve("/blocks").Failed(t, 503, "UNAVAILABLE")
	c.Serve("/mine").JSON(t)
}

// TestPostsHoldNoEngineSlot: POSTs of a partner that wait, for example for DNS, delay neither the reads of others nor
// the POSTs of other partners.
func TestPostsHoldNoEngineSlot(t *testing.T) {
	begun, answer := make(chan struct{}), make(chan struct{})
	c := startAPI(t, 4, serve.Route{Path: "/mine", Partner: true, Get: block,
		Post: func(r *serve.Request) (*serve.Answer, error) {
			if r.Partner.ID == 7 {
				begun <- struct{}{}
				<-answer
			}
			return &serve.Answer{Data: "posted"}, nil
		}})
	c.Server.Admit = func(r *serve.Request, _ *serve.Route) error {
		id, err := strconv.Atoi(r.HTTP.Header.Get("X-Partner"))
		r.Partner = &serve.Partner{ID: uint32(id)}
		return err
	}
	do := func(method, partner string) int {
		r := httptest.NewRequest(method, "/mine", nil)
		r.Header.Set("X-Partner", partner)
		w := httptest.NewRecorder()
		c.Handler.ServeHTTP(w, r)
		return w.Code
	}
	var waiting sync.WaitGroup
	for range serve.PostsPerPartner {
		waiting.Go(func() {
			if code := do("POST", "7"); code != 200 {
				t.Errorf("a POST that waited: %d", code)
			}
		})
		<-begun
	}
	if engine, posts := c.Server.EngineTaken(), c.Server.PostsTaken(); engine != 0 || posts != serve.PostsPerPartner {
		t.Errorf("%d engine slots and %d places are taken", engine, posts)
	}
	if get, post, beyond := do("GET", "8"), do("POST", "8"), do("POST", "7"); get != 200 || post != 200 || beyond != 503 {
		t.Errorf("another partner: GET %d, POST %d; the same beyond its share: %d", get, post, beyond)
	}
	close(answer)
	waiting.Wait()
}

// TestSlowReaderIsCutOff: a client requests a long response and reads nothing, or only a little now and then.
func TestSlowReaderIsCutOff(t *testing.T) {
	c := startAPI(t, 1, serve.Route{Path: "/long", Get: long, Expensive: serve.Always})
	cut := make(chan any, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer func() { v := recover(); cut <- v; panic(http.ErrAbortHandler) }()
		c.Handler.ServeHTTP(rw, r)
	}), ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(serve.StreamChunk); err != nil {
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
	get := func(read func(net.Conn)) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(serve.StreamChunk); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /long HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		go read(conn)
		if v := <-cut; v != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v: the client received everything", v)
		}
		if c.Server.StreamsTaken() != 0 {
			t.Error("its slot is still taken")
		}
	}
	patience, whole := c.Server.Patience, c.Server.WriteTimeout
	c.Server.Patience = patience / 100
	get(func(net.Conn) {})
	c.Server.Patience, c.Server.WriteTimeout = patience, time.Second
	get(func(conn net.Conn) { // each piece well within its deadline, but all of them would take ten seconds
		pace := time.NewTicker(100 * time.Millisecond)
		defer pace.Stop()
		for b := make([]byte, serve.StreamChunk/4); ; <-pace.C {
			if _, err := conn.Read(b); err != nil {
				return
			}
		}
	})
	c.Server.WriteTimeout = whole
	c.Serve("/long").JSON(t)
}

// TestConnectionsForAllAtOnce: requests that hold a slot never wait for a connection to the engine, and neither does
// the query for the newest state.
func TestConnectionsForAllAtOnce(t *testing.T) {
	const concurrency = 3
	conn, err := readtest.Config(enginetest.ClickHouse(t)).OpenReader("", serve.Questions(concurrency))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const cheap, expensive = concurrency + 1, 1 + 1
	if open, most := conn.Stats().MaxOpenConns, 3*(cheap+expensive); open <= most {
		t.Errorf("%d connections for %d concurrent queries", open, most)
	}
}

// TestBodiesAreReadFirst: a request is handled once its whole body has arrived, and until then holds no slot or place.
// An announced body that is broken, or does not arrive, is an error of every kind of route, also of those whose
// responses have no read deadline, and the server still ends cleanly.
func TestBodiesAreReadFirst(t *testing.T) {
	handled := func(next serve.Handler) serve.Handler {
		return func(r *serve.Request) (*serve.Answer, error) {
			if n, err := r.HTTP.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("%s %s is handled before its body has arrived: %d, %v", r.HTTP.Method, r.HTTP.URL, n, err)
			}
			return next(r)
		}
	}
	post := func(r *serve.Request) (*serve.Answer, error) {
		body, err := r.JSONBody()
		return &serve.Answer{Data: string(body)}, err
	}
	c := startAPI(t, 1,
		serve.Route{Path: "/post", Post: handled(post)},
		serve.Route{Path: "/blocks", Get: handled(block)},
		serve.Route{Path: "/long", Get: handled(long), Expensive: serve.Always},
		serve.Route{Path: "/file", Get: handled(long), IsFile: true},
		serve.Route{Path: "/live", Get: handled(silent), Live: true},
	)
	c.Server.Heartbeat = 10 * time.Millisecond
	server := httptest.NewUnstartedServer(c.Handler)
	// only the body may be late
	server.Config.ReadHeaderTimeout, server.Config.ReadTimeout = 10*time.Second, 500*time.Millisecond
	server.Config.RegisterOnShutdown(c.Server.EndLive)
	server.Start()
	t.Cleanup(server.Close) // after the connections
	send := func(request, body string) *http.Response {
		t.Helper()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s", request,
			body); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		return r
	}
	for _, request := range []string{"POST /post", "GET /blocks", "GET /long", "GET /file", "GET /live"} {
		for body, status := range map[string]int{
			"Content-Length: 2\r\n\r\n{}": 200, "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n": 200,
			"Content-Length: 10\r\n\r\n{": 400, "Transfer-Encoding: chunked\r\n\r\nx\r\n": 400,
			"Content-Length: 16385\r\n\r\n" + strings.Repeat(" ", 16385): 413,
		} {
			r := send(request, body)
			if r.StatusCode != status {
				t.Errorf("%s with %.40q: %s", request, body, r.Status)
			}
			if status == 400 {
				if text, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(text), "INVALID_BODY") {
					t.Errorf("%s: %s, %v", request, text, err)
				}
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Errorf("the server does not end: %v", err)
	}
}

// TestHalfClosedConnection: a client that ends its side of the connection before the response is made gets a documented
// error. The request is counted as that of a client that disconnected, and is no error of the server.
func TestHalfClosedConnection(t *testing.T) {
	g, reg := readtest.New(t, enginetest.ClickHouse(t)), prometheus.NewRegistry()
	g.Write(readtest.SmallChain())
	slow := func(r *serve.Request) (*serve.Answer, error) {
		<-r.Context.Done()
		return nil, r.Context.Err()
	}
	// A change is completed, whether or not its client has left, and its client must know whether it may repeat it.
	change := func(r *serve.Request) (*serve.Answer, error) {
		<-r.HTTP.Context().Done()
		return nil, &serve.Failure{Status: http.StatusServiceUnavailable, Code: serve.CodeUnavailable, Message: "It may have happened."}
	}
	c := readtest.ServeBy(t, serve.New(4, 0, reg), g, serve.Route{Path: "/slow", Get: slow, Post: change})
	var logged bytes.Buffer
	c.Server.Log = slog.New(slog.NewTextHandler(&logged, nil))
	server := httptest.NewServer(c.Handler)
	t.Cleanup(server.Close)
	const post = "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
	for request, want := range map[string]string{
		"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n": "503 1 The client closed its side of the connection before the response was made.",
		post + "{":                              "400  The body could not be read to its end.",
		post + "{}":                             "503  It may have happened.",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Error struct{ Message string } }
		err = json.NewDecoder(r.Body).Decode(&answer)
		if got := fmt.Sprint(r.StatusCode, " ", r.Header.Get("Retry-After"), " ", answer.Error.Message); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", request, got, err, want)
		}
		conn.Close()
	}
	if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP navlog_query_requests_total HTTP requests, by route, method and status.
# TYPE navlog_query_requests_total counter
navlog_query_requests_total{method="GET",route="/slow",status="499"} 1
navlog_query_requests_total{method="POST",route="/slow",status="400"} 1
navlog_query_requests_total{method="POST",route="/slow",status="503"} 1
`), "navlog_query_requests_total"); err != nil || strings.Count(logged.String(), "\n") != 1 ||
		!strings.Contains(logged.String(), "It may have happened.") {
		t.Errorf("counted: %v; logged: %s", err, &logged)
	}
}

// TestClientLeavesWhileItWaits: a client that leaves while its request waits, for whatever, is no error of the server.
func TestClientLeavesWhileItWaits(t *testing.T) {
	g, reg := readtest.New(t, enginetest.ClickHouse(t)), prometheus.NewRegistry()
	g.Write(readtest.SmallChain())
	begun, release := make(chan struct{}), make(chan struct{})
	slow := func(*serve.Request) (*serve.Answer, error) {
		begun <- struct{}{}
		<-release
		return &serve.Answer{}, nil
	}
	quick := func(*serve.Request) (*serve.Answer, error) { return &serve.Answer{}, nil }
	c := readtest.ServeBy(t, serve.New(1, 1<<20, reg), g, serve.Route{Path: "/slow", Get: slow},
		serve.Route{Path: "/slot", Get: quick, Uncached: true}, serve.Route{Path: "/admission", Get: quick},
		serve.Route{Path: "/partner/slow", Get: slow, Uncached: true, Partner: true})
	admit := c.Server.Admit
	c.Server.Admit = func(r *serve.Request, e *serve.Route) error {
		if e.Path != "/admission" {
			return admit(r, e)
		}
		<-r.Context.Done()
		return serve.RegistryFailure(r.Context.Err())
	}
	var logged bytes.Buffer
	c.Server.Log = slog.New(slog.NewTextHandler(&logged, nil))
	server := httptest.NewServer(c.Handler)
	t.Cleanup(server.Close)
	var holding sync.WaitGroup // the slots
	for _, path := range []string{"/slow", "/partner/slow"} {
		holding.Go(func() { c.Serve(path) })
		<-begun
	}
	for path, times := range map[string]int{
		"/slow":         1, // waits for the response to the equal request
		"/slot":         20,
		"/admission":    1,
		"/partner/slow": 1, // waits for a slot
	} {
		for range times {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r.Body)
			if err != nil || !strings.Contains(string(text), "The client closed its side of the connection") {
				t.Errorf("%s: %s, %v", path, text, err)
			}
			conn.Close()
		}
		if n := c.Server.Counted(path, "GET", "499"); n != float64(times) {
			t.Errorf("%s: %v of %d are counted as clients that left", path, n, times)
		}
	}
	close(release)
	holding.Wait()
	if logged.Len() > 0 {
		t.Errorf("logged: %s", &logged)
	}
}
