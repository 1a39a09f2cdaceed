package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry/db"
)

// Kinds of leases: what their holder does.
const (
	GenerationLease = "generation" // it writes a generation, whose id is the key
	IntakeLease     = "intake"     // it reads the referral topics; the key is 0
	PartnerLease    = "partner"    // it sends to a partner, whose id is the key
)

// acquireInterval is the interval at which Acquire retries.
const acquireInterval = 500 * time.Millisecond

// ErrLeaseLost means that another process may have the lease now.
var ErrLeaseLost = errors.New("the lease is lost")

// Leases takes and renews the leases of one kind for one owner. PostgreSQL decides when a lease is over, by its own
// clock, so the clocks of the machines may differ. A holder also stops by itself when a lease was not renewed in time.
//
// That is not enough to keep a holder out that was suspended for longer than its lease: it may wake up in the middle of
// a write. So each kind has a second guard at the data: a generation and the intake move a cursor by compare-and-swap
// in the write itself, and the results of a partner's attempts are written only under the fence of the lease.
type Leases struct {
	Queries *db.Queries
	Kind    string
	Owner   uuid.UUID
	Period  time.Duration // how long a lease holds without renewal

	mu   sync.Mutex
	held map[*Lease]struct{} // to renew
}

// Lease is the right to do one job until it is dropped, lost, or not renewed in time.
type Lease struct {
	of         *Leases
	key, fence int64
	until      atomic.Int64  // when it is over unless renewed, by uptime
	lost       chan struct{} // closed when it is lost
}

// started is when the process started. Its monotonic clock is unaffected by changes of the machine's time.
var started = time.Now()

// uptime is how long the process has run.
func uptime() time.Duration { return time.Since(started) }

// Take takes a lease, or returns nil if another owner has it. The same owner gets a new lease with a new fence.
func (s *Leases) Take(ctx context.Context, key int64) (*Lease, error) {
	until := uptime() + s.Period // PostgreSQL starts to count later
	fence, err := s.Queries.TakeLease(
		ctx, db.TakeLeaseParams{Kind: s.Kind, Key: key, Owner: s.Owner, Milliseconds: s.Period.Milliseconds()},
	)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take the lease of %s %d: %w", s.Kind, key, err)
	}
	l := &Lease{of: s, key: key, fence: fence, lost: make(chan struct{})}
	l.until.Store(int64(until))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[*Lease]struct{}{}
	}
	s.held[l] = struct{}{}
	return l, nil
}

// Acquire waits until it has the lease. It calls standby once if another owner has it.
func (s *Leases) Acquire(ctx context.Context, key int64, standby func()) (*Lease, error) {
	tick := time.NewTicker(acquireInterval)
	defer tick.Stop()
	for called := false; ; {
		limited, cancel := context.WithTimeout(ctx, s.Period)
		l, err := s.Take(limited, key)
		cancel()
		if l != nil || err != nil {
			return l, err
		}
		if !called {
			standby()
			called = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// Renew renews all leases, in one statement. Those that another owner took are lost. After an error their state is
// unknown.
func (s *Leases) Renew(ctx context.Context) error {
	s.mu.Lock()
	leases := make([]*Lease, 0, len(s.held))
	for l := range s.held {
		leases = append(leases, l)
	}
	s.mu.Unlock()
	return s.renew(ctx, leases)
}

func (s *Leases) renew(ctx context.Context, leases []*Lease) error {
	if len(leases) == 0 {
		return nil
	}
	p := db.RenewLeasesParams{Kind: s.Kind, Owner: s.Owner, Milliseconds: s.Period.Milliseconds()}
	gone := map[db.RenewLeasesRow]*Lease{}
	for _, l := range leases {
		p.Keys, p.Fences = append(p.Keys, l.key), append(p.Fences, l.fence)
		gone[db.RenewLeasesRow{Key: l.key, Fence: l.fence}] = l
	}
	until := uptime() + s.Period
	kept, err := s.Queries.RenewLeases(ctx, p)
	if err != nil {
		return fmt.Errorf("renew leases of %s: %w", s.Kind, err)
	}
	for _, row := range kept {
		gone[row].until.Store(int64(until))
		delete(gone, row)
	}
	for _, l := range gone {
		l.Lose()
	}
	return nil
}

// Fence returns the number of the lease, which no other lease of its kind and key has.
func (l *Lease) Fence() int64 { return l.fence }

// Safe reports whether the lease holds: it is neither dropped nor lost, and was renewed in time.
func (l *Lease) Safe() bool { return l.Held() && int64(uptime()) < l.until.Load() }

// Held reports whether the lease is neither dropped nor lost.
func (l *Lease) Held() bool {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	_, held := l.of.held[l]
	return held
}

// Lost is closed when the lease is lost.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Lose ends the lease because another owner has it. A lease that was dropped is not lost.
func (l *Lease) Lose() {
	if l.end() {
		close(l.lost)
	}
}

// end removes the lease from those that are renewed, and reports whether it was among them.
func (l *Lease) end() bool {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	_, held := l.of.held[l]
	delete(l.of.held, l)
	return held
}

// Drop returns the lease, so that another owner can take it at once. It leaves a later lease of the same owner as it
// is.
func (l *Lease) Drop(ctx context.Context) {
	if !l.end() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// A lease that is not dropped expires.
	_ = l.of.Queries.DropLease(
		ctx, db.DropLeaseParams{Kind: l.of.Kind, Key: l.key, Owner: l.of.Owner, Fence: l.fence},
	)
}

// Watch renews the lease until ctx ends, and then returns nil. It returns ErrLeaseLost if another owner took the lease,
// or if it could not be renewed in time.
func (l *Lease) Watch(ctx context.Context) error {
	tick := time.NewTicker(l.of.Period / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.lost:
			return fmt.Errorf("%w: another instance has %s %d", ErrLeaseLost, l.of.Kind, l.key)
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, l.of.Period/3)
		err := l.of.renew(limited, []*Lease{l})
		cancel()
		if err != nil && ctx.Err() == nil && !l.Safe() {
			l.Lose()
			return fmt.Errorf("%w: %w", ErrLeaseLost, err)
		}
	}
}
