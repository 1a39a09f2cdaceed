package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Operators change partners, their keys, secrets and certificates. Each change is one transaction
// that also adds a row to the audit.

// NewPartner holds the key and the secret of a partner. They can be read only now.
type NewPartner struct {
	ID            int64  `json:"id"`
	Name          string `json:"name"`
	APIKey        string `json:"apiKey,omitempty"`
	SigningSecret string `json:"signingSecret,omitempty"`
	// Revoked has the last four characters of each key that RotateKey revoked.
	Revoked []string `json:"revoked,omitempty"`
	// TakesOverAt is when the secret of RotateSecret replaces the old one.
	TakesOverAt *time.Time `json:"takesOverAt,omitempty"`
}

// ProvenSealer returns a sealer, provided that one of its keys sealed the secrets in the
// registry, since dispatch could otherwise open either the old secrets or the new one. It
// also rejects a newest key that a running dispatcher does not have. If nothing is sealed
// yet, any key that the running dispatchers have is accepted.
func ProvenSealer(ctx context.Context, pool *pgxpool.Pool, key string) (*Sealer, error) {
	sealer, err := NewSealer(key)
	if err != nil {
		return nil, err
	}
	q := db.New(pool)
	known, err := q.AnyEndpoint(ctx)
	none := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !none {
		return nil, fmt.Errorf("read a signing secret to check NAVLOG_SECRET_KEY: %w", err)
	}
	if !none {
		if _, err := sealer.Open(known.PartnerID, known.Secret); err != nil {
			return nil, fmt.Errorf("%w: give the key that dispatch has; if it is lost, give every partner a new secret "+
				"with `navlog partner rotate-secret ID --lost-key`", err)
		}
	}
	newest := sealer.KeyIDs()[0]
	without, err := q.DispatchersWithoutKey(ctx, newest)
	if err != nil {
		return nil, fmt.Errorf("read the keys of the running dispatchers: %w", err)
	}
	if without > 0 {
		return nil, fmt.Errorf("%s could not open what is sealed with the newest key of "+
			"NAVLOG_SECRET_KEY, whose id is %s: start them again with the same NAVLOG_SECRET_KEY as here, and run this "+
			"command again", printable.Count(without, "running dispatcher"), newest)
	}
	return sealer, nil
}

// Unopened returns an error for each signing secret and each client key in the registry that no key of the sealer
// opens, with what to do about it; nil if there is none. Dispatch sends nothing to such a partner. The client keys are
// left out if this login may not read them.
func Unopened(ctx context.Context, pool *pgxpool.Pool, sealer *Sealer) error {
	q := db.New(pool)
	rows, err := q.SealedSecrets(ctx)
	if err != nil {
		return fmt.Errorf("read the sealed secrets: %w", err)
	}
	var faults []error
	for _, r := range rows {
		for _, sealed := range [][]byte{r.Secret, r.NextSecret} {
			if len(sealed) == 0 {
				continue
			}
			if _, err := sealer.Open(r.PartnerID, sealed); err != nil {
				faults = append(faults, fmt.Errorf("%w: give that key too, or if it is lost, a new secret with "+
					"`navlog partner rotate-secret %d --lost-key`", err, r.PartnerID))
				break
			}
		}
	}
	keys, err := q.SealedClientKeys(ctx)
	if refusal, is := errors.AsType[*pgconn.PgError](err); err != nil && (!is || refusal.Code != "42501") {
		return fmt.Errorf("read the sealed keys of client certificates: %w", err)
	}
	for _, r := range keys {
		if _, err := sealer.openClientKey(r.PartnerID, r.Url, r.ClientKey); err != nil {
			faults = append(faults, setClientAgain(err, r.PartnerID))
		}
	}
	return errors.Join(faults...)
}

// maxName is the maximum length of a partner's name in bytes.
const maxName = 1000

// CheckName reports what is wrong with a partner's name.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty: choose one")
	case printable.Text(name, maxName) != name:
		return fmt.Errorf(
			"the name %.40q has unprintable characters or more than %d bytes: choose another name", name, maxName,
		)
	}
	return nil
}

