package serve

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common/lru"

	"github.com/navlog/navlog/query/state"
)

// maxCachedAnswer is the maximum size of a cached body, so that a long one does not displace many others.
const maxCachedAnswer = 2 << 20

var (
	errPanicked = errors.New("the handler panicked")
	// errStreamed reports that a response is long and must be streamed.
	errStreamed = errors.New("the answer is streamed")
)

// cache holds finished responses for as long as they hold (ask.Validity), and evicts the least recently used ones. It
// never changes a response: without it every response is the same, byte for byte. Of equal concurrent requests one is
// handled, and the others wait for its response.
type cache struct {
	limit int // bytes

	mu      sync.Mutex
	size    int
	answers lru.BasicLRU[cacheKey, *finished]
	flights map[cacheKey]*flight
}

// cacheKey is what a response depends on besides the rows that it read: the generation, the newest record about a
// vault, the request, and the number and name of the partner.
type cacheKey struct {
	generation  int32
	vaults      uint64
	path, query string
	partner     uint32
	name        string
}

// flight is a response that is being made.
type flight struct {
	at     *state.Snapshot // of the request that makes it
	ready  chan struct{}   // closed when finish or err is set
	finish *finished
	err    error
}

func newCache(limit int) *cache {
	return &cache{limit: limit, answers: lru.NewBasicLRU[cacheKey, *finished](math.MaxInt),
		flights: make(map[cacheKey]*flight)}
}

func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers.Len()
}

// keyOf returns the cache key of a request. Parameters that are reordered, empty or repeated do not change the key.
func keyOf(r *Request) cacheKey {
	key := cacheKey{generation: r.snapshot.Generation, vaults: r.snapshot.VaultsSeq,
		path:  strings.Clone(r.HTTP.URL.EscapedPath()), // otherwise the cache would hold the whole request line
		query: canonical(r.query)}
	if r.Partner != nil {
		key.partner, key.name = r.Partner.ID, r.Partner.Name
	}
	return key
}

func canonical(query url.Values) string {
	counted := make(url.Values, len(query))
	for name, all := range query {
		if all[0] != "" {
			counted[name] = all[:1]
		}
	}
	return counted.Encode()
}

// kept returns the cached response for a key if it still holds, otherwise nil. The lock is not held meanwhile: the
// response may have read hundreds of lists.
func (c *cache) kept(key cacheKey, holds func(*finished) bool) *finished {
	c.mu.Lock()
	f, ok := c.answers.Peek(key)
	c.mu.Unlock()
	if !ok || !holds(f) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers.Get(key) // it is used
	return f
}

// answer returns a response for key that holds at a snapshot; if none is cached, it calls create with a slot. create
// does not run under the deadline of a client, and usually runs once at a time per key. The exceptions: a request that
// waited for another one tries to get a slot itself if the response of the other does not hold for it, or if the other
// failed at another snapshot or for a reason of its own, like overload.
func (c *cache) answer(ctx context.Context, key cacheKey, at *state.Snapshot, holds func(*finished) bool,
	slot func() (release func(error), err error), create func() (*finished, error)) (*finished, error) {
	f, ours := c.join(key, at)
	if !ours {
		select {
		case <-f.ready:
			if f.err == nil && holds(f.finish) || f.err != nil && f.at == at && !crowded(f.err) {
				return f.finish, f.err
			}
			f = newFlight(at) // no other request waits for this one
		case <-ctx.Done():
			return nil, tooLong(ctx.Err())
		}
	}
	defer close(f.ready)
	var release func(error)
	if release, f.err = slot(); f.err == nil {
		defer func() { release(f.err) }()
	}
	defer c.land(key, f) // before the slot is released and the next request checks the cache
	if f.err != nil {
		return nil, f.err
	}
	if f.finish = c.kept(key, holds); f.finish != nil {
		return f.finish, nil
	}
	f.err = Internal(errPanicked) // stays set if create panics
	f.finish, f.err = create()
	return f.finish, f.err
}

func newFlight(at *state.Snapshot) *flight { return &flight{at: at, ready: make(chan struct{})} }

// join returns the flight of a key; ours is true if it is new and the caller must make the response.
func (c *cache) join(key cacheKey, at *state.Snapshot) (f *flight, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f = c.flights[key]
	if f == nil {
		f, ours = newFlight(at), true
		c.flights[key] = f
	}
	return f, ours
}

func crowded(err error) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && f.Crowd
}

// land ends a flight and caches its response, within the limit.
func (c *cache) land(key cacheKey, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights[key] == f {
		delete(c.flights, key)
	}
	before, known := c.answers.Peek(key)
	if f.err != nil || f.finish == before || f.finish.about == nil || len(f.finish.plain.body) > maxCachedAnswer {
		return
	}
	if known {
		c.size -= key.cost(before)
	}
	c.answers.Add(key, f.finish)
	for c.size += key.cost(f.finish); c.size > c.limit; {
		key, oldest, _ := c.answers.RemoveOldest()
		c.size -= key.cost(oldest)
	}
}

// cost returns an upper bound for the memory of a response under the key: the request line, both forms of the body, the
// headers with their links, and the maps and strings that hold them.
func (k cacheKey) cost(f *finished) int {
	size := 2*(len(k.path)+len(k.query)) + len(k.name) + 2*len(f.plain.body) + f.about.Size() + 1024
	for _, values := range f.header {
		for _, v := range values {
			size += len(v)
		}
	}
	return size
}

// cached serves a request from the cache, or handles it and caches the response.
func (s *Server) cached(r *Request, h Handler) (*finished, error) {
	if s.cache.limit == 0 || r.snapshot == nil {
		return s.uncached(r, h)
	}
	key := keyOf(r)
	holds := func(f *finished) bool { return f.about != nil && f.about.Holds(r.snapshot) }
	if f := s.cache.kept(key, holds); f != nil {
		return f, nil
	}
	own := *r // the response is not only for this client
	own.Context, own.Header = context.WithoutCancel(r.Context), http.Header{}
	return s.cache.answer(r.Context, key, r.snapshot, holds,
		func() (func(error), error) { return s.slots.acquire(own.Context, own.holder()) },
		func() (*finished, error) { return s.create(&own, h) })
}

// uncached handles a request as soon as there is a slot for it.
func (s *Server) uncached(r *Request, h Handler) (f *finished, err error) {
	err = s.onSlot(r.Context, r.holder(), s.slots.acquire,
		func(context.Context) (err error) { f, err = s.create(r, h); return err })
	return f, err
}

// create runs a handler. The caller holds a slot.
func (s *Server) create(r *Request, h Handler) (*finished, error) {
	// A client that disconnects does not abort a query, because that would reset the connection to the engine.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context), s.RequestTimeout)
	defer cancel()
	// a long response is requested again, in order to stream it
	defer func(before context.Context) { r.Context = before }(r.Context)
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
