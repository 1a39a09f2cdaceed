package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const (
	maxBody = 16 << 10 // bytes of POST webhooks
	maxURL  = 2048     // characters of a webhook URL
)

// setWebhook registers the caller's URL, and overwrites the one before.
func (q *Query) setWebhook(x *exchange) (*answer, error) {
	if !wantsJSON(x.request.Header) {
		return nil, &failure{status: http.StatusUnsupportedMediaType, code: codeUnsupportedMedia, message: "The body must be sent as Content-Type: application/json."}
	}
	body, err := io.ReadAll(io.LimitReader(x.request.Body, maxBody+1))
	if err != nil {
		return nil, invalidBody("The body could not be read to its end.")
	}
	if len(body) > maxBody {
		return nil, &failure{status: http.StatusRequestEntityTooLarge, code: codePayloadTooLarge, message: "The body must not be longer than 16 KiB."}
	}
	url, err := parseWebhookBody(body)
	if err != nil {
		return nil, err
	}
	canonical, err := q.checkURL(x.ctx, url)
	var refusal *guard.Refusal
	switch {
	case errors.As(err, &refusal):
		return nil, invalidWebhookURL(refusal.Reason, refusal.Error())
	case err != nil:
		return nil, unavailable("The webhook URL could not be checked.", err)
	}
	changed, err := q.db.SetWebhookURL(x.ctx, db.SetWebhookURLParams{PartnerID: int64(x.caller.id), Url: &canonical})
	if err != nil {
		return nil, registryFailure(err)
	}
	if changed == 0 {
		return nil, internal(errors.New("the partner has no endpoint row in the registry"))
	}
	return &answer{data: struct {
		WebhookURL string `json:"webhookUrl"`
	}{canonical}}, nil
}

// parseWebhookBody reads {"url": "..."}. Unknown fields are ignored, names
// count in their exact case.
func parseWebhookBody(body []byte) (string, error) {
	var fields map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &fields) != nil || fields == nil {
		return "", invalidBody("The body must be a JSON object like {\"url\": \"https://example.com/hook\"}.")
	}
	var url *string
	if raw, ok := fields["url"]; !ok || json.Unmarshal(raw, &url) != nil || url == nil || *url == "" {
		return "", invalidBody("The body must have a field url that is a string and not empty.")
	}
	if utf8.RuneCountInString(*url) > maxURL {
		return "", invalidWebhookURL(guard.Syntax, "the URL is longer than 2048 characters")
	}
	return *url, nil
}

func invalidBody(message string) *failure {
	return &failure{status: http.StatusBadRequest, code: codeInvalidBody, message: message}
}

func invalidWebhookURL(reason, why string) *failure {
	return &failure{status: http.StatusBadRequest, code: codeInvalidWebhookURL, message: "The webhook URL is not accepted: " + why + ".",
		details: struct {
			Reason string `json:"reason"`
		}{reason}}
}

type webhookJSON struct {
	WebhookURL    *string     `json:"webhookUrl"`
	UpdatedAt     string      `json:"updatedAt"`
	Breaker       breakerJSON `json:"breaker"`
	LastSuccessAt *string     `json:"lastSuccessAt"`
	LastFailureAt *string     `json:"lastFailureAt"`
}

type breakerJSON struct {
	State     string  `json:"state"` // closed, open or half-open
	OpenUntil *string `json:"openUntil"`
}

func (q *Query) getWebhook(x *exchange) (*answer, error) {
	id := int64(x.caller.id)
	partner, err := q.db.GetPartner(x.ctx, id)
	if err != nil {
		return nil, registryFailure(err)
	}
	success, err := q.db.LastSuccess(x.ctx, id)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, registryFailure(err)
	}
	failed, err := q.db.LastFailure(x.ctx, id)
	never := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !never {
		return nil, registryFailure(err)
	}
	out := webhookJSON{
		WebhookURL: partner.Url, UpdatedAt: millis(partner.UpdatedAt), Breaker: breakerJSON{State: "closed"},
		LastSuccessAt: millisOrNull(success),
	}
	if !never {
		out.LastFailureAt = millisOrNull(&failed)
	}
	if partner.Url != nil {
		breaker, err := q.db.GetBreaker(x.ctx, db.GetBreakerParams{PartnerID: id, Url: *partner.Url})
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, registryFailure(err)
		}
		if err == nil { // only those that are not closed have a row
			until := millis(breaker.OpenUntil)
			out.Breaker = breakerJSON{State: breaker.State, OpenUntil: &until}
		}
	}
	return &answer{data: out}, nil
}

// acceptedJSON names the event that will be sent.
type acceptedJSON struct {
	EventID uuid.UUID `json:"eventId"`
}

// sendTest asks dispatch to send a test event.
func (q *Query) sendTest(x *exchange) (*answer, error) {
	partner, err := q.db.GetPartner(x.ctx, int64(x.caller.id))
	if err != nil {
		return nil, registryFailure(err)
	}
	if partner.Url == nil {
		return nil, notFound("There is no webhook URL yet. POST /api/v1/partner/webhooks registers one.")
	}
	return q.command(x, "test", uuid.New())
}

