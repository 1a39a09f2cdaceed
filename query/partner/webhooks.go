package partner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/input"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const (
	maxURL = 2048 // characters of a webhook URL
	// maxAttempts is how many attempts of each event are shown, the newest ones: those of its last two rounds. A
	// partner chooses how often it replays and how long its URL is; without this limit, a response about a hundred
	// events could have 5 MB.
	maxAttempts = 8
)

// CheckURL checks a webhook URL and returns its canonical form. Its error is a *guard.Refusal, or unrelated to the
// URL. (*guard.Guard).CheckURL is a CheckURL.
type CheckURL func(ctx context.Context, rawURL string) (canonical string, err error)

// Webhooks serves the webhook routes of partners.
type Webhooks struct {
	pool     *pgxpool.Pool
	db       *db.Queries
	filtered *db.Queries // for queries with filters that may be absent
	checkURL CheckURL
	log      *slog.Logger

	// Rotation is whether partners may change their secret, keys and certificates, which the pages offer then.
	Rotation bool
	// SecretKey is NAVLOG_SECRET_KEY, which seals the secrets and certificates.
	SecretKey string
}

// NewWebhooks returns a Webhooks that uses the registry.
func NewWebhooks(pool *pgxpool.Pool, checkURL CheckURL, log *slog.Logger) *Webhooks {
	return &Webhooks{pool: pool, db: db.New(pool), filtered: registry.Replanned(pool), checkURL: checkURL, log: log}
}

// Register registers the caller's URL, which replaces the previous one.
func (w *Webhooks) Register(r *serve.Request) (*serve.Answer, error) {
	body, err := r.JSONBody()
	if err != nil {
		return nil, err
	}
	url, err := parseWebhookBody(body)
	if err != nil {
		return nil, err
	}
	canonical, err := w.checkURL(r.Context, url)
	var refusal *guard.Refusal
	switch {
	case errors.As(err, &refusal):
		return nil, w.refused(r, refusal)
	case err != nil:
		return nil, serve.Unavailable("The webhook URL could not be checked.", err)
	}
	if err := registry.RegisterURL(r.Context, w.pool, int64(r.Partner.ID), key(r), canonical); err != nil {
		return nil, clientFailure(err)
	}
	return &serve.Answer{Data: struct {
		WebhookURL string `json:"webhookUrl"`
	}{canonical}}, nil
}

func key(r *serve.Request) string { return r.HTTP.Header.Get("x-api-key") }

// notAdmitted is the failure for a client that may not make a change any more, and nil for another error. Since the
// request was admitted, its key may have been revoked or its partner disabled: the client decides how long its body
// takes, and its name server how long the check of a URL takes.
func notAdmitted(err error) *serve.Failure {
	switch {
	case errors.Is(err, registry.ErrKeyRevoked):
		return serve.Unauthorized()
	case errors.Is(err, registry.ErrDisabled):
		return serve.Disabled()
	}
	return nil
}

// clientFailure is what an error of a change means to the client.
func clientFailure(err error) *serve.Failure {
	if f := notAdmitted(err); f != nil {
		return f
	}
	if none := new(registry.NoPartnerError); errors.As(err, &none) { // the key has a partner
		return serve.Internal(err)
	}
	return serve.RegistryFailure(err)
}

// refused returns the error for a URL that the guard rejects. A name that does not resolve and one that resolves to a
// forbidden address get the same response: our resolver may know names that a partner cannot look up, and the partner
// could find out which exist. The log shows the difference, but no part of the URL, which may contain a secret.
func (w *Webhooks) refused(r *serve.Request, refusal *guard.Refusal) error {
	w.log.InfoContext(r.Context, "webhook URL refused", "partner", r.Partner.ID, "reason", refusal.Reason, "request_id",
		r.Header.Get("X-Request-Id"))
	if refusal.Reason == guard.Unresolvable || refusal.Reason == guard.ForbiddenAddress {
		return invalidWebhookURL(guard.ForbiddenAddress,
			"its host must be a public address or a name that resolves only to public addresses")
	}
	return invalidWebhookURL(refusal.Reason, refusal.Error())
}

// parseWebhookBody parses {"url": "..."}. Unknown fields are ignored, and names are case-sensitive.
func parseWebhookBody(body []byte) (string, error) {
	fields, err := object(body, `The body must be a JSON object like {"url": "https://example.com/hook"}.`)
	if err != nil {
		return "", err
	}
	var url *string
	if raw, ok := fields["url"]; !ok || json.Unmarshal(raw, &url) != nil || url == nil || *url == "" {
		return "", serve.InvalidBody("The body must have a field url that is a string and not empty.")
	}
	return webhookURL(*url)
}

