package write

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry"
)

// leaseClass is the first key of the advisory locks on generations ("navl").
const leaseClass = 0x6e61766c

// leaseCheck is the interval at which a standby requests the lease and a holder checks its connection.
const leaseCheck = 500 * time.Millisecond

// Lease is the right to write a generation: an advisory lock of a PostgreSQL
// session, released by the server when the session ends, however it ends.
type Lease struct{ conn *pgx.Conn }

// Acquire waits until this process has the lease of a generation. It calls standby once if another process holds it.
func Acquire(ctx context.Context, pool *pgxpool.Pool, generation int32, standby func()) (*Lease, error) {
	if err := registry.OwnSessions(pool, "the writer of a generation"); err != nil {
		return nil, err
	}
	pooled, err := pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL for the lease of generation %d: %w", generation, err)
	}
	l := &Lease{pooled.Hijack()}
	for told := false; ; {
		var mine bool
		err := l.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, $2)", int32(leaseClass), generation).Scan(&mine)
		if err != nil {
			l.Release()
			return nil, fmt.Errorf("ask PostgreSQL for the lease of generation %d: %w", generation, err)
		}
		if mine {
			return l, nil
		}
		if !told {
			standby()
			told = true
		}
		if err := pause(ctx, leaseCheck); err != nil {
			l.Release()
			return nil, err
		}
	}
}

// Release releases the lease.
func (l *Lease) Release() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // ends the session and so the lease; an error needs no handling
}

// ErrLeaseLost means that another writer may have the lease now.
var ErrLeaseLost = errors.New("the lease is lost: the connection to PostgreSQL that holds it ended")

// Watch returns when ctx ends (nil) or the lease is lost.
func (l *Lease) Watch(ctx context.Context) error {
	for {
		if pause(ctx, leaseCheck) != nil {
			return nil
		}
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := l.conn.Ping(limited)
		cancel()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%w: %w", ErrLeaseLost, err)
		}
	}
}
