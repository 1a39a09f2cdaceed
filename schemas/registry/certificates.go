package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry/db"
)

// MaxCertificates is the maximum number of URLs of one partner that have certificates: the current URL, the next one,
// and some that are no longer used.
const MaxCertificates = 4

// NoURLError reports that a partner has no URL that certificates could belong to.
type NoURLError struct{ Partner int64 }

func (e *NoURLError) Error() string {
	return fmt.Sprintf("partner %d has no webhook URL: name the URL that the certificates are for (--url)", e.Partner)
}

// TooManyURLsError reports that as many URLs of a partner have certificates as are allowed.
type TooManyURLsError struct{ Partner, URLs int64 }

func (e *TooManyURLsError) Error() string {
	return fmt.Sprintf("partner %d has certificates for %d URLs, and more are not allowed: remove those of "+
		"an older URL with `navlog partner certificates remove`", e.Partner, e.URLs)
}

// NoCertificatesError reports that a partner has none of the certificates that it removes.
type NoCertificatesError struct{ Partner int64 }

func (e *NoCertificatesError) Error() string {
	return fmt.Sprintf("partner %d has no such certificates for this URL: `navlog partner certificates show %d` lists all",
		e.Partner, e.Partner)
}

// URLCertificates are the certificates of a partner for one URL, without the key.
type URLCertificates struct {
	URL     string
	Current bool // it is the partner's URL, so dispatch uses them
	certs.Pinned
	ChangedAt time.Time
}

// SetCertificates stores certificates of a partner for a URL; an empty url is the current one. Authorities and client
// certificate replace those stored before, and what is not given stays. It returns the URL. Every certificate must be
// valid now, otherwise the error is a *certs.DateError. dispatch uses them within a second.
func SetCertificates(
	ctx context.Context, pool *pgxpool.Pool, by Author, sealer *Sealer, id int64, url string, given certs.Pinned,
) (string, error) {
	if err := certs.Current(append(given.ClientChain(), given.Authorities...), time.Now()); err != nil {
		return "", err
	}
	err := changePartner(ctx, pool, by, id, func(q *db.Queries, p db.LockPartnerRow) (Action, error) {
		var err error
		if url, err = urlOf(id, url, p.Url); err != nil {
			return Action{}, err
		}
		_, known, err := storedCertificates(ctx, q, id, url)
		if err != nil {
			return Action{}, err
		}
		if !known {
			n, err := q.CountCertificates(ctx, id)
			if err != nil {
				return Action{}, fmt.Errorf("count the certificates of partner %d: %w", id, err)
			}
			if n >= MaxCertificates {
				return Action{}, &TooManyURLsError{id, n}
			}
		}
		row, changed, err := sealed(given, sealer, id, url)
		if err != nil {
			return Action{}, err
		}
		return Action{"partner certificates set", id, changed}, store(ctx, q, row, known)
	})
	return url, err
}

// sealed returns the given certificates as a row, with the key encrypted, and describes the change for the audit.
func sealed(given certs.Pinned, sealer *Sealer, id int64, url string) (
	row db.InsertCertificatesParams, changed string, err error,
) {
	row = db.InsertCertificatesParams{PartnerID: id, Url: url, ClientKey: []byte{}}
	texts, err := given.Texts()
	if err != nil {
		return row, "", fmt.Errorf("encode the certificates of partner %d: %w", id, err)
	}
	described := []string{}
	if texts.Authorities != "" {
		expiry := certs.Expiry(given.Authorities)
		row.Authorities, row.AuthoritiesExpire = texts.Authorities, &expiry
		described = append(described,
			fmt.Sprintf("%s until %s", printable.Count(len(given.Authorities), "authority", "authorities"),
				expiry.UTC().Format(time.RFC3339)))
	}
	if chain := given.ClientChain(); len(chain) > 0 {
		expiry := certs.Expiry(chain)
		row.Client, row.ClientKey = texts.Client, sealer.SealClientKey(id, url, texts.Key)
		row.ClientExpires, row.ClientFingerprint = &expiry, certs.Fingerprint(chain[0])
		until := expiry.UTC().Format(time.RFC3339)
		described = append(described, fmt.Sprintf("client certificate %x until %s", row.ClientFingerprint, until))
	}
	return row, strings.Join(described, ", "), nil
}

// store inserts the row of a URL, or replaces those parts of the known row that are given, and gives the row another
// id.
func store(ctx context.Context, q *db.Queries, row db.InsertCertificatesParams, known bool) error {
	var err error
	if !known {
		err = q.InsertCertificates(ctx, row)
	}
	if known && row.Authorities != "" {
		err = replaceAuthorities(ctx, q, row)
	}
	if known && row.Client != "" && err == nil {
		err = replaceClient(ctx, q, row)
	}
	return endpointChanged(ctx, q, row.PartnerID, row.Url, err)
}

func replaceAuthorities(ctx context.Context, q *db.Queries, row db.InsertCertificatesParams) error {
	return q.ReplaceAuthorities(ctx, db.ReplaceAuthoritiesParams{
		PartnerID: row.PartnerID, Url: row.Url, Authorities: row.Authorities, AuthoritiesExpire: row.AuthoritiesExpire,
	})
}

func replaceClient(ctx context.Context, q *db.Queries, row db.InsertCertificatesParams) error {
	return q.ReplaceClient(ctx, db.ReplaceClientParams{
		PartnerID: row.PartnerID, Url: row.Url, Client: row.Client, ClientKey: row.ClientKey,
		ClientExpires: row.ClientExpires, ClientFingerprint: row.ClientFingerprint,
	})
}

