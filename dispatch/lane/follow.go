package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry/db"
)

// follow switches to the newest version of the endpoint, and keeps the breaker if the URL is the
// same: a new secret, other certificates, or the same URL registered again, do not revive a
// receiver that is down.
func (l *Lane) follow(ctx context.Context, e Endpoint) error {
	if l.breaker != nil && l.version == e.Version && time.Since(l.poster.made) < connectionAge {
		return nil
	}
	// Old connections, and those of an older version, may lead to an old address, so none of them is used any more. Those
	// in use are closed when their attempts end (finish).
	l.poster.transport.CloseIdleConnections()
	l.poster = newPoster(l.shared.Guard, l.shared.Roots, e.Certificates, l.shared.Concurrency, l.shared.Timing.Deadline)
	if l.breaker == nil || l.url != e.URL {
		if err := l.restore(ctx, e.URL); err != nil {
			return err
		}
	}
	l.version = e.Version
	return nil
}

// restore sets the breaker of a URL: from PostgreSQL when the lane starts, closed after
// the URL changed.
func (l *Lane) restore(ctx context.Context, url string) error {
	limit := l.shared.Concurrency
	b := newBreaker(l.shared.Timing, limit)
	row, err := l.shared.Queries.GetBreaker(ctx, db.GetBreakerParams{PartnerID: l.partner, Url: url})
	switch {
	case err == nil:
		b = restoreBreaker(
			l.shared.Timing, limit, time.Duration(row.OpenMs)*time.Millisecond, time.Duration(row.RemainingMs)*time.Millisecond,
			row.Refusing,
		)
	case errors.Is(err, pgx.ErrNoRows):
		// A breaker of an older URL is obsolete.
		if err := l.shared.Queries.DeleteBreaker(
			ctx, db.DeleteBreakerParams{PartnerID: l.partner, Owner: l.shared.Leases.Owner, Fence: l.fence()},
		); err != nil {
			return fmt.Errorf("delete the breaker of partner %d: %w", l.partner, err)
		}
	default:
		return fmt.Errorf("read the breaker of partner %d: %w", l.partner, err)
	}
	l.url, l.breaker, l.unsaved = url, b, unchanged
	return nil
}

// save writes the last change of the breaker to PostgreSQL.
func (l *Lane) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var err error
	switch l.unsaved {
	case unchanged:
		return nil
	case opened:
		err = l.shared.Queries.SaveBreaker(ctx, db.SaveBreakerParams{
			PartnerID: l.partner, EndpointVersion: l.version, Url: l.url, OpenMs: l.breaker.openFor.Milliseconds(),
			Refusing: l.breaker.refusing, Owner: l.shared.Leases.Owner, Fence: l.fence(),
		})
	case probing:
		err = l.shared.Queries.ProbeBreaker(
			ctx, db.ProbeBreakerParams{PartnerID: l.partner, Url: l.url, Owner: l.shared.Leases.Owner, Fence: l.fence()},
		)
	case closed:
		err = l.shared.Queries.DeleteBreaker(
			ctx, db.DeleteBreakerParams{PartnerID: l.partner, Owner: l.shared.Leases.Owner, Fence: l.fence()},
		)
	}
	if err != nil {
		return fmt.Errorf("write the breaker of partner %d: %w", l.partner, err)
	}
	l.unsaved = unchanged
	return nil
}