// CreatePartner creates a partner with endpoint, key and secret. An id of 0 takes the next
// free id.
func CreatePartner(
	ctx context.Context, pool *pgxpool.Pool, operator string, sealer *Sealer, id int64, name string, testKey bool,
) (NewPartner, error) {
	if err := CheckName(name); err != nil {
		return NewPartner{}, err
	}
	created := NewPartner{ID: id, Name: name, APIKey: NewAPIKey(testKey), SigningSecret: NewSigningSecret()}
	err := Change(ctx, pool, operator, func(q *db.Queries) (_ Action, err error) {
		if id == 0 {
			created.ID, err = q.CreatePartner(ctx, name)
		} else {
			_, err = q.CreatePartnerWithID(ctx, db.CreatePartnerWithIDParams{ID: id, Name: name})
		}
		if err != nil {
			return Action{}, err
		}
		if err := q.CreateEndpoint(
			ctx, db.CreateEndpointParams{PartnerID: created.ID, Secret: sealer.Seal(created.ID, created.SigningSecret)},
		); err != nil {
			return Action{}, err
		}
		return Action{"partner create", created.ID, fmt.Sprintf("%q, key ...%s", name, last4(created.APIKey))}, addKey(
			ctx, q, created.ID, created.APIKey,
		)
	})
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && pgErr.Code == "23505" && id == 0:
		return NewPartner{}, fmt.Errorf(
			"create partner %q: another command created a partner at the same time and took the next free id: run it again",
			name,
		)
	case errors.As(err, &pgErr) && pgErr.Code == "23505":
		return NewPartner{}, fmt.Errorf("partner %d exists already: choose another --id or leave it out; if the command "+
			"that created it was interrupted, `navlog partner rotate-key %d` and `rotate-secret %d` issue its key and secret "+
			"again", id, id, id)
	case errors.As(err, &pgErr) && pgErr.Code == checkViolation && pgErr.TableName == "partner" && id == 0:
		return NewPartner{}, fmt.Errorf("create partner %q: no id is left after the largest one: choose a free --id", name)
	case err != nil:
		return NewPartner{}, fmt.Errorf("create partner %q: %w", name, err)
	}
	return created, nil
}

func addKey(ctx context.Context, q *db.Queries, partnerID int64, key string) error {
	return q.CreateKey(ctx, db.CreateKeyParams{PartnerID: partnerID, Hash: HashKey(key), Last4: last4(key)})
}

// last4 returns the last four characters of a key, which identify it to people.
func last4(key string) string { return key[len(key)-4:] }

// checkViolation is PostgreSQL's error code for a value that a table does not allow, such as a partner id of 2^32.
const checkViolation = "23514"

// NoPartnerError is the error for an unknown partner id.
type NoPartnerError struct{ ID int64 }

func (e *NoPartnerError) Error() string {
	return fmt.Sprintf("there is no partner %d: `navlog partner list` shows all partners", e.ID)
}

// NoPartner returns the error for an unknown partner id.
func NoPartner(id int64) error { return &NoPartnerError{id} }

// maxLiveKeys lets a partner change its key without a gap.
const maxLiveKeys = 2

// RegisterURL sets the webhook URL of a partner for a client with one of its keys, or returns ErrKeyRevoked or
// ErrDisabled.
func RegisterURL(ctx context.Context, pool *pgxpool.Pool, id int64, key, url string) error {
	return asClient(ctx, pool, id, key, func(q *db.Queries) error {
		_, err := q.SetWebhookURL(ctx, db.SetWebhookURLParams{PartnerID: id, Url: &url})
		return err
	})
}

// RequestDelivery leaves a command for dispatch to send a test event or to replay an event, for a client with one of
// the partner's keys, or returns ErrKeyRevoked or ErrDisabled.
func RequestDelivery(ctx context.Context, pool *pgxpool.Pool, id int64, key, kind string, event uuid.UUID) error {
	return asClient(ctx, pool, id, key, func(q *db.Queries) error {
		_, err := q.CreateCommand(ctx, db.CreateCommandParams{PartnerID: id, Kind: kind, EventID: &event})
		return err
	})
}

