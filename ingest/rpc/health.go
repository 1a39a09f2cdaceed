package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/navlog/navlog/schemas/registry"
)

// clock is the time source of limits and pauses; tests control it.
type clock struct {
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

var wallClock = clock{time.Now, Sleep}

const (
	// A failed endpoint rests for a while, and then until it responds. The next rest is twice as long: only after
	// healthyAfter responses in a row, or a minute, are the failures forgotten, because an endpoint may respond to cheap
	// calls only. One that fails at one call in a hundred rests a second each time.
	firstQuarantine = time.Second
	lastQuarantine  = time.Minute
	healthyAfter    = 8
	// A rate-limited endpoint that does not say for how long rests, too, twice as long each time until it responds.
	firstLimitPause = 250 * time.Millisecond
	lastLimitPause  = 30 * time.Second
	longestPause    = 5 * time.Minute // even if Retry-After is longer; if it is shorter, firstLimitPause
	// The longest pause of eth_getLogs at an endpoint that is silent only there, because each timeout takes callTimeout.
	longestSilence = 10 * time.Minute
	// shortPause is the longest pause that is waited for; during a longer one another endpoint is used.
	shortPause = 2 * time.Second

	// The head of an endpoint lags if another endpoint's head is higher and later by at least this much.
	lagBlocks  = 3
	lagSeconds = 30
)

// state is whether an endpoint can be used: it is usable, or it rests for one of three reasons, or it is wrong. Of two
// states the lower one is better.
//
//	  ┌───────────────── a response ◀────────────┐
//	  ▼                                          │
//	usable ── failed ──▶ rests for 1 s ──▶ probe ┤
//	│    │                 ▲  doubling to 1 min  │
//	│    │                 └────── failed ◀──────┘
//	│    └── 429 ──▶ rests for Retry-After, or 250 ms doubling to 30 s ──▶ usable
//	└── head far below another's, or not verified ──▶ rests until its next head ──▶ usable
type state int

const (
	usable  state = iota
	lagging       // rests until its next head: the last one is far below another's, or is not verified
	limited       // rests until its rate limit ends
	failed        // rests, and then until a call gets a response
	wrong         // serves another chain
)

type suspension struct {
	faults int       // since the last success
	since  time.Time // when the first of them occurred
	until  time.Time // when calls may be made again
	err    error     // the last fault
}

// begin notes a fault and begins the pause: first after the first fault, twice as long after each further one, up to
// last.
func (r *suspension) begin(at time.Time, first, last time.Duration, err error) {
	if r.faults == 0 {
		r.since = at
	}
	r.faults++
	r.until, r.err = at.Add(min(first<<min(r.faults-1, 20), last)), err
}

type health struct {
	clock
	limit *rate.Limiter

	mu sync.Mutex
	facts
}

type facts struct {
	answered   bool       // at least once
	down       bool       // no response since the last failure
	failures   suspension // those of concurrent calls count as one
	successes  int        // responses since the last failure
	limits     suspension // rate limits
	finality   suspension // suspends only calls for the final block
	ranges     suspension // suspends only its share of a backfill: the history may be all that it lacks, or returns wrong
	logs       suspension // suspends only eth_getLogs for single blocks, whose receipts are read instead
	fault      time.Time  // when the last fault occurred
	lastError  string
	unstableAt time.Time // when there was last a reason to use another endpoint; see Pool.ranked
	latency    time.Duration
	identified time.Time // when it was last seen to serve the right chain; zero if not since its last failure
	hasLogFrom uint64    // the lowest block of which it had a log; 0 if none since its last failure
	wrong      string    // what is wrong with its chain
	head       *Header   // newest head that it returned
	headAt     time.Time
	lagReason  string // why it rests until its next head; empty if it does not
	subscribed bool
	// When its final block is trusted again, after it named its head as final.
	finalTrustedAt time.Time
	verifiedHead   *Header // newest head that it was verified to have; nil for none
}

// snapshot returns a copy of the facts.
func (h *health) snapshot() facts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.facts
}

