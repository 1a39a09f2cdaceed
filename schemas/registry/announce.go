package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry/db"
)

// PostgreSQL's channels for announcements. Each is only a hint to look soon: a lost
// announcement, for instance through a pooler that does not support LISTEN, costs time and
// nothing else.
const (
	written = "navlog_generation_written" // project: a generation has new rows
	queued  = "navlog_deliveries_queued"  // dispatch: a partner has new deliveries
)

// AnnounceWritten notifies every ListenWritten that a generation has new rows.
func AnnounceWritten(ctx context.Context, pool *pgxpool.Pool, generation int32) error {
	err := db.New(pool).Notify(ctx, db.NotifyParams{Channel: written, Ids: []int64{int64(generation)}})
	if err != nil {
		return fmt.Errorf("announce in PostgreSQL that generation %d was written: %w", generation, err)
	}
	return nil
}

// AnnounceQueued notifies every ListenQueued that partners have new deliveries, once the
// transaction of q is committed.
func AnnounceQueued(ctx context.Context, q *db.Queries, partners []int64) error {
	if err := q.Notify(ctx, db.NotifyParams{Channel: queued, Ids: partners}); err != nil {
		return fmt.Errorf("announce new deliveries in PostgreSQL: %w", err)
	}
	return nil
}

// ListenWritten calls notify with the generation of each announcement, over its own
// connection, until ctx ends or the connection does. It calls ready once it listens.
// The error is never nil.
func ListenWritten(ctx context.Context, pool *pgxpool.Pool, ready func(), notify func(generation int32)) error {
	return listen(ctx, pool, written, ready, func(id int64) { notify(int32(id)) })
}

// ListenQueued calls notify with each partner that has new deliveries, in the way of
// ListenWritten.
func ListenQueued(ctx context.Context, pool *pgxpool.Pool, ready func(), notify func(partner int64)) error {
	return listen(ctx, pool, queued, ready, notify)
}

func listen(ctx context.Context, pool *pgxpool.Pool, channel string, ready func(), notify func(id int64)) error {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return errors.New("listen to PostgreSQL: the server cannot be reached") // pgx's error names user and database
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return fmt.Errorf("listen to PostgreSQL: %w", err)
	}
	ready()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("listen to PostgreSQL: %w", err)
		}
		if id, err := strconv.ParseInt(n.Payload, 10, 64); err == nil { // ignore foreign notifications
			notify(id)
		}
	}
}
