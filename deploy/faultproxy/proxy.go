package faultproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// An Injection is one fault that was injected.
type Injection struct {
	Fault  Fault  `json:"fault"`
	Method string `json:"method"` // of the call, or "batch"
	Call   uint64 `json:"call"`   // number of the call among those of this method, from 1
	Detail string `json:"detail"` // what was done to it
}

// String formats the injection as one line.
func (i Injection) String() string {
	return fmt.Sprintf("%s %s#%d: %s", i.Fault, i.Method, i.Call, i.Detail)
}

// Proxy is an http.Handler. Its methods may be called concurrently, at any time.
type Proxy struct {
	config Config
	client *http.Client
	report func(Injection)

	mu       sync.Mutex
	enabled  groups
	rate     float64
	scripted map[string][]*kind // by method; a nil kind is None
	calls    map[string]uint64  // by method
	counts   map[Fault]int
	second   time.Time // second in which this many calls were answered
	answered int
}

// New creates a proxy, or returns an error if the configuration is invalid. If report is not nil, it is called with
// every injected fault, one at a time.
func New(config Config, report func(Injection)) (*Proxy, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if report == nil {
		report = func(Injection) {}
	}
	enabled, err := groupsOf(config.Faults)
	return &Proxy{
		config: config, client: &http.Client{Timeout: upstreamTimeout}, report: report, enabled: enabled, rate: config.Rate,
		scripted: map[string][]*kind{}, calls: map[string]uint64{}, counts: map[Fault]int{},
	}, err
}

// SetRate replaces the probability, 0 to 1, that a fault is drawn.
func (p *Proxy) SetRate(rate float64) error {
	if err := checkRate(rate); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
	return nil
}

// Next scripts the next calls of a method, one fault each, before any draw. None lets a call pass. The method "batch"
// scripts whole batches.
func (p *Proxy) Next(method string, faults ...Fault) error {
	script := make([]*kind, len(faults))
	for i, f := range faults {
		if f == None {
			continue
		}
		k, err := kindOf(f)
		if err != nil {
			return err
		}
		if !k.appliesTo(method) {
			return fmt.Errorf("the fault %s does not apply to %s", f, method)
		}
		script[i] = k
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripted[method] = append(p.scripted[method], script...)
	return nil
}

// Off makes the proxy honest and drops what was scripted.
func (p *Proxy) Off() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enabled, p.scripted = groups{}, map[string][]*kind{}
}

// Counts returns how often each fault was injected.
func (p *Proxy) Counts() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Serve serves on a listener until ctx ends, and then returns nil.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return nil
}

// draw counts one call and decides what happens to it. may reports whether a kind can be chosen.
func (p *Proxy) draw(ctx context.Context, method string, may func(*kind) bool) *drawnFault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[method]++
	name := fnv.New64a()
	io.WriteString(name, method)
	f := &drawnFault{proxy: p, ctx: ctx, method: method, n: p.calls[method]}
	f.rng = rand.New(rand.NewPCG(p.config.Seed^name.Sum64(), f.n))
	// Always drawn, so that enabling or disabling faults leaves all other draws unchanged.
	f.backend = p.config.Upstreams[f.rng.IntN(len(p.config.Upstreams))]
	chance, pick := f.rng.Float64(), f.rng.Uint64()
	if script := p.scripted[method]; len(script) > 0 {
		f.kind, p.scripted[method] = script[0], script[1:]
		return f
	}
	for i, some := range p.enabled {
		if f.kind = p.pick(some, method, may, chance, pick); f.kind != nil {
			break
		}
		// The next list has its own draws, so it leaves all others unchanged.
		own := rand.New(rand.NewPCG(p.config.Seed^name.Sum64(), ^f.n-uint64(i)<<32))
		chance, pick = own.Float64(), own.Uint64()
	}
	return f
}

// pick returns one of the kinds, or nil. p.mu must be held.
func (p *Proxy) pick(some []*kind, method string, may func(*kind) bool, chance float64, pick uint64) *kind {
	var possible []*kind
	for _, k := range some {
		if k.appliesTo(method) && may(k) {
			possible = append(possible, k)
		}
	}
	if chance >= p.rate || len(possible) == 0 {
		return nil
	}
	return possible[pick%uint64(len(possible))]
}

// drawnFault is what was drawn for one call or one batch.
type drawnFault struct {
	proxy   *Proxy
	ctx     context.Context // of the request
	method  string
	n       uint64
	rng     *rand.Rand
	backend string
	kind    *kind // nil: no fault
}

// injected counts and reports one fault.
func (p *Proxy) injected(f *drawnFault, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[f.kind.fault]++
	p.report(Injection{f.kind.fault, f.method, f.n, detail})
}

// ServeHTTP answers one JSON-RPC request or batch.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "faultproxy answers JSON-RPC over HTTP POST only", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, fmt.Sprintf("faultproxy cannot read the request: %v", err), http.StatusBadRequest)
		return
	}
	x, err := p.parse(r.Context(), body)
	if err != nil {
		sendJSON(w, http.StatusOK,
			reply{Version: "2.0", ID: json.RawMessage("null"), Error: errorOf(-32700, err.Error())}.bytes())
		return
	}
	if p.tooMany(x, time.Now()) {
		sendJSON(w, http.StatusTooManyRequests, []byte(`{"message":"too many requests"}`))
		return
	}
	if err := p.answer(w, x); err != nil && r.Context().Err() == nil {
		http.Error(w, "faultproxy: "+err.Error(), http.StatusBadGateway)
	}
}

// tooMany reports whether the calls of an exchange exceed those that may still be answered in this second; if not, it
// counts them.
func (p *Proxy) tooMany(x *exchange, now time.Time) bool {
	if p.config.CallsPerSecond == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if second := now.Truncate(time.Second); !second.Equal(p.second) {
		p.second, p.answered = second, 0
	}
	if p.answered+len(x.calls) > p.config.CallsPerSecond {
		p.counts[TooManyRequests]++
		p.report(Injection{TooManyRequests, x.method, x.n,
			fmt.Sprintf("%d calls after %d of this second", len(x.calls), p.answered)})
		return true
	}
	p.answered += len(x.calls)
	return false
}

// answer sends the response of an exchange. An error is the upstream's.
func (p *Proxy) answer(w http.ResponseWriter, x *exchange) error {
	if k := x.drawnFault.kind; k != nil && k.deliver != nil {
		detail, send, err := k.deliver(x)
		if err != nil {
			return err
		}
		if detail != "" {
			p.injected(x.drawnFault, detail)
			send(w)
			return nil
		}
	}
	code, body, err := p.altered(x)
	if err != nil {
		return err
	}
	sendJSON(w, code, body)
	return nil
}