// asClient runs a change that is not in the audit, for a client with a key of the partner.
func asClient(ctx context.Context, pool *pgxpool.Pool, id int64, key string, do func(*db.Queries) error) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		if _, err := lockFor(ctx, q, Author{Key: key}, id); err != nil {
			return err
		}
		return do(q)
	})
}

// RotateKey issues a key and revokes the oldest keys, so that at most two are live.
func RotateKey(ctx context.Context, pool *pgxpool.Pool, by Author, id int64, testKey bool) (NewPartner, error) {
	issued := NewPartner{ID: id, APIKey: NewAPIKey(testKey)}
	err := changePartner(ctx, pool, by, id, func(q *db.Queries, p db.LockPartnerRow) (Action, error) {
		d := Action{"partner rotate-key", id, "issued ..." + last4(issued.APIKey)}
		issued.Name = p.Name
		live, err := q.ListLiveKeys(ctx, id)
		if err != nil {
			return d, err
		}
		for ; len(live) >= maxLiveKeys; live = live[1:] {
			if err := q.RevokeKey(ctx, live[0].ID); err != nil {
				return d, err
			}
			d.Detail += ", revoked ..." + live[0].Last4
			issued.Revoked = append(issued.Revoked, live[0].Last4)
		}
		return d, addKey(ctx, q, id, issued.APIKey)
	})
	if err != nil {
		return NewPartner{}, fmt.Errorf("issue a key to partner %d: %w", id, err)
	}
	return issued, nil
}

// RevokeKeys revokes the live keys of a partner that end with last4, or all of them if last4
// is empty, and returns the last four characters of each.
func RevokeKeys(ctx context.Context, pool *pgxpool.Pool, operator string, id int64, last4 string) (
	revoked []string, err error,
) {
	by := Author{Name: operator}
	err = changePartner(ctx, pool, by, id, func(q *db.Queries, _ db.LockPartnerRow) (_ Action, err error) {
		if revoked, err = q.RevokeKeys(ctx, db.RevokeKeysParams{PartnerID: id, Last4: last4}); err != nil {
			return Action{}, fmt.Errorf("revoke keys of partner %d: %w", id, err)
		}
		if len(revoked) == 0 && last4 != "" {
			return Action{}, fmt.Errorf(
				"partner %d has no live key that ends with %q: `navlog partner show %d` lists the live keys", id, last4, id,
			)
		}
		return Action{"partner revoke-key", id, "revoked " + KeyNames(revoked)}, nil
	})
	return revoked, err
}

// KeyNames identifies keys by their last four characters.
func KeyNames(ends []string) string {
	if len(ends) == 0 {
		return "no key, because none was live"
	}
	return "..." + strings.Join(ends, ", ...")
}

// Resealed is the result of Reseal.
type Resealed struct {
	KeyID    string `json:"keyId"`    // of the key that now seals all secrets
	Partners int    `json:"partners"` // all partners
	Secrets  int    `json:"resealed"` // secrets and client keys that were sealed with another key
}

// Reseal seals all secrets and the keys of client certificates with the newest key. It calls progress before each
// partner.
func Reseal(ctx context.Context, pool *pgxpool.Pool, operator string, sealer *Sealer, progress func(done, of uint64)) (
	Resealed, error,
) {
	done := Resealed{KeyID: sealer.KeyIDs()[0]}
	err := Change(ctx, pool, operator, func(q *db.Queries) (Action, error) {
		rows, err := q.LockSecrets(ctx)
		if err != nil {
			return Action{}, fmt.Errorf("read the sealed secrets: %w", err)
		}
		done.Partners = len(rows)
		for i, r := range rows {
			progress(uint64(i), uint64(len(rows)))
			n, err := reseal(ctx, q, sealer, r)
			if err != nil {
				return Action{}, err
			}
			done.Secrets += n
		}
		n, err := resealClientKeys(ctx, q, sealer)
		if err != nil {
			return Action{}, err
		}
		done.Secrets += n
		return Action{"partner reseal", 0, fmt.Sprintf(
			"%s of %s resealed with key %s", printable.Count(done.Secrets, "secret"), printable.Count(done.Partners, "partner"),
			done.KeyID,
		)}, nil
	})
	return done, err
}

