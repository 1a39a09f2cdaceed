package query

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/query/access"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

// slice is how long a query uses a processor of the fake engine before it yields.
const slice = 5 * time.Millisecond

// fakeEngine is an engine whose queries share a number of processors. It uses the clock of the bubble that the test
// runs in.
type fakeEngine struct {
	processors chan struct{}

	mu      sync.Mutex
	running int
	most    int // maximum number that ran at once

	fails *state.Error // of each query, after ten seconds; nil: none
}

func newFakeEngine(processors int) *fakeEngine {
	return &fakeEngine{processors: make(chan struct{}, processors)}
}

// ask uses cost of processor time, or ends with its context.
func (e *fakeEngine) ask(ctx context.Context, cost time.Duration) error {
	if e.fails != nil {
		<-ctx.Done()
		return e.fails
	}
	e.mu.Lock()
	e.running++
	e.most = max(e.most, e.running)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.running--
		e.mu.Unlock()
	}()
	for ; cost > 0 && ctx.Err() == nil; cost -= slice {
		select {
		case e.processors <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		<-time.After(slice)
		<-e.processors
	}
	return ctx.Err()
}

// loaded is a server in front of a fake engine. The client's address is in X-From.
type loaded struct {
	handler http.Handler
	server  *serve.Server
	engine  *fakeEngine
}

func newLoaded(concurrency int, engineTime time.Duration, processors int) *loaded {
	log := slog.New(slog.DiscardHandler)
	l := &loaded{engine: newFakeEngine(processors), server: serve.New(concurrency, 0, prometheus.NewRegistry())}
	a := access.New(nil, 120, prometheus.NewRegistry(), log)
	l.server.Watcher = state.New(testChain, 1, time.Minute, readmodel.DefaultConfig(), nil, nil, log)
	l.server.Log, l.server.RequestTimeout, l.server.WriteTimeout, l.server.FileTimeout = log, 10*time.Second,
		30*time.Second, time.Minute
	if engineTime > 0 {
		l.server.SetBudget(a.EngineTime(engineTime))
	}
	l.server.Admit = func(r *serve.Request, e *serve.Route) error {
		r.HTTP.RemoteAddr = r.HTTP.Header.Get("X-From") + ":1"
		return a.Admit(r, e)
	}
	asking := func(cost time.Duration) serve.Handler {
		return func(r *serve.Request) (*serve.Answer, error) {
			if err := l.engine.ask(r.Context, cost); err != nil {
				return nil, err
			}
			return &serve.Answer{Data: "done"}, nil
		}
	}
	l.handler = l.server.Handler([]serve.Route{
		{Path: "/normal", Get: asking(20 * time.Millisecond)},
		{Path: "/users", Get: asking(700 * time.Millisecond), Expensive: serve.PastByAmount},
		{Path: "/explain", Get: asking(300 * time.Millisecond), Expensive: serve.Always},
		{Path: "/list", Get: asking(250 * time.Millisecond)},
		{Path: "/proofs", Expensive: serve.Always, Proves: serve.Always, Get: func(r *serve.Request) (*serve.Answer, error) {
			if err := r.BeforeProofs(r.Context,
				func(ctx context.Context) error { return l.engine.ask(ctx, 300*time.Millisecond) }); err != nil {
				return nil, err
			}
			<-time.After(time.Second) // a call of the node
			return &serve.Answer{Data: "done"}, nil
		}},
		{Path: "/block", Get: asking(250 * time.Millisecond), Uncached: true},
		{Path: "/statement", Get: asking(250 * time.Millisecond), IsFile: true},
	}, nil, nil)
	return l
}

// get sends one request.
func (l *loaded) get(ctx context.Context, method, path, from string) int {
	r := httptest.NewRequestWithContext(ctx, method, path, nil)
	r.Header.Set("X-From", from)
	rec := httptest.NewRecorder()
	l.handler.ServeHTTP(rec, r)
	return rec.Code
}

// crowd opens connections that send one request after another until ctx ends.
func (l *loaded) crowd(ctx context.Context, connections int, path, from func(n int) string) *sync.WaitGroup {
	var group sync.WaitGroup
	for n := range connections {
		group.Go(func() {
			for ctx.Err() == nil {
				method := http.MethodGet
				if n%3 == 0 {
					method = http.MethodHead
				}
				if l.get(ctx, method, path(n), from(n)) != 200 {
					<-time.After(50 * time.Millisecond) // a program that ignores rejections
				}
			}
		})
	}
	return &group
}

