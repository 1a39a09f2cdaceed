package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/state"
)

// at returns a snapshot of a generation at a seq.
func at(seq uint64) *state.Snapshot { return &state.Snapshot{Generation: 3, Seq: seq, VaultsSeq: 5} }

// made returns a response about the newest block of a snapshot.
func made(body string, s *state.Snapshot) *finished {
	p, err := ask.At(s, nil)
	if err != nil {
		panic(err)
	}
	return &finished{plain: form{body: []byte(body)}, about: p.Validity()}
}

// newest is the snapshot of concurrent requests.
var newest = at(1)

// always reports that a response holds.
func always(*finished) bool { return true }

// maker returns a create function.
func maker(body string) func() (*finished, error) {
	return func() (*finished, error) { return made(body, at(1)), nil }
}

// A cached response is used while it holds; then a new one is made and replaces it.
func TestCacheRevalidates(t *testing.T) {
	c, key := newCache(1<<20), cacheKey{path: "k"}
	for i, want := range []struct {
		at    uint64
		holds bool
		body  string
	}{{1, false, "1"}, {2, true, "1"}, {3, false, "3"}, {4, true, "3"}} {
		holds := func(f *finished) bool { return want.holds }
		f, err := c.answer(t.Context(), key, at(want.at), holds, free, func() (*finished, error) {
			return made(fmt.Sprint(want.at), at(want.at)), nil
		})
		if err != nil || string(f.plain.body) != want.body || c.len() != 1 || c.size != key.cost(f) {
			t.Errorf("%d: %v, %v; %d responses in %d bytes", i, f, err, c.len(), c.size)
		}
	}
}

// A response that is not pinned to a state may change at any time: it is not cached, and leaves no entry.
func TestCacheKeepsWhatIsPinned(t *testing.T) {
	c := newCache(1 << 20)
	f, err := c.answer(t.Context(), cacheKey{path: "k"}, newest, always, free, func() (*finished, error) {
		return &finished{plain: form{body: []byte("x")}}, nil
	})
	if err != nil || string(f.plain.body) != "x" || c.len() != 0 || len(c.flights) != 0 || c.size != 0 {
		t.Errorf("%v, %v; %d responses, %d flights, %d bytes", f, err, c.len(), len(c.flights), c.size)
	}
}

// The least recently used response is evicted first.
func TestCacheKeepsWhatIsUsed(t *testing.T) {
	c := newCache(1 << 20)
	answer := func(path string) {
		t.Helper()
		if _, err := c.answer(t.Context(), cacheKey{path: path}, newest, always, free, maker("x")); err != nil {
			t.Fatal(err)
		}
	}
	answer("a")
	c.limit = 3 * c.size // for three responses of one size
	for _, path := range []string{"b", "c"} {
		answer(path)
	}
	if c.kept(cacheKey{path: "a"}, always) == nil {
		t.Fatal("a response was dropped although there was space")
	}
	answer("d")
	for path, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if got := c.kept(cacheKey{path: path}, always) != nil; got != want {
			t.Errorf("%s is cached: %t", path, got)
		}
	}
}

// TestCanonicalRequests: differences that do not affect the response do not affect the key.
func TestCanonicalRequests(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "page=2&pageSize=5": "page=2&pageSize=5", "pageSize=5&page=2": "page=2&pageSize=5", "page=2&page=3": "page=2",
		"page=&pageSize=5": "pageSize=5",
		"page=&page=2":     "", "vault=%30x": "vault=0x",
	} {
		r := &Request{HTTP: httptest.NewRequest("GET", "/p", nil), Partner: &Partner{ID: 7, Name: "Seven"}, snapshot: at(9)}
		r.query, _ = url.ParseQuery(query)
		if got := keyOf(r); got != (cacheKey{generation: 3, vaults: 5, path: "/p", query: want, partner: 7, name: "Seven"}) {
			t.Errorf("%q is %+v", query, got)
		}
	}
}