// webhookURL returns a URL as it was given, without spaces around it.
func webhookURL(given string) (string, error) {
	text, err := input.Text(given)
	switch {
	case err != nil:
		return "", invalidWebhookURL(guard.Syntax, "the URL "+err.Error())
	case text == "":
		return "", serve.InvalidBody("The body must have a field url that is a string and not empty.")
	case utf8.RuneCountInString(text) > maxURL:
		return "", invalidWebhookURL(guard.Syntax, "the URL is longer than 2048 characters")
	}
	return text, nil
}

func invalidWebhookURL(reason, why string) *serve.Failure {
	return &serve.Failure{Status: http.StatusBadRequest, Code: serve.CodeInvalidWebhookURL,
		Message: "The webhook URL is not accepted: " + why + ".",
		Details: struct {
			Reason string `json:"reason"`
		}{reason}}
}

type webhookJSON struct {
	WebhookURL    *string     `json:"webhookUrl"`
	UpdatedAt     string      `json:"updatedAt"`
	Parked        bool        `json:"parked"` // by an operator
	Breaker       breakerJSON `json:"breaker"`
	LastSuccessAt *string     `json:"lastSuccessAt"`
	LastFailureAt *string     `json:"lastFailureAt"`
	Rotation      bool        `json:"rotation"`
}

type breakerJSON struct {
	State     string  `json:"state"` // closed, open or half-open
	OpenUntil *string `json:"openUntil"`
}

// Registered returns the caller's URL, and whether deliveries to it succeed.
func (w *Webhooks) Registered(r *serve.Request) (*serve.Answer, error) {
	id := int64(r.Partner.ID)
	partner, err := w.db.GetPartner(r.Context, id)
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	success, err := w.db.LastSuccess(r.Context, id)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, serve.RegistryFailure(err)
	}
	failed, err := w.db.LastFailure(r.Context, id)
	never := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !never {
		return nil, serve.RegistryFailure(err)
	}
	out := webhookJSON{
		WebhookURL: partner.Url, UpdatedAt: serve.Millis(partner.UpdatedAt), Parked: partner.Held,
		Breaker: breakerJSON{State: "closed"}, LastSuccessAt: serve.MillisOrNull(success), Rotation: w.Rotation,
	}
	if !never {
		out.LastFailureAt = serve.MillisOrNull(&failed)
	}
	if partner.Url != nil {
		breaker, err := w.db.GetBreaker(r.Context, db.GetBreakerParams{PartnerID: id, Url: *partner.Url})
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return nil, serve.RegistryFailure(err)
		}
		if err == nil { // only breakers that are not closed have a row
			out.Breaker = breakerJSON{State: breaker.State, OpenUntil: serve.MillisOrNull(&breaker.OpenUntil)}
		}
	}
	return &serve.Answer{Data: out}, nil
}

// acceptedJSON contains the id of the event that will be sent.
type acceptedJSON struct {
	EventID uuid.UUID `json:"eventId"`
}

// Test makes dispatch send a test event.
func (w *Webhooks) Test(r *serve.Request) (*serve.Answer, error) {
	partner, err := w.db.GetPartner(r.Context, int64(r.Partner.ID))
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	if partner.Url == nil {
		return nil, serve.NotFound("There is no webhook URL yet. POST /api/v1/partner/webhooks registers one.")
	}
	return w.command(r, "test", uuid.New())
}

// Replay makes dispatch send an event of the caller again.
func (w *Webhooks) Replay(r *serve.Request) (*serve.Answer, error) {
	id, err := eventID(r)
	if err != nil {
		return nil, err
	}
	owner, err := w.db.DeliveryOwner(r.Context, id)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && owner != int64(r.Partner.ID) {
		return nil, serve.NotFound("There is no such delivery.")
	}
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	return w.command(r, "replay", id)
}

// command stores a command for dispatch, which polls for them.
func (w *Webhooks) command(r *serve.Request, kind string, event uuid.UUID) (*serve.Answer, error) {
	if err := registry.RequestDelivery(r.Context, w.pool, int64(r.Partner.ID), key(r), kind, event); err != nil {
		return nil, clientFailure(err)
	}
	return &serve.Answer{Status: http.StatusAccepted, Data: acceptedJSON{event}}, nil
}

