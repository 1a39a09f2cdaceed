package lane

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry/db"
)

// Hold says until when the lease was renewed.
func (l *Lane) Hold(until time.Time) { l.held.Store(until.UnixNano()) }

// Leased tells whether the lane has a lease to be renewed.
func (l *Lane) Leased() bool { return l.held.Load() != 0 && !l.lost.Load() }

// Safe tells whether the lease still holds by our own clock. While it does not,
// nothing new is sent.
func (l *Lane) Safe() bool { return !l.lost.Load() && time.Now().UnixNano() < l.held.Load() }

// Lose tells the lane that another dispatcher has its partner.
func (l *Lane) Lose() {
	if !l.lost.Swap(true) {
		l.shared.Metrics.LostLeases.Inc()
	}
	l.Wake()
}

// Take takes the lease; false: another dispatcher has it, or PostgreSQL does not answer
// and the error says so.
func (l *Lane) Take(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	until := time.Now().Add(l.shared.Lease)
	fence, err := l.shared.Queries.TakeLease(ctx, db.TakeLeaseParams{PartnerID: l.partner, Owner: l.shared.Owner, Milliseconds: l.shared.Lease.Milliseconds()})
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

// Yielded tells whether Yield was called.
func (l *Lane) Yielded() bool { return l.yielded.Load() }

// Fence is the number of the lease that Take took.
func (l *Lane) Fence() int64 { return l.fence }

// Yield ends the lane, whose partner is to be another dispatcher's.
func (l *Lane) Yield() {
	l.yielded.Store(true)
	l.Wake()
}

// Drop gives back the lease that the lane took. By then another lane of the
// partner may run, here too, for the lane is off the list: its lease has another
// fence and stays.
func (l *Lane) Drop(ctx context.Context) {
	l.held.Store(0)
	if l.lost.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// One that is not dropped runs out.
	_ = l.shared.Queries.DropLease(ctx, db.DropLeaseParams{Owner: l.shared.Owner, PartnerID: l.partner, Fence: l.fence})
}
