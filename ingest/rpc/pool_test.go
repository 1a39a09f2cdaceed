package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/registry"
)

// bareNode is a node with only a chain id, a genesis and a head. The test controls its responses.
type bareNode struct {
	*httptest.Server
	mu       sync.Mutex
	id       uint64
	genesis  int // -1 for a node that has no block 0
	head     uint64
	headTime uint64
	fault    func(w http.ResponseWriter) // replaces the response
	calls    int
	claimed  uint64                                 // added to the number of its head only; it does not have these blocks
	final    func(w http.ResponseWriter, id []byte) // responds to calls for the final block; nil for a null result
	finals   int                                    // calls for it
}

func newBareNode(t *testing.T) *bareNode {
	c := &bareNode{id: 5, head: 100, headTime: 1000}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *bareNode) set(change func(*bareNode)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *bareNode) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

func (c *bareNode) askedForFinal() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finals
}

func (c *bareNode) serve(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var q struct {
		ID     json.RawMessage
		Method string
		Params []any
	}
	_ = json.NewDecoder(req.Body).Decode(&q)
	c.calls++
	if c.fault != nil {
		c.fault(w)
		return
	}
	if len(q.Params) > 0 && q.Params[0] == "finalized" {
		if c.finals++; c.final != nil {
			c.final(w, q.ID)
			return
		}
	}
	block := func(number, hash, time uint64) string {
		return fmt.Sprintf(`{"number":"%#x","hash":"0x%064x","parentHash":"0x%064x","timestamp":"%#x","logsBloom":"0x%0512x"}`, number, hash, hash-1, time, 0)
	}
	result := `null`
	var number, hash uint64
	switch {
	case q.Method == "eth_chainId":
		result = fmt.Sprintf(`"%#x"`, c.id)
	case q.Params[0] == "0x0" && c.genesis < 0:
	case q.Params[0] == "0x0":
		result = block(0, uint64(c.genesis), 0)
	case q.Params[0] == "latest":
		result = block(c.head+c.claimed, c.head+c.claimed+1000, c.headTime)
	case q.Method == "eth_getBlockByNumber":
		if _, err := fmt.Sscanf(fmt.Sprint(q.Params[0]), "0x%x", &number); err == nil && number <= c.head {
			result = block(number, number+1000, c.headTime-(c.head-number))
		}
	case q.Method == "eth_getBlockByHash":
		if _, err := fmt.Sscanf(fmt.Sprint(q.Params[0]), "0x%x", &hash); err == nil && hash > 1000 && hash <= c.head+1000 {
			result = block(hash-1000, hash, c.headTime-(c.head+1000-hash))
		}
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
}

func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

func tooMany(after string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// poolOf returns a pool of endpoints with its own clock.
func poolOf(t *testing.T, chains ...*bareNode) (*Pool, *fakeTime) {
	f := newFakeTime()
	var urls []string
	for _, c := range chains {
		urls = append(urls, c.URL)
	}
	p := NewPool(5, Endpoints(urls...), 1, nil, newRegistry(), slog.New(slog.DiscardHandler))
	p.clock = f.clock()
	for _, n := range p.all {
		n.health.clock = p.clock
	}
	t.Cleanup(p.Close)
	return p, f
}

// inUseNow reads the head and returns the index of the endpoint that returned it.
func (p *Pool) inUseNow(t *testing.T) int {
	t.Helper()
	n, err := p.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range p.all {
		if p.all[i] == n {
			return i
		}
	}
	return -1
}

// others returns the endpoints that Others returns.
func (p *Pool) others(t *testing.T, n *Node) (all []*Node) {
	for o := range p.Others(t.Context(), n) {
		all = append(all, o)
	}
	return all
}

// other returns the best endpoint except n.
func (p *Pool) other(t *testing.T, n *Node) (*Node, error) {
	for o, err := range p.Others(t.Context(), n) {
		return o, err
	}
	return nil, errors.New("there is no other endpoint")
}

// An endpoint that fails is left at once, gets no calls while it rests, and is found to be up again by a probe. As the
// first of the list it is in use again once it has had no fault for a while.
func TestEndpointFailsAndRecovers(t *testing.T) {
	a, b := newBareNode(t), newBareNode(t)
	p, f := poolOf(t, a, b)
	if n, err := p.First(t.Context()); err != nil || n != p.all[0] {
		t.Fatalf("the first is %v, %v", n, err)
	}
	if a.asked() == 0 || b.asked() == 0 {
		t.Fatal("not every endpoint was called at the start")
	}
	a.set(func(c *bareNode) { c.fault = hangUp })
	n, _ := p.Current(t.Context())
	if _, err := n.Latest(t.Context()); err == nil {
		t.Fatal("a node that hangs up returns a head")
	}
	before := a.asked()
	if got := p.inUseNow(t); got != 1 {
		t.Errorf("after a failure endpoint %d is in use", got)
	}
	if other, err := p.other(t, p.all[1]); err == nil {
		t.Errorf("b's other endpoint is %v, which is down", other)
	}
	if p.Next(); p.inUseNow(t) != 1 {
		t.Error("next gives the turn to an endpoint that is down")
	}
	f.pass(stableAfter)
	if again := a.asked() - before; again > 0 {
		t.Errorf("the endpoint that is down was called %d times", again)
	}
	a.set(func(c *bareNode) { c.fault = nil })
	f.pass(p.all[0].health.pauseLeft())
	if err := p.check(t.Context(), p.all[0]); err != nil || !p.all[0].health.is(usable) {
		t.Errorf("the probe returns %v, and the endpoint is usable: %t", err, p.all[0].health.is(usable))
	}
	if other, err := p.other(t, p.all[1]); err != nil || other != p.all[0] {
		t.Errorf("b's other endpoint is %v, %v when it is up again", other, err)
	}
	if got := p.inUseNow(t); got != 1 {
		t.Errorf("after the recovery endpoint %d is in use", got)
	}
	if p.Next(); p.inUseNow(t) != 0 {
		t.Error("next does not give the turn to the endpoint that recovered")
	}
	f.pass(stableAfter)
	if got := p.inUseNow(t); got != 0 {
		t.Errorf("a while later endpoint %d is in use", got)
	}
}

// An endpoint that responds to each call with an error is down like one that does not respond, and the status shows it.
func TestEndpointThatReturnsErrorsOnly(t *testing.T) {
	for name, fault := range map[string]func(http.ResponseWriter){
		"in a 200": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"error":{"code":-32000,"message":"the project is disabled"}}`)
		},
		"in a 400": func(w http.ResponseWriter) { http.Error(w, "the project is disabled", http.StatusBadRequest) },
	} {
		a, b := newBareNode(t), newBareNode(t)
		p, f := poolOf(t, a, b)
		if _, err := p.First(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.set(func(c *bareNode) { c.fault = fault })
		n, _ := p.Current(t.Context())
		for range 3 {
			if err := p.check(t.Context(), n); err == nil {
				t.Fatalf("%s: it returns a head", name)
			}
			if st := p.Status()[0]; st.State != registry.EndpointDown ||
				!strings.Contains(st.LastError, "the project is disabled") {
				t.Errorf("%s: its status is %+v", name, st)
			}
			f.pass(n.health.pauseLeft())
		}
		if got := p.inUseNow(t); got != 1 {
			t.Errorf("%s: endpoint %d is in use", name, got)
		}
		a.set(func(c *bareNode) { c.fault = nil })
		if err := p.check(t.Context(), n); err != nil || p.Status()[0].State != registry.EndpointUp {
			t.Errorf("%s: when it responds again: %v, %+v", name, err, p.Status()[0])
		}
	}
}

// An endpoint that fails again and again, as soon as it is used, does not alternate with the next one.
func TestEndpointThatKeepsFailing(t *testing.T) {
	a, b := newBareNode(t), newBareNode(t)
	p, f := poolOf(t, a, b)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	const minutes = 10
	changes, before := 0, 0
	for range minutes * 60 {
		n, err := p.Current(t.Context())
		if n == p.all[0] {
			a.set(func(c *bareNode) { c.fault = hangUp })
			if _, err = n.Latest(t.Context()); err == nil {
				t.Fatal("a node that hangs up returns a head")
			}
		}
		if now := slices.Index(p.all, n); now != before {
			changes, before = changes+1, now
		}
		if n == p.all[1] && err != nil {
			t.Fatal(err)
		}
		a.set(func(c *bareNode) { c.fault = nil })
		f.pass(time.Second)
		if p.all[0].health.pauseLeft() == 0 {
			_ = p.check(t.Context(), p.all[0]) // as Monitor does
		}
	}
	if changes > 2*minutes+1 {
		t.Errorf("the endpoint in use changed %d times in %d minutes", changes, minutes)
	}
	if before != 1 {
		t.Errorf("endpoint %d is in use at the end", before)
	}
}

// Endpoints are used in the order of the list: the third one only while the first two are not usable.
func TestOrderOfEndpoints(t *testing.T) {
	chains := []*bareNode{newBareNode(t), newBareNode(t), newBareNode(t)}
	p, f := poolOf(t, chains...)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	for down := range chains {
		if got := p.inUseNow(t); got != down {
			t.Errorf("with %d endpoints down endpoint %d is in use", down, got)
		}
		chains[down].set(func(c *bareNode) { c.fault = hangUp })
		_, _ = p.all[down].Latest(t.Context())
	}
	for up := len(chains) - 1; up >= 0; up-- {
		chains[up].set(func(c *bareNode) { c.fault = nil })
		f.pass(p.all[up].health.pauseLeft())
		if err := p.check(t.Context(), p.all[up]); err != nil {
			t.Fatal(err)
		}
		f.pass(stableAfter)
		if got := p.inUseNow(t); got != up {
			t.Errorf("when endpoint %d has recovered, endpoint %d is in use", up, got)
		}
	}
}

// An endpoint that does not respond at the start counts as failed, so that its timeout delays nothing.
func TestEndpointThatHangsAtTheStart(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a timeout of several seconds")
	}
	release := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(hung.Close)
	t.Cleanup(func() { close(release) })
	a := newBareNode(t)
	p := NewPool(5, Endpoints(hung.URL, a.URL), 1, nil, newRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	began := time.Now()
	if n, err := p.First(t.Context()); err != nil || n != p.all[1] {
		t.Errorf("the first is %v, %v", n, err)
	}
	if took := time.Since(began); took > callTimeout/2 {
		t.Errorf("the start took %s", took)
	}
	if st := p.Status()[0]; st.State != registry.EndpointDown {
		t.Errorf("its status is %+v", st)
	}
}

// The status of an endpoint that is down says since when: since its first fault, until it responds.
func TestFailingSince(t *testing.T) {
	a := newBareNode(t)
	p, f := poolOf(t, a)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.set(func(c *bareNode) { c.fault = hangUp })
	began := p.clock.now()
	for range 2 {
		if err := p.check(t.Context(), p.all[0]); err == nil {
			t.Fatal("an endpoint that hangs up responds")
		}
		if since := p.Status()[0].FailingSince; since == nil || !since.Equal(began) {
			t.Errorf("it has been failing since %v, want %s", since, began)
		}
		f.pass(time.Hour)
	}
	a.set(func(c *bareNode) { c.fault = nil })
	if err := p.check(t.Context(), p.all[0]); err != nil {
		t.Fatal(err)
	}
	if st := p.Status()[0]; st.State != registry.EndpointUp || st.FailingSince != nil {
		t.Errorf("its status is %+v", st)
	}
}

// A spare endpoint is in use while no other is usable, at any position in the list, and returns the turn to one that
// was without a fault for a while.
func TestSpareEndpoint(t *testing.T) {
	dear, a, b := newBareNode(t), newBareNode(t), newBareNode(t)
	p, f := poolOf(t, dear, a, b)
	p.all[0].spare = true
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	inUse := func(want int, why string) {
		t.Helper()
		if got := p.inUseNow(t); got != want {
			t.Errorf("%s endpoint %d is in use, want %d", why, got, want)
		}
	}
	fails := func(i int, c *bareNode) {
		t.Helper()
		c.set(func(c *bareNode) { c.fault = hangUp })
		_, _ = p.all[i].Latest(t.Context())
	}
	recovers := func(i int, c *bareNode) {
		t.Helper()
		c.set(func(c *bareNode) { c.fault = nil })
		f.pass(p.all[i].health.pauseLeft())
		if err := p.check(t.Context(), p.all[i]); err != nil {
			t.Fatal(err)
		}
	}
	inUse(1, "at the start")
	fails(1, a)
	inUse(2, "after a failure")
	if others := p.others(t, p.all[2]); len(others) != 1 || others[0] != p.all[0] {
		t.Errorf("the others are %v", others)
	}
	fails(2, b)
	inUse(0, "when all others failed")
	f.pass(2 * stableAfter)
	fails(1, a) // it is still down
	recovers(1, a)
	inUse(0, "when one of them has just recovered")
	fails(1, a)
	recovers(1, a)
	f.pass(stableAfter - 5*time.Second)
	inUse(0, "when it has failed again less than a minute ago")
	f.pass(5 * time.Second)
	inUse(1, "when it was without a fault for a minute")

	// One after the other fails to return what was requested, but stays usable.
	recovers(2, b)
	f.pass(2 * stableAfter)
	next := func() {
		f.pass(time.Second)
		p.Next()
	}
	next()
	inUse(2, "after the first one")
	if other, err := p.other(t, p.all[2]); err != nil || other != p.all[0] {
		t.Errorf("b's other endpoint is %v, %v, when a has just lost the turn", other, err)
	}
	next()
	inUse(0, "after both")
	next()
	inUse(1, "after all three")
	next()
	inUse(2, "after the first one again")
	next()
	inUse(0, "after all of them again")
	f.pass(2 * stableAfter)
	inUse(1, "a while later")
	if others := p.others(t, p.all[1]); len(others) != 2 || others[0] != p.all[2] {
		t.Errorf("the spare endpoint is not the last of the others")
	}

	// Two are usable again, but the first had a fault a moment ago.
	fails(1, a)
	inUse(2, "after a failure")
	fails(2, b)
	inUse(0, "when all others failed again")
	recovers(2, b)
	f.pass(2 * stableAfter)
	recovers(1, a)
	fails(1, a)
	recovers(1, a)
	inUse(2, "when it was without a fault for a minute, and the first one was not")
}

// An endpoint that fails while another one is called is not called after it.
func TestOtherThatFailsMeanwhile(t *testing.T) {
	a, b, c := newBareNode(t), newBareNode(t), newBareNode(t)
	p, _ := poolOf(t, a, b, c)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.set(func(c *bareNode) { c.fault = hangUp })
	var others []*Node
	for o := range p.Others(t.Context(), p.all[0]) {
		if others = append(others, o); o == p.all[1] {
			_, _ = p.all[2].Latest(t.Context())
		}
	}
	if len(others) != 1 || others[0] != p.all[1] {
		t.Errorf("the others are %v", others)
	}
}

// When all endpoints are down, each is tried in turn, and the error does not end the program.
func TestAllEndpointsDown(t *testing.T) {
	a, b := newBareNode(t), newBareNode(t)
	p, _ := poolOf(t, a, b)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*bareNode{a, b} {
		c.set(func(c *bareNode) { c.fault = hangUp })
	}
	tried := map[*Node]bool{}
	for range 6 {
		n, err := p.Current(t.Context())
		if err == nil {
			_, err = n.Latest(t.Context())
		}
		if err == nil || Refused(err) {
			t.Fatalf("with all endpoints down the error is %v", err)
		}
		tried[n] = true
		p.Next()
	}
	if len(tried) != 2 {
		t.Errorf("%d endpoints were tried", len(tried))
	}
	b.set(func(c *bareNode) { c.fault = nil })
	if n, err := p.First(t.Context()); err != nil || n != p.all[1] {
		t.Errorf("when one is up again the first is %v, %v", n, err)
	}
}

// A short Retry-After is waited for at the same endpoint; during a long one another endpoint is used; and when all are
// limited, the pool waits for the first limit to end.
func TestRetryAfterIsHonoured(t *testing.T) {
	a, b := newBareNode(t), newBareNode(t)
	p, f := poolOf(t, a, b)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	var limitations int
	once := func(c *bareNode, after string) {
		c.set(func(c *bareNode) {
			c.fault = func(w http.ResponseWriter) { limitations++; c.fault = nil; tooMany(after)(w) }
		})
	}
	once(a, "1")
	if got := p.inUseNow(t); got != 0 || len(f.slept) != 1 || f.slept[0] != time.Second || limitations != 1 {
		t.Errorf("with a Retry-After of 1 s endpoint %d is in use after %v", got, f.slept)
	}
	once(a, "60")
	n, _ := p.Current(t.Context())
	if _, err := n.Latest(t.Context()); err == nil || refused(err) {
		t.Errorf("with a Retry-After of 60 s: %v", err)
	}
	before := a.asked()
	if got := p.inUseNow(t); got != 1 || a.asked() != before {
		t.Errorf("endpoint %d is in use while the first is limited, which was called %d times", got, a.asked()-before)
	}
	if st := p.Status(); st[0].State != registry.EndpointLimited || st[0].LimitedUntil == nil || !st[1].InUse ||
		st[1].State != registry.EndpointUp {
		t.Errorf("the status is %+v", st)
	}
	once(b, "20")
	if n, _ = p.Current(t.Context()); n == p.all[1] {
		_, _ = n.Latest(t.Context())
	}
	f.slept = nil
	if got := p.inUseNow(t); got != 1 || f.total() < 17*time.Second || f.total() > 20*time.Second {
		t.Errorf("with all endpoints limited, endpoint %d is in use after %v", got, f.slept)
	}
	if got := testutil.ToFloat64(p.metrics.limited.WithLabelValues(p.all[0].Name)); got != 2 {
		t.Errorf("navlog_ingest_rpc_limited_total is %v", got)
	}
}

// An endpoint far behind another is not used for the head unless it is the only one.
func TestLaggingEndpointIsLeft(t *testing.T) {
	a, b := newBareNode(t), newBareNode(t)
	p, f := poolOf(t, a, b)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.set(func(c *bareNode) { c.head, c.headTime = 110, 1120 })
	if err := p.check(t.Context(), p.all[1]); err != nil {
		t.Fatal(err)
	}
	p.inUseNow(t) // a returns its old head
	if got := p.inUseNow(t); got != 1 {
		t.Errorf("endpoint %d is in use", got)
	}
	if st := p.Status(); st[0].State != registry.EndpointLagging || st[0].HeadBlock != 100 || st[1].HeadBlock != 110 {
		t.Errorf("the status is %+v", st)
	}
	b.set(func(c *bareNode) { c.fault = hangUp })
	n, _ := p.Current(t.Context())
	_, _ = n.Latest(t.Context())
	if got := p.inUseNow(t); got != 0 {
		t.Errorf("endpoint %d is in use when the better one is down", got)
	}
	f.pass(headMaxAge + time.Second) // the head of b is outdated now
	p.inUseNow(t)
	if !p.all[0].health.is(usable) {
		t.Errorf("an old head of another endpoint still makes it lag")
	}
}

// A head far above those of other endpoints makes none of them lag if its endpoint does not have the block, whichever
// is called first and however often.
func TestClaimedHeadMakesNoEndpointLag(t *testing.T) {
	for _, wrongNode := range []int{0, 1} {
		t.Run(fmt.Sprintf("endpoint %d", wrongNode), func(t *testing.T) {
			chains := []*bareNode{newBareNode(t), newBareNode(t), newBareNode(t)}
			p, f := poolOf(t, chains...)
			if _, err := p.First(t.Context()); err != nil {
				t.Fatal(err)
			}
			chains[wrongNode].set(func(c *bareNode) { c.claimed, c.headTime = 1_000_000, 1100 })
			for range 3 {
				for i := range p.all {
					if err := p.check(t.Context(), p.all[i]); (err != nil) && i != wrongNode {
						t.Fatal(err)
					}
				}
				f.pass(time.Second)
				for i, n := range p.all {
					if lags := n.health.is(lagging); lags != (i == wrongNode) {
						t.Errorf("endpoint %d lags: %v", i, lags)
					}
				}
				if got := p.inUseNow(t); got == wrongNode {
					t.Errorf("endpoint %d is in use", got)
				}
			}
			// Again the endpoint names a head that it has.
			chains[wrongNode].set(func(c *bareNode) { c.claimed = 0 })
			if err := p.check(t.Context(), p.all[wrongNode]); err != nil || p.all[wrongNode].health.is(lagging) {
				t.Errorf("an honest head is not accepted: %v", err)
			}
		})
	}
}

// A head with a high number and an old time, which is not verified, does not hide that another endpoint lags.
func TestClaimedHeadHidesNoLag(t *testing.T) {
	stuck, good, claimed := newBareNode(t), newBareNode(t), newBareNode(t)
	p, _ := poolOf(t, stuck, good, claimed)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	good.set(func(c *bareNode) { c.head, c.headTime = 110, 1120 })
	for _, number := range []uint64{1 << 62, math.MaxUint64} {
		claimed.set(func(c *bareNode) { c.claimed, c.headTime = number-c.head, 0 })
		for _, i := range []int{1, 2, 0} {
			if err := p.check(t.Context(), p.all[i]); err != nil {
				t.Fatal(err)
			}
		}
		if stuckLags, goodLags := p.all[0].health.is(lagging), p.all[1].health.is(lagging); !stuckLags || goodLags {
			t.Errorf("with a claimed head of block %d the stuck endpoint lags: %v, the good one: %v", number, stuckLags,
				goodLags)
		}
		if got := p.inUseNow(t); got != 1 {
			t.Errorf("with a claimed head of block %d endpoint %d is in use", number, got)
		}
	}
}

// If the blocks of an earlier head were reorganised, its endpoint is not distrusted: its current head is read.
func TestReorganisedHeadIsReadAgain(t *testing.T) {
	a, b := newBareNode(t), newBareNode(t)
	p, _ := poolOf(t, a, b)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.set(func(c *bareNode) { c.head, c.headTime = 110, 1010 })
	if err := p.check(t.Context(), p.all[1]); err != nil {
		t.Fatal(err)
	}
	b.set(func(c *bareNode) { c.head, c.headTime = 105, 1100 }) // it no longer has block 109
	a.set(func(c *bareNode) { c.headTime = 970 })
	if err := p.check(t.Context(), p.all[0]); err != nil {
		t.Fatal(err)
	}
	if !p.all[0].health.is(lagging) || p.all[1].health.is(lagging) {
		t.Errorf("the one behind lags: %v, the one whose head was reorganised: %v", p.all[0].health.is(lagging),
			p.all[1].health.is(lagging))
	}
}

// An endpoint that serves only recent blocks, so that it has no block 0, is not used, and its error says why: it might
// serve another chain with the same id.
func TestEndpointWithoutBlock0(t *testing.T) {
	recent, whole := newBareNode(t), newBareNode(t)
	recent.genesis = -1
	p, _ := poolOf(t, recent)
	if _, err := p.First(t.Context()); err == nil || Refused(err) ||
		!strings.Contains(err.Error(), "does not return block 0") {
		t.Errorf("without another one the error is %v", err)
	}
	p, _ = poolOf(t, recent, whole)
	if n, err := p.First(t.Context()); err != nil || n != p.all[1] {
		t.Errorf("the endpoint that has block 0 is not used: %v", err)
	}
}

// At the start an endpoint with the wrong chain is an error, which names every such endpoint; later it excludes the
// endpoint, until it serves the right chain again.
func TestEndpointOfAnotherChain(t *testing.T) {
	a, b, c := newBareNode(t), newBareNode(t), newBareNode(t)
	a.id, b.genesis = 6, 1
	p, _ := poolOf(t, c, a, b)
	_, err := p.First(t.Context())
	if !Refused(err) || !strings.Contains(err.Error(), "chain.rpc[1] ("+a.URL+") serves chain 6, but chain.id is 5") ||
		!strings.Contains(err.Error(), "chain.rpc[2] ("+b.URL+") serves a chain with genesis") {
		t.Errorf("two wrong endpoints: %v", err)
	}

	a.set(func(c *bareNode) { c.id = 5 })
	p, f := poolOf(t, c, a)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	restart := func(chain *bareNode, id uint64) { // the identity of a node that comes back is checked again
		chain.set(func(c *bareNode) { c.fault = hangUp })
		n := p.all[map[*bareNode]int{c: 0, a: 1}[chain]]
		_, _ = n.Latest(t.Context())
		chain.set(func(c *bareNode) { c.fault, c.id = nil, id })
		f.pass(n.health.pauseLeft())
	}
	restart(c, 7)
	if err := p.check(t.Context(), p.all[0]); err == nil || Refused(err) ||
		!strings.Contains(err.Error(), "serves chain 7") {
		t.Errorf("a check of an endpoint on another chain returns %v", err)
	}
	if got := p.inUseNow(t); got != 1 {
		t.Errorf("endpoint %d is in use", got)
	}
	if st := p.Status()[0]; st.State != registry.EndpointWrong || !strings.Contains(st.LastError, "serves chain 7") {
		t.Errorf("the status is %+v", st)
	}
	if p.Next(); p.inUseNow(t) != 1 {
		t.Error("next gives the turn to an endpoint on another chain")
	}
	restart(a, 7)
	if _, err := p.Current(t.Context()); !Refused(err) {
		t.Errorf("when every endpoint serves another chain the error is %v", err)
	}
	c.set(func(c *bareNode) { c.id = 5 })
	if err := p.check(t.Context(), p.all[0]); err != nil || p.inUseNow(t) != 0 {
		t.Errorf("when it serves the right chain again the error is %v", err)
	}
	// It is checked again from time to time, even if the endpoint never failed.
	c.set(func(c *bareNode) { c.id = 9 })
	f.pass(identityMaxAge + time.Second)
	if err := p.check(t.Context(), p.all[0]); err == nil {
		t.Error("a chain that changes without a failure is not noticed")
	}
	if n, err := p.Current(t.Context()); !Refused(err) {
		t.Errorf("with every endpoint on another chain %v is in use, %v", n.Name, err)
	}
}

// Concurrent callers may use a pool.
func TestPoolIsSafeForConcurrentUse(t *testing.T) {
	a, b := newBareNode(t), newBareNode(t)
	p, _ := poolOf(t, a, b)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			n, err := p.Current(t.Context())
			if err == nil {
				_, err = n.Latest(t.Context())
			}
			_, err2 := p.other(t, n)
			p.Next()
			if err := errors.Join(err, err2); err != nil {
				t.Error(err)
			}
			p.Status()
		})
	}
	wait.Wait()
}

// Two endpoints at one host have different names in metrics and status.
func TestEndpointNames(t *testing.T) {
	got := endpointNames(Endpoints("https://u:p@a.example/key1", "https://a.example/key2", "ws://a.example",
		"https://b.example?key=3"))
	want := []string{"https://a.example", "https://a.example#1", "ws://a.example", "https://b.example"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the names are %v, want %v", got, want)
	}
}

// The metrics of the endpoints agree with the status.
func TestEndpointMetrics(t *testing.T) {
	a, b := newBareNode(t), newBareNode(t)
	p, _ := poolOf(t, a, b)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.inUseNow(t)
	b.set(func(c *bareNode) { c.fault = hangUp })
	_ = p.check(t.Context(), p.all[1])
	var want strings.Builder
	fmt.Fprintln(&want, "# HELP navlog_ingest_endpoint_state 1 for the state that the endpoint is in.\n# TYPE "+
		"navlog_ingest_endpoint_state gauge")
	for i, state := range []string{registry.EndpointUp, registry.EndpointDown} {
		for _, s := range registry.EndpointStates {
			fmt.Fprintf(&want, "navlog_ingest_endpoint_state{endpoint=%q,state=%q} %v\n", p.all[i].Name, s, toFloat(s == state))
		}
	}
	fmt.Fprintf(&want, "# HELP navlog_ingest_endpoint_in_use 1 for the endpoint in use for the head.\n# TYPE "+
		"navlog_ingest_endpoint_in_use gauge\n")
	fmt.Fprintf(&want, "navlog_ingest_endpoint_in_use{endpoint=%q} 1\nnavlog_ingest_endpoint_in_use{endpoint=%q} 0\n",
		p.all[0].Name, p.all[1].Name)
	fmt.Fprintf(&want, "# HELP navlog_ingest_endpoint_head_block Newest block that the endpoint returned.\n# TYPE "+
		"navlog_ingest_endpoint_head_block gauge\nnavlog_ingest_endpoint_head_block{endpoint=%q} "+
		"100\nnavlog_ingest_endpoint_head_block{endpoint=%q} 100\n", p.all[0].Name, p.all[1].Name)
	if err := testutil.CollectAndCompare(p, strings.NewReader(want.String()), "navlog_ingest_endpoint_state",
		"navlog_ingest_endpoint_in_use", "navlog_ingest_endpoint_head_block"); err != nil {
		t.Error(err)
	}
}

// A limit that ends between two checks of an endpoint is not waited for.
func TestLimitThatLapses(t *testing.T) {
	a := newBareNode(t)
	p, f := poolOf(t, a)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := p.all[0].health
	_ = h.ask(t, f, &httpError{Status: 429, RetryAfter: 4 * time.Second})
	// The clock advances by a second and a half with each check, so the limit ends within a few.
	looks := 0
	h.now = func() time.Time { looks++; f.pass(1500 * time.Millisecond); return f.now() }
	f.slept = nil
	if _, err := p.unlimited(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pause := range f.slept {
		if pause > 4*time.Second {
			t.Errorf("the wait for a limit of 4 s was %s", pause)
		}
	}
	if looks == 0 {
		t.Error("no limit was checked")
	}
}

// An endpoint that fails in any way to name its final block keeps its turn and its vote: only this call is suspended,
// twice as long each time, and other calls continue meanwhile.
func TestFinalityFails(t *testing.T) {
	for name, c := range map[string]struct {
		final func(w http.ResponseWriter, id []byte)
		limit time.Duration // limit of the whole endpoint
	}{
		"a closed connection": {final: func(w http.ResponseWriter, _ []byte) { hangUp(w) }},
		"an error page": {final: func(w http.ResponseWriter,
			_ []byte) {
			w.WriteHeader(http.StatusInternalServerError)
		}},
		"no JSON": {final: func(w http.ResponseWriter, _ []byte) { fmt.Fprint(w, "<html>") }},
		"no header": {final: func(w http.ResponseWriter,
			id []byte) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":"0x1"}`, id)
		}},
		"a rate limit": {func(w http.ResponseWriter, _ []byte) { tooMany("40")(w) }, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newBareNode(t), newBareNode(t)
			p, f := poolOf(t, a, b)
			if _, err := p.First(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.set(func(b *bareNode) { b.final = c.final })
			n := p.all[1]
			tip, err := n.Latest(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			asks := func(want bool, when string) {
				t.Helper()
				before := b.askedForFinal()
				if _, err := n.finalBelow(t.Context(), tip); err == nil {
					t.Error("the endpoint names a final block")
				}
				if got := b.askedForFinal() > before; got != want {
					t.Fatalf("%s the final block was requested: %t, want %t", when, got, want)
				}
			}
			for i, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
				asks(true, fmt.Sprintf("after %d failures", i))
				if c.limit == 0 && (!n.health.is(usable) || len(p.others(t, p.all[0])) != 1) {
					t.Errorf("after %d failures it is usable: %t, and the others are %v", i+1, n.health.is(usable), p.others(t, p.all[0]))
				}
				f.pass(c.limit + pause - time.Millisecond)
				asks(false, fmt.Sprintf("while it rests after %d failures", i+1))
				if _, err := n.Latest(t.Context()); err != nil {
					t.Errorf("while this call is suspended the head cannot be read: %v", err)
				}
				f.pass(time.Millisecond)
			}
			b.set(func(b *bareNode) { b.final = nil })
			if _, err := n.finalBelow(t.Context(), tip); !NamesNoFinal(err) || n.health.finality != (suspension{}) {
				t.Errorf("a response returns %v and leaves %+v", err, n.health.finality)
			}
		})
	}
}

