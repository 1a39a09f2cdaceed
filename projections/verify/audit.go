package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry/db"
)

// BrokenError means that a generation's rows cannot result from any log.
type BrokenError struct{ what string }

func (e *BrokenError) Error() string { return e.what + ": rows were lost or doubled" }

// Broken returns the error that describes what is wrong with the rows.
func Broken(what string) *BrokenError { return &BrokenError{what} }

// Condemn marks a generation bad if an audit's verdict is that it is broken, even if it is in use: no response is
// better than a wrong one. It then returns the *BrokenError, wrapped with what to do, and any other verdict
// unchanged.
func Condemn(ctx context.Context, pool *pgxpool.Pool, id int32, verdict error) error {
	if broken := new(BrokenError); !errors.As(verdict, &broken) {
		return verdict
	}
	if failed := markBad(ctx, pool, id); failed != nil {
		return fmt.Errorf("%v, and generation %d is not marked bad yet, retry: %w", verdict, id, failed)
	}
	return fmt.Errorf("%w; generation %d is marked bad, run `navlog projection rebuild`", verdict, id)
}

// markBad takes a broken generation out of service, even if it is in use, in a single statement, because it may be
// made live or standby at the same time.
func markBad(ctx context.Context, pool *pgxpool.Pool, id int32) error {
	n, err := db.New(pool).MarkGenerationBad(ctx, id)
	if err == nil && n != 1 {
		err = errors.New("it was dropped, or PostgreSQL does not know it; check `navlog projection list`")
	}
	if err != nil {
		return fmt.Errorf("mark generation %d bad: %w", id, err)
	}
	return nil
}

// Audit proves that the generation in the connection's database neither lost nor duplicated a row of events: up to
// the cursor of its lists, every seq exists, every effect of a record occurs once, and each record has as many
// effects as it states. It also checks that lists have one cursor and the same sums as events, which detects most
// losses in lists; only Verify detects all of them. Audit takes seconds, can run beside the writer, and returns a
// *BrokenError if the proof fails.
func Audit(ctx context.Context, conn driver.Conn) error {
	seq, built, err := position(ctx, conn)
	if err != nil {
		return err
	}
	if fault, _, err := countEvents(ctx, conn, seq); err != nil || fault != "" {
		return cmp.Or(err, error(&BrokenError{fault}))
	}
	if !built {
		return nil
	}
	if fault, err := oneCursor(ctx, conn); err != nil || fault != "" {
		return cmp.Or(err, error(&BrokenError{fault}))
	}
	return auditLists(ctx, conn)
}

// countEvents counts the rows of events up to a seq, and describes what is wrong with the number.
func countEvents(ctx context.Context, conn driver.Conn, seq uint64) (fault string, rows uint64, err error) {
	var seqs, last, places, off uint64
	row := conn.QueryRow(readmodel.Parameters(ctx, numbers{"seq": seq}), question("audit_events"))
	switch err := row.Scan(&rows, &seqs, &last, &places, &off); {
	case err != nil:
		return "", 0, fmt.Errorf("count the rows of events: %w", err)
	case seqs != seq || last != seq:
		fault = fmt.Sprintf("events has %d rows of %d seqs up to seq %d, but must have all of them", rows, seqs, seq)
	case rows != places:
		fault = fmt.Sprintf("events has %d rows of %d effects up to seq %d", rows, places, seq)
	case off != 0:
		fault = fmt.Sprintf("events has %d rows up to seq %d, and %d effects more or less than its records have", rows, seq, off)
	}
	return fault, rows, nil
}

// auditLists compares sums over lists with sums over events up to their cursor.
func auditLists(ctx context.Context, conn driver.Conn) error {
	var seq uint64
	var found, wanted string
	if err := conn.QueryRow(readmodel.Parameters(ctx, nil), question("audit_lists")).Scan(&seq, &found, &wanted); err != nil {
		return fmt.Errorf("audit lists: %w", err)
	}
	if found != wanted {
		return &BrokenError{fmt.Sprintf("lists come to %s up to seq %d, but must come to %s", found, seq, wanted)}
	}
	return nil
}
