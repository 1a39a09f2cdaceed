package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// endpointsAge is how old cached URLs and secrets may be: an attempt that starts
// more than this after a change uses the new values.
const endpointsAge = time.Second

// errWrongKey means that none of the secrets can be opened.
var errWrongKey = errors.New("none of the partners' signing secrets can be opened: " +
	"set NAVLOG_SECRET_KEY to the key that sealed them")

// errSealed means that one partner's secret or client key cannot be opened. If others can be, only
// this partner is affected.
var errSealed = errors.New("this dispatcher cannot sign for the partner, or cannot use its client certificate")

// endpoints caches the endpoints of all partners. It reads all at once, so that the cost
// does not grow with the number of attempts.
type endpoints struct {
	queries *db.Queries
	sealer  *registry.Sealer
	reads   singleflight.Group // one caller reads; the others wait for it without holding mu

	mu     sync.Mutex
	latest reading
}

// A reading is one read of all endpoints.
type reading struct {
	at           time.Time // when the read began
	rows         map[int64]db.EndpointsRow
	certificates map[int64]certificates // by id
	fault        error                  // errWrongKey, if no secret can be opened
}

// certificates are those of one URL, or why they cannot be used.
type certificates struct {
	certs.Pinned
	err error
}

// get returns the newest endpoint of a partner, and false if the partner is unknown or
// disabled, or has no URL.
func (e *endpoints) get(ctx context.Context, partner int64) (lane.Endpoint, bool, error) {
	now, err := e.current(ctx)
	row, ok := now.rows[partner]
	if err != nil || !ok {
		return lane.Endpoint{}, false, err
	}
	found := lane.Endpoint{Version: row.Version, URL: row.Url, Held: row.Held}
	if found.Secret, err = e.sealer.Open(partner, row.Secret); err == nil && len(row.NextSecret) > 0 {
		found.Next, err = e.sealer.Open(partner, row.NextSecret)
	}
	if pinned := now.certificates[row.CertificatesID]; err == nil && row.CertificatesID != 0 {
		found.Certificates, err = &pinned.Pinned, pinned.err
	}
	if err != nil {
		return lane.Endpoint{}, false, fmt.Errorf("%w: %w", errSealed, err)
	}
	return found, true, nil
}

// check reports whether the endpoints can be read and their secrets opened.
func (e *endpoints) check(ctx context.Context) error {
	_, err := e.current(ctx)
	return err
}

// current returns a reading that is not older than endpointsAge, with its fault.
func (e *endpoints) current(ctx context.Context) (reading, error) {
	e.mu.Lock()
	latest := e.latest
	e.mu.Unlock()
	if time.Since(latest.at) >= endpointsAge {
		// A caller whose context ends must not cancel the read for the others.
		done := e.reads.DoChan("", func() (any, error) { return e.read(context.WithoutCancel(ctx)) })
		select {
		case <-ctx.Done():
			return reading{}, fmt.Errorf("read the endpoints: %w", ctx.Err())
		case result := <-done:
			if result.Err != nil {
				return reading{}, fmt.Errorf("read the endpoints: %w", result.Err)
			}
			latest = result.Val.(reading)
		}
	}
	return latest, latest.fault
}

// read reads all endpoints and caches them. Only one read is in progress at a time.
func (e *endpoints) read(ctx context.Context) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	e.mu.Lock()
	known := e.latest.certificates
	e.mu.Unlock()
	now := reading{at: time.Now(), rows: map[int64]db.EndpointsRow{}, certificates: map[int64]certificates{}}
	var usable []int64
	for id, c := range known {
		if c.err == nil { // a key that could not be opened may be sealed again
			usable = append(usable, id)
		}
	}
	rows, err := e.queries.Endpoints(ctx, usable)
	if err != nil {
		return now, err
	}
	if len(rows) > 0 && !slices.ContainsFunc(rows, e.opens) {
		now.fault = errWrongKey
	}
	for _, r := range rows {
		now.rows[r.PartnerID] = r
		if c, ok := known[r.CertificatesID]; ok && c.err == nil {
			now.certificates[r.CertificatesID] = c
		} else if r.CertificatesID != 0 {
			pinned, err := e.sealer.OpenCertificates(r)
			now.certificates[r.CertificatesID] = certificates{pinned, err}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.latest = now
	return now, nil
}

func (e *endpoints) opens(row db.EndpointsRow) bool {
	_, err := e.sealer.Open(row.PartnerID, row.Secret)
	return err == nil
}
