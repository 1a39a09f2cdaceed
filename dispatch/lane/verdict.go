package lane

import (
	"math/rand/v2"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// Verdict is how an attempt changes its delivery.
type Verdict struct {
	State    string
	Attempts int32
	Wait     time.Duration // until it is due again
	Finished bool
}

// judge decides how an attempt changes its delivery, which had some attempts before it. A failed probe costs no retry.
func (t Timing) judge(attempts int32, accepted, probe bool) Verdict {
	switch {
	case accepted:
		return Verdict{State: registry.Delivered, Attempts: attempts + 1, Finished: true}
	case probe:
		return Verdict{State: registry.Parked, Attempts: attempts}
	case int(attempts) < len(t.Retries):
		return Verdict{State: registry.Pending, Attempts: attempts + 1, Wait: jitter(t.Retries[attempts])}
	default:
		return Verdict{State: registry.Failed, Attempts: attempts + 1, Finished: true}
	}
}

// jitter adds up to 20 %, so that deliveries that failed together are not retried
// together.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*0.2*float64(d))
}
