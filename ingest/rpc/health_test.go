package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// fakeTime is a clock that advances only by sleeps and by the test.
type fakeTime struct {
	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
}

func newFakeTime() *fakeTime { return &fakeTime{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (f *fakeTime) clock() clock { return clock{f.now, f.sleep} }

func (f *fakeTime) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

func (f *fakeTime) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = f.at.Add(d)
}

func (f *fakeTime) sleep(ctx context.Context, d time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.slept = f.at.Add(d), append(f.slept, d)
	return ctx.Err()
}

// total returns the sum of all sleeps.
func (f *fakeTime) total() (sum time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.slept {
		sum += d
	}
	return sum
}

// ask simulates one exchange that takes a millisecond and ends with err.
func (h *health) ask(t *testing.T, f *fakeTime, err error) error {
	t.Helper()
	began := h.now()
	f.pass(time.Millisecond)
	return h.end(t.Context(), call{}, began, err)
}

var errCut = fmt.Errorf("read: %w", io.ErrUnexpectedEOF)

func TestQuarantineGrowsAndEnds(t *testing.T) {
	f := newFakeTime()
	h := newHealth(Endpoint{}, f.clock())
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		_ = h.ask(t, f, errCut)
		if got := h.pauseLeft(); got != want*time.Second || !h.is(failed) {
			t.Errorf("after failure %d it rests %s, want %s, and counts as failed: %t", i+1, got, want*time.Second, h.is(failed))
		}
		f.pass(want * time.Second)
		if h.pauseLeft() != 0 || !h.is(failed) {
			t.Errorf("after its rest it rests %s, and counts as failed: %t", h.pauseLeft(), h.is(failed))
		}
	}
	_ = h.ask(t, f, nil)
	if !h.is(usable) || h.pauseLeft() != 0 {
		t.Errorf("after a response it is usable: %t, and rests %s", h.is(usable), h.pauseLeft())
	}
	if st := h.status("x"); st.State != registry.EndpointUp || st.LastError != errCut.Error() || st.LastErrorAt == nil {
		t.Errorf("the status is %+v", st)
	}
}

// Failures between responses do not add up: an endpoint that fails at one call in a hundred, or returns something that
// cannot be read, rests a second each time.
func TestRareFailures(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(*scriptedNode) error
		good any
	}{
		"blocks": {func(n *scriptedNode) error { _, err := n.Latest(t.Context()); return err }, scriptedBlock},
		"logs": {func(n *scriptedNode) error { _, err := n.logsOfRange(t.Context(), maxAnswer, 0, 99, nil); return err },
			scriptedLogs()},
	} {
		n, f := newScriptedNode(t), newFakeTime()
		n.health.clock = f.clock()
		answered := n.send
		returns := func(result any, send func(http.ResponseWriter, []scriptedCall, bool)) {
			n.mu.Lock() // a handler that hangs up may still run
			defer n.mu.Unlock()
			n.result, n.send = func(string, []json.RawMessage) any { return result }, send
		}
		for i := range 20 {
			returns(c.good, answered)
			for range 99 {
				f.pass(300 * time.Millisecond)
				if err := c.ask(n); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if returns(map[string]any{}, answered); i%2 == 0 {
				returns(nil, func(w http.ResponseWriter, _ []scriptedCall, _ bool) { hangUp(w) })
			}
			f.pass(300 * time.Millisecond)
			if err := c.ask(n); err == nil || n.health.pauseLeft() != firstQuarantine {
				t.Fatalf("%s: half a minute after failure %d before it rests %s, %v", name, i, n.health.pauseLeft(), err)
			}
			f.pass(firstQuarantine)
		}
	}
}

// A node that responds to cheap calls and lets others time out rests longer and longer.
func TestCallsThatTimeOut(t *testing.T) {
	f := newFakeTime()
	h := newHealth(Endpoint{}, f.clock())
	for rests := firstQuarantine; rests < lastQuarantine; rests *= 2 {
		began := f.now()
		f.pass(callTimeout)
		h.set(func(h *health) { h.fail(began, f.now(), errCut) })
		if got := h.pauseLeft(); got != rests {
			t.Fatalf("it rests %s, want %s", got, rests)
		}
		f.pass(rests)
		_ = h.ask(t, f, nil)
	}
}

