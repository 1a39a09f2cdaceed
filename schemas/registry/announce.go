package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// written is the channel of PostgreSQL on which project says that it wrote.
const written = "navlog_generation_written"

// AnnounceWritten tells every ListenWritten that a generation has new rows. It is
// a hint to look at them soon and proves nothing: one that is lost, as through a
// pooler that does not carry LISTEN, costs time only.
func AnnounceWritten(ctx context.Context, pool *pgxpool.Pool, generation int32) error {
	if _, err := pool.Exec(ctx, "SELECT pg_notify($1, $2)", written, strconv.Itoa(int(generation))); err != nil {
		return fmt.Errorf("announce in PostgreSQL that generation %d was written: %w", generation, err)
	}
	return nil
}

// ListenWritten calls heard with the generation of each announcement, over a
// connection of its own, until ctx ends or the connection does. ready is called
// once it listens. The error is never nil.
func ListenWritten(ctx context.Context, pool *pgxpool.Pool, ready func(), heard func(generation int32)) error {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return errors.New("listen to PostgreSQL: it cannot be reached") // its error names user and database
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
		if generation, err := strconv.ParseInt(n.Payload, 10, 32); err == nil { // else it is nobody's of ours
			heard(int32(generation))
		}
	}
}
