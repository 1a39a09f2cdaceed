package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
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
	// identityMaxAge is how long an endpoint is trusted to serve the same chain as before.
	identityMaxAge = time.Minute
	// headMaxAge is how long a head is compared with those of other endpoints.
	headMaxAge = 30 * time.Second
	// stableAfter is how long an endpoint must have been without a fault before it replaces another usable one.
	stableAfter = time.Minute
)

// Pool is the list of endpoints, in the order in which they are preferred. One of them is in use for the head (see
// ranked). Pool is safe for concurrent use.
type Pool struct {
	Agreement int // how many endpoints must return the same (chain.agreement)

	chainID uint64
	metrics *callMetrics
	log     *slog.Logger
	clock   clock
	all     []*Node // in the order of the configuration

	// wake receives a value when an endpoint announces a block.
	wake         chan struct{}
	longResponse sync.Mutex // held while a response of unusual length is in memory
	// announcedHead is the announcement that the head is polled for; seenHead is the latest head of the endpoint in use.
	announcedHead, seenHead atomic.Pointer[seenBlock]
	lastWait                time.Time            // when WaitForHead last returned; only its caller uses it
	checked                 atomic.Bool          // the chains of all endpoints were checked
	inUse                   atomic.Pointer[Node] // as Current returned it last

	mu      sync.Mutex
	genesis *common.Hash // of the first endpoint that responded
	// sealedFrom is the lowest accepted block above the genesis with a sealed header; 0 for none.
	sealedFrom uint64
}

type seenBlock struct {
	number uint64
	at     time.Time
}

// NewPool returns the pool of valid endpoints with different URLs. It does not connect. prices are the units per call,
// by method, at endpoints without prices of their own.
func NewPool(chainID uint64, endpoints []Endpoint, agreement int, prices map[string]uint64, reg prometheus.Registerer,
	log *slog.Logger) *Pool {
	p := &Pool{Agreement: agreement, chainID: chainID, metrics: newCallMetrics(reg), log: log, clock: wallClock,
		wake: make(chan struct{}, 1)}
	names := endpointNames(endpoints)
	for i, e := range endpoints {
		if e.Prices == nil {
			e.Prices = prices
		}
		p.metrics.limited.WithLabelValues(names[i]) // create the series at 0
		p.all = append(p.all, p.newNode(e, names[i]))
	}
	p.inUse.Store(p.ranked(nil)[0])
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

// ranked returns the endpoints except one, which may be nil, the one that should be in use first: by their state; of
// usable ones those that were without a fault for a while, in the order of the configuration with spare ones last; then
// the others, the longest without a fault first, so that endpoints that keep failing take turns. Of rate-limited ones,
// the one whose limit ends first comes first.
func (p *Pool) ranked(except *Node) []*Node {
	type rank struct {
		state state
		time  time.Time
	}
	now, ranks := p.clock.now(), map[*Node]rank{}
	nodes := slices.DeleteFunc(slices.Clone(p.all), func(n *Node) bool { return n == except })
	for _, n := range nodes {
		f := n.health.snapshot()
		state, until := f.stateAt(now)
		switch {
		case state == limited:
			ranks[n] = rank{state, until}
		case f.unstableAt.After(now.Add(-stableAfter)):
			ranks[n] = rank{state, f.unstableAt}
		default:
			ranks[n] = rank{state: state}
		}
	}
	slices.SortStableFunc(nodes, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(ranks[a].state, ranks[b].state), ranks[a].time.Compare(ranks[b].time),
			cmp.Compare(toFloat(a.spare), toFloat(b.spare)))
	})
	return nodes
}

// First returns an endpoint that responds, and tries each once. Its first call checks all endpoints, and fails if one
// serves the wrong chain.
func (p *Pool) First(ctx context.Context) (*Node, error) {
	if err := p.checkAll(ctx); err != nil {
		return nil, err
	}
	return p.firstWhere(ctx, func(*Node) error { return nil })
}

// CheckAnswers returns nil if an endpoint returns the head of the chain. It calls each endpoint at most once.
func (p *Pool) CheckAnswers(ctx context.Context) error {
	_, err := p.firstWhere(ctx, func(n *Node) error {
		_, err := n.Latest(ctx)
		return err
	})
	return err
}