// bystanders sends a normal request ten times per second, each from a different address, and returns the 99th
// percentile of the latency and the number of rejected requests.
func (l *loaded) bystanders(path string, ctx context.Context) (p99 time.Duration, refused int) {
	var mu sync.Mutex
	var took []time.Duration
	var group sync.WaitGroup
	for n := range 10 {
		group.Go(func() {
			<-time.After(time.Duration(n) * 97 * time.Millisecond)
			for range 10 {
				begun := time.Now()
				code := l.get(ctx, http.MethodGet, path, fmt.Sprintf("192.0.%d.1", n))
				mu.Lock()
				took = append(took, time.Since(begun))
				if code != 200 {
					refused++
				}
				mu.Unlock()
				<-time.After(max(0, time.Second-time.Since(begun)))
			}
		})
	}
	group.Wait()
	slices.Sort(took)
	return took[len(took)*99/100], refused
}

// TestBystandersUnderLoad: sixty hostile connections of each kind, from one address or from twenty /64s of a /48, at
// most double the latency of others, and cause no rejections for them. No rate limit applies to the hostile ones:
// only classes, turns and shares contain them.
func TestBystandersUnderLoad(t *testing.T) {
	one := func(int) string { return "198.51.100.7" }
	kinds := map[string]struct {
		path, from func(n int) string
	}{
		"past users by totals": {func(n int) string {
			return fmt.Sprintf("/users?sortBy=totalDeposited&asOfBlock=%d",
				n)
		}, one},
		"past users by totals of a /48": {func(n int) string {
			return fmt.Sprintf("/users?sortBy=totalWithdrawn&asOfBlock=%d",
				n)
		}, func(n int) string { return fmt.Sprintf("[2001:db8:1:%x::1]", n%20) }},
		"explain":        {func(n int) string { return fmt.Sprintf("/explain?x=%d", n) }, one},
		"deep pages":     {func(n int) string { return fmt.Sprintf("/list?page=%d&pageSize=100", 500+n) }, one},
		"cheap requests": {func(n int) string { return fmt.Sprintf("/normal?x=%d", n) }, one},
		"cheap requests of a /24": {func(n int) string { return fmt.Sprintf("/normal?x=%d", n) },
			func(n int) string { return fmt.Sprintf("198.51.100.%d", n) }},
		"cheap requests of a /48": {func(n int) string { return fmt.Sprintf("/normal?x=%d", n) },
			func(n int) string { return fmt.Sprintf("[2001:db8:1:%x::1]", n*256) }},
		"past users with repeated arguments": {func(n int) string {
			return fmt.Sprintf("/users?sortBy=&asOfBlock=%d&sortBy=totalDeposited&sortBy=firstSeen", n)
		}, one},
	}
	var baseline time.Duration
	synctest.Test(t, func(t *testing.T) { baseline, _ = newLoaded(4, 0, 2).bystanders("/normal", t.Context()) })
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLoaded(4, 0, 2)
				ctx, end := context.WithCancel(t.Context())
				group := l.crowd(ctx, 60, k.path, k.from)
				p99, refused := l.bystanders("/normal", t.Context())
				end()
				group.Wait()
				t.Logf("bar %s %s %s", "p99 "+name, p99, 2*baseline)
				if p99 > 2*baseline || refused > 0 {
					t.Errorf("p99 of others is %s, without load %s, and %d of 100 were rejected", p99, baseline, refused)
				}
			})
		})
	}
}

// TestExpensiveBystanders: an occasional expensive request waits for one of the crowd's requests, and is not
// rejected.
func TestExpensiveBystanders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(4, 0, 2)
		ctx, end := context.WithCancel(t.Context())
		group := l.crowd(ctx, 60, func(n int) string { return fmt.Sprintf("/users?sortBy=totalDeposited&asOfBlock=%d", n) },
			func(int) string { return "198.51.100.7" })
		for range 10 {
			begun := time.Now()
			if code := l.get(t.Context(), http.MethodGet, "/explain", "192.0.2.1"); code != 200 ||
				time.Since(begun) > 1100*time.Millisecond {
				t.Errorf("%d after %s", code, time.Since(begun))
			}
			<-time.After(time.Second)
		}
		end()
		group.Wait()
	})
}