// Only the message of an error says that a node knows no final block. Some proxies write the request, with its tag,
// into the data of every error.
func TestNamesNoFinal(t *testing.T) {
	echo := json.RawMessage(`{"method":"eth_getBlockByNumber","params":["finalized",false]}`)
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&rpcError{Code: -32000, Message: "internal error", Data: echo}, false},
		{&rpcError{Code: -32603, Message: "upstream failed", Data: json.RawMessage(`"method not supported"`)}, false},
		{&rpcError{Code: -32000, Message: "'Finalized' tag not supported on pre-merge network"}, true},
		{&rpcError{Code: -39001, Message: "Unknown block", Data: echo}, true},
		{&rpcError{Code: invalidParams, Message: "invalid argument 0"}, true},
		{ErrNoBlock, true}, {ErrNamesHead, true}, {errors.New("the finalized block: connection reset"), false},
	} {
		if got := NamesNoFinal(fmt.Errorf("at x: %w", c.err)); got != c.want {
			t.Errorf("%#v names no final block: %t", c.err, got)
		}
	}
}

// A node that named its head as final, and then a block above its head, is not trusted for as long as if it had named
// only its head: one of its backends names its head, and that looks like a final block if another one is ahead.
func TestHeadAndThenHigherBlockAsFinal(t *testing.T) {
	a := newBareNode(t)
	p, f := poolOf(t, a)
	if _, err := p.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := f.now()
	for _, c := range []struct {
		head, final uint64
		after       time.Duration
		trusted     bool
	}{
		{100, 100, 0, false},
		{100, 105, 2 * namedHeadRetry, false},
		{110, 105, 2*namedHeadRetry + 2*namedAboveDistrust, false},
		{110, 105, namedHeadDistrust + time.Second, true},
	} {
		f.pass(c.after - f.now().Sub(began))
		a.set(func(b *bareNode) {
			b.head = c.head
			b.final = func(w http.ResponseWriter, id []byte) {
				fmt.Fprintf(w, `{"id":%s,"result":{"number":"%#x","hash":"0x%064x","parentHash":"0x%064x","timestamp":"0x1"}}`,
					id, c.final, c.final+1000, c.final+999)
			}
		})
		tip, err := p.all[0].Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.all[0].finalBelow(t.Context(), tip); (err == nil) != c.trusted || err != nil &&
			!errors.Is(err, ErrNamesHead) {
			t.Errorf("after %s: %v", c.after, err)
		}
	}
}

// Two endpoints that return a block with the same hash agree on it only if its time and parent are the same, too.
func TestConfirmsComparesHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Header)
		agrees bool
	}{
		"the same":       {func(*Header) {}, true},
		"another time":   {func(h *Header) { h.Time++ }, false},
		"another parent": {func(h *Header) { h.Parent[0]++ }, false},
	} {
		a, b := newBareNode(t), newBareNode(t)
		p, _ := poolOf(t, a, b)
		h, err := p.all[0].ByNumber(t.Context(), 50)
		if err != nil {
			t.Fatal(err)
		}
		c.change(h)
		if err := p.Confirms(t.Context(), p.all[1], h, nil, nil, nil); (err == nil) != c.agrees || err != nil &&
			!errors.Is(err, ErrDisagree) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
