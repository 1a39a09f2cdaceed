package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry/db"
)

// follow takes the newest version of the endpoint and keeps the breaker of its
// URL. A new secret, or the same URL registered again, changes nothing about a
// receiver that is down.
func (l *lane) follow(ctx context.Context, e endpoint) error {
	if l.breaker != nil && l.version == e.version {
		return nil
	}
	if l.breaker != nil {
		l.poster.transport.CloseIdleConnections() // some may lead to where the receiver was
	}
	if l.breaker == nil || l.url != e.url {
		if err := l.restore(ctx, e.url); err != nil {
			return err
		}
	}
	l.version = e.version
	return nil
}

// restore makes the breaker of a URL: as PostgreSQL has it when the lane begins,
// closed after a change of the URL.
func (l *lane) restore(ctx context.Context, url string) error {
	limit := l.shared.concurrency
	b := newBreaker(l.shared.timing, limit)
	row, err := l.shared.queries.RestoreBreaker(ctx, db.RestoreBreakerParams{PartnerID: l.partner, Url: url})
	switch {
	case err == nil:
		b = restoreBreaker(l.shared.timing, limit, time.Duration(row.OpenMs)*time.Millisecond, time.Duration(row.RemainingMs)*time.Millisecond, row.Refusing)
	case errors.Is(err, pgx.ErrNoRows):
		// One of an older URL, if any, is of no use any more.
		if err := l.shared.queries.DeleteBreaker(ctx, db.DeleteBreakerParams{PartnerID: l.partner, Owner: l.shared.owner, Fence: l.fence}); err != nil {
			return fmt.Errorf("forget the breaker of partner %d: %w", l.partner, err)
		}
	default:
		return fmt.Errorf("read the breaker of partner %d: %w", l.partner, err)
	}
	l.url, l.breaker, l.unsaved = url, b, unchanged
	return nil
}

// save writes what became of the breaker.
func (l *lane) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var err error
	switch l.unsaved {
	case unchanged:
		return nil
	case opened:
		err = l.shared.queries.SaveBreaker(ctx, db.SaveBreakerParams{
			PartnerID: l.partner, EndpointVersion: l.version, Url: l.url, State: "open",
			OpenMs: l.breaker.openTime().Milliseconds(), Refusing: l.breaker.refuses(), Owner: l.shared.owner, Fence: l.fence,
		})
	case probing:
		err = l.shared.queries.ProbeBreaker(ctx, db.ProbeBreakerParams{PartnerID: l.partner, Url: l.url, Owner: l.shared.owner, Fence: l.fence})
	case closed:
		err = l.shared.queries.DeleteBreaker(ctx, db.DeleteBreakerParams{PartnerID: l.partner, Owner: l.shared.owner, Fence: l.fence})
	}
	if err != nil {
		return fmt.Errorf("write the breaker of partner %d: %w", l.partner, err)
	}
	l.unsaved = unchanged
	return nil
}
