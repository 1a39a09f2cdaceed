package partner

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook"
)

// mostCounted is the number up to which filtered deliveries are counted: the limit of page x pageSize.
const mostCounted = 100_000

// Filtered is the Expensive of the list of deliveries: with a filter, PostgreSQL may read all deliveries of the
// partner, once for the page and once for their number.
var Filtered = serve.Given("state", "type", "tx", "from", "to")

// selected returns which deliveries of the caller a request is about. Nil fields match everything.
func selected(r *serve.Request) db.ListDeliveriesParams {
	of := db.ListDeliveriesParams{PartnerID: int64(r.Partner.ID),
		State: serve.OrNull(r.Params.OneOf("state", "",
			registry.Pending, registry.Parked, registry.Delivered, registry.Failed, registry.NoEndpoint)),
		Type: serve.OrNull(r.Params.OneOf("type", "", webhook.DepositReferral, webhook.WithdrawalReferral, webhook.Test))}
	if tx := r.Params.Hash("tx"); tx != nil {
		of.TxHash = tx.Bytes()
	}
	of.FirstAt, of.LastAt = r.Params.Times()
	if of.LastAt != nil { // responses have whole milliseconds, and a delivery of that one is included
		of.LastAt = new(of.LastAt.Truncate(time.Millisecond).Add(time.Millisecond - time.Nanosecond))
	}
	return of
}

func (w *Webhooks) count(ctx context.Context, of *db.ListDeliveriesParams) (int64, error) {
	if of.State == nil && of.Type == nil && of.TxHash == nil && of.FirstAt == nil && of.LastAt == nil {
		return w.db.CountDeliveries(ctx, of.PartnerID)
	}
	return w.filtered.CountFiltered(ctx, db.CountFilteredParams{PartnerID: of.PartnerID, State: of.State, Type: of.Type,
		TxHash: of.TxHash, FirstAt: of.FirstAt, LastAt: of.LastAt, AtMost: mostCounted})
}

// oneDeliveryJSON is a delivery with everything sent and received.
type oneDeliveryJSON struct {
	deliveryJSON
	Request  sentJSON       `json:"request"`
	Attempts []answeredJSON `json:"attempts"` // instead of those of the list
}

// sentJSON is what every attempt sends: the headers that never change, and the newest body.
type sentJSON struct {
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// answeredJSON is an attempt with the part of the response that dispatch still keeps.
type answeredJSON struct {
	attemptJSON
	Response    *string `json:"response"`
	DNSUs       *int32  `json:"dnsUs"`
	ConnectUs   *int32  `json:"connectUs"`
	TLSUs       *int32  `json:"tlsUs"`
	FirstByteUs *int32  `json:"firstByteUs"`
}

func eventID(r *serve.Request) (uuid.UUID, error) {
	id, err := uuid.Parse(r.Path("eventId"))
	if err != nil || len(r.Path("eventId")) != len(uuid.Nil.String()) {
		return id, serve.InvalidParameter(serve.Fault{Field: "eventId",
			Reason: "must be a UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12"})
	}
	return id, nil
}

// Delivery returns one delivery of the caller, with its body and every attempt that is kept.
func (w *Webhooks) Delivery(r *serve.Request) (*serve.Answer, error) {
	id, err := eventID(r)
	if err != nil {
		return nil, err
	}
	d, err := w.db.GetDelivery(r.Context, id)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && d.PartnerID != int64(r.Partner.ID) {
		return nil, serve.NotFound("There is no such delivery.")
	}
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	log, err := w.db.AttemptLog(r.Context, id)
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	out := oneDeliveryJSON{
		deliveryJSON: describeDelivery(db.ListDeliveriesRow{
			EventID: d.EventID, Sequence: d.Sequence, Type: d.Type, State: d.State, Attempts: d.Attempts, DueAt: d.DueAt,
			CreatedAt: d.CreatedAt, FinishedAt: d.FinishedAt, CorrectedAt: d.CorrectedAt,
		}),
		Request: sentJSON{Body: string(d.Body), Headers: map[string]string{
			"Content-Type": "application/json", webhook.HeaderEventID: id.String(), webhook.HeaderEventType: d.Type,
		}},
		Attempts: make([]answeredJSON, len(log)),
	}
	if d.Sequence > 0 {
		out.Request.Headers[webhook.HeaderSequence] = strconv.FormatInt(d.Sequence, 10)
	}
	for i, a := range log {
		out.Attempts[i] = answeredJSON{
			attemptJSON: attemptJSON{Number: a.Number, URL: a.Url, StartedAt: serve.Millis(a.StartedAt),
				DurationMs: a.DurationMs, Status: a.Status, Error: a.Error},
			DNSUs: a.DnsUs, ConnectUs: a.ConnectUs, TLSUs: a.TlsUs, FirstByteUs: a.FirstByteUs,
		}
		if a.Response != nil {
			out.Attempts[i].Response = new(strings.ToValidUTF8(string(a.Response), "\uFFFD"))
		}
	}
	return &serve.Answer{Data: out}, nil
}

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
	return serve.Whole(r.Context, r, nil, func(ctx context.Context) ([]tried, bool, error) {
		deliveries, err := w.filtered.ListDeliveries(ctx, after)
		if err != nil {
			return nil, false, serve.RegistryFailure(err)
		}
		if len(deliveries) == 0 {
			return nil, false, nil
		}
		last := &deliveries[len(deliveries)-1]
		after.AfterAt, after.AfterSequence, after.AfterEvent = &last.CreatedAt, last.Sequence, last.EventID
		described, err := w.withAttempts(ctx, deliveries)
		if err != nil {
			return nil, false, err
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
		return out, len(deliveries) == int(after.Limit), nil
	})
}