// reseal seals a partner's secrets with the newest key, and returns how many were sealed
// with another one.
func reseal(ctx context.Context, q *db.Queries, sealer *Sealer, row db.LockSecretsRow) (int, error) {
	resealed := 0
	again := func(sealed []byte) ([]byte, error) {
		if len(sealed) == 0 || sealer.Newest(sealed) {
			return sealed, nil
		}
		secret, err := sealer.Open(row.PartnerID, sealed)
		if err != nil {
			return nil, err
		}
		resealed++
		return sealer.Seal(row.PartnerID, secret), nil
	}
	secret, err := again(row.Secret)
	if err != nil {
		return 0, err
	}
	next, err := again(row.NextSecret)
	if err != nil || resealed == 0 {
		return 0, err
	}
	if err := q.ReplaceSealed(
		ctx, db.ReplaceSealedParams{PartnerID: row.PartnerID, Secret: secret, NextSecret: next},
	); err != nil {
		return 0, fmt.Errorf("seal the secret of partner %d again: %w", row.PartnerID, err)
	}
	return resealed, nil
}

// The overlap of a rotation: the default, and the maximum.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 720 * time.Hour
)

// RotatingError reports that a rotation of a partner's secret is under way.
type RotatingError struct {
	Partner int64
	Until   time.Time
}

func (e *RotatingError) Error() string {
	return fmt.Sprintf("a rotation of the secret of partner %d ends at %s: run the command again then, or replace "+
		"both secrets at once with --overlap 0s", e.Partner, e.Until.UTC().Format(time.RFC3339))
}

// RotateSecret gives a partner a new signing secret. During the overlap the old secret
// signs as well; 0 replaces it at once. While an earlier rotation is under way, only an
// overlap of 0 is accepted; any other one is a *RotatingError.
func RotateSecret(
	ctx context.Context, pool *pgxpool.Pool, by Author, sealer *Sealer, id int64, overlap time.Duration,
) (NewPartner, error) {
	rotated := NewPartner{ID: id, SigningSecret: NewSigningSecret()}
	sealed := sealer.Seal(id, rotated.SigningSecret)
	err := changePartner(ctx, pool, by, id, func(q *db.Queries, p db.LockPartnerRow) (_ Action, err error) {
		d, replaced := Action{"partner rotate-secret", id, "at once"}, int64(0)
		rotated.Name = p.Name
		if overlap > 0 {
			d.Detail = "with an overlap of " + overlap.String()
			replaced, err = q.RotateSecret(
				ctx, db.RotateSecretParams{PartnerID: id, NextSecret: sealed, OverlapSeconds: int64(overlap.Seconds())},
			)
		} else {
			replaced, err = q.SetSecret(ctx, db.SetSecretParams{PartnerID: id, Secret: sealed})
		}
		if err == nil && replaced == 0 {
			return d, rotating(ctx, q, id)
		}
		if err != nil {
			return d, fmt.Errorf("replace the secret of partner %d: %w", id, err)
		}
		end, err := endOfRotation(ctx, q, id)
		rotated.TakesOverAt = &end
		return d, err
	})
	if err != nil {
		return NewPartner{}, err
	}
	return rotated, nil
}

// rotating returns the error for a rotation during another one, with the time at which that one ends.
func rotating(ctx context.Context, q *db.Queries, id int64) error {
	end, err := endOfRotation(ctx, q, id)
	if err != nil {
		return err
	}
	return &RotatingError{Partner: id, Until: end}
}

func endOfRotation(ctx context.Context, q *db.Queries, id int64) (time.Time, error) {
	end, err := q.EndOfRotation(ctx, id)
	if err != nil {
		return time.Time{}, fmt.Errorf("read when the rotation of partner %d ends: %w", id, err)
	}
	return end, nil
}
