package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry/db"
)

func (l *lane) hold(until time.Time) { l.held.Store(until.UnixNano()) }

func (l *lane) leased() bool { return l.held.Load() != 0 && !l.lost.Load() }

// safe tells whether the lease still holds by our own clock. While it does not,
// nothing new is sent.
func (l *lane) safe() bool { return !l.lost.Load() && time.Now().UnixNano() < l.held.Load() }

func (l *lane) lose() {
	if !l.lost.Swap(true) {
		l.shared.metrics.lostLeases.Inc()
	}
	l.wake()
}

// take takes the lease; false: another dispatcher has it, or PostgreSQL does not answer
// and the error says so.
func (l *lane) take(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	until := time.Now().Add(l.shared.lease)
	fence, err := l.shared.queries.TakeLease(ctx, db.TakeLeaseParams{PartnerID: l.partner, Owner: l.shared.owner, Milliseconds: l.shared.lease.Milliseconds()})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.fence = fence
	l.hold(until)
	return true, nil
}

// yield ends the lane, whose partner is to be another dispatcher's.
func (l *lane) yield() {
	l.yielded.Store(true)
	l.wake()
}

// drop gives back the lease that the lane took. By then another lane of the
// partner may run, here too, for the lane is off the list: its lease has another
// fence and stays.
func (l *lane) drop(ctx context.Context) {
	l.held.Store(0)
	if l.lost.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// One that is not dropped runs out.
	_ = l.shared.queries.DropLease(ctx, db.DropLeaseParams{Owner: l.shared.owner, PartnerID: l.partner, Fence: l.fence})
}
