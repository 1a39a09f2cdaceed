package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry/db"
)

// BrokenError means that a generation's rows cannot result from any log.
type BrokenError struct{ what string }

func (e *BrokenError) Error() string { return e.what + ": rows were lost or doubled" }

// Broken formats an error that says what is wrong with the rows, as fmt.Sprintf does.
func Broken(format string, a ...any) *BrokenError { return &BrokenError{fmt.Sprintf(format, a...)} }

// markTimeout bounds a mark, like an insert.
const markTimeout = 30 * time.Second

// MarkIfBroken marks a generation bad if the result of an audit is that it is broken, even if it is in use: no response
// is better than a wrong one. It does so in a single statement, because the generation may be made live or standby at
// the same time. It then returns the *BrokenError, wrapped with what to do, and any other error unchanged. A mark that
// failed is an error that is no *BrokenError. The mark does not follow ctx: a projector that sees it stops the keeper
// that makes it, and the reason would be lost.
func MarkIfBroken(ctx context.Context, pool *pgxpool.Pool, id int32, audit error) error {
	if broken := new(BrokenError); !errors.As(audit, &broken) {
		return audit
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	n, err := db.New(pool).MarkGenerationBad(ctx, id)
	if err == nil && n != 1 {
		err = errors.New("it was dropped, or PostgreSQL does not have it; check `navlog projection list`")
	}
	if err != nil {
		return fmt.Errorf("%v, and generation %d is not marked bad yet, retry: mark generation %d bad: %w", audit, id, id,
			err)
	}
	return fmt.Errorf("%w; generation %d is marked bad, run `navlog projection rebuild`", audit, id)
}

// Audit proves that the generation in the connection's database neither lost nor duplicated a row of events: up to
// the cursor of its lists, every seq exists, every effect of a record occurs once, and each record has as many
// effects as it states. It also checks that lists have one cursor and the same sums as events, which detects most
// losses in lists; only Verify detects all of them. Audit takes seconds, can run beside the writer, and returns a
// *BrokenError if the proof fails.
func Audit(ctx context.Context, conn driver.Conn) error {
	at, err := readmodel.ReadPosition(ctx, conn, "")
	if err == nil {
		err = auditEvents(ctx, conn, at.Seq)
	}
	if err == nil && at.Built {
		err = auditCursor(ctx, conn)
	}
	if err == nil && at.Built {
		err = auditLists(ctx, conn)
	}
	return err
}

// auditEvents counts the rows of events up to a seq.
func auditEvents(ctx context.Context, conn driver.Conn, seq uint64) error {
	var rows, seqs, last, places, off uint64
	row := conn.QueryRow(readmodel.Parameters(ctx, numbers{"seq": seq}), question("audit_events"))
	switch err := row.Scan(&rows, &seqs, &last, &places, &off); {
	case err != nil:
		return fmt.Errorf("count the rows of events: %w", err)
	case seqs != seq || last != seq:
		return Broken("events has %d rows of %d seqs up to seq %d, but must have all of them", rows, seqs, seq)
	case rows != places:
		return Broken("events has %d rows of %d effects up to seq %d", rows, places, seq)
	case off != 0:
		return Broken("events has %d rows up to seq %d, and %d effects more or less than its records have", rows, seq, off)
	}
	return nil
}

// auditCursor checks that there is exactly one cursor of lists, at both ends.
func auditCursor(ctx context.Context, conn driver.Conn) error {
	var rows []struct {
		List string `ch:"name"`
		Seq  uint64 `ch:"seq"`
		Live int64  `ch:"live"`
	}
	if err := conn.Select(ctx, &rows, question("cursor")); err != nil {
		return fmt.Errorf("read the cursor of lists: %w", err)
	}
	var found []string
	for _, r := range rows {
		if r.Live != 1 {
			return Broken("the row %s of seq %d appears %d times, but must appear once", r.List, r.Seq, r.Live)
		}
		found = append(found, fmt.Sprintf("%s of seq %d", r.List, r.Seq))
	}
	if len(rows) != 2 || rows[0].List == rows[1].List || rows[0].Seq != rows[1].Seq {
		return Broken("lists have %d live cursor rows: %s, and must have one cursor and one cursor_end, of one seq",
			len(rows), strings.Join(found, ", "))
	}
	return nil
}

// auditLists compares sums over lists with sums over events up to their cursor.
func auditLists(ctx context.Context, conn driver.Conn) error {
	var seq uint64
	var found, want string
	if err := conn.QueryRow(readmodel.Parameters(ctx, nil), question("audit_lists")).Scan(&seq, &found,
		&want); err != nil {
		return fmt.Errorf("audit lists: %w", err)
	}
	if found != want {
		return Broken("lists come to %s up to seq %d, but must come to %s", found, seq, want)
	}
	return nil
}
