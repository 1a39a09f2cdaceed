package query

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/navlog/navlog/schemas/readmodel"
)

const (
	// warmed is how many of the answers asked for most are made anew when the
	// state moves.
	warmed = 16
	// maxCachedAnswer keeps one long answer from taking the room of many.
	maxCachedAnswer = 512 << 10
)

// cache holds finished answers about one snapshot. They can never be wrong:
// an answer is a function of generation, seq and request, and the cache of a
// seq goes when the next one is served. Of two equal requests at once, one is
// answered and the other waits for it.
type cache struct {
	mu      sync.Mutex
	limit   int // bytes
	size    int
	entries map[cacheKey]*cacheEntry
}

// cacheKey is what an answer is made of, besides the snapshot: the request as
// it was written, and of a partner the number and the name.
type cacheKey struct {
	path, query string
	partner     uint32
	name        string
}

// cacheEntry is one answer, or the wait for it.
type cacheEntry struct {
	ready  chan struct{} // closed when finished or err is set
	finish *finished
	err    error
	ask    func(context.Context, *snapshot) // makes it again for another snapshot
	hits   int
	kept   bool
}

func newCache(limit int) *cache {
	return &cache{limit: limit, entries: make(map[cacheKey]*cacheEntry)}
}

// finished gives an answer that is there; nil: it is not.
func (c *cache) finished(key cacheKey) *finished {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil || !e.kept {
		return nil
	}
	e.hits++
	return e.finish
}

// answer gives the answer to key, from make when it is not there. make is
// called once at a time for a key, and not under the deadline of one client.
func (c *cache) answer(ctx context.Context, key cacheKey, ask func(context.Context, *snapshot), make func() (*finished, error)) (*finished, error) {
	c.mu.Lock()
	e, ok := c.entries[key]
	if ok {
		e.hits++
		c.mu.Unlock()
		select {
		case <-e.ready:
			return e.finish, e.err
		case <-ctx.Done():
			return nil, unavailable("The answer took too long.", ctx.Err())
		}
	}
	e = &cacheEntry{ready: newSignal(), ask: ask}
	c.entries[key] = e
	c.mu.Unlock()
	defer close(e.ready)
	e.err = internal(errPanicked) // unless make returns
	defer func() { c.settle(key, e) }()
	e.finish, e.err = make()
	return e.finish, e.err
}

func newSignal() chan struct{} { return make(chan struct{}) }

// settle keeps a finished entry within the limit; a failed or large one is
// forgotten.
func (c *cache) settle(key cacheKey, e *cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.err != nil || len(e.finish.plain.body) > maxCachedAnswer {
		delete(c.entries, key)
		return
	}
	e.kept = true
	c.size += e.cost(key)
	for other, old := range c.entries { // any: all of them go with the next seq
		if c.size <= c.limit {
			return
		}
		if old.kept {
			delete(c.entries, other)
			c.size -= old.cost(other)
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

// popular are the answers that were asked for most and more than once.
func (c *cache) popular() []func(context.Context, *snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var often []*cacheEntry
	for _, e := range c.entries {
		if e.hits > 0 {
			often = append(often, e)
		}
	}
	slices.SortFunc(often, func(a, b *cacheEntry) int { return cmp.Compare(b.hits, a.hits) })
	var out []func(context.Context, *snapshot)
	for _, e := range often[:min(len(often), warmed)] {
		out = append(out, e.ask)
	}
	return out
}

// cached answers a request out of the snapshot's cache, or through it.
func (q *Query) cached(x *exchange, e endpoint) (*finished, error) {
	key := cacheKey{path: x.request.URL.EscapedPath(), query: x.request.URL.RawQuery}
	if x.caller != nil {
		key.partner, key.name = x.caller.id, x.caller.name
	}
	if f := x.snapshot.cache.finished(key); f != nil {
		return f, nil
	}
	// An entry lives as long as its seq, so it keeps of the request no more than
	// cost counts: not the headers, which a client may fill with what it likes.
	request, vars, caller := &http.Request{Method: http.MethodGet, URL: x.request.URL}, x.vars, x.caller
	again := func(ctx context.Context, s *snapshot) {
		warm := &exchange{ctx: ctx, request: request, vars: vars, caller: caller, snapshot: s, header: http.Header{}, sizes: q.sizes}
		_, _ = q.cached(warm, e) // what fails here, fails again when somebody asks
	}
	return x.snapshot.cache.answer(x.ctx, key, again, func() (*finished, error) {
		own := *x // the answer is not this client's alone
		own.ctx, own.header = context.WithoutCancel(x.ctx), http.Header{}
		return q.make(&own, e.get)
	})
}

// make has a handler answer, when there is a slot for it.
func (q *Query) make(x *exchange, h handler) (*finished, error) {
	release, err := q.slots.acquire(x.ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	// A client that goes away does not break off a question: that would reset
	// the engine's connection.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), q.cfg.RequestTimeout)
	defer cancel()
	x.ctx, x.params = ctx, newParams(x.request.URL.RawQuery)
	a, err := h(x)
	if err != nil {
		return nil, err
	}
	return a.finish(x.header)
}

// stateTag names an answer by what it is made of, where its bytes are not
// known before they are sent.
func stateTag(p *pin, request string) string {
	sum := sha256.Sum256([]byte(readmodel.Schema() + " " + strconv.Itoa(int(p.id)) + " " + decimal(p.seq) + " " + request))
	return hex.EncodeToString(sum[:16])
}

// warm makes the popular answers of the last snapshot for the next one.
func (q *Query) warm(ctx context.Context, was, now *snapshot) {
	if was == nil || was.id != now.id || q.cfg.CacheBytes == 0 {
		return
	}
	asks := was.cache.popular()
	if len(asks) == 0 || !q.warming.TryLock() { // the round before is still at it
		return
	}
	go func() {
		defer q.warming.Unlock()
		defer func() {
			if fault := recover(); fault != nil { // a handler's, who would end the program here
				q.log.Error("answer not made anew", "error", fault)
			}
		}()
		for _, ask := range asks {
			if !q.snapshot.Load().sameAs(now) || ctx.Err() != nil {
				return
			}
			ask(ctx, now)
		}
	}()
}