// TestEngineTimeIsCharged: an address that keeps the engine busy is rejected until its budget recovers, and so is its
// /48, from any /64; others are not.
func TestEngineTimeIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(4, 2*time.Second, 2)
		until := func(from func(n int) string) (n int) {
			for n = range 200 {
				if l.get(t.Context(), http.MethodGet, fmt.Sprintf("/users?sortBy=totalDeposited&asOfBlock=%d", n), from(n)) == 429 {
					return n
				}
			}
			return n
		}
		if n := until(func(int) string { return "198.51.100.7" }); n != 3 { // 2.1 s of 2
			t.Errorf("an address was rejected after %d queries", n)
		}
		if code := l.get(t.Context(), http.MethodGet, "/normal", "198.51.100.7"); code != 429 {
			t.Errorf("a cheap query without budget: %d", code)
		}
		if code := l.get(t.Context(), http.MethodGet, "/normal", "198.51.100.8"); code != 200 {
			t.Errorf("another address: %d", code)
		}
		if n := until(func(n int) string { return fmt.Sprintf("[2001:db8:1:%x::1]", n*256) }); n < 11 || n > 14 {
			t.Errorf("a /48 was rejected after %d queries of 0.7 s, with a budget of 8 s", n)
		}
		<-time.After(time.Minute)
		if code := l.get(t.Context(), http.MethodGet, "/normal", "198.51.100.7"); code != 200 {
			t.Errorf("a minute later: %d", code)
		}
	})
}

// TestSilentEngineIsNotCharged: the time for which the engine does not respond is charged to no client; the time of a
// query that fails otherwise is.
func TestSilentEngineIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(4, 2*time.Second, 2)
		for _, path := range []string{"/normal", "/block", "/users?sortBy=totalDeposited&asOfBlock=1", "/statement",
			"/proofs"} {
			for _, silent := range []bool{true, false} {
				l.engine.fails = &state.Error{Silent: silent, Err: context.DeadlineExceeded}
				if code := l.get(t.Context(), http.MethodGet, path, "198.51.100.7"); code != 503 {
					t.Errorf("%s: %d", path, code)
				}
				l.engine.fails = nil
				code := l.get(t.Context(), http.MethodGet, path, "198.51.100.7")
				if want := map[bool]int{true: 200, false: 429}[silent]; code != want {
					t.Errorf("%s after a query that failed (silent: %v): %d, want %d", path, silent, code, want)
				}
			}
			<-time.After(time.Minute)
		}
	})
}

// TestProofsAreExpensive: the queries of requests for proofs run on expensive slots, and are charged; the wait for the
// node occupies no slot of the engine, and is not charged.
func TestProofsAreExpensive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoaded(4, time.Second, 2)
		begun := time.Now()
		var group sync.WaitGroup
		for n := range 4 {
			group.Go(func() {
				if code := l.get(t.Context(), http.MethodGet, fmt.Sprintf("/proofs?page=%d", n),
					fmt.Sprintf("192.0.%d.1", n)); code != 200 {
					t.Errorf("request %d: %d", n, code)
				}
			})
		}
		group.Wait()
		if l.engine.most > 1 {
			t.Errorf("%d expensive queries ran at once on two processors", l.engine.most)
		}
		if took := time.Since(begun); took > 2500*time.Millisecond {
			t.Errorf("four queries of 300 ms and the wait for a node took %s", took)
		}
		for n := range 4 { // the first of these used 300 ms before, and a second is more than its budget
			code := l.get(t.Context(), http.MethodGet, fmt.Sprintf("/proofs?page=1%d", n), "192.0.0.1")
			if want := map[bool]int{true: 200, false: 429}[n < 3]; code != want {
				t.Errorf("request %d of an address: %d", n, code)
			}
		}
	})
}

// TestLeavingFreesTheEngine: when a client disconnects, its query ends and its slot is released at once, and a
// waiting request leaves the queue.
func TestLeavingFreesTheEngine(t *testing.T) {
	for path, most := range map[string]int{"/users?sortBy=totalDeposited&asOfBlock=": 1, "/block?asOfBlock=": 2} {
		t.Run(path, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { leaving(t, path, most) }) })
	}
}

// leaving sends requests and disconnects. At most `most` queries may run at once.
func leaving(t *testing.T, path string, most int) {
	l := newLoaded(4, 0, 2)
	ctx, leave := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for n := range 6 {
		group.Go(func() { l.get(ctx, http.MethodGet, path+fmt.Sprint(n), "198.51.100.7") })
	}
	<-time.After(100 * time.Millisecond)
	synctest.Wait()
	begun := time.Now()
	leave()
	group.Wait()
	if took := time.Since(begun); took > 2*slice {
		t.Errorf("it took %s to end an abandoned request", took)
	}
	if l.engine.running != 0 {
		t.Errorf("%d queries continue", l.engine.running)
	}
	if l.engine.most > most {
		t.Errorf("%d queries ran at once on two processors", l.engine.most)
	}
}