// free is a slot that is available at once.
func free() (release func(error), err error) { return func(error) {}, nil }

func TestCacheMakesOneAnswer(t *testing.T) {
	c := newCache(1 << 20)
	var times atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			f, err := c.answer(t.Context(), cacheKey{path: "k"}, newest, always, free, func() (*finished, error) {
				if times.Add(1) == 1 {
					close(begun)
				}
				<-release
				return made("x", at(1)), nil
			})
			if err != nil || string(f.plain.body) != "x" {
				t.Errorf("%v, %v", f, err)
			}
		})
	}
	<-begun
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.answer(gone, cacheKey{path: "k"}, newest, always, nil, nil); err == nil {
		t.Error("a client that has disconnected still waits")
	}
	close(release)
	group.Wait()
	if times.Load() != 1 {
		t.Errorf("made %d times", times.Load())
	}
}

func TestCacheKeepsNoFailure(t *testing.T) {
	c := newCache(1 << 20)
	var released error
	slot := func() (func(error), error) { return func(err error) { released = err }, nil }
	fails := func() (*finished, error) { return nil, errors.New("no") }
	if _, err := c.answer(t.Context(), cacheKey{path: "k"}, newest, always, slot, fails); err == nil || released != err {
		t.Errorf("the error is %v, and the slot got %v", err, released)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = c.answer(t.Context(), cacheKey{path: "k"}, newest, always, slot, func() (*finished, error) { panic("boom") })
	}()
	if !errors.Is(released, errPanicked) {
		t.Errorf("the slot of a handler that panicked got %v", released)
	}
	f, err := c.answer(t.Context(), cacheKey{path: "k"}, newest, always, free, maker("x"))
	if err != nil || string(f.plain.body) != "x" || c.len() != 1 {
		t.Errorf("%v, %v", f, err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	const limit = 100 << 10
	c := newCache(limit)
	put := func(key string, size int) {
		t.Helper()
		if _, err := c.answer(t.Context(), cacheKey{path: key}, newest, always, free,
			maker(strings.Repeat("x", size))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		put(fmt.Sprint(i), 1900)
		if c.size > limit {
			t.Fatalf("%d bytes after %d responses", c.size, i)
		}
	}
	held := 0
	for _, key := range c.answers.Keys() {
		f, _ := c.answers.Peek(key)
		held += key.cost(f)
	}
	if held != c.size || c.len() < 20 || len(c.flights) != 0 {
		t.Errorf("%d responses with %d bytes, counted %d, and %d flights", c.len(), held, c.size, len(c.flights))
	}
	put("long", maxCachedAnswer+1)
	if c.answers.Contains(cacheKey{path: "long"}) {
		t.Error("one response uses the space of many")
	}
}

// waiting is a context that signals when a caller begins to wait for its end.
type waiting struct {
	context.Context
	now chan struct{}
}

func (w waiting) Done() <-chan struct{} {
	select {
	case w.now <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

// TestCrowdWaitingForAnotherRequest: if the request that others wait for finds no slot, they make the response
// themselves. All of them wait for slots concurrently, none waits for another, and the first response made serves them
// all. It is also cached.
func TestCrowdWaitingForAnotherRequest(t *testing.T) {
	c := newCache(1 << 20)
	full := &Failure{Status: 503, Crowd: true}
	begun, release, refused := make(chan struct{}), make(chan struct{}), make(chan error)
	key := cacheKey{path: "k"}
	go func() {
		_, err := c.answer(t.Context(), key, newest, always, func() (func(error), error) {
			close(begun)
			<-release
			return nil, full
		}, nil)
		refused <- err
	}()
	<-begun
	const many, most = 50, 2
	asking, asked := make(chan struct{}, many), make(chan struct{})
	// partners have as many slots
	slots := newSlots(most, most, func() { t.Error("a request was rejected because of overload") })
	var times atomic.Int64
	var group sync.WaitGroup
	for n := range byte(many) {
		waits := waiting{t.Context(), make(chan struct{}, 1)}
		group.Go(func() {
			f, err := c.answer(waits, key, newest, always, func() (func(error), error) {
				asking <- struct{}{}
				<-asked
				leave, err := slots.acquire(t.Context(), address(n))
				return func(error) { leave() }, err
			}, func() (*finished, error) {
				times.Add(1)
				return made("x", at(1)), nil
			})
			if err != nil || string(f.plain.body) != "x" {
				t.Errorf("%v, %v", f, err)
			}
		})
		<-waits.now
	}
	close(release)
	if err := <-refused; err != full {
		t.Errorf("a request without a slot returns %v", err)
	}
	for range many {
		<-asking
	}
	close(asked)
	group.Wait()
	if n := times.Load(); n < 1 || n > most {
		t.Errorf("made %d times on %d slots", n, most)
	}
	if f := c.kept(key, always); f == nil || c.size != key.cost(f) {
		t.Errorf("%v is cached, in %d bytes", f, c.size)
	}
}

// TestFailureOfAnotherRequest: a request gets the error of the one that it waits for only if both are about the same
// snapshot: what did not exist at the other snapshot may exist at its own.
func TestFailureOfAnotherRequest(t *testing.T) {
	for _, c := range []struct {
		name   string
		second *state.Snapshot
		want   string
		times  int64
	}{{"the same snapshot", newest, "There is no such user.", 1},
		{"a newer snapshot", at(2), `{"ok":true,"data":"Alice"}`, 2}} {
		s := New(16, 1<<20, prometheus.NewRegistry())
		s.RequestTimeout = time.Minute
		var times atomic.Int64
		begun, release := make(chan struct{}), make(chan struct{})
		handler := func(r *Request) (*Answer, error) {
			if times.Add(1) == 1 {
				close(begun)
				<-release
			}
			if r.snapshot == newest {
				return nil, NotFound("There is no such user.")
			}
			return &Answer{Data: "Alice"}, nil
		}
		get := func(ctx context.Context, at *state.Snapshot) string {
			f, err := s.cached(&Request{Context: ctx, HTTP: httptest.NewRequest("GET", "/users/alice", nil), snapshot: at},
				handler)
			if err != nil {
				return err.Error()
			}
			return strings.TrimSpace(string(f.plain.body))
		}
		waits, first, second := waiting{t.Context(), make(chan struct{}, 1)}, make(chan string, 1), make(chan string, 1)
		go func() { first <- get(t.Context(), newest) }()
		<-begun
		go func() { second <- get(waits, c.second) }()
		<-waits.now
		close(release)
		if got := <-first; got != "There is no such user." {
			t.Errorf("%s: the first request gets %q", c.name, got)
		}
		if got := <-second; got != c.want || times.Load() != c.times {
			t.Errorf("%s: the second request gets %q; made %d times", c.name, got, times.Load())
		}
	}
}

// TestCrowdServesLaterRequests: a request that makes the response on its own slot also serves requests that arrived
// meanwhile, while their own wait for a slot continues.
func TestCrowdServesLaterRequests(t *testing.T) {
	c := newCache(1 << 20)
	key := cacheKey{path: "k"}
	slot, waits := make(chan struct{}), make(chan struct{})
	later := make(chan error)
	go func() {
		f, err := c.answer(t.Context(), key, newest, always, func() (func(error), error) {
			close(waits)
			<-slot
			return free()
		}, func() (*finished, error) { return nil, errors.New("already made") })
		if err == nil && string(f.plain.body) != "x" {
			err = errors.New("another response")
		}
		later <- err
	}()
	<-waits
	own := &flight{finish: made("x", at(1))}
	c.land(key, own)
	close(slot)
	if err := <-later; err != nil || c.kept(key, always) != own.finish || c.size != key.cost(own.finish) {
		t.Errorf("%v, with %v cached in %d bytes", err, c.kept(key, always), c.size)
	}
}