// A node that responds to each call, and to those for blocks with something else, is down like one that does not
// respond: its rests grow, and the status shows since when.
func TestResponsesThatCannotBeRead(t *testing.T) {
	n, f := newScriptedNode(t), newFakeTime()
	n.health.clock = f.clock()
	var block any = map[string]any{}
	n.result = func(method string, _ []json.RawMessage) any {
		if method == "eth_chainId" {
			return "0x1"
		}
		return block
	}
	fails := func(want time.Duration, since time.Time) {
		t.Helper()
		f.pass(time.Millisecond)
		if _, err := n.identity(t.Context()); err == nil {
			t.Fatal("the block is accepted")
		}
		if got := n.health.pauseLeft(); got != want*time.Second {
			t.Errorf("it rests %s, want %d s", got, want)
		}
		if st := n.health.status("x"); st.State != registry.EndpointDown || !st.FailingSince.Equal(since) {
			t.Errorf("it has been failing since %s, and the status is %+v", since, st)
		}
		f.pass(want * time.Second)
	}
	began := f.now().Add(time.Millisecond)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		fails(want, began)
	}
	block = with(scriptedBlock, "number", "0x0")
	if _, err := n.identity(t.Context()); err != nil || !n.health.is(usable) {
		t.Errorf("when it returns the block: %v", err)
	}
	f.pass(lastQuarantine)
	block = map[string]any{}
	fails(1, f.now().Add(time.Millisecond))
}

// Concurrent calls that fail together count as one failure, and a response to a call from before the failure does not
// end it.
func TestFailuresOfOneMoment(t *testing.T) {
	f := newFakeTime()
	h := newHealth(Endpoint{}, f.clock())
	var began []time.Time
	for range 8 {
		began = append(began, h.now())
	}
	f.pass(time.Second)
	for _, b := range began[1:] {
		_ = h.end(t.Context(), call{}, b, errCut)
	}
	if got := h.pauseLeft(); got != firstQuarantine {
		t.Errorf("seven failures of one moment make it rest %s", got)
	}
	_ = h.end(t.Context(), call{}, began[0], nil)
	if !h.is(failed) {
		t.Error("an old response ends the failure")
	}
}

// An endpoint that is both limited and down shows until when it must not be called.
func TestLimitedAndDown(t *testing.T) {
	f := newFakeTime()
	h := newHealth(Endpoint{}, f.clock())
	began := h.now()
	f.pass(time.Second)
	_ = h.end(t.Context(), call{}, began, &httpError{Status: http.StatusTooManyRequests, RetryAfter: 5 * time.Minute})
	until := f.now().Add(5 * time.Minute)
	f.pass(time.Second)
	_ = h.end(t.Context(), call{}, f.now(), errCut)
	if st := h.status("x"); st.State != registry.EndpointDown || st.LimitedUntil == nil || !st.LimitedUntil.Equal(until) {
		t.Errorf("it is %+v, want down and limited until %s", st, until)
	}
}

func TestRateLimitAnswers(t *testing.T) {
	f := newFakeTime()
	h := newHealth(Endpoint{}, f.clock())
	plain := &httpError{Status: http.StatusTooManyRequests}
	for i, want := range []time.Duration{250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000} {
		err := h.ask(t, f, plain)
		var put *limitedError
		if !errors.As(err, &put) || refused(err) || h.pauseLeft() != want*time.Millisecond {
			t.Errorf("response %d without Retry-After gives %v and a rest of %s, want %s", i+1, err, h.pauseLeft(),
				want*time.Millisecond)
		}
		if want > 2000 != h.is(limited) {
			t.Errorf("with a rest of %s it counts as limited: %t", h.pauseLeft(), h.is(limited))
		}
		f.pass(h.pauseLeft())
	}
	_ = h.ask(t, f, &httpError{Status: 429, RetryAfter: 40 * time.Second})
	if h.pauseLeft() != 40*time.Second {
		t.Errorf("Retry-After of 40 s gives a rest of %s", h.pauseLeft())
	}
	if err := h.admit(t.Context(), 1); err == nil || len(f.slept) > 0 {
		t.Errorf("a call is admitted while another endpoint may be used: %v, %v", err, f.slept)
	}
	f.pass(39 * time.Second)
	if err := h.admit(t.Context(), 1); err != nil || len(f.slept) != 1 || f.slept[0] != time.Second {
		t.Errorf("a second before the end the error is %v after %v", err, f.slept)
	}
	_ = h.ask(t, f, nil)
	_ = h.ask(t, f, &httpError{Status: 429, RetryAfter: time.Millisecond})
	if h.pauseLeft() != firstLimitPause {
		t.Errorf("Retry-After of a millisecond gives a rest of %s, so thousands of calls would be limited", h.pauseLeft())
	}
	_ = h.ask(t, f, &httpError{Status: 429, RetryAfter: 100 * time.Hour})
	if h.pauseLeft() != longestPause {
		t.Errorf("Retry-After of 100 h gives a rest of %s", h.pauseLeft())
	}
}

