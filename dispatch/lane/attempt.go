package lane

import (
	"context"

	"github.com/navlog/navlog/schemas/registry/db"
)

// Attempt is one POST of a delivery, as it is recorded.
type Attempt struct {
	Partner  int64
	Fence    int64 // of the lease that it was started under
	Delivery db.DueDeliveriesRow
	Endpoint Endpoint
	Result   Result
	Verdict  Verdict
}

// flight is an attempt from its start until its lane handles its end.
type flight struct {
	attempt Attempt
	breaker *breaker // that admitted it
	done    func(Result) change
	probe   bool
	change  change // of the breaker
	fenced  bool   // not recorded, because the partner has another owner
}

// try makes an attempt and records its result. It releases the caller's slot after the
// POST. The end of ctx, which is the program's, neither cuts off the POST nor loses its
// result.
func (s *Shared) try(ctx context.Context, p *poster, f flight) flight {
	a := &f.attempt
	m := message{event: a.Delivery.EventID, kind: a.Delivery.Type, body: a.Delivery.Body}
	if a.Delivery.Sequence != nil {
		m.sequence = *a.Delivery.Sequence
	}
	a.Result = p.post(context.WithoutCancel(ctx), a.Endpoint, m)
	<-s.Slots
	f.change = f.done(a.Result)
	s.Metrics.attempt(a.Result)
	if a.Result.Cause != nil {
		s.Log.Debug("no response to a webhook", "partner", a.Partner, "event", m.event, "error", a.Result.Cause)
	}
	a.Verdict = s.Timing.judge(a.Delivery.State, a.Delivery.Attempts, a.Result.accepted(), f.probe)
	f.fenced = !s.Record(ctx, *a)
	return f
}
