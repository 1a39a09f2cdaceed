package dispatch

import (
	"context"
	"time"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	statsInterval = 5 * time.Second
	// givenUpCounted is up to which number deliveries are counted that are kept
	// for ever.
	givenUpCounted = 10_000
)

// Status is what dispatch says of itself.
type Status struct {
	// State is reading, or waiting with the reason.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// LagRecords of the referral topics are not deliveries yet.
	LagRecords int64 `json:"lagRecords"`
	// Lanes are the partners that this dispatcher sends to.
	Lanes int `json:"lanes"`
	// Deliveries that are not delivered, by state, over all dispatchers. Of failed
	// and no_endpoint 10,000 means that many or more.
	Deliveries map[string]int64 `json:"deliveries"`
	// How long the oldest waiting delivery has been due, in seconds.
	OldestPendingSeconds float64   `json:"oldestPendingSeconds"`
	OldestParkedSeconds  float64   `json:"oldestParkedSeconds"`
	OpenBreakers         int64     `json:"openBreakers"`
	MeasuredAt           time.Time `json:"measuredAt"`
}

// Ready is nil while the referral topics are read, results can be written, and nothing
// else fails. A dispatcher without partners is ready by the same rule: a failure for a
// partner is forgotten when another dispatcher has that partner.
func (d *Dispatch) Ready() error { return d.health.err(d.timing.proof) }

// Status never blocks.
func (d *Dispatch) Status() Status {
	s := d.metrics.snapshot()
	s.Lanes = len(d.allLanes())
	s.State = "reading"
	if err := d.Ready(); err != nil {
		s.State, s.Reason = "waiting", err.Error()
	}
	return s
}

// measure reads what the gauges show. That it takes too long, or fails, makes
// nobody unready: MeasuredAt then says how old the gauges are, and whether
// PostgreSQL answers is seen elsewhere.
func (d *Dispatch) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, statsInterval)
	defer cancel()
	waiting, err := d.queries.WaitingByState(ctx)
	var givenUp db.GivenUpRow
	if err == nil {
		givenUp, err = d.queries.GivenUp(ctx, givenUpCounted)
	}
	var breakers int64
	if err == nil {
		breakers, err = d.queries.CountBreakers(ctx)
	}
	d.health.note("measure the queue", err)
	if err != nil {
		return
	}
	s := Status{Deliveries: map[string]int64{
		registry.Pending: 0, registry.Parked: 0, registry.Failed: givenUp.Failed, registry.NoEndpoint: givenUp.NoEndpoint,
	}}
	for _, w := range waiting {
		s.Deliveries[w.State] = w.Deliveries
		if w.State == registry.Pending {
			s.OldestPendingSeconds = w.OldestSeconds
		} else {
			s.OldestParkedSeconds = w.OldestSeconds
		}
	}
	s.OpenBreakers, s.MeasuredAt = breakers, time.Now().UTC()
	d.metrics.show(s, len(d.allLanes()))
}
