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
	// grace is how long, at the start, the others may take after the first
	// endpoint has answered.
	grace = 3 * time.Second
	// identityHolds is for how long an endpoint is trusted to serve the chain that
	// it served.
	identityHolds = time.Minute
	// headHolds is for how long a head that was seen says something about others.
	headHolds = 30 * time.Second
	// spareHolds is for how long an endpoint must have been without a fault before a spare
	// one gives the turn back to it, so that the turn does not go to and fro.
	spareHolds = time.Minute
)

// Pool is the list of endpoints. One of them is in use for the head until it
// fails or lags; then it is the turn of the next one that is fit, of a spare one
// only where no other is, and until one is again. It is safe for concurrent use.
type Pool struct {
	chainID uint64
	metrics *callMetrics
	log     *slog.Logger
	clock   clock
	all     []*Node

	// wake gets a value when an endpoint announced a block.
	wake  chan struct{}
	seals seals
	giant sync.Mutex // held while an answer of unusual length is in memory
	// announced is the newest block that was; told is the head that the endpoint
	// in use gave when it was last asked.
	announced, told atomic.Pointer[sighting]

	mu      sync.Mutex
	at      int // in use
	met     bool
	genesis *common.Hash // of the first endpoint that answered
}

// sighting is a head and when it was seen.
type sighting struct {
	number uint64
	at     time.Time
}

// NewPool makes the list of valid endpoints, of which no two have the same URL,
// without connecting. prices are the units of each method at endpoints that have
// none of their own, nil for none.
func NewPool(chainID uint64, endpoints []Endpoint, prices map[string]uint64, reg prometheus.Registerer, log *slog.Logger) *Pool {
	m := newCallMetrics(reg)
	p := &Pool{chainID: chainID, metrics: m, log: log, clock: wallClock, wake: make(chan struct{}, 1)}
	names := endpointNames(endpoints)
	for i, e := range endpoints {
		if e.Prices == nil {
			e.Prices = prices
		}
		n := newNode(e, names[i], p.clock, m)
		m.limited.WithLabelValues(n.Name) // from 0 on
		n.seals = &p.seals
		n.heads = func(ctx context.Context, h *Header) error { return p.sawHead(ctx, n, h) }
		p.all = append(p.all, n)
	}
	reg.MustRegister(p)
	return p
}

// endpointNames gives scheme and host of each URL, and its index too where
// another endpoint has the same.
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

// Close ends all connections.
func (p *Pool) Close() {
	for _, n := range p.all {
		n.close()
	}
}

// First finds an endpoint that answers, trying each once. The first time it
// asks all of them, and refuses a configuration of which one is wrong.
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

// Current is the endpoint in use for the head. It was seen to serve the right
// chain.
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

// better is the endpoint that the one in use leaves the turn to: a fitter one, or, of a
// spare one, any other that was without a fault for a while. nil: it stays.
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

// Genesis is that of the chain, once current or first has given an endpoint.
func (p *Pool) Genesis() common.Hash {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.genesis
}

// Other is the best endpoint but n, or an error when none may be asked now.
func (p *Pool) Other(ctx context.Context, n *Node) (*Node, error) {
	other := p.best(n)
	if other == nil || other.health.rank() >= limited {
		return nil, errors.New("there is no other endpoint that may be asked now")
	}
	return other, p.Identified(ctx, other)
}

// Others are all endpoints but n that are up and do not serve another chain,
// the fittest first.
func (p *Pool) Others(n *Node) []*Node {
	others := slices.DeleteFunc(slices.Clone(p.all), func(o *Node) bool { return o == n || o.health.rank() >= down })
	slices.SortStableFunc(others, p.fitter)
	return others
}

// sharing are the endpoints that the ranges of a backfill are dealt to: n, the one that
// is asked for the head, and all others that are well, whose chain is known, and whose
// own head is not below block to, for a node answers with nothing for blocks that it
// has not. A spare one is not among them, unless it is n; n itself, where it rests
// after a failure, only when it is alone.
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

// Next gives the turn to the best of the other endpoints, the one after this
// first, unless none of them is any better than down.
func (p *Pool) Next() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.all[p.at]
	if other := p.best(n); other != nil && (other.health.rank() < down || n.health.rank() >= down) {
		p.turnTo(other)
	}
}

// turnTo puts an endpoint in use. p.mu is held.
func (p *Pool) turnTo(n *Node) {
	now := p.clock.now()
	p.all[p.at].health.set(func(h *health) { h.left = now })
	p.at = slices.Index(p.all, n)
}

// fitter orders endpoints by how fit they are to be asked now, and of equally fit ones
// puts spare ones last, but for those that lost the turn a moment ago: what they
// failed to give may be nothing that shows in their health.
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

// best is the fittest endpoint but one: of several, the one that comes after it. but
// may be nil, for none: then the first of several. It is nil when there is none.
func (p *Pool) best(but *Node) (best *Node) {
	from := slices.Index(p.all, but) // -1 for none
	for i := range p.all {
		n := p.all[(from+1+i)%len(p.all)]
		if n != but && (best == nil || p.fitter(n, best) < 0) {
			best = n
		}
	}
	return best
}

// unlimited waits while every endpoint that is up is asked too often.
func (p *Pool) unlimited(ctx context.Context) error {
	for {
		pause, some := longestPause, false
		for _, n := range p.all {
			switch r := n.health.rank(); {
			case r < limited:
				return nil
			case r == limited:
				pause, some = min(pause, n.health.rests()), true // 0 when it ended this moment
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

// Tend looks after the endpoints that are not in use, and at times after the
// one that is, until ctx ends: that one that was down is found when it comes
// back, one that lags is known, and one that serves another chain is put aside.
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

// standbyEvery is the pause between looks at an endpoint that is not in use.
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
		// What is wrong shows in its health, and is said where it matters.
		_ = p.look(ctx, n)
	}
}

// tellChanges logs when an endpoint goes down, comes back, and the like. What
// lasts less than a second is not worth a line.
func (p *Pool) tellChanges(ctx context.Context) {
	before := p.Status()
	for Sleep(ctx, time.Second) == nil {
		now := p.Status()
		for i, e := range now {
			was := before[i].State
			switch {
			case e.State == was || e.State == registry.EndpointUp && was == registry.EndpointUntried:
			case e.State == registry.EndpointWrong: // said when it was found out
			case e.State == registry.EndpointUp:
				p.log.Info("an endpoint is up again", "endpoint", e.Name, "before", was)
			default:
				p.log.Warn("an endpoint is "+e.State, "endpoint", e.Name, "before", was, "error", e.LastError)
			}
		}
		before = now
	}
}

// look asks an endpoint for its chain where it is time to, and for its head.
func (p *Pool) look(ctx context.Context, n *Node) error {
	if !n.health.knownSince(p.clock.now().Add(-identityHolds)) {
		if err := p.identify(ctx, n); err != nil {
			return err
		}
	}
	_, err := n.Latest(ctx)
	return err
}

// Answers is nil when an endpoint gives the head of the chain; each is asked once at most.
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

// Calls are all questions since the process began, the most called method first.
func (p *Pool) Calls() []registry.MethodCalls {
	bills := make([]*Bill, len(p.all))
	for i, n := range p.all {
		bills[i] = &n.spent
	}
	return together(bills)
}

// Status is the health of every endpoint.
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
