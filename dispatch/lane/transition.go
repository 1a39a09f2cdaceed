package lane

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// occurrence is what can happen to a delivery.
type occurrence string

const (
	acknowledged  occurrence = "acknowledged"   // 2xx in time
	refusedRetry  occurrence = "refused, retry" // anything else, with a retry left
	refusedLast   occurrence = "refused, last"  // anything else, with no retry left
	probeRefused  occurrence = "probe refused"  // anything but 2xx for a probe
	breakerOpened occurrence = "breaker opened"
	noEndpoint    occurrence = "no endpoint" // the partner is unknown or disabled, or has no URL
	replayed      occurrence = "replayed"
)

// transitions is the whole life cycle of a delivery; other transitions are impossible.
// A delivery begins as pending, or as no_endpoint.
var transitions = map[string]map[occurrence]string{
	registry.Pending: {
		acknowledged:  registry.Delivered,
		refusedRetry:  registry.Pending,
		refusedLast:   registry.Failed,
		probeRefused:  registry.Parked,
		breakerOpened: registry.Parked,
		noEndpoint:    registry.NoEndpoint,
	},
	registry.Parked: {
		acknowledged: registry.Delivered,
		refusedRetry: registry.Pending,
		refusedLast:  registry.Failed,
		probeRefused: registry.Parked,
		noEndpoint:   registry.NoEndpoint,
	},
	registry.Delivered:  {replayed: registry.Pending},
	registry.Failed:     {replayed: registry.Pending},
	registry.NoEndpoint: {replayed: registry.Pending},
}

// next returns the state after an occurrence. It panics on a transition that is not in
// the table, which would be a bug in this package.
func next(state string, what occurrence) string {
	to, ok := transitions[state][what]
	if !ok {
		panic(fmt.Sprintf("a delivery that is %s cannot be %s", state, what))
	}
	return to
}

// Verdict is how an attempt changes its delivery.
type Verdict struct {
	State    string
	Attempts int32
	Wait     time.Duration // until it is due again
	Finished bool
}

// judge decides how an attempt changes its delivery, whose state and attempts are those
// before it. A failed probe costs no retry.
func (t Timing) judge(state string, attempts int32, accepted, probe bool) Verdict {
	switch {
	case accepted:
		return Verdict{State: next(state, acknowledged), Attempts: attempts + 1, Finished: true}
	case probe:
		return Verdict{State: next(state, probeRefused), Attempts: attempts}
	case int(attempts) < len(t.Retries):
		return Verdict{State: next(state, refusedRetry), Attempts: attempts + 1, Wait: jitter(t.Retries[attempts])}
	default:
		return Verdict{State: next(state, refusedLast), Attempts: attempts + 1, Finished: true}
	}
}

// jitter adds up to 20 %, so that deliveries that failed together are not retried
// together.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*0.2*float64(d))
}
