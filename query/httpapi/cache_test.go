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

func TestCacheAsksOnce(t *testing.T) {
	c := newAnswers(nil, 1<<20)
	var made atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			f, err := c.answer(t.Context(), cacheKey{path: "k"}, func() (*finished, error) {
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
	if _, err := c.answer(gone, cacheKey{path: "k"}, nil); err == nil {
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
	if _, err := c.answer(t.Context(), cacheKey{path: "k"}, func() (*finished, error) { return nil, errors.New("no") }); err == nil {
		t.Error("no error")
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = c.answer(t.Context(), cacheKey{path: "k"}, func() (*finished, error) { panic("boom") })
	}()
	f, err := c.answer(t.Context(), cacheKey{path: "k"}, func() (*finished, error) { return &finished{plain: form{body: []byte("x")}}, nil })
	if err != nil || string(f.plain.body) != "x" {
		t.Errorf("%v, %v", f, err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	const limit = 100 << 10
	c := newAnswers(nil, limit)
	put := func(key string, size int) {
		t.Helper()
		if _, err := c.answer(t.Context(), cacheKey{path: key}, func() (*finished, error) { return &finished{plain: form{body: make([]byte, size)}}, nil }); err != nil {
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

// TestCrowdOfAnother: who waits for an answer that another asked for, and that found no
// place, has it made itself.
func TestCrowdOfAnother(t *testing.T) {
	c := newAnswers(nil, 1<<20)
	begun, release, answered := make(chan struct{}), make(chan struct{}), make(chan error)
	key := cacheKey{path: "k"}
	go func() {
		_, err := c.answer(t.Context(), key, func() (*finished, error) {
			close(begun)
			<-release
			return nil, &Failure{Status: 503, Crowd: true}
		})
		answered <- err
	}()
	<-begun
	waits := waiting{t.Context(), make(chan struct{}, 1)}
	go func() {
		f, err := c.answer(waits, key, func() (*finished, error) { return &finished{plain: form{body: []byte("x")}}, nil })
		if err == nil && string(f.plain.body) != "x" {
			err = errors.New("another answer")
		}
		answered <- err
	}()
	<-waits.now
	close(release)
	if one, two := <-answered, <-answered; (one == nil) == (two == nil) {
		t.Errorf("%v, %v: one had no place, and the other has its own", one, two)
	}
}

// TestCrowdOfAnotherIsNoQueue: all who waited for what found no place ask for theirs at once; none waits for another's.
func TestCrowdOfAnotherIsNoQueue(t *testing.T) {
	c := newAnswers(nil, 1<<20)
	full := &Failure{Status: 503, Crowd: true}
	begun, release := make(chan struct{}), make(chan struct{})
	key := cacheKey{path: "k"}
	go c.answer(t.Context(), key, func() (*finished, error) {
		close(begun)
		<-release
		return nil, full
	})
	<-begun
	const many = 5
	asking, refused := make(chan struct{}, many), make(chan error, many)
	for range many {
		waits := waiting{t.Context(), make(chan struct{}, 1)}
		go func() {
			_, err := c.answer(waits, key, func() (*finished, error) {
				asking <- struct{}{}
				<-t.Context().Done() // as long as the crowd lasts
				return nil, full
			})
			refused <- err
		}()
		<-waits.now
	}
	close(release)
	for range many {
		<-asking
	}
}
