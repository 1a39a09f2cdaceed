package partner

import (
	"context"

	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry/db"
)

// tried is a row of a file of deliveries: one of the attempts that the list shows for a delivery, or a delivery
// without attempts.
type tried struct {
	*deliveryJSON
	attempt *attemptJSON
}

// ofAttempt returns a value of an attempt, or nil if there is no attempt.
func ofAttempt[V any](t *tried, field func(*attemptJSON) *V) *V {
	if t.attempt == nil {
		return nil
	}
	return field(t.attempt)
}

// deliveryColumns are the deliveryColumns of a file of deliveries. The URL and the error are untrusted: the partner chose the URL,
// and its server caused the error.
var deliveryColumns = []files.Column[tried]{
	files.Text("eventId", func(t *tried) string { return t.EventID.String() }),
	files.CountOrNull("sequence", func(t *tried) *int64 { return t.Sequence }),
	files.Text("type", func(t *tried) string { return t.Type }),
	files.Text("state", func(t *tried) string { return t.State }),
	files.Time("createdAt", func(t *tried) string { return t.CreatedAt }),
	files.TimeOrNull("nextAttemptAt", func(t *tried) *string { return t.NextAttemptAt }),
	files.TimeOrNull("finishedAt", func(t *tried) *string { return t.FinishedAt }),
	files.TimeOrNull("correctedAt", func(t *tried) *string { return t.CorrectedAt }),
	files.CountOrNull("attempts.number", func(t *tried) *int32 { return ofAttempt(t, func(a *attemptJSON) *int32 { return &a.Number }) }),
	files.ForeignOrNull("attempts.url", func(t *tried) *string { return ofAttempt(t, func(a *attemptJSON) *string { return &a.URL }) }),
	files.TimeOrNull("attempts.startedAt", func(t *tried) *string { return ofAttempt(t, func(a *attemptJSON) *string { return &a.StartedAt }) }),
	files.CountOrNull("attempts.durationMs", func(t *tried) *int32 { return ofAttempt(t, func(a *attemptJSON) *int32 { return &a.DurationMs }) }),
	files.CountOrNull("attempts.status", func(t *tried) *int32 { return ofAttempt(t, func(a *attemptJSON) *int32 { return a.Status }) }),
	files.ForeignOrNull("attempts.error", func(t *tried) *string { return ofAttempt(t, func(a *attemptJSON) *string { return a.Error }) }),
}

// deliveriesFile returns the whole delivery log of the caller. It is read in pages, each after the last delivery of
// the previous one, so that none appears twice, whatever is delivered meanwhile. A page has about as many rows as
// rows says if each delivery has the maximum number of attempts.
func (w *Webhooks) deliveriesFile(r *serve.Request, rows int, wanted deliveryFilter) (*serve.Answer, error) {
	after := db.ListDeliveriesParams{PartnerID: int64(r.Partner.ID), Limit: int32(max(1, rows/maxAttempts))}
	return serve.WholeAsRead(r.Context, r, deliveryColumns, func(ctx context.Context) ([]tried, error) {
		deliveries, err := w.list(ctx, after, wanted)
		if err != nil {
			return nil, serve.RegistryFailure(err)
		}
		if len(deliveries) == 0 {
			return nil, nil
		}
		last := &deliveries[len(deliveries)-1]
		after.AfterAt, after.AfterSequence, after.AfterEvent = &last.CreatedAt, last.Sequence, last.EventID
		described, err := w.withAttempts(ctx, deliveries)
		if err != nil {
			return nil, err
		}
		var out []tried
		for i := range described {
			d := &described[i]
			if len(d.Attempts) == 0 {
				out = append(out, tried{d, nil})
			}
			for j := range d.Attempts {
				out = append(out, tried{d, &d.Attempts[j]})
			}
		}
		return out, nil
	})
}
