package lane

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry/db"
)

// Hold records until when the lease is held.
func (l *Lane) Hold(until time.Time) { l.held.Store(until.UnixNano()) }

// Leased reports whether the lane has a lease to renew.
func (l *Lane) Leased() bool { return l.held.Load() != 0 && !l.lost.Load() }

// Safe reports whether the lease still holds by the local clock. If it does not, the lane
// starts nothing new.
func (l *Lane) Safe() bool { return !l.lost.Load() && time.Now().UnixNano() < l.held.Load() }

// Lose ends the lane because another dispatcher has its partner.
func (l *Lane) Lose() {
	if !l.lost.Swap(true) {
		l.shared.Metrics.LostLeases.Inc()
	}
	l.Wake()
}

// Take acquires the lease and reports whether it did. Without an error, false means that
// another dispatcher has it.
func (l *Lane) Take(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	until := time.Now().Add(l.shared.Lease)
	fence, err := l.shared.Queries.TakeLease(
		ctx, db.TakeLeaseParams{PartnerID: l.partner, Owner: l.shared.Owner, Milliseconds: l.shared.Lease.Milliseconds()},
	)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.fence = fence
	l.Hold(until)
	return true, nil
}

// Yielded reports whether Yield was called.
func (l *Lane) Yielded() bool { return l.yielded.Load() }

// Fence returns the number of the lease that Take acquired.
func (l *Lane) Fence() int64 { return l.fence }

// Yield ends the lane, so that another dispatcher can take its partner.
func (l *Lane) Yield() {
	l.yielded.Store(true)
	l.Wake()
}

// Drop returns the lease that the lane took. Another lane of the partner may run by then,
// even in this process, because this lane is already retired: that lane's lease has
// another fence and stays.
func (l *Lane) Drop(ctx context.Context) {
	l.held.Store(0)
	if l.lost.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// A lease that is not dropped expires.
	_ = l.shared.Queries.DropLease(ctx, db.DropLeaseParams{Owner: l.shared.Owner, PartnerID: l.partner, Fence: l.fence})
}