// firstWhere returns the first endpoint that serves the right chain and for which works returns nil.
func (p *Pool) firstWhere(ctx context.Context, works func(*Node) error) (*Node, error) {
	if _, err := p.unlimited(ctx); err != nil {
		return nil, err
	}
	var faults []error
	for _, n := range p.ranked(nil) {
		p.use(n)
		err := p.identified(ctx, n)
		if err == nil {
			err = works(n)
		}
		if err == nil || ctx.Err() != nil || Refused(err) {
			return n, err
		}
		faults = append(faults, err)
		p.Next()
	}
	return nil, noneAnswers(faults)
}

func noneAnswers(faults []error) error {
	return fmt.Errorf("%w %w", contracts.ErrNoneAnswers, errors.Join(faults...))
}

// Current returns the endpoint in use for the head, which is verified to serve the right chain.
func (p *Pool) Current(ctx context.Context) (*Node, error) {
	n, err := p.unlimited(ctx)
	if err != nil {
		return nil, err
	}
	p.use(n)
	return n, p.identified(ctx, n)
}

// unlimited returns the endpoint that should be in use. It waits while every endpoint that is up is rate-limited.
func (p *Pool) unlimited(ctx context.Context) (*Node, error) {
	for waited := false; ; waited = true {
		n := p.ranked(nil)[0]
		s, until := n.health.state()
		if s != limited {
			return n, nil
		}
		if !waited {
			p.log.Warn("every endpoint that is up is rate-limited; waiting", "until", until)
		}
		// Another endpoint may become usable before the limit ends.
		if err := p.clock.sleep(ctx, min(until.Sub(p.clock.now()), shortPause)); err != nil {
			return nil, err
		}
	}
}

func (p *Pool) use(n *Node) {
	if before := p.inUse.Swap(n); n != before {
		p.log.Info("another endpoint is in use now", "endpoint", n.Name, "before", before.Name)
	}
}

// Next notes that the endpoint in use did not return what was needed: another usable one comes first for a while.
func (p *Pool) Next() {
	p.inUse.Load().health.set(func(h *health) { h.unstableAt = h.now() })
}

// NextAfter is Next after an error, unless that is about another endpoint than the one in use.
func (p *Pool) NextAfter(err error) {
	if _, other := errors.AsType[*otherEndpointError](err); !other {
		p.Next()
	}
}

// Genesis returns the genesis hash of the chain. Call it after Current or First has returned an endpoint.
func (p *Pool) Genesis() common.Hash {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.genesis
}

// OtherWithBlock returns an endpoint other than n whose chain still goes through a block; nil for none. One whose head
// lags does not count: it may have stopped at the block, which left the chain of the others.
func (p *Pool) OtherWithBlock(ctx context.Context, n *Node, block *Header) *Node {
	for other, err := range p.Others(ctx, n) {
		if err != nil {
			continue
		}
		if tip, err := other.Latest(ctx); err != nil || tip.Number < block.Number || other.health.is(lagging) {
			continue
		}
		if h, err := other.ByNumber(ctx, block.Number); err == nil && h.Hash == block.Hash {
			return other
		}
	}
	return nil
}

// Others returns all endpoints except n that are up and do not serve another chain, the best first, each with the error
// of the check of its chain if that is not known.
func (p *Pool) Others(ctx context.Context, n *Node) iter.Seq2[*Node, error] {
	return func(yield func(*Node, error) bool) {
		for _, o := range p.ranked(n) {
			s, until := o.health.state()
			if s != wrong && !(s == failed && until.After(p.clock.now())) && !yield(o, p.identified(ctx, o)) {
				return
			}
		}
	}
}

// StartingWith returns n, and then the others.
func (p *Pool) StartingWith(ctx context.Context, n *Node) iter.Seq2[*Node, error] {
	return func(yield func(*Node, error) bool) {
		if yield(n, nil) {
			p.Others(ctx, n)(yield)
		}
	}
}

// countUpTo returns how many endpoints are in this state or a better one.
func (p *Pool) countUpTo(worst state) (n int) {
	for _, o := range p.all {
		if s, _ := o.health.state(); s <= worst {
			n++
		}
	}
	return n
}

