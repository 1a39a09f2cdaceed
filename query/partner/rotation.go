package partner

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry"
)

// IfAllowed is a handler that replaces a partner's signing secret, API keys or certificates at the request of the
// partner, if the operator allows it. That is off by default: a thief of a key could lock its owner out.
func (w *Webhooks) IfAllowed(h serve.Handler) serve.Handler {
	if w.Rotation {
		return h
	}
	return func(*serve.Request) (*serve.Answer, error) {
		return nil, serve.NotFound("Secrets, keys and certificates cannot be changed here: ask the operator of this navlog.")
	}
}

type rotatedSecretJSON struct {
	SigningSecret string `json:"signingSecret"`
	TakesOverAt   string `json:"takesOverAt"`
}

// RotateSecret gives the caller a new signing secret. The old one signs until the end of the overlap.
func (w *Webhooks) RotateSecret(r *serve.Request) (*serve.Answer, error) {
	overlap, err := readOverlap(r)
	if err != nil {
		return nil, err
	}
	sealer, err := registry.ProvenSealer(r.Context, w.pool, w.SecretKey)
	if err != nil {
		return nil, changeFailure(err, unknownSecret)
	}
	rotated, err := registry.RotateSecret(r.Context, w.pool, author(r), sealer, int64(r.Partner.ID), overlap)
	var rotating *registry.RotatingError
	switch {
	case errors.As(err, &rotating):
		return nil, underWay(rotating.Until)
	case err != nil:
		return nil, changeFailure(err, unknownSecret)
	}
	return neverKept(r, rotatedSecretJSON{rotated.SigningSecret, serve.Millis(*rotated.TakesOverAt)}), nil
}

type rotatedKeyJSON struct {
	APIKey  string   `json:"apiKey"`
	Revoked []string `json:"revoked"`
}

// RotateKey gives the caller a new API key, of the same kind as the one that the request has, and revokes its oldest
// key if two were live.
func (w *Webhooks) RotateKey(r *serve.Request) (*serve.Answer, error) {
	issued, err := registry.RotateKey(r.Context, w.pool, author(r), int64(r.Partner.ID), registry.IsTestKey(key(r)))
	if err != nil {
		return nil, changeFailure(err, unknownKey)
	}
	return neverKept(r, rotatedKeyJSON{issued.APIKey, append([]string{}, issued.Revoked...)}), nil
}

// author is the caller. navlog_rotation may write no other name into the audit.
func author(r *serve.Request) registry.Author {
	return registry.Author{Name: fmt.Sprintf("partner %d", r.Partner.ID), Key: key(r)}
}

// neverKept returns an answer with a secret, which no cache on the way may keep.
func neverKept(r *serve.Request, data any) *serve.Answer {
	r.Header.Set("Cache-Control", "no-store")
	return &serve.Answer{Data: data}
}

const overlapRange = "The body must be a JSON object; its field overlapSeconds is an integer from 0 to 2592000, or " +
	"absent."

// readOverlap reads {"overlapSeconds": n}. The body may be absent, and unknown fields are ignored.
func readOverlap(r *serve.Request) (time.Duration, error) {
	body, err := optionalBody(r)
	if err != nil {
		return 0, err
	}
	fields, err := object(body, overlapRange)
	if err != nil {
		return 0, err
	}
	raw, given := fields["overlapSeconds"]
	if !given {
		return registry.DefaultOverlap, nil
	}
	var seconds *int64
	const most = int64(registry.MaxOverlap / time.Second)
	if json.Unmarshal(raw, &seconds) != nil || seconds == nil || *seconds < 0 || *seconds > most {
		return 0, serve.InvalidBody(overlapRange)
	}
	return time.Duration(*seconds) * time.Second, nil
}

func underWay(until time.Time) *serve.Failure {
	end := serve.Millis(until)
	return &serve.Failure{
		Status: http.StatusConflict, Code: serve.CodeInvalidBody,
		Message: "A rotation of the secret is under way and ends at " + end +
			": rotate again after that, or send overlapSeconds 0, which replaces both secrets at once.",
		Details: struct {
			EndsAt string `json:"endsAt"`
		}{end},
	}
}

// What a partner does about a change if it is not known whether it happened.
const (
	unknownSecret = "rotate again with overlapSeconds 0, which replaces both secrets at once."
	unknownKey    = "if there is another key, it is lost, and the next rotation would revoke a key that you use. " +
		"Ask the operator of this navlog to revoke it."
	unknownCertificates = "GET /api/v1/partner/webhooks/certificates shows which there are."
)

// changeFailure is what an error of the registry means to the partner. unknown is what to do if it is not known whether
// the change happened. The log contains what the operator has to do.
func changeFailure(err error, unknown string) *serve.Failure {
	if f := notAdmitted(err); f != nil {
		return f
	}
	var outcome *registry.UnknownOutcomeError
	if errors.As(err, &outcome) { // no Retry-After: the same request again may do harm
		return &serve.Failure{
			Status: http.StatusServiceUnavailable, Code: serve.CodeUnavailable,
			Message: "It is not known whether this was changed: " + unknown, Cause: err,
		}
	}
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == "42501" {
		err = fmt.Errorf("http.partnerRotation is true, but the login of serve may not make this change: "+
			"grant it navlog_rotation and run `navlog migrate --roles`, or set http.partnerRotation to false: %w", err)
	}
	return serve.Unavailable("Nothing was changed: the partner registry does not allow it at the moment.", err)
}
