package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/registry"
)

const (
	// grace is how long, at the start, the other endpoints may take after the first one has responded.
	grace = 3 * time.Second
	// identityHolds is how long an endpoint is trusted to serve the same chain as before.
	identityHolds = time.Minute
	// headHolds is how long a head is compared with the heads of other endpoints.
	headHolds = 30 * time.Second
	// spareHolds is how long an endpoint must have been without a fault before a spare one returns the turn to it, so
	// that the turn does not alternate.
	spareHolds = time.Minute
)

// Pool is the list of endpoints. One of them is in use for the head until it fails or lags; then the next usable one
// has its turn. A spare endpoint has it only while no other is usable. Pool is safe for concurrent use.
type Pool struct {
	chainID uint64
	metrics *callMetrics
	log     *slog.Logger
	clock   clock
	all     []*Node

	// wake receives a value when an endpoint announces a block.
	wake  chan struct{}
	seals seals
	giant sync.Mutex // held while a response of unusual length is in memory
	// announced is the newest block that was announced; told is the latest head of the endpoint in use.
	announced, told atomic.Pointer[sighting]

	mu      sync.Mutex
	at      int // in use
	met     bool
	genesis *common.Hash // of the first endpoint that responded
}

// sighting is a head and the time at which it was seen.
type sighting struct {
	number uint64
	at     time.Time
}

// NewPool returns the pool of valid endpoints, no two of which have the same URL. It does not connect. prices are the
// units per call, by method, at endpoints without prices of their own; nil for none.
func NewPool(chainID uint64, endpoints []Endpoint, prices map[string]uint64, reg prometheus.Registerer, log *slog.Logger) *Pool {
	m := newCallMetrics(reg)
	p := &Pool{chainID: chainID, metrics: m, log: log, clock: wallClock, wake: make(chan struct{}, 1)}
	names := endpointNames(endpoints)
	for i, e := range endpoints {
		if e.Prices == nil {
			e.Prices = prices
		}
		n := newNode(e, names[i], p.clock, m)
		m.limited.WithLabelValues(n.Name) // create the series at 0
		n.seals = &p.seals
		n.heads = func(ctx context.Context, h *Header) error { return p.sawHead(ctx, n, h) }
		p.all = append(p.all, n)
	}
	reg.MustRegister(p)
	return p
}

// endpointNames returns the scheme and host of each URL, with its index if an earlier endpoint has the same.
func endpointNames(endpoints []Endpoint) []string {
	names := make([]string, len(endpoints))
	seen := map[string]bool{}
	for i, e := range endpoints {
		names[i] = contracts.EndpointName(e.URL)
		if seen[names[i]] {
			names[i] = fmt.Sprintf("%s#%d", names[i], i)
		}
		seen[names[i]] = true
	}
	return names
}

// Close closes all connections.
func (p *Pool) Close() {
	for _, n := range p.all {
		n.close()
	}
}

// First returns an endpoint that responds, and tries each once. Its first call checks all endpoints, and fails if one
// serves the wrong chain.
func (p *Pool) First(ctx context.Context) (*Node, error) {
	if err := p.meet(ctx); err != nil {
		return nil, err
	}
	var faults []error
	for range p.all {
		n, err := p.Current(ctx)
		if err == nil || ctx.Err() != nil || isRefused(err) {
			return n, err
		}
		faults = append(faults, err)
		p.Next()
	}
	return nil, noneAnswers(faults)
}

func noneAnswers(faults []error) error {
	return fmt.Errorf("no endpoint of chain.rpc answers; is the node up and the URL right? %w", errors.Join(faults...))
}

