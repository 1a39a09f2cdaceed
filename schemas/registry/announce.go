package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// written is the PostgreSQL channel on which project announces new rows.
const written = "navlog_generation_written"

// AnnounceWritten notifies every ListenWritten that a generation has new rows. It is
// only a hint to look soon: a lost announcement, for instance through a pooler that does
// not support LISTEN, costs time and nothing else.
func AnnounceWritten(ctx context.Context, pool *pgxpool.Pool, generation int32) error {
	if _, err := pool.Exec(ctx, "SELECT pg_notify($1, $2)", written, strconv.Itoa(int(generation))); err != nil {
		return fmt.Errorf("announce in PostgreSQL that generation %d was written: %w", generation, err)
	}
	return nil
}

// ListenWritten calls heard with the generation of each announcement, over its own
// connection, until ctx ends or the connection does. It calls ready once it listens.
// The error is never nil.
func ListenWritten(ctx context.Context, pool *pgxpool.Pool, ready func(), heard func(generation int32)) error {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return errors.New("listen to PostgreSQL: the server cannot be reached") // pgx's error names user and database
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+written); err != nil {
		return fmt.Errorf("listen to PostgreSQL: %w", err)
	}
	ready()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("listen to PostgreSQL: %w", err)
		}
		if generation, err := strconv.ParseInt(n.Payload, 10, 32); err == nil { // ignore foreign notifications
			heard(int32(generation))
		}
	}
}
