package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/navlog/navlog/query/pin"
)

// maxCachedAnswer keeps one long answer from taking the room of many.
const maxCachedAnswer = 512 << 10

var errPanicked = errors.New("the handler panicked")

// cache holds finished answers about the newest snapshot. They can never be wrong: an
// answer is a function of generation, seq and request, and those of a seq go when the
// next one is served. What a node says for a proof makes no difference: it is what the hash
// of a block in the log stands for, or nothing is proven. Of two equal requests at once, one is answered and the other
// waits for it.
type cache struct {
	limit int // bytes
	of    atomic.Pointer[answers]
}

// answers are those about one snapshot.
type answers struct {
	snapshot *pin.Snapshot
	limit    int
	mu       sync.Mutex
	size     int
	entries  map[cacheKey]*cacheEntry
}

// cacheKey is what an answer is made of, besides the snapshot: the request, and of a
// partner the number and the name.
type cacheKey struct {
	path, query string
	partner     uint32
	name        string
}

// cacheEntry is one answer, or the wait for it.
type cacheEntry struct {
	ready  chan struct{} // closed when finish or err is set
	finish *finished
	err    error
	kept   bool
}

// about is the answers about a snapshot; nil where it is not the newest one any more,
// or nothing is kept.
func (c *cache) about(s, newest *pin.Snapshot) *answers {
	held := c.of.Load()
	switch {
	case c.limit == 0 || s == nil:
		return nil
	case held != nil && held.snapshot == s:
		return held
	case s != newest:
		return nil
	}
	fresh := newAnswers(s, c.limit)
	if c.of.CompareAndSwap(held, fresh) {
		return fresh
	}
	return nil // somebody else was first; this answer is made on its own
}

func newAnswers(s *pin.Snapshot, limit int) *answers {
	return &answers{snapshot: s, limit: limit, entries: make(map[cacheKey]*cacheEntry)}
}

// len is how many answers are kept.
func (c *cache) len() int {
	held := c.of.Load()
	if held == nil {
		return 0
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	return len(held.entries)
}

// keyOf names a request: equal parameters in another order, or with others that do not
// count (empty or repeated), make the same name.
func keyOf(r *Request) cacheKey {
	key := cacheKey{path: r.HTTP.URL.EscapedPath(), query: canonical(r.HTTP.URL.RawQuery)}
	if r.Partner != nil {
		key.partner, key.name = r.Partner.ID, r.Partner.Name
	}
	return key
}

func canonical(rawQuery string) string {
	if rawQuery == "" {
		return ""
	}
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return rawQuery // which is answered by an error
	}
	for name, all := range values {
		if all[0] == "" {
			delete(values, name)
			continue
		}
		values[name] = all[:1]
	}
	return values.Encode()
}

// finished gives an answer that is there; nil: it is not.
func (a *answers) finished(key cacheKey) *finished {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil || !e.kept {
		return nil
	}
	return e.finish
}

// answer gives the answer to key, from make, on a slot, when it is not there. make is not
// called under the deadline of one client, and once at a time for a key, but in a crowd: where the
// one that was to make it found no slot, that was the crowd of another: all who waited for
// it ask for slots of their own, at once and not one after the other, and who has one
// looks whether another of them was faster.
func (a *answers) answer(ctx context.Context, key cacheKey, slot func() (release func(), err error), make func() (*finished, error)) (*finished, error) {
	e, ours := a.entry(key)
	if !ours {
		select {
		case <-e.ready:
			if !crowded(e.err) {
				return e.finish, e.err
			}
			e = newEntry() // for which nobody waits
		case <-ctx.Done():
			return nil, tooLong(ctx.Err())
		}
	}
	defer close(e.ready)
	var release func()
	if release, e.err = slot(); e.err == nil {
		defer release()
	}
	defer a.settle(key, e) // before the next one has the slot, and looks
	if e.err != nil {
		return nil, e.err
	}
	if e.finish = a.finished(key); e.finish != nil {
		return e.finish, nil
	}
	e.err = Internal(errPanicked) // unless make returns
	e.finish, e.err = make()
	return e.finish, e.err
}

func newEntry() *cacheEntry { return &cacheEntry{ready: make(chan struct{})} }

// entry is the one of a key; ours says that it is new, and to be filled by the caller.
func (a *answers) entry(key cacheKey) (e *cacheEntry, ours bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, ok := a.entries[key]; ok {
		return e, false
	}
	e = newEntry()
	a.entries[key] = e
	return e, true
}

func crowded(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Crowd
}

// settle keeps a finished entry within the limit, in the place of one that is not; a failed
// or large one is forgotten.
func (a *answers) settle(key cacheKey, e *cacheEntry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.entries[key]
	switch {
	case e.err != nil || len(e.finish.plain.body) > maxCachedAnswer:
		if now == e {
			delete(a.entries, key)
		}
		return
	case now != nil && now.kept:
		return
	}
	e.kept, a.entries[key] = true, e
	a.size += e.cost(key)
	for other, old := range a.entries { // any: all of them go with the next seq
		if a.size <= a.limit {
			return
		}
		if old.kept {
			delete(a.entries, other)
			a.size -= old.cost(other)
		}
	}
}

// cost is what an entry takes at most: the request line, both forms of the body,
// the header with its links, and the maps and strings that hold them.
func (e *cacheEntry) cost(key cacheKey) int {
	size := 2*(len(key.path)+len(key.query)) + len(key.name) + 2*len(e.finish.plain.body) + 1024
	for _, values := range e.finish.header {
		for _, v := range values {
			size += len(v)
		}
	}
	return size
}

// cached answers a request out of the cache, or through it.
func (s *Server) cached(r *Request, h Handler) (*finished, error) {
	held := s.cache.about(r.snapshot, s.Watcher.Snapshot())
	if held == nil {
		return s.uncached(r, h)
	}
	key := keyOf(r)
	if f := held.finished(key); f != nil {
		return f, nil
	}
	own := *r // the answer is not this client's alone
	own.Context, own.Header = context.WithoutCancel(r.Context), http.Header{}
	return held.answer(r.Context, key, func() (func(), error) { return s.slot(&own) }, func() (*finished, error) { return s.make(&own, h) })
}

// uncached answers a request when there is a slot for it.
func (s *Server) uncached(r *Request, h Handler) (*finished, error) {
	release, err := s.slot(r)
	if err != nil {
		return nil, err
	}
	defer release()
	return s.make(r, h)
}

// slot waits for one.
func (s *Server) slot(r *Request) (release func(), err error) {
	return s.slots.acquire(r.Context, r.holder())
}

// make has a handler answer, on a slot.
func (s *Server) make(r *Request, h Handler) (*finished, error) {
	// A client that goes away does not break off a question: that would reset
	// the engine's connection.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context), s.RequestTimeout)
	defer cancel()
	r.Context = ctx
	r.readParams()
	a, err := h(r)
	if err != nil {
		return nil, err
	}
	return a.finish(r.Header)
}
