package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/navlog/navlog/query/pin"
)

// TestAnswersGoWithTheirSnapshot: those about the newest one are kept; one that is not
// the newest any more has none, and takes nobody else's away.
func TestAnswersGoWithTheirSnapshot(t *testing.T) {
	c := cache{limit: 1 << 20}
	first, second := &pin.Snapshot{Seq: 1}, &pin.Snapshot{Seq: 2}
	held := c.about(first, first)
	if held == nil || c.about(first, first) != held {
		t.Fatal("answers about the newest snapshot are not kept")
	}
	if c.about(second, first) != nil {
		t.Error("answers about a snapshot that is not shown are kept")
	}
	now := c.about(second, second)
	if now == nil || now == held || c.about(first, second) != nil || c.about(second, second) != now {
		t.Error("answers of another snapshot are given")
	}
	if (&cache{}).about(first, first) != nil || c.about(nil, nil) != nil {
		t.Error("answers are kept without room, or without a snapshot")
	}
}

// TestCanonicalRequests: what makes no difference to an answer makes none to its name.
func TestCanonicalRequests(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "page=2&pageSize=5": "page=2&pageSize=5", "pageSize=5&page=2": "page=2&pageSize=5", "page=2&page=3": "page=2", "page=&pageSize=5": "pageSize=5",
		"page=&page=2": "", "vault=%30x": "vault=0x", "page=%zz&a=1": "page=%zz&a=1",
	} {
		r := &Request{HTTP: httptest.NewRequest("GET", "/p", nil), Partner: &Partner{ID: 7, Name: "Seven"}}
		r.HTTP.URL.RawQuery = query
		if got := keyOf(r); got != (cacheKey{"/p", want, 7, "Seven"}) {
			t.Errorf("%q is %+v", query, got)
		}
	}
}

// free is a slot that nobody waits for.
func free() (release func(), err error) { return func() {}, nil }

func TestCacheAsksOnce(t *testing.T) {
	c := newAnswers(nil, 1<<20)
	var made atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			f, err := c.answer(t.Context(), cacheKey{path: "k"}, free, func() (*finished, error) {
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
	c := newAnswers(nil, 1<<20)
	if _, err := c.answer(t.Context(), cacheKey{path: "k"}, free, func() (*finished, error) { return nil, errors.New("no") }); err == nil {
		t.Error("no error")
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = c.answer(t.Context(), cacheKey{path: "k"}, free, func() (*finished, error) { panic("boom") })
	}()
	f, err := c.answer(t.Context(), cacheKey{path: "k"}, free, func() (*finished, error) { return &finished{plain: form{body: []byte("x")}}, nil })
	if err != nil || string(f.plain.body) != "x" {
		t.Errorf("%v, %v", f, err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	const limit = 100 << 10
	c := newAnswers(nil, limit)
	put := func(key string, size int) {
		t.Helper()
		if _, err := c.answer(t.Context(), cacheKey{path: key}, free, func() (*finished, error) { return &finished{plain: form{body: make([]byte, size)}}, nil }); err != nil {
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

// waiting is a context that tells when somebody waits for its end.
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

// TestCrowdOfAnother: who waits for an answer that another asked for, and that found no slot, has it made itself: all who wait
// ask for slots at once, none waits for another's, and what the first ones make is for all. It is kept, too.
func TestCrowdOfAnother(t *testing.T) {
	c := newAnswers(nil, 1<<20)
	full := &Failure{Status: 503, Crowd: true}
	begun, release, refused := make(chan struct{}), make(chan struct{}), make(chan error)
	key := cacheKey{path: "k"}
	go func() {
		_, err := c.answer(t.Context(), key, func() (func(), error) {
			close(begun)
			<-release
			return nil, full
		}, nil)
		refused <- err
	}()
	<-begun
	const many, most = 50, 2
	asking, asked := make(chan struct{}, many), make(chan struct{})
	slots := newSlots(most, most, func() { t.Error("there is a crowd") }) // of which partners have as many
	var made atomic.Int64
	var group sync.WaitGroup
	for n := range byte(many) {
		waits := waiting{t.Context(), make(chan struct{}, 1)}
		group.Go(func() {
			f, err := c.answer(waits, key, func() (func(), error) {
				asking <- struct{}{}
				<-asked
				return slots.acquire(t.Context(), address(n))
			}, func() (*finished, error) {
				made.Add(1)
				return &finished{plain: form{body: []byte("x")}}, nil
			})
			if err != nil || string(f.plain.body) != "x" {
				t.Errorf("%v, %v", f, err)
			}
		})
		<-waits.now
	}
	close(release)
	if err := <-refused; err != full {
		t.Errorf("who had no slot has %v", err)
	}
	for range many {
		<-asking
	}
	close(asked)
	group.Wait()
	if n := made.Load(); n < 1 || n > most {
		t.Errorf("made %d times on %d slots", n, most)
	}
	if f := c.finished(key); f == nil || c.size != c.entries[key].cost(key) {
		t.Errorf("%v is kept, in %d bytes", f, c.size)
	}
}

// TestCrowdLeavesWhoComesLater: what is made on a slot of one's own is for who came meanwhile, and whose wait for a slot goes on.
func TestCrowdLeavesWhoComesLater(t *testing.T) {
	c := newAnswers(nil, 1<<20)
	key := cacheKey{path: "k"}
	slot, waits := make(chan struct{}), make(chan struct{})
	later := make(chan error)
	go func() {
		f, err := c.answer(t.Context(), key, func() (func(), error) {
			close(waits)
			<-slot
			return free()
		}, func() (*finished, error) { return nil, errors.New("it is there") })
		if err == nil && string(f.plain.body) != "x" {
			err = errors.New("another answer")
		}
		later <- err
	}()
	<-waits
	own := newEntry()
	own.finish = &finished{plain: form{body: []byte("x")}}
	c.settle(key, own)
	close(slot)
	if err := <-later; err != nil || c.finished(key) != own.finish || c.size != own.cost(key) {
		t.Errorf("%v, with %v kept in %d bytes", err, c.finished(key), c.size)
	}
}
