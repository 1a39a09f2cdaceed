package partner

import (
	"context"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry/db"
)

// tried is a row of a file of deliveries: one of the attempts that the list shows for a delivery, or a delivery
// without attempts.
type tried struct {
	*deliveryJSON
	Attempt *attemptJSON `json:"attempts"`
}

// deliveriesFile returns the whole delivery log of the caller. It is read in pages, each after the last delivery of
// the previous one, so that none appears twice, whatever is delivered meanwhile. A page has about as many rows as
// rows allows if each delivery has the maximum number of attempts.
func (w *Webhooks) deliveriesFile(
	r *serve.Request, rows int, after db.ListDeliveriesParams,
) (*serve.Answer, error) {
	after.Limit = int32(max(1, rows/maxAttempts))
	return serve.Whole(r.Context, r, nil, func(ctx context.Context) ([]tried, error) {
		deliveries, err := w.filtered.ListDeliveries(ctx, after)
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
