package serve

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/telemetry"
)

// orDefault returns the number of cheap requests handled at once. If the operator does not configure it, it is two per
// processor, because a request spends half of its time waiting for the engine, and at least four.
func orDefault(concurrency int) int {
	if concurrency == 0 {
		return max(4, 2*runtime.GOMAXPROCS(0))
	}
	return concurrency
}

// forPartners returns the number of additional slots for partners.
func forPartners(concurrency int) int { return (concurrency + 3) / 4 }

func withPartners(concurrency int) int { return concurrency + forPartners(concurrency) }

// forExpensive returns the number of expensive requests handled at once: one per two processors, so that half of the
// processors are left for cheap ones.
func forExpensive(concurrency int) int { return max(1, concurrency/4) }

// provenAtOnce is the number of requests that may wait for proofs at once: each holds the receipts of a block in
// memory. Their queries run on expensive slots (Request.BeforeProofs).
const provenAtOnce = 4

// questionsAtOnce is how many queries a request that holds a slot runs at once, at most.
const questionsAtOnce = 3

// Questions returns the maximum number of concurrent queries: those of the requests that hold a slot, and a few for the
// snapshot and for killing abandoned queries.
func Questions(concurrency int) int {
	concurrency = orDefault(concurrency)
	return questionsAtOnce*(withPartners(concurrency)+withPartners(forExpensive(concurrency))) + 16
}

// engine hands out the slots of each class, and charges for the time that they are held.
type engine struct {
	slots  [classes]*slots
	held   [classes]prometheus.Counter // seconds
	budget Budget                      // nil: no client is charged
}

// Budget limits the engine time that the requests of an address use.
type Budget interface {
	// Afford returns an error, 429, while the address or one of its prefixes has no budget left.
	Afford(client netip.Addr) error
	// Charge deducts the time used.
	Charge(client netip.Addr, used time.Duration)
}

func newEngine(concurrency int, m metrics) *engine {
	costly, refused := forExpensive(concurrency), m.refused.Inc
	e := &engine{slots: [classes]*slots{
		cheap:     newSlots(concurrency, forPartners(concurrency), refused),
		expensive: newSlots(costly, forPartners(costly), refused),
		proving:   newSlots(provenAtOnce, forPartners(provenAtOnce), refused),
	}}
	e.slots[expensive].patience = waitForExpensive
	for class, name := range []string{cheap: "cheap", expensive: "expensive", proving: "proving"} {
		e.held[class] = m.engine.WithLabelValues(name)
	}
	return e
}

// acquire waits for a slot of the holder's class; release returns it, and gets the error of the work. A holder without
// budget is rejected before and after the wait, because many requests of one address may have started waiting while it
// still had some.
func (e *engine) acquire(ctx context.Context, h holder) (release func(error), err error) {
	if err := e.afford(h); err != nil {
		return nil, err
	}
	waiting, span := telemetry.Child(ctx, telemetry.Internal, "wait for a slot")
	leave, err := e.slots[h.class].acquire(waiting, h)
	telemetry.End(span, err)
	if err != nil {
		return nil, err
	}
	if err := e.afford(h); err != nil {
		leave()
		return nil, err
	}
	return e.charging(h, leave), nil
}

// acquirePatiently is acquire for the next part of a response that has begun. It waits for as long as the response
// may take, and charges without rejecting: a client whose file is cut off would request all of it again.
func (e *engine) acquirePatiently(ctx context.Context, h holder) (release func(error), err error) {
	leave, err := e.slots[h.class].acquireUntil(ctx, h, nil)
	if err != nil {
		return nil, err
	}
	return e.charging(h, leave), nil
}

// charged reports whether a holder is charged for engine time. Partners are not: their limits are those of the
// registry. Work for all live responses is no client's. A request that waits for proofs is charged for its queries,
// which have a slot of their own.
func (e *engine) charged(h holder) bool {
	return e.budget != nil && h.kind() == public && !h.allLive && h.class != proving
}

func (e *engine) afford(h holder) error {
	if !e.charged(h) {
		return nil
	}
	return e.budget.Afford(h.client)
}

