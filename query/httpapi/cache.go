package httpapi

import (
	"container/list"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
)

// maxCachedAnswer keeps one long answer from taking the room of many.
const maxCachedAnswer = 2 << 20

var (
	errPanicked = errors.New("the handler panicked")
	// errStreamed says that an answer is so long that it is sent while it is made.
	errStreamed = errors.New("the answer is streamed")
)

// cache holds finished answers for as long as nothing that they are about changed
// (ask.Validity), and the ones used last. It never changes an answer: without it every answer
// is the same, byte for byte. Of equal requests at once one is answered, and the others wait
// for it.
type cache struct {
	limit int // bytes

	mu      sync.Mutex
	size    int
	entries map[cacheKey]*cacheEntry
	used    list.List // of *cacheEntry with an answer, the one used last in front
}

// cacheKey is what an answer is made of, besides the rows that it read: the generation, the
// newest record about a vault, the request, and of a partner the number and the name.
type cacheKey struct {
	generation  int32
	vaults      uint64
	path, query string
	partner     uint32
	name        string
}

// cacheEntry is the answer to a key, and the answer to it that is being made.
type cacheEntry struct {
	key    cacheKey
	finish *finished     // nil: none is kept
	place  *list.Element // in used, while one is kept
	flight *flight       // nil: none is being made
}

// flight is an answer that is being made.
type flight struct {
	ready  chan struct{} // closed when finish or err is set
	finish *finished
	err    error
}

func newCache(limit int) *cache {
	return &cache{limit: limit, entries: make(map[cacheKey]*cacheEntry)}
}

// len is how many answers are kept.
func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used.Len()
}

// keyOf names a request: equal parameters in another order, or with others that do not
// count (empty or repeated), make the same name.
func keyOf(r *Request) cacheKey {
	key := cacheKey{generation: r.snapshot.Generation, vaults: r.snapshot.VaultsSeq,
		path: r.HTTP.URL.EscapedPath(), query: canonical(r.HTTP.URL.RawQuery)}
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

// kept gives the answer to a key that holds; nil: there is none.
func (c *cache) kept(key cacheKey, holds func(*finished) bool) *finished {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil || e.finish == nil || !holds(e.finish) {
		return nil
	}
	c.used.MoveToFront(e.place)
	return e.finish
}

// answer gives the answer to key that holds, from create, on a slot, when none is kept. create is
// not called under the deadline of one client, and once at a time for a key, but in a crowd: a
// request that waited for one which found no slot asks for a slot of its own.
func (c *cache) answer(ctx context.Context, key cacheKey, holds func(*finished) bool, slot func() (release func(), err error),
	create func() (*finished, error)) (*finished, error) {
	f, ours := c.join(key)
	if !ours {
		select {
		case <-f.ready:
			if f.err == nil && holds(f.finish) || f.err != nil && !crowded(f.err) {
				return f.finish, f.err
			}
			f = &flight{ready: make(chan struct{})} // which no other request waits for
		case <-ctx.Done():
			return nil, tooLong(ctx.Err())
		}
	}
	defer close(f.ready)
	var release func()
	if release, f.err = slot(); f.err == nil {
		defer release()
	}
	defer c.land(key, f) // before the next one has the slot, and looks
	if f.err != nil {
		return nil, f.err
	}
	if f.finish = c.kept(key, holds); f.finish != nil {
		return f.finish, nil
	}
	f.err = Internal(errPanicked) // unless create returns
	f.finish, f.err = create()
	return f.finish, f.err
}

// join is the flight of a key; ours says that it is new, and to be made by the caller.
func (c *cache) join(key cacheKey) (f *flight, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		e = &cacheEntry{key: key}
		c.entries[key] = e
	}
	if e.flight == nil {
		e.flight, ours = &flight{ready: make(chan struct{})}, true
	}
	return e.flight, ours
}

func crowded(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Crowd
}

// land ends a flight, and keeps its answer within the limit.
func (c *cache) land(key cacheKey, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		e = &cacheEntry{key: key}
		c.entries[key] = e
	}
	if e.flight == f {
		e.flight = nil
	}
	if f.err == nil && f.finish != e.finish && f.finish.about != nil && len(f.finish.plain.body) <= maxCachedAnswer {
		c.drop(e)
		e.finish, e.place = f.finish, c.used.PushFront(e)
		c.size += e.cost()
	}
	for c.size > c.limit {
		oldest := c.used.Back().Value.(*cacheEntry)
		c.drop(oldest)
		c.tidy(oldest)
	}
	c.tidy(e)
}

// drop forgets an entry's answer; the entry may hold nothing then.
func (c *cache) drop(e *cacheEntry) {
	if e.finish == nil {
		return
	}
	c.size -= e.cost()
	c.used.Remove(e.place)
	e.finish, e.place = nil, nil
}

// tidy removes an entry that holds nothing.
func (c *cache) tidy(e *cacheEntry) {
	if e.finish == nil && e.flight == nil && c.entries[e.key] == e {
		delete(c.entries, e.key)
	}
}

// cost is what an entry takes at most: the request line, both forms of the body,
// the header with its links, and the maps and strings that hold them.
func (e *cacheEntry) cost() int {
	size := 2*(len(e.key.path)+len(e.key.query)) + len(e.key.name) + 2*len(e.finish.plain.body) + e.finish.about.Size() + 1024
	for _, values := range e.finish.header {
		for _, v := range values {
			size += len(v)
		}
	}
	return size
}

// cached answers a request out of the cache, or through it.
func (s *Server) cached(r *Request, h Handler) (*finished, error) {
	if s.cache.limit == 0 || r.snapshot == nil {
		return s.uncached(r, h)
	}
	key := keyOf(r)
	holds := func(f *finished) bool { return f.about != nil && f.about.Holds(r.snapshot) }
	if f := s.cache.kept(key, holds); f != nil {
		return f, nil
	}
	own := *r // the answer is not this client's alone
	own.Context, own.Header = context.WithoutCancel(r.Context), http.Header{}
	return s.cache.answer(r.Context, key, holds, func() (func(), error) { return s.slot(&own) }, func() (*finished, error) { return s.create(&own, h) })
}

// uncached answers a request when there is a slot for it.
func (s *Server) uncached(r *Request, h Handler) (*finished, error) {
	release, err := s.slot(r)
	if err != nil {
		return nil, err
	}
	defer release()
	return s.create(r, h)
}

// slot waits for one.
func (s *Server) slot(r *Request) (release func(), err error) {
	return s.slots.acquire(r.Context, r.holder())
}

// create has a handler answer, on a slot.
func (s *Server) create(r *Request, h Handler) (*finished, error) {
	// A client that goes away does not break off a question: that would reset
	// the engine's connection.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context), s.RequestTimeout)
	defer cancel()
	defer func(before context.Context) { r.Context = before }(r.Context) // a long answer is asked for again, to be streamed
	r.Context = ctx
	r.readParams()
	a, err := h(r)
	switch {
	case err != nil:
		return nil, err
	case a.Stream != nil:
		return nil, errStreamed
	}
	f, err := a.finish(r.Header)
	if err == nil {
		f.about = r.about
	}
	return f, err
}
