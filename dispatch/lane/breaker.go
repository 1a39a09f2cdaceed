package lane

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/sony/gobreaker/v2"
)

// A breaker opens after breakerAttempts or more attempts of breakerEvents or more
// distinct events within breakerWindow, of which breakerPercent or more met a
// receiver that is down (Result.down). If few POSTs run at a time, breakerTurns
// attempts per concurrent POST are enough: a receiver that hangs allows only 6
// attempts in the window with one POST at a time, each of which takes the deadline.
const (
	breakerWindow   = time.Minute
	breakerAttempts = 20
	breakerTurns    = 5
	breakerEvents   = 5
	breakerPercent  = 80
	// breakerRefusals is the number of consecutive attempts, none of them accepted, after which a breaker opens even if
	// the receiver responds: one that always returns 404 would otherwise cost each event all its attempts forever.
	breakerRefusals = 200
)

var errDown = errors.New("receiver down")

// breaker is the circuit breaker of one URL of a partner. docs/architecture.md draws its states.
//
// gobreaker decides while the breaker is closed. Its open time is constant, so the open
// and half-open states are two fields here: until and probing.
//
// Only the goroutine of its lane uses a breaker.
type breaker struct {
	openMin, openMax time.Duration

	circuit *gobreaker.TwoStepCircuitBreaker[struct{}] // nil unless closed
	openFor time.Duration                              // of the last opening; 0 while closed
	until   time.Time                                  // end of the open time
	probing bool                                       // a probe is in flight
	recent  []attempted                                // the last breakerEvents distinct events, oldest first
	refused int                                        // attempts in a row that were not accepted
	// refusing: it opened because nothing was accepted, and only an accepted probe closes it.
	refusing bool
	window   int // POSTs at a time while closed, see permits
	limit    int
}

type attempted struct {
	event uuid.UUID
	at    time.Time
}

// newBreaker returns a closed breaker. limit is the number of POSTs at a time to a
// healthy receiver.
func newBreaker(t Timing, limit int) *breaker {
	b := &breaker{openMin: t.OpenMin, openMax: t.OpenMax, window: limit, limit: limit}
	b.close()
	return b
}

// restoreBreaker returns a breaker that is open for the remaining time of an opening of
// openFor. A probe comes first even if that time is over.
func restoreBreaker(t Timing, limit int, openFor, remaining time.Duration, refusing bool) *breaker {
	b := newBreaker(t, limit)
	b.refusing = refusing
	b.open(openFor, remaining)
	return b
}

// close admits attempts and starts counting them.
func (b *breaker) close() {
	b.openFor, b.until, b.probing = 0, time.Time{}, false
	b.circuit = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:     breakerWindow,
		BucketPeriod: time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			ended := c.TotalSuccesses + c.TotalFailures
			return ended >= min(breakerAttempts, breakerTurns*uint32(b.window)) &&
				100*c.TotalFailures >= breakerPercent*ended && b.distinct() >= breakerEvents
		},
	})
}

// open admits nothing for the rest of an open time of openFor, and then one probe.
func (b *breaker) open(openFor, rest time.Duration) {
	b.circuit, b.openFor, b.until, b.probing = nil, openFor, time.Now().Add(rest), false
}

// permits returns how many POSTs at a time the breaker admits and, if none, for how
// long; a duration of 0 means until the probe has ended. After an opening it admits
// one at first and one more with each success, so that a receiver that has just
// recovered is not flooded.
func (b *breaker) permits() (int, time.Duration) {
	rest := time.Until(b.until)
	switch {
	case b.circuit != nil:
		return b.window, 0
	case rest > 0:
		return 0, max(rest, time.Millisecond)
	case b.probing:
		return 0, 0
	}
	return 1, 0
}

// start counts an attempt that permits admits. The caller must call done exactly once with the result, in every case: a
// probe that never ends would keep the breaker half-open forever. done returns how the breaker changed.
func (b *breaker) start(event uuid.UUID) (done func(Result) change, probe bool) {
	b.addRecent(event)
	circuit, report := b.circuit, func(error) {}
	if probe = circuit == nil; probe {
		b.probing = true
	} else if counted, err := circuit.Allow(); err == nil { // as always while it is closed
		report = counted
	}
	return func(r Result) change {
		if circuit != b.circuit {
			return unchanged // it opened while this attempt was in flight
		}
		return b.report(report, r, probe)
	}, probe
}

// change is how an attempt changed its breaker.
type change int

const (
	unchanged change = iota
	opened
	probing // set by a lane when a probe starts
	closed
)

func (c change) String() string { return [...]string{"unchanged", "opened", "probing", "closed"}[c] }

func (b *breaker) report(report func(error), r Result, probe bool) change {
	if r.opensBreaker() {
		report(errDown)
	} else {
		report(nil)
		b.window = min(b.window+1, b.limit)
	}
	b.refused++
	if r.accepted() {
		b.refused = 0
	}
	switch {
	case probe && (r.opensBreaker() || b.refusing && !r.accepted()):
		b.open(min(2*b.openFor, b.openMax), min(2*b.openFor, b.openMax))
		return opened
	case probe:
		b.window, b.recent, b.refused, b.refusing = 1, nil, 0, false
		b.close()
		return closed
	case b.circuit.State() == gobreaker.StateOpen:
		b.open(b.openMin, b.openMin)
		return opened
	case b.refused >= breakerRefusals && b.distinct() >= breakerEvents:
		b.refusing = true
		b.open(b.openMin, b.openMin)
		return opened
	}
	return unchanged
}

// addRecent keeps the last breakerEvents distinct events with the time of their last
// attempt, which distinct needs.
func (b *breaker) addRecent(event uuid.UUID) {
	b.recent = slices.DeleteFunc(b.recent, func(a attempted) bool { return a.event == event })
	b.recent = append(b.recent, attempted{event, time.Now()})
	b.recent = b.recent[max(0, len(b.recent)-breakerEvents):]
}

// distinct counts the distinct events of the window, up to breakerEvents.
func (b *breaker) distinct() int {
	n := 0
	for _, a := range b.recent {
		if time.Since(a.at) <= breakerWindow {
			n++
		}
	}
	return n
}