// replay asks dispatch to send an event of the caller again.
func (q *Query) replay(x *exchange) (*answer, error) {
	id, err := uuid.Parse(x.vars["eventId"])
	if err != nil || len(x.vars["eventId"]) != len(uuid.Nil.String()) {
		return nil, invalidParameter(fault{"eventId", "must be a UUID: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12"})
	}
	owner, err := q.db.DeliveryOwner(x.ctx, id)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && owner != int64(x.caller.id) {
		return nil, notFound("There is no such delivery.")
	}
	if err != nil {
		return nil, registryFailure(err)
	}
	return q.command(x, "replay", id)
}

// command leaves a wish for dispatch, which looks for them all the time.
func (q *Query) command(x *exchange, kind string, event uuid.UUID) (*answer, error) {
	if _, err := q.db.CreateCommand(x.ctx, db.CreateCommandParams{PartnerID: int64(x.caller.id), Kind: kind, EventID: &event}); err != nil {
		return nil, registryFailure(err)
	}
	return &answer{status: http.StatusAccepted, data: acceptedJSON{event}}, nil
}

type deliveryJSON struct {
	EventID       uuid.UUID     `json:"eventId"`
	Sequence      *int64        `json:"sequence"` // null for a test event, which is not in the stream
	Type          string        `json:"type"`
	State         string        `json:"state"`
	CreatedAt     string        `json:"createdAt"`
	NextAttemptAt *string       `json:"nextAttemptAt"` // of one that is not finished
	FinishedAt    *string       `json:"finishedAt"`
	Attempts      []attemptJSON `json:"attempts"`
}

type attemptJSON struct {
	Number     int32   `json:"number"`
	URL        string  `json:"url"`
	StartedAt  string  `json:"startedAt"`
	DurationMs int32   `json:"durationMs"`
	Status     *int32  `json:"status"` // of HTTP; null when there was no answer
	Error      *string `json:"error"`
}

// listDeliveries is the caller's delivery log, newest first.
func (q *Query) listDeliveries(x *exchange) (*answer, error) {
	page := x.params.page()
	if err := x.params.err(); err != nil {
		return nil, err
	}
	id := int64(x.caller.id)
	count, err := q.db.CountDeliveries(x.ctx, id)
	if err != nil {
		return nil, registryFailure(err)
	}
	rows, err := q.db.ListDeliveries(x.ctx, db.ListDeliveriesParams{PartnerID: id, Limit: int32(page.size), Offset: int32(page.offset())})
	if err != nil {
		return nil, registryFailure(err)
	}
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.EventID
	}
	attempts, err := q.db.DeliveryAttempts(x.ctx, ids)
	if err != nil {
		return nil, registryFailure(err)
	}
	byEvent := make(map[uuid.UUID][]attemptJSON)
	for _, a := range attempts {
		byEvent[a.EventID] = append(byEvent[a.EventID], attemptJSON{
			Number: a.Number, URL: a.Url, StartedAt: millis(a.StartedAt), DurationMs: a.DurationMs, Status: a.Status, Error: a.Error,
		})
	}
	out := make([]deliveryJSON, 0, len(rows))
	for _, r := range rows {
		d := deliveryJSON{
			EventID: r.EventID, Type: r.Type, State: r.State, CreatedAt: millis(r.CreatedAt),
			FinishedAt: millisOrNull(r.FinishedAt), Attempts: append([]attemptJSON{}, byEvent[r.EventID]...),
		}
		if r.Sequence > 0 {
			d.Sequence = &r.Sequence
		}
		if r.State == registry.Pending || r.State == registry.Parked {
			d.NextAttemptAt = millisOrNull(&r.DueAt)
		}
		out = append(out, d)
	}
	return x.list(out, page, count), nil
}

// listEvents is the pull stream: the very bytes of the webhooks, in the order
// of the caller's sequence. meta.next is the after of the next call.
func (q *Query) listEvents(x *exchange) (*answer, error) {
	after := x.params.integer("after", 0, 0, math.MaxInt64, "must be an integer of at least 0: the meta.next of an earlier answer")
	limit := x.params.integer("limit", defaultPageSize, 1, maxPageSize, "must be an integer from 1 to 100")
	if err := x.params.err(); err != nil {
		return nil, err
	}
	rows, err := q.db.EventsAfter(x.ctx, db.EventsAfterParams{PartnerID: int64(x.caller.id), Sequence: int64(after), Limit: int32(limit) + 1})
	if err != nil {
		return nil, registryFailure(err)
	}
	more := len(rows) > int(limit)
	rows = rows[:min(len(rows), int(limit))]
	next := int64(after)
	// Written by hand, for an encoder would write the stored bytes anew.
	var b bytes.Buffer
	b.WriteString(`{"ok":true,"data":[`)
	for i, r := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(r.Body)
		next = r.Sequence
	}
	b.WriteString(`],"meta":{"next":` + strconv.FormatInt(next, 10) + `,"hasMore":` + strconv.FormatBool(more) + "}}\n")
	return &answer{raw: b.Bytes()}, nil
}

func millisOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := millis(*t)
	return &s
}