// charging returns the release of a slot whose time is charged, unless the engine did not respond: otherwise all
// clients would have used up their budgets when it responds again.
func (e *engine) charging(h holder, leave func()) (release func(error)) {
	begun := time.Now()
	return func(err error) {
		used := time.Since(begun)
		e.held[h.class].Add(used.Seconds())
		var question *state.Error
		if silent := errors.As(err, &question) && question.Silent; e.charged(h) && !silent {
			e.budget.Charge(h.client, used)
		}
		leave()
	}
}

// clientKey is the key of the context that ends when the client of a request disconnects. It is kept in contexts that
// do not end with the client, such as those of responses that others may share.
type clientKey struct{}

func withClient(ctx, client context.Context) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// clientOf returns the context that ends when the client disconnects, or one that never ends if there is no client.
func clientOf(ctx context.Context) context.Context {
	if client, ok := ctx.Value(clientKey{}).(context.Context); ok {
		return client
	}
	return context.Background()
}

var errClientLeft = errors.New("the client has left")

// clientLeft is the error of a request whose client disconnected. It counts as overload, so that other requests
// waiting for the same response continue on slots of their own.
func clientLeft(client context.Context) *Failure {
	f := Unavailable("The client closed its side of the connection before the response was made.",
		errors.Join(errClientLeft, context.Cause(client)))
	f.Crowd = true
	return f
}

// whileConnected wraps a handler so that its work and its queries end when the client disconnects.
func whileConnected(h Handler) Handler {
	return func(r *Request) (*Answer, error) {
		before, client := r.Context, clientOf(r.Context)
		ctx, cancel := context.WithCancel(before)
		defer cancel()
		defer context.AfterFunc(client, cancel)()
		r.Context = ctx
		defer func() { r.Context = before }()
		a, err := h(r)
		if err != nil && client.Err() != nil {
			return nil, clientLeft(client)
		}
		return a, err
	}
}

// class is the engine cost of a request. Each class has slots of its own, so cheap requests never wait behind
// expensive ones.
type class int

const (
	cheap     class = iota
	expensive       // may take a second of processor time; a cheap one takes some hundredths
	// waits for a node of the chain, which would leave a slot of the engine idle: its queries are expensive
	proving
	classes
)

// deepReach is the value of page x pageSize above which a page is expensive: the engine reads and skips all rows
// before it.
const deepReach = 2_000

// class returns the cost class of a request that needs the engine, decided by its route and parameters only. A route's
// Expensive decides for most requests; files and deep pages are always expensive. A stream is cheap while it is at the
// end of the log, and uses expensive slots while it catches up (Live.Work).
func (e *Route) class(r *Request) class {
	if e.IsFile || r.format != "" {
		return expensive
	}
	switch {
	case e.Proves != nil && e.Proves(r.query):
		return proving
	case e.Expensive != nil && e.Expensive(r.query), reach(r.query) > deepReach:
		return expensive
	}
	return cheap
}

// reach returns the number of rows of a list up to the end of the requested page, or 0 if the parameters are not
// valid.
func reach(values url.Values) uint64 {
	number := func(field string, absent uint64) uint64 {
		text := values.Get(field)
		if text == "" {
			return absent
		}
		n, _ := digits(text)
		return min(n, math.MaxUint32)
	}
	return number("page", 1) * number("pageSize", DefaultPageSize)
}

// Always is the Expensive of a route whose requests are all expensive.
func Always(url.Values) bool { return true }

// Given is the Expensive of a route whose requests are expensive if one of some parameters is given, such as a filter.
func Given(fields ...string) func(url.Values) bool {
	return func(values url.Values) bool {
		return slices.ContainsFunc(fields, func(field string) bool { return values.Get(field) != "" })
	}
}

// PastByAmount is the Expensive of a list that is stored by amount for the newest block only: for another block, the
// engine computes the amounts of all users.
func PastByAmount(values url.Values) bool {
	return values.Get(asOfBlock) != "" && values.Get("sortBy") != "" && values.Get("sortBy") != "firstSeen"
}
