package lane

import (
	"context"
	"net/url"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/telemetry"
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

// flight is an attempt from its start until its lane has handled its end.
type flight struct {
	attempt Attempt
	poster  *poster  // makes the attempt; the lane may have another one before it ends
	breaker *breaker // admitted the attempt
	done    func(Result) change
	probe   bool
	fenced  bool // not recorded, because the partner has another owner
}

// try makes an attempt and records its result. It releases the caller's slot after the POST. When ctx ends, which means
// that the program stops, the POST continues and its result is recorded all the same.
func (s *Shared) try(ctx context.Context, f flight) flight {
	a := &f.attempt
	sending, span := telemetry.Continue(ctx, a.Delivery.Traceparent, telemetry.Client, "webhook attempt")
	a.Result = f.poster.post(context.WithoutCancel(sending), a.Endpoint, a.Delivery)
	a.describe(span)
	<-s.Slots
	s.Metrics.attempt(a.Result)
	if a.Result.Cause != nil {
		s.Log.DebugContext(sending, "no response to a webhook", "partner", a.Partner, "event", a.Delivery.EventID, "error",
			a.Result.Cause)
	}
	a.Verdict = s.Timing.judge(a.Delivery.Attempts, a.Result.accepted(), f.probe)
	f.fenced = !s.Record(ctx, *a)
	if !f.fenced && a.Verdict.State == registry.Failed && a.Delivery.Sequence != nil {
		s.Metrics.failed.Inc()
	}
	return f
}

// describe ends the span of an attempt. It notes only the host of the URL: the rest may be a secret of the partner. The
// request itself carries no trace context, because navlog's internals do not concern a partner.
func (a *Attempt) describe(span telemetry.Span) {
	if !span.IsRecording() {
		return
	}
	telemetry.Text(span, telemetry.EventID, a.Delivery.EventID.String())
	telemetry.Text(span, telemetry.EventType, a.Delivery.Type)
	telemetry.Number(span, telemetry.Partner, a.Partner)
	telemetry.Number(span, telemetry.AttemptNo, a.Delivery.Attempts+1)
	telemetry.Text(span, telemetry.Outcome, a.Result.Outcome)
	if u, err := url.Parse(a.Endpoint.URL); err == nil {
		telemetry.Text(span, telemetry.Server, u.Hostname())
	}
	if a.Result.Status != 0 {
		telemetry.Number(span, telemetry.Status, a.Result.Status)
	}
	if !a.Result.accepted() {
		telemetry.Fail(span, a.Result.Outcome)
	}
	telemetry.End(span, nil)
}