// Providers' messages that mean too many calls, and messages that mean too much data, for which ranges must shrink.
func TestTooOftenOrTooMuch(t *testing.T) {
	for message, want := range map[string]bool{
		"Too Many Requests": true, "request rate exceeded": true, "rate limit exceeded": true,
		"daily request count exceeded, request rate limited":                                 true,
		"Your app has exceeded its compute units per second capacity.":                       true,
		"you have reached the limit of 25 requests per second":                               true,
		"project ID request rate exceeded":                                                   true,
		"credits limited to 6000/sec":                                                        true,
		"100/second request limit reached - reduce calls per second or upgrade your account": true,
		"rate exceeded": true,
		"maximum number of concurrent requests reached":                                             true,
		"range exceeds the request limit of 500 blocks":                                             false,
		"query returned more than 10000 results":                                                    false,
		"Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range": false,
		"block range is too wide":                                                                   false,
		"exceed maximum block range: 5000":                                                          false,
		"query timeout exceeded":                                                                    false,
		"eth_getLogs is limited to a 10k range":                                                     false,
		"limit exceeded":                                                                            false,
		"archive requests need a plan with more compute units":                                      false,
		"batch request limit exceeded":                                                              false,
		"batch requests are limited by credits":                                                     false,
	} {
		if _, got := limitOf(&rpcError{Code: -32005, Message: message}); got != want {
			t.Errorf("%q is a rate limit: %v", message, got)
		}
	}
	for err, want := range map[error]bool{
		// a revert
		&rpcError{Code: -32000, Message: "rate limit exceeded", Data: json.RawMessage(`"0x08c379a0000000"`)}: false,
		&httpError{Status: 429}: true, &httpError{Status: 503, RetryAfter: time.Second}: true, &httpError{Status: 503}: false,
		&rpcError{Code: 429}: true, errCut: false,
	} {
		if _, got := limitOf(err); got != want {
			t.Errorf("%v is a rate limit: %v", err, got)
		}
	}
	if _, is := limitOf(nil); is {
		t.Error("no error is a rate limit")
	}
}

// In any time window, the number of admitted calls is at most what the limit and the burst allow, and not much less.
func TestOwnRateLimit(t *testing.T) {
	for _, e := range []Endpoint{{RequestsPerSecond: 10}, {RequestsPerSecond: 10, Burst: 3}, {RequestsPerSecond: 0.5},
		{RequestsPerSecond: 25, Burst: 1}} {
		f := newFakeTime()
		h := newHealth(e, f.clock())
		var at []time.Time
		for i := range 200 {
			questions := 1 + i%7 // some of them batches
			if err := h.admit(t.Context(), questions); err != nil {
				t.Fatal(err)
			}
			for range questions {
				at = append(at, f.now())
			}
		}
		burst := h.limit.Burst()
		for i := range at {
			for j := i; j < len(at); j++ {
				// A batch is sent when its last call is admitted: up to 6 calls late.
				allowed := at[j].Sub(at[i]).Seconds()*e.RequestsPerSecond + float64(burst) + 6 + 1e-6
				if got := j - i + 1; float64(got) > allowed {
					t.Fatalf("%+v: %d calls within %s", e, got, at[j].Sub(at[i]))
				}
			}
		}
		if took, most := at[len(at)-1].Sub(at[0]).Seconds(), float64(len(at))/e.RequestsPerSecond; took > most ||
			took < most*0.9 {
			t.Errorf("%+v: %d calls took %.1f s, want %.1f", e, len(at), took, most)
		}
	}
	leaving, cancel := contextDone(t)
	defer cancel()
	h := newHealth(Endpoint{RequestsPerSecond: 0.001}, wallClock)
	_ = h.admit(t.Context(), 1)
	if err := h.admit(leaving, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that cancels while waiting gets %v", err)
	}
}

func TestLaggingHead(t *testing.T) {
	for _, c := range []struct {
		blocks, seconds uint64
		want            bool
	}{{0, 0, false}, {2, 100, false}, {100, 20, false}, {3, 30, true}, {500, 6000, true}} {
		h := newHealth(Endpoint{}, wallClock)
		h.sawHead(&Header{Number: 1000, Time: 10000}, &Header{Number: 1000 + c.blocks, Time: 10000 + c.seconds})
		if h.is(lagging) != c.want {
			t.Errorf("%d blocks and %d s behind the best it lags: %t", c.blocks, c.seconds, h.is(lagging))
		}
		h.sawHead(&Header{Number: 1000, Time: 10000}, nil)
		if !h.is(usable) {
			t.Error("an endpoint without another head to compare with is not usable")
		}
	}
	if last := (&Header{Number: math.MaxUint64, Time: math.MaxUint64}); (&Header{Number: 1000,
		Time: 10000}).farAbove(last) {
		t.Error("the highest head counts as far above itself")
	}
}