func (h *health) set(change func(*health)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

func newHealth(e Endpoint, c clock) *health {
	h := &health{clock: c, limit: rate.NewLimiter(rate.Inf, math.MaxInt)}
	if e.RequestsPerSecond > 0 {
		burst := max(1, int(math.Ceil(e.RequestsPerSecond)))
		h.limit = rate.NewLimiter(rate.Limit(e.RequestsPerSecond), cmp.Or(e.Burst, burst))
	}
	return h
}

type limitedError struct {
	until time.Time
	cause string
	asked bool // true if the endpoint rejected this call, false if no call was made yet because of an earlier limit
}

func (e *limitedError) Error() string {
	return fmt.Sprintf("the endpoint is rate-limited until %s: %s", e.until.UTC().Format(time.RFC3339), e.cause)
}

// atOnce returns how many calls may be made at once.
func (h *health) atOnce() int { return h.limit.Burst() }

// admit waits until the endpoint may get this number of calls.
func (h *health) admit(ctx context.Context, questions int) error {
	f := h.snapshot()
	if pause := f.limits.until.Sub(h.now()); pause > shortPause {
		return &limitedError{until: f.limits.until, cause: f.lastError}
	} else if pause > 0 {
		if err := h.sleep(ctx, pause); err != nil {
			return err
		}
	}
	for questions > 0 {
		some := min(questions, h.atOnce())
		now := h.now()
		if pause := h.limit.ReserveN(now, some).DelayFrom(now); pause > 0 {
			if err := h.sleep(ctx, pause); err != nil {
				return err
			}
		}
		questions -= some
	}
	return nil
}

// end updates the health from an exchange with calls like c that began at began. It returns a rate limit as a
// *limitedError, so that callers do not mistake it for a call that requests too much.
func (h *health) end(ctx context.Context, c call, began time.Time, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil { // the caller cancelled, the node did not fail
		return err
	}
	now := h.now()
	pause, limited := limitOf(err)
	switch {
	case limited:
		return h.rateLimited(began, now, pause, err)
	case err == nil, isAnswer(err) && !c.vital:
		h.answer(began, now)
	case !c.optional:
		h.fail(began, now, err)
	}
	return err
}

func (h *health) answer(began, now time.Time) {
	if took := now.Sub(began); !h.answered {
		h.latency = took
	} else {
		h.latency += (took - h.latency) / 5
	}
	h.answered = true
	if !began.After(h.fault) { // the call was in flight when the fault occurred
		return
	}
	if h.down {
		h.down, h.unstableAt = false, now
	}
	if h.successes++; h.successes >= healthyAfter {
		h.failures = suspension{}
	}
	h.limits = suspension{}
}

func (h *health) fail(began, now time.Time, err error) {
	h.lastError = err.Error()
	// Another node may come back at this URL.
	h.identified, h.hasLogFrom, h.headAt = time.Time{}, 0, time.Time{}
	if h.down && !began.After(h.fault) {
		return
	}
	if !h.down && began.Sub(h.failures.until) >= lastQuarantine {
		h.failures = suspension{}
	}
	h.failures.begin(now, firstQuarantine, lastQuarantine, err)
	h.down, h.successes, h.fault, h.unstableAt = true, 0, now, now
}

func (h *health) rateLimited(began, now time.Time, pause time.Duration, err error) error {
	h.lastError = err.Error()
	until := h.limits.until
	if h.limits.faults == 0 || began.After(h.fault) {
		h.limits.begin(now, firstLimitPause, lastLimitPause, err)
		h.fault = now
	}
	if pause > 0 {
		h.limits.until = now.Add(max(firstLimitPause, min(pause, longestPause)))
	}
	h.limits.until = later(h.limits.until, until)
	if h.limits.until.Sub(now) > shortPause {
		h.unstableAt = now
	}
	return &limitedError{h.limits.until, h.lastError, true}
}

// readRange notes the outcome of a job of a backfill: whether the endpoint returned something, and then failed.
func (h *health) readRange(ctx context.Context, some bool, err error) {
	h.set(func(h *health) {
		if some && !h.ranges.until.After(h.now()) { // otherwise another job failed while this one was in flight
			h.ranges = suspension{}
		}
	})
	if err != nil && ctx.Err() == nil {
		h.suspend(&h.ranges, firstQuarantine, lastQuarantine, err)
	}
}

// suspend begins a pause of calls that rest by themselves, unless they rest already. During a rate limit
// it begins at its end: other calls are due by then, too.
func (h *health) suspend(calls *suspension, first, last time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.now(); !calls.until.After(now) {
		calls.begin(later(now, h.limits.until), first, last, err)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (h *health) resume(calls *suspension) { h.set(func(*health) { *calls = suspension{} }) }

// logsPaused reports whether eth_getLogs rests after a timeout.
func (h *health) logsPaused() bool { return h.snapshot().logs.until.After(h.now()) }

// isAnswer reports whether an error came from a node that works: it rejected this call, but may serve another one.
func isAnswer(err error) bool {
	if refused(err) || errors.Is(err, errAnswerTooLong) || missing(err) {
		return true
	}
	status, is := errors.AsType[*httpError](err)
	return is && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity}, status.Status)
}

// limitOf reports whether an error is a rate limit, and how long it lasts; 0 if the endpoint does not say.
func limitOf(err error) (time.Duration, bool) {
	status, is := errors.AsType[*httpError](err)
	if is && (status.Status == http.StatusTooManyRequests || status.Status == http.StatusServiceUnavailable &&
		status.RetryAfter > 0) {
		return status.RetryAfter, true
	}
	answer, is := errors.AsType[*rpcError](err)
	if !is {
		return 0, false
	}
	switch words := answer.message(); {
	case answer.Code == http.StatusTooManyRequests:
		return 0, true
	case reverted(err): // a contract reverts with any text it likes, such as "rate limit exceeded"
		return 0, false
	case callLimitText.MatchString(words):
		return 0, true
	case lacksState(err), strings.Contains(words, "batch"): // the same words may be about an archive or about batches
		return 0, false
	default:
		return 0, read(answer).kind == tooOften
	}
}

// state returns the state of the endpoint, and until when it must not be called, if it rests for a certain time.
func (h *health) state() (state, time.Time) {
	f := h.snapshot()
	return f.stateAt(h.now())
}

func (f *facts) stateAt(now time.Time) (state, time.Time) {
	switch {
	case f.wrong != "":
		return wrong, time.Time{}
	case f.down:
		return failed, f.failures.until
	case f.limits.until.Sub(now) > shortPause:
		return limited, f.limits.until
	case f.lagReason != "":
		return lagging, time.Time{}
	}
	return usable, time.Time{}
}

var stateNames = [...]string{
	usable: registry.EndpointUp, lagging: registry.EndpointLagging, limited: registry.EndpointLimited,
	failed: registry.EndpointDown,
	wrong:  registry.EndpointWrong,
}

func (h *health) is(want state) bool {
	s, _ := h.state()
	return s == want
}

// pauseLeft returns how long the endpoint must not be called.
func (h *health) pauseLeft() time.Duration {
	f, now := h.snapshot(), h.now()
	pause := max(0, f.limits.until.Sub(now))
	if f.down {
		pause = max(pause, f.failures.until.Sub(now))
	}
	return pause
}

// sawHead notes a head, and whether it lags behind best, the best head of the others, which may be nil.
func (h *health) sawHead(head, best *Header) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lagReason != "" {
		h.unstableAt = h.now()
	}
	h.head, h.headAt, h.lagReason = head, h.now(), ""
	if best != nil && best.farAbove(head) {
		h.lagReason = fmt.Sprintf("its head is block %d, and that of another endpoint block %d", head.Number, best.Number)
		h.unstableAt = h.headAt
	}
}