// Ready returns how many endpoints can be called now.
func (p *Pool) Ready() int { return p.countUpTo(lagging) }

// Down reports whether no endpoint can be called, and not only because of rate limits.
func (p *Pool) Down() bool { return p.countUpTo(limited) == 0 }

// Serving returns how many endpoints do not serve another chain, whether they are up or not.
func (p *Pool) Serving() int { return p.countUpTo(failed) }

// Size returns the number of endpoints.
func (p *Pool) Size() int { return len(p.all) }

// sharing returns the endpoints that share the block ranges of a backfill: n, and all usable ones that are not spare,
// whose chain is known and whose head, since the last failure, is at or above block to. One that failed at a range,
// such as a pruned node, is excluded for a while; n, too, and while it rests, unless there is no other endpoint.
func (p *Pool) sharing(n *Node, to uint64) (some []*Node) {
	now := n.health.now()
	able := func(o *Node) bool { return !o.health.snapshot().ranges.until.After(now) }
	for _, o := range p.all {
		f := o.health.snapshot()
		if o != n && !o.spare && o.health.is(usable) && able(o) && !f.identified.IsZero() && f.head != nil &&
			f.head.Number >= to && !f.headAt.IsZero() {
			some = append(some, o)
		}
	}
	if len(some) == 0 || able(n) && (n.health.is(usable) || n.health.is(lagging)) {
		some = append([]*Node{n}, some...)
	}
	return some
}

// Monitor checks the endpoints that are not in use regularly, and the one in use now and then, until ctx ends.
func (p *Pool) Monitor(ctx context.Context) {
	var wait sync.WaitGroup
	wait.Go(func() { p.logChanges(ctx) })
	for _, n := range p.all {
		wait.Go(func() { p.monitorEndpoint(ctx, n) })
		if n.ws != "" {
			wait.Go(func() { p.listen(ctx, n) })
		}
	}
	wait.Wait()
}

// standbyEvery is the pause between checks of an endpoint that is not in use.
const standbyEvery = 10 * time.Second

func (p *Pool) monitorEndpoint(ctx context.Context, n *Node) {
	for {
		pause := standbyEvery
		if n.health.is(failed) {
			pause = firstQuarantine
		}
		if p.clock.sleep(ctx, max(pause, n.health.pauseLeft())) != nil {
			return
		}
		if n.health.pauseLeft() > 0 || n == p.inUse.Load() && p.identifiedRecently(n) {
			continue
		}
		// Errors show in the endpoint's health, and are reported there.
		_ = p.check(ctx, n)
	}
}

// logChanges logs changes of the endpoints' states that last a second.
func (p *Pool) logChanges(ctx context.Context) {
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

// identifiedRecently reports whether an endpoint was seen to serve the right chain not long ago.
func (p *Pool) identifiedRecently(n *Node) bool {
	return n.health.snapshot().identified.After(p.clock.now().Add(-identityMaxAge))
}

// check reads the chain of an endpoint if this is due, and its head.
func (p *Pool) check(ctx context.Context, n *Node) error {
	if !p.identifiedRecently(n) {
		if err := p.Identify(ctx, n); err != nil {
			return err
		}
	}
	_, err := n.Latest(ctx)
	return err
}

// Calls returns all calls since the process began, the most called method first.
func (p *Pool) Calls() []registry.MethodCalls {
	var sum Bill
	for _, n := range p.all {
		for _, c := range n.spent.Calls() {
			m := sum.of(c.Method)
			m.Calls, m.Bytes, m.Units = m.Calls+c.Calls, m.Bytes+c.Bytes, m.Units+c.Units
		}
	}
	return sum.Calls()
}

// Status returns the health of every endpoint.
func (p *Pool) Status() []registry.EndpointStatus {
	inUse := p.inUse.Load()
	all := make([]registry.EndpointStatus, len(p.all))
	for i, n := range p.all {
		all[i] = n.health.status(n.Name)
		all[i].InUse = n == inUse
		spent := registry.Spent(n.spent.Calls())
		all[i].Calls, all[i].Units = spent.Calls, spent.Units
	}
	return all
}
