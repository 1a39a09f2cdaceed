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
	"github.com/navlog/navlog/schemas/registry/db"
)

// MaxCertificates is the maximum number of URLs of one partner that have certificates: the current URL, the next one,
// and some that were forgotten.
const MaxCertificates = 4

// NoURLError reports that a partner has no URL that certificates could belong to.
type NoURLError struct{ Partner int64 }

func (e *NoURLError) Error() string {
	return fmt.Sprintf("partner %d has no webhook URL: name the URL that the certificates are for (--url)", e.Partner)
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
// valid now. dispatch uses them within a second.
func SetCertificates(
	ctx context.Context, pool *pgxpool.Pool, operator string, sealer *Sealer, id int64, url string, given certs.Pinned,
) (string, error) {
	if err := certs.Current(append(given.ClientChain(), given.Authorities...), time.Now()); err != nil {
		return "", err
	}
	err := Change(ctx, pool, operator, func(q *db.Queries) (Deed, error) {
		var err error
		if url, err = urlOf(ctx, q, id, url); err != nil {
			return Deed{}, err
		}
		row, known, err := certificatesOf(ctx, q, id, url)
		if err != nil {
			return Deed{}, err
		}
		if !known {
			n, err := q.CountCertificates(ctx, id)
			if err != nil {
				return Deed{}, fmt.Errorf("count the certificates of partner %d: %w", id, err)
			}
			if n >= MaxCertificates {
				return Deed{}, fmt.Errorf("partner %d has certificates for %d URLs, and more are not allowed: remove those of "+
					"an older URL with `navlog partner certificates remove`", id, n)
			}
		}
		set, changed, err := replaced(row, given, sealer, id, url)
		if err != nil {
			return Deed{}, err
		}
		return Deed{"partner certificates set", id, changed}, store(ctx, q, set)
	})
	return url, err
}

// replaced returns the row of a URL with the given certificates in it, and what changed in words for the audit.
func replaced(row db.InsertCertificatesParams, given certs.Pinned, sealer *Sealer, id int64, url string) (
	set db.InsertCertificatesParams, changed string, err error,
) {
	texts, err := given.Texts()
	if err != nil {
		return row, "", fmt.Errorf("encode the certificates of partner %d: %w", id, err)
	}
	set, said := row, []string{}
	if texts.Authorities != "" {
		expiry := certs.Expiry(given.Authorities)
		set.Authorities, set.AuthoritiesExpire = texts.Authorities, &expiry
		said = append(said, fmt.Sprintf("%d authorities until %s", len(given.Authorities), expiry.UTC().Format(time.RFC3339)))
	}
	if chain := given.ClientChain(); len(chain) > 0 {
		expiry := certs.Expiry(chain)
		set.Client, set.ClientKey = texts.Client, sealer.SealClientKey(id, url, texts.Key)
		set.ClientExpires, set.ClientFingerprint = &expiry, certs.Fingerprint(chain[0])
		until := expiry.UTC().Format(time.RFC3339)
		said = append(said, fmt.Sprintf("client certificate %x until %s", set.ClientFingerprint, until))
	}
	return set, strings.Join(said, ", "), nil
}

// RemoveCertificates removes the authorities, the client certificate, or both, of a partner for a URL; an empty url is
// the current one. It returns the URL.
func RemoveCertificates(
	ctx context.Context, pool *pgxpool.Pool, operator string, id int64, url string, authorities, client bool,
) (string, error) {
	err := Change(ctx, pool, operator, func(q *db.Queries) (Deed, error) {
		var err error
		if url, err = urlOf(ctx, q, id, url); err != nil {
			return Deed{}, err
		}
		row, known, err := certificatesOf(ctx, q, id, url)
		if err != nil {
			return Deed{}, err
		}
		var removed []string
		if authorities && row.Authorities != "" {
			row.Authorities, row.AuthoritiesExpire = "", nil
			removed = append(removed, "authorities")
		}
		if client && row.Client != "" {
			removed = append(removed, fmt.Sprintf("client certificate %x", row.ClientFingerprint))
			row.Client, row.ClientKey, row.ClientExpires, row.ClientFingerprint = "", []byte{}, nil, nil
		}
		if !known || len(removed) == 0 {
			return Deed{}, fmt.Errorf("partner %d has no such certificates for this URL: `navlog partner certificates show %d` "+
				"lists all", id, id)
		}
		return Deed{"partner certificates remove", id, strings.Join(removed, ", ")}, store(ctx, q, row)
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

// OpenCertificates parses a stored row, with the key of its client certificate.
func (s *Sealer) OpenCertificates(r db.CertificatesByIDRow) (certs.Pinned, error) {
	texts := certs.Texts{Authorities: r.Authorities, Client: r.Client}
	if r.Client != "" {
		key, err := s.OpenClientKey(r.PartnerID, r.Url, r.ClientKey)
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

// urlOf locks the endpoint of a partner and returns the URL that a command is about.
func urlOf(ctx context.Context, q *db.Queries, id int64, url string) (string, error) {
	current, err := q.LockEndpoint(ctx, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", NoPartner(id)
	case err != nil:
		return "", fmt.Errorf("read the URL of partner %d: %w", id, err)
	case url != "":
		return url, nil
	case current == nil:
		return "", &NoURLError{id}
	}
	return *current, nil
}

// certificatesOf returns the stored row of a URL, or an empty one.
func certificatesOf(ctx context.Context, q *db.Queries, id int64, url string) (
	row db.InsertCertificatesParams, known bool, err error,
) {
	r, err := q.GetCertificates(ctx, db.GetCertificatesParams{PartnerID: id, Url: url})
	if errors.Is(err, pgx.ErrNoRows) {
		return db.InsertCertificatesParams{PartnerID: id, Url: url, ClientKey: []byte{}}, false, nil
	}
	if err != nil {
		return db.InsertCertificatesParams{}, false, fmt.Errorf("read the certificates of partner %d: %w", id, err)
	}
	return db.InsertCertificatesParams{
		PartnerID: id, Url: url, Authorities: r.Authorities, AuthoritiesExpire: r.AuthoritiesExpire,
		Client: r.Client, ClientKey: r.ClientKey, ClientExpires: r.ClientExpires, ClientFingerprint: r.ClientFingerprint,
	}, true, nil
}

// store replaces the row of a URL by one with another id, or removes it if nothing is left.
func store(ctx context.Context, q *db.Queries, row db.InsertCertificatesParams) error {
	_, err := q.DeleteCertificates(ctx, db.DeleteCertificatesParams{PartnerID: row.PartnerID, Url: row.Url})
	if err == nil && (row.Authorities != "" || row.Client != "") {
		err = q.InsertCertificates(ctx, row)
	}
	if err == nil {
		err = q.CertificatesChanged(ctx, db.CertificatesChangedParams{PartnerID: row.PartnerID, Url: row.Url})
	}
	if err != nil {
		return fmt.Errorf("write the certificates of partner %d: %w", row.PartnerID, err)
	}
	return nil
}

// resealClientKeys seals all keys of client certificates with the newest key, and returns how many were sealed with
// another one.
func resealClientKeys(ctx context.Context, q *db.Queries, sealer *Sealer) (int, error) {
	rows, err := q.LockClientKeys(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the sealed keys of client certificates: %w", err)
	}
	resealed := 0
	for _, r := range rows {
		if sealer.Newest(r.ClientKey) {
			continue
		}
		key, err := sealer.OpenClientKey(r.PartnerID, r.Url, r.ClientKey)
		if err != nil {
			return 0, fmt.Errorf("%w: give that key too, or set the client certificate again with "+
				"`navlog partner certificates set %d`", err, r.PartnerID)
		}
		p := db.ReplaceClientKeyParams{ID: r.ID, ClientKey: sealer.SealClientKey(r.PartnerID, r.Url, key)}
		if err := q.ReplaceClientKey(ctx, p); err != nil {
			return 0, fmt.Errorf("seal the client key of partner %d again: %w", r.PartnerID, err)
		}
		resealed++
	}
	return resealed, nil
}