// Current returns the endpoint in use for the head, which is verified to serve the right chain.
func (p *Pool) Current(ctx context.Context) (*Node, error) {
	if err := p.unlimited(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	n := p.all[p.at]
	if better := p.better(n); better != nil {
		p.log.Info("another endpoint is in use now", "endpoint", better.Name, "before", n.Name)
		p.turnTo(better)
		n = better
	}
	p.mu.Unlock()
	return n, p.Identified(ctx, n)
}

// better returns the endpoint that should replace the one in use: a more usable one or, if n is a spare, any other that
// was without a fault for a while. It returns nil if n should stay.
func (p *Pool) better(n *Node) *Node {
	if best := p.best(nil); best.health.rank() < n.health.rank() {
		return best
	}
	since := p.clock.now().Add(-spareHolds)
	for _, o := range p.all {
		if n.spare && !o.spare && o.health.settled(since) {
			return o
		}
	}
	return nil
}

// Genesis returns the genesis hash of the chain. Call it after Current or First has returned an endpoint.
func (p *Pool) Genesis() common.Hash {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.genesis
}

// Other returns the best endpoint except n, or an error if none can be called now.
func (p *Pool) Other(ctx context.Context, n *Node) (*Node, error) {
	other := p.best(n)
	if other == nil || other.health.rank() >= limited {
		return nil, errors.New("there is no other endpoint that can be called now")
	}
	return other, p.Identified(ctx, other)
}

// Others returns all endpoints except n that are up and do not serve another chain, the most usable first.
func (p *Pool) Others(n *Node) []*Node {
	others := slices.DeleteFunc(slices.Clone(p.all), func(o *Node) bool { return o == n || o.health.rank() >= down })
	slices.SortStableFunc(others, p.fitter)
	return others
}

// sharing returns the endpoints that share the block ranges of a backfill: n, the one in use for the head, and all
// usable ones whose chain is known and whose own head is at or above block to, because a node returns no logs for
// blocks that it does not have. A spare endpoint is excluded, unless it is n. n itself is excluded while it rests after
// a failure, unless there is no other.
func (p *Pool) sharing(n *Node, to uint64) (some []*Node) {
	for _, o := range p.all {
		if o != n && !o.spare && o.health.rank() == fit && o.health.knownSince(time.Time{}) && o.health.has(to) {
			some = append(some, o)
		}
	}
	if len(some) == 0 || n.health.rank() < limited {
		some = append([]*Node{n}, some...)
	}
	return some
}

// Next gives the turn to the best of the other endpoints, beginning with the one after the current one. It does nothing
// if all of them are down and the current one is not.
func (p *Pool) Next() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.all[p.at]
	if other := p.best(n); other != nil && (other.health.rank() < down || n.health.rank() >= down) {
		p.turnTo(other)
	}
}

// turnTo makes an endpoint the one in use. p.mu is held.
func (p *Pool) turnTo(n *Node) {
	now := p.clock.now()
	p.all[p.at].health.set(func(h *health) { h.left = now })
	p.at = slices.Index(p.all, n)
}

// fitter compares endpoints by how usable they are at present. Among equals, spare ones come after others, and those
// that lost the turn recently come last: their failure to return something may not show in their health.
func (p *Pool) fitter(a, b *Node) int {
	class := func(n *Node) int {
		switch {
		case n.health.leftSince(p.clock.now().Add(-spareHolds)):
			return 2
		case n.spare:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.health.rank(), b.health.rank()), cmp.Compare(class(a), class(b)))
}

// best returns the most usable endpoint except but; among equals it takes the first one after but. but may be nil: then
// the search begins with the first endpoint. It returns nil if there is no endpoint.
func (p *Pool) best(but *Node) (best *Node) {
	from := slices.Index(p.all, but) // -1 if but is nil
	for i := range p.all {
		n := p.all[(from+1+i)%len(p.all)]
		if n != but && (best == nil || p.fitter(n, best) < 0) {
			best = n
		}
	}
	return best
}