type deliveryJSON struct {
	EventID       uuid.UUID     `json:"eventId"`
	Sequence      *int64        `json:"sequence"` // null for a test event, which is not in the stream
	Type          string        `json:"type"`
	State         string        `json:"state"`
	CreatedAt     string        `json:"createdAt" file:"time"`
	NextAttemptAt *string       `json:"nextAttemptAt" file:"time"` // while it is not finished
	FinishedAt    *string       `json:"finishedAt" file:"time"`
	CorrectedAt   *string       `json:"correctedAt,omitempty" file:"time"` // if its body was replaced
	Attempts      []attemptJSON `json:"attempts" file:"-"`
}

// attemptJSON is an attempt. Its URL and its error are untrusted: the partner chose the URL, and its server caused the
// error.
type attemptJSON struct {
	Number     int32   `json:"number"`
	URL        string  `json:"url" file:"foreign"`
	StartedAt  string  `json:"startedAt" file:"time"`
	DurationMs int32   `json:"durationMs"`
	Status     *int32  `json:"status"` // HTTP status; null without a response
	Error      *string `json:"error" file:"foreign"`
}

// Deliveries returns the caller's delivery log, newest first, with the last maxAttempts attempts of each event.
func (w *Webhooks) Deliveries(r *serve.Request) (*serve.Answer, error) {
	page, of := r.Params.Page(), selected(r)
	if err := r.Params.Err(); err != nil {
		return nil, err
	}
	if r.AsFile() {
		return w.deliveriesFile(r, page.Size, of)
	}
	count, err := w.count(r.Context, &of)
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	of.Limit, of.Offset = int32(page.Size), int32(page.Offset())
	rows, err := w.filtered.ListDeliveries(r.Context, of)
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	out, err := w.withAttempts(r.Context, rows)
	if err != nil {
		return nil, err
	}
	return r.List(out, page, count), nil
}

// withAttempts returns deliveries with the last maxAttempts attempts of each.
func (w *Webhooks) withAttempts(ctx context.Context, rows []db.ListDeliveriesRow) ([]deliveryJSON, error) {
	ids := make([]uuid.UUID, len(rows))
	for i, d := range rows {
		ids[i] = d.EventID
	}
	attempts, err := w.db.DeliveryAttempts(ctx, db.DeliveryAttemptsParams{EventIds: ids, OfEach: maxAttempts})
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	byEvent := make(map[uuid.UUID][]attemptJSON)
	for _, a := range attempts {
		byEvent[a.EventID] = append(byEvent[a.EventID], attemptJSON{
			Number: a.Number, URL: a.Url, StartedAt: serve.Millis(a.StartedAt), DurationMs: a.DurationMs, Status: a.Status,
			Error: a.Error,
		})
	}
	out := make([]deliveryJSON, 0, len(rows))
	for _, r := range rows {
		d := describeDelivery(r)
		d.Attempts = append([]attemptJSON{}, byEvent[r.EventID]...)
		out = append(out, d)
	}
	return out, nil
}

// describeDelivery returns a delivery without its attempts.
func describeDelivery(r db.ListDeliveriesRow) deliveryJSON {
	d := deliveryJSON{
		EventID: r.EventID, Type: r.Type, State: r.State, CreatedAt: serve.Millis(r.CreatedAt),
		FinishedAt: serve.MillisOrNull(r.FinishedAt), CorrectedAt: serve.MillisOrNull(r.CorrectedAt),
	}
	if r.Sequence > 0 {
		d.Sequence = &r.Sequence
	}
	if r.State == registry.Pending || r.State == registry.Parked {
		d.NextAttemptAt = serve.MillisOrNull(&r.DueAt)
	}
	return d
}

// Events is the pull stream: the exact bytes of the webhooks, in the order of the caller's sequence. meta.next is the
// after of the next call.
func (w *Webhooks) Events(r *serve.Request) (*serve.Answer, error) {
	after := r.Params.Integer("after", 0, 0, math.MaxInt64,
		"must be an integer of at least 0: the meta.next of an earlier response")
	limit := r.Params.Integer("limit", serve.DefaultPageSize, 1, serve.MaxPageSize, "must be an integer from 1 to 100")
	if err := r.Params.Err(); err != nil {
		return nil, err
	}
	rows, err := w.db.EventsAfter(r.Context,
		db.EventsAfterParams{PartnerID: int64(r.Partner.ID), Sequence: int64(after), Limit: int32(limit) + 1})
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	more := len(rows) > int(limit)
	rows = rows[:min(len(rows), int(limit))]
	next := int64(after)
	// Written by hand, because an encoder would change the stored bytes.
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
	return &serve.Answer{Raw: b.Bytes()}, nil
}
