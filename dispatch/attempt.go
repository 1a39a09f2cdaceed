package dispatch

import (
	"context"

	"github.com/navlog/navlog/schemas/registry/db"
)

// attempt is one POST of a delivery, as it is recorded.
type attempt struct {
	partner  int64
	fence    int64 // of the lease that it was started under
	delivery db.DueDeliveriesRow
	endpoint endpoint
	result   result
	verdict  verdict
}

// flight is an attempt from its start until its lane takes its end in.
type flight struct {
	attempt attempt
	breaker *breaker // that let it through
	done    func(result) change
	probe   bool
	change  change // of the breaker
	fenced  bool   // it was not recorded: the partner has another owner
}

// try makes an attempt and records what came of it. The caller's slot is given
// back after the POST. ctx is the program's: its end neither cuts the POST nor
// loses its result.
func (s *shared) try(ctx context.Context, p *poster, f flight) flight {
	a := &f.attempt
	m := message{event: a.delivery.EventID, kind: a.delivery.Type, body: a.delivery.Body}
	if a.delivery.Sequence != nil {
		m.sequence = *a.delivery.Sequence
	}
	a.result = p.post(context.WithoutCancel(ctx), a.endpoint, m)
	<-s.slots
	f.change = f.done(a.result)
	s.metrics.attempt(a.result)
	if a.result.cause != nil {
		s.log.Debug("no answer to a webhook", "partner", a.partner, "event", m.event, "error", a.result.cause)
	}
	a.verdict = s.timing.judge(a.delivery.State, a.delivery.Attempts, a.result.accepted(), f.probe)
	f.fenced = !s.record(ctx, *a)
	return f
}
