package lane

import (
	"context"
	"time"
)

// Take acquires the lease and reports whether it did. Without an error, false means that
// another dispatcher has it.
func (l *Lane) Take(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lease, err := l.shared.Leases.Take(ctx, l.partner)
	if lease == nil {
		return false, err
	}
	l.lease.Store(lease)
	return true, nil
}

// Leased reports whether the lane has a lease, which is neither dropped nor lost.
func (l *Lane) Leased() bool {
	lease := l.lease.Load()
	return lease != nil && lease.Held()
}

// Safe reports whether the lease still holds. If it does not, the lane starts nothing new.
func (l *Lane) Safe() bool { return l.lease.Load().Safe() }

// fence returns the number of the lease that Take acquired.
func (l *Lane) fence() int64 { return l.lease.Load().Fence() }

// Drop returns the lease that the lane took. Another lane of the partner may run by then,
// even in this process, because this lane is already retired: that lane's lease has
// another fence and stays.
func (l *Lane) Drop(ctx context.Context) { l.lease.Load().Drop(ctx) }

// Yielded reports whether Yield was called.
func (l *Lane) Yielded() bool { return l.yielded.Load() }

// Yield ends the lane, so that another dispatcher can take its partner.
func (l *Lane) Yield() {
	l.yielded.Store(true)
	l.Wake()
}