func (h *health) status(name string) registry.EndpointStatus {
	f, now := h.snapshot(), h.now()
	s, _ := f.stateAt(now)
	st := registry.EndpointStatus{Name: name, State: stateNames[s], Subscribed: f.subscribed, LastError: f.lastError}
	switch s {
	case wrong:
		st.LastError = f.wrong
	case failed:
		since := f.failures.since.UTC()
		st.FailingSince = &since
	case usable:
		if !f.answered {
			st.State = registry.EndpointUntried
		}
	}
	if f.limits.until.Sub(now) > shortPause { // also while it is down
		until := f.limits.until.UTC()
		st.LimitedUntil = &until
	}
	if f.answered {
		ms := float64(f.latency.Microseconds()) / 1000
		st.LatencyMs = &ms
	}
	if f.head != nil {
		st.HeadBlock = f.head.Number
	}
	if st.LastError != "" && s != wrong {
		at := f.fault.UTC()
		st.LastErrorAt = &at
	}
	return st
}

// Backoff is the pause after an error: 250 ms doubling to 15 s, each shortened by up to a half at random, so that two
// writers do not stay in step.
type Backoff struct{ next time.Duration }

const (
	firstPause = 250 * time.Millisecond
	lastPause  = 15 * time.Second
)

// Reset starts over with the shortest pause; call it after a success.
func (b *Backoff) Reset() { b.next = 0 }

// Sleep waits for the next pause. If ctx ends first, it returns the error of ctx.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Pause()) }

// Pause returns the next pause.
func (b *Backoff) Pause() time.Duration {
	half := cmp.Or(b.next, firstPause) / 2
	b.next = min(4*half, lastPause)
	return half + rand.N(half)
}

// Sleep waits for d. If ctx ends first, it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
