package httpapi

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// DefaultConcurrency is how many cheap requests are answered at once if the operator names
// no number: two for each processor, for an answer waits for the engine half of its time,
// and at least four.
func DefaultConcurrency() int { return max(4, 2*runtime.GOMAXPROCS(0)) }

func orDefault(concurrency int) int {
	if concurrency == 0 {
		return DefaultConcurrency()
	}
	return concurrency
}

// forPartners is how many slots partners have beside those for everybody.
func forPartners(concurrency int) int { return (concurrency + 3) / 4 }

func withPartners(concurrency int) int { return concurrency + forPartners(concurrency) }

// forExpensive is how many expensive requests are answered at once: one for each two
// processors, so that half of them are left for the cheap ones.
func forExpensive(concurrency int) int { return max(1, concurrency/4) }

// provenAtOnce are the requests that wait for proofs at once: each holds the receipts of a
// block.
const provenAtOnce = 4

// Questions is how many questions are asked at once at most: each request that has a slot asks
// up to six, and a few are for the snapshot and to kill abandoned questions.
func Questions(concurrency int) int {
	concurrency = orDefault(concurrency)
	costly := forExpensive(concurrency)
	return 6*(withPartners(concurrency)+withPartners(costly)+withPartners(provenAtOnce)) + 16
}

// engine gives out the slots of each class, and charges for the time that they are held.
type engine struct {
	slots  [classes]*slots
	held   [classes]prometheus.Counter // seconds
	budget Budget                      // nil: nobody is charged
}

// Budget bounds the engine's time that the requests of an address take.
type Budget interface {
	// Afford is an error, 429, while the address or one of its prefixes has none left.
	Afford(client netip.Addr) error
	// Charge takes time off.
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

// acquire waits for a slot of the holder's class; release gives it back. A holder without
// budget is refused before and after the wait: many requests of one address may have
// been waiting while it had some.
func (e *engine) acquire(ctx context.Context, h holder) (release func(), err error) {
	if err := e.afford(h); err != nil {
		return nil, err
	}
	leave, err := e.slots[h.class].acquire(ctx, h)
	if err != nil {
		return nil, err
	}
	if err := e.afford(h); err != nil {
		leave()
		return nil, err
	}
	return e.charging(h, leave), nil
}

// acquirePatiently is acquire for the next part of an answer that has begun. It waits as
// long as the answer may take, and charges without a refusal: a client whose file is cut
// off asks for all of it again.
func (e *engine) acquirePatiently(ctx context.Context, h holder) (release func(), err error) {
	leave, err := e.slots[h.class].acquireUntil(ctx, h, nil)
	if err != nil {
		return nil, err
	}
	return e.charging(h, leave), nil
}

// charged reports whether a holder pays for the engine's time. Partners do not: their limits
// are those of the registry.
func (e *engine) charged(h holder) bool {
	return e.budget != nil && h.kind() == public && h.client != allLive.client
}

func (e *engine) afford(h holder) error {
	if !e.charged(h) {
		return nil
	}
	return e.budget.Afford(h.client)
}

// charging makes the release of a slot that is charged for.
func (e *engine) charging(h holder, leave func()) (release func()) {
	begun := time.Now()
	return func() {
		used := time.Since(begun)
		e.held[h.class].Add(used.Seconds())
		if e.charged(h) {
			e.budget.Charge(h.client, used)
		}
		leave()
	}
}

// clientKey is the key of the context that ends when the client of a request leaves. It
// stays with contexts that do not end with it, as those of answers which others may share.
type clientKey struct{}

func withClient(ctx, client context.Context) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// clientOf is the context that ends when the client leaves; one that never ends if no
// client is known.
func clientOf(ctx context.Context) context.Context {
	if client, ok := ctx.Value(clientKey{}).(context.Context); ok {
		return client
	}
	return context.Background()
}

var errClientLeft = errors.New("the client has left")

// clientLeft is what a request ends by whose client has left. Whoever waits for the same
// answer takes it for a crowd, and asks on a slot of its own.
func clientLeft(client context.Context) *Failure {
	f := Unavailable("The client has left.", errors.Join(errClientLeft, context.Cause(client)))
	f.Crowd = true
	return f
}

// whileWanted ends the work of a handler, and the questions that it asks, when its client
// leaves.
func whileWanted(h Handler) Handler {
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