// endpointChanged gives the endpoint another version after the certificates of a URL were written without an error.
func endpointChanged(ctx context.Context, q *db.Queries, id int64, url string, err error) error {
	if err == nil {
		err = q.CertificatesChanged(ctx, db.CertificatesChangedParams{PartnerID: id, Url: url})
	}
	if err != nil {
		return fmt.Errorf("write the certificates of partner %d: %w", id, err)
	}
	return nil
}

// RemoveCertificates removes the authorities, the client certificate, or both, of a partner for a URL; an empty url is
// the current one. It returns the URL.
func RemoveCertificates(
	ctx context.Context, pool *pgxpool.Pool, by Author, id int64, url string, authorities, client bool,
) (string, error) {
	err := changePartner(ctx, pool, by, id, func(q *db.Queries, p db.LockPartnerRow) (Action, error) {
		var err error
		if url, err = urlOf(id, url, p.Url); err != nil {
			return Action{}, err
		}
		stored, known, err := storedCertificates(ctx, q, id, url)
		if err != nil {
			return Action{}, err
		}
		authorities, client := authorities && stored.HasAuthorities, client && stored.HasClient
		if !known || !authorities && !client {
			return Action{}, &NoCertificatesError{id}
		}
		var removed []string
		if authorities {
			removed = append(removed, "authorities")
		}
		if client {
			removed = append(removed, fmt.Sprintf("client certificate %x", stored.ClientFingerprint))
		}
		none := db.InsertCertificatesParams{PartnerID: id, Url: url, ClientKey: []byte{}}
		switch {
		case authorities == stored.HasAuthorities && client == stored.HasClient:
			err = q.DeleteCertificates(ctx, db.DeleteCertificatesParams{PartnerID: id, Url: url})
		case authorities:
			err = replaceAuthorities(ctx, q, none)
		default:
			err = replaceClient(ctx, q, none)
		}
		return Action{"partner certificates remove", id, strings.Join(removed, ", ")}, endpointChanged(ctx, q, id, url, err)
	})
	return url, err
}

// ListCertificates returns all certificates of a partner, those of its current URL first.
func ListCertificates(ctx context.Context, pool *pgxpool.Pool, id int64) ([]URLCertificates, error) {
	rows, err := db.New(pool).ListCertificates(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the certificates of partner %d: %w", id, err)
	}
	found := make([]URLCertificates, len(rows))
	for i, r := range rows {
		found[i] = URLCertificates{URL: r.Url, Current: r.Current, ChangedAt: r.ChangedAt}
		if found[i].Pinned, err = certs.ParsePublic(r.Authorities, r.Client); err != nil {
			return nil, fmt.Errorf("read the certificates of partner %d: %w", id, err)
		}
	}
	return found, nil
}

// OpenCertificates parses the certificates of an endpoint, with the key of its client certificate.
func (s *Sealer) OpenCertificates(r db.EndpointsRow) (certs.Pinned, error) {
	texts := certs.Texts{Authorities: r.Authorities, Client: r.Client}
	if r.Client != "" {
		key, err := s.openClientKey(r.PartnerID, r.Url, r.ClientKey)
		if err != nil {
			return certs.Pinned{}, err
		}
		texts.Key = key
	}
	p, err := texts.Parse()
	if err != nil {
		return certs.Pinned{}, fmt.Errorf("the stored certificates of partner %d: %w", r.PartnerID, err)
	}
	return p, nil
}

// urlOf returns the URL that a command is about: the given one or, if that is empty, the current one.
func urlOf(id int64, given string, current *string) (string, error) {
	switch {
	case given != "":
		return given, nil
	case current == nil:
		return "", &NoURLError{id}
	}
	return *current, nil
}

// storedCertificates returns what is stored for a URL, and whether anything is.
func storedCertificates(ctx context.Context, q *db.Queries, id int64, url string) (
	stored db.StoredCertificatesRow, known bool, err error,
) {
	stored, err = q.StoredCertificates(ctx, db.StoredCertificatesParams{PartnerID: id, Url: url})
	if errors.Is(err, pgx.ErrNoRows) {
		return stored, false, nil
	}
	if err != nil {
		return stored, false, fmt.Errorf("read the certificates of partner %d: %w", id, err)
	}
	return stored, true, nil
}

// setClientAgain adds to the error of a client key that no key opens what to do about it.
func setClientAgain(err error, partnerID int64) error {
	return fmt.Errorf("%w: give that key too, or set the client certificate again with "+
		"`navlog partner certificates set %d`", err, partnerID)
}

// resealClientKeys seals all keys of client certificates with the newest key, and returns how many were sealed with
// another one. LockSecrets comes first: its lock keeps changes away.
func resealClientKeys(ctx context.Context, q *db.Queries, sealer *Sealer) (int, error) {
	rows, err := q.SealedClientKeys(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the sealed keys of client certificates: %w", err)
	}
	resealed := 0
	for _, r := range rows {
		if sealer.Newest(r.ClientKey) {
			continue
		}
		key, err := sealer.openClientKey(r.PartnerID, r.Url, r.ClientKey)
		if err != nil {
			return 0, setClientAgain(err, r.PartnerID)
		}
		p := db.ReplaceClientKeyParams{ID: r.ID, ClientKey: sealer.SealClientKey(r.PartnerID, r.Url, key)}
		if err := q.ReplaceClientKey(ctx, p); err != nil {
			return 0, fmt.Errorf("seal the client key of partner %d again: %w", r.PartnerID, err)
		}
		resealed++
	}
	return resealed, nil
}
