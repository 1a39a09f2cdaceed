package dispatch

import (
	"context"
	"time"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	statsInterval = 5 * time.Second
	// GivenUpCounted is the number up to which failed and no_endpoint deliveries are counted: they are kept forever.
	GivenUpCounted = 10_000
)

// Status is what dispatch reports about itself.
type Status struct {
	// State is "reading", or "waiting" for a Reason. A dispatcher that sends and leaves the topics to another one is
	// "reading" too, as long as it could take over.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Intake is whether this dispatcher has the lease of the intake: one reads the referral topics for all.
	Intake bool `json:"intake"`
	// LagRecords is the number of offsets of the referral topics not read yet.
	LagRecords int64 `json:"lagRecords"`
	// Lanes is the number of partners that this dispatcher sends to.
	Lanes int `json:"lanes"`
	// Deliveries counts undelivered deliveries by state, over all dispatchers. For failed
	// and no_endpoint, 10,000 means 10,000 or more.
	Deliveries map[string]int64 `json:"deliveries"`
	// How long the oldest delivery of that state has been due.
	OldestPendingSeconds float64   `json:"oldestPendingSeconds"`
	OldestParkedSeconds  float64   `json:"oldestParkedSeconds"`
	OpenBreakers         int64     `json:"openBreakers"`
	MeasuredAt           time.Time `json:"measuredAt"`
}

// Ready returns nil while the referral topics are read, or could be if another dispatcher stopped
// to, results can be written, and nothing else fails. A dispatcher without partners is ready too: a partner's faults
// are dropped when another dispatcher takes that partner.
func (d *Dispatch) Ready() error { return d.health.err(d.timing.proof) }

// Status returns the current state without blocking.
func (d *Dispatch) Status() Status {
	s := d.metrics.snapshot()
	s.Lanes, s.Intake = len(d.allLanes()), d.reads.Load()
	s.State = registry.Reading
	if err := d.Ready(); err != nil {
		s.State, s.Reason = "waiting", err.Error()
	}
	return s
}

// measure updates the gauges. A slow or failed measurement does not make the program
// unready: MeasuredAt shows how old the gauges are, and other checks notice if
// PostgreSQL is down.
func (d *Dispatch) measure(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, statsInterval)
	defer cancel()
	q, err := d.queries.MeasureQueue(limited, GivenUpCounted)
	var expiries []db.CertificateExpiriesRow
	if err == nil {
		expiries, err = d.queries.CertificateExpiries(limited)
	}
	d.health.note(ctx, "measure the queue", err)
	if err != nil {
		return
	}
	d.metrics.show(Status{
		Deliveries: map[string]int64{registry.Pending: q.Pending, registry.Parked: q.Parked, registry.Failed: q.Failed,
			registry.NoEndpoint: q.NoEndpoint},
		OldestPendingSeconds: q.OldestPendingSeconds, OldestParkedSeconds: q.OldestParkedSeconds,
		OpenBreakers: q.OpenBreakers, MeasuredAt: time.Now().UTC(),
	}, len(d.allLanes()))
	d.metrics.showCertificates(expiries)
}