// unlimited waits while every endpoint that is up is rate-limited.
func (p *Pool) unlimited(ctx context.Context) error {
	for {
		pause, some := longestPause, false
		for _, n := range p.all {
			switch r := n.health.rank(); {
			case r < limited:
				return nil
			case r == limited:
				pause, some = min(pause, n.health.rests()), true // 0 if the limit has just ended
			}
		}
		if !some {
			return nil
		}
		p.log.Warn("every endpoint that is up is rate-limited; waiting", "for", pause.Round(time.Millisecond))
		if err := p.clock.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Tend checks the endpoints that are not in use regularly, and the one in use now and then, until ctx ends. So an
// endpoint that recovers is noticed, one that lags is known, and one that serves another chain is excluded.
func (p *Pool) Tend(ctx context.Context) {
	var wait sync.WaitGroup
	wait.Go(func() { p.tellChanges(ctx) })
	for _, n := range p.all {
		wait.Go(func() { p.tendOne(ctx, n) })
		if n.ws != "" {
			wait.Go(func() { p.listen(ctx, n) })
		}
	}
	wait.Wait()
}

// standbyEvery is the pause between checks of an endpoint that is not in use.
const standbyEvery = 10 * time.Second

func (p *Pool) tendOne(ctx context.Context, n *Node) {
	for {
		pause := standbyEvery
		if r := n.health.rank(); r == down || r == recovering {
			pause = firstQuarantine
		}
		if p.clock.sleep(ctx, max(pause, n.health.rests())) != nil {
			return
		}
		if n.health.rests() > 0 || n == p.inUse() && n.health.knownSince(p.clock.now().Add(-identityHolds)) {
			continue
		}
		// Errors show in the endpoint's health, and are reported there.
		_ = p.look(ctx, n)
	}
}

// tellChanges logs when an endpoint goes down, recovers, and so on. Changes of less than a second are not logged.
func (p *Pool) tellChanges(ctx context.Context) {
	before := p.Status()
	for Sleep(ctx, time.Second) == nil {
		now := p.Status()
		for i, e := range now {
			was := before[i].State
			switch {
			case e.State == was || e.State == registry.EndpointUp && was == registry.EndpointUntried:
			case e.State == registry.EndpointWrong: // logged when it was detected
			case e.State == registry.EndpointUp:
				p.log.Info("an endpoint is up again", "endpoint", e.Name, "before", was)
			default:
				p.log.Warn("an endpoint is "+e.State, "endpoint", e.Name, "before", was, "error", e.LastError)
			}
		}
		before = now
	}
}

// look reads the chain of an endpoint if this is due, and its head.
func (p *Pool) look(ctx context.Context, n *Node) error {
	if !n.health.knownSince(p.clock.now().Add(-identityHolds)) {
		if err := p.identify(ctx, n); err != nil {
			return err
		}
	}
	_, err := n.Latest(ctx)
	return err
}

// Answers returns nil if an endpoint returns the head of the chain. It calls each endpoint at most once.
func (p *Pool) Answers(ctx context.Context) error {
	var faults []error
	for range p.all {
		n, err := p.Current(ctx)
		if err == nil {
			_, err = n.Latest(ctx)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		faults = append(faults, err)
		p.Next()
	}
	return noneAnswers(faults)
}

func (p *Pool) inUse() *Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[p.at]
}

// Calls returns all calls since the process began, the most called method first.
func (p *Pool) Calls() []registry.MethodCalls {
	bills := make([]*Bill, len(p.all))
	for i, n := range p.all {
		bills[i] = &n.spent
	}
	return together(bills)
}

// Status returns the health of every endpoint.
func (p *Pool) Status() []registry.EndpointStatus {
	inUse := p.inUse()
	all := make([]registry.EndpointStatus, len(p.all))
	for i, n := range p.all {
		all[i] = n.health.status(n.Name)
		all[i].InUse = n == inUse
		spent := registry.Spent(n.spent.Calls())
		all[i].Calls, all[i].Units = spent.Calls, spent.Units
	}
	return all
}
