package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry/db"
)

// brokenError says that a generation's rows cannot be a fold of the log.
type brokenError struct{ what string }

func (e *brokenError) Error() string { return e.what + ": rows were lost or doubled" }

// prove audits a generation, and marks one bad that lost or doubled a row,
// whatever it is used for: better no answer than a wrong one. An operator does it
// before a generation is made live or compared with, and Verify; the projector
// audits when it opens a generation and then every hour beside the writer. It
// gives a *brokenError, wrapped in what to do, when the proof fails and the mark is
// made.
func prove(ctx context.Context, conn driver.Conn, pool *pgxpool.Pool, id int32, database string) error {
	return condemn(ctx, pool, id, audit(ctx, conn, database))
}

// condemn marks a generation bad when the audit's verdict is that it is broken.
func condemn(ctx context.Context, pool *pgxpool.Pool, id int32, verdict error) error {
	if broken := new(brokenError); !errors.As(verdict, &broken) {
		return verdict
	}
	if failed := markBad(ctx, pool, id); failed != nil {
		return fmt.Errorf("%v, and generation %d is not marked bad yet, try again: %w", verdict, id, failed)
	}
	return fmt.Errorf("%w; generation %d is marked bad, run `navlog projection rebuild`", verdict, id)
}

// markBad takes a broken generation out of service, whatever it is used for at
// that moment: in one statement, for it may be made live or standby meanwhile.
func markBad(ctx context.Context, pool *pgxpool.Pool, id int32) error {
	n, err := db.New(pool).MarkGenerationBad(ctx, id)
	if err == nil && n != 1 {
		err = errors.New("it was dropped, or PostgreSQL does not know it; look at `navlog projection list`")
	}
	if err != nil {
		return fmt.Errorf("mark generation %d bad: %w", id, err)
	}
	return nil
}

// audited are the events that give a table a row, one for each log and one for
// each retraction of it.
var audited = []struct{ table, events string }{
	{"deposits", "'DepositAccepted'"},
	{"flows", "'DepositAccepted', 'WithdrawalRequested', 'WithdrawalClaimed'"},
	{"requests", "'WithdrawalRequested', 'WithdrawalFunded', 'WithdrawalClaimed', 'WithdrawalCancelled', 'WithdrawalExpired'"},
	{"navs", "'NavUpdated'"},
	{"sweeps", "'DepositsSwept'"},
}

// audit proves that a generation lost no row and doubled none: records has one
// row for every seq, the other tables have what records says that they must
// have, rankings, whose rows depend on what was before, adds up to flows, and
// records says of what logs did what these tables say. It can run beside the
// writer, and gives a *brokenError when the proof fails.
func audit(ctx context.Context, conn driver.Conn, database string) error {
	if err := checkContiguous(ctx, conn, database); err != nil {
		return err
	}
	seq, err := position(ctx, conn, database)
	if err != nil {
		return err
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"seq": fmt.Sprint(seq)}))
	for _, a := range audited {
		ask := strings.NewReplacer("{table}", a.table, "{events}", a.events).Replace(question("audit_rows", database))
		var found, wanted fingerprint
		if err := conn.QueryRow(ctx, ask).Scan(&found.rows, &found.hash, &wanted.rows, &wanted.hash); err != nil {
			return fmt.Errorf("audit %s.%s: %w", database, a.table, err)
		}
		if found != wanted {
			return &brokenError{fmt.Sprintf("%s.%s has rows of %d logs up to seq %d, and must have them of %d, each once", database, a.table, found.rows, seq, wanted.rows)}
		}
	}
	var found, wanted string
	if err := conn.QueryRow(ctx, question("audit_users", database)).Scan(&found, &wanted); err != nil {
		return fmt.Errorf("audit %s.rankings: %w", database, err)
	}
	if found != wanted {
		return &brokenError{fmt.Sprintf("%s.rankings has %s up to seq %d, and the flows give %s", database, found, seq, wanted)}
	}
	if err := conn.QueryRow(ctx, question("audit_effects", database)).Scan(&found, &wanted); err != nil {
		return fmt.Errorf("audit what %s.records says that logs did: %w", database, err)
	}
	if found != wanted {
		return &brokenError{fmt.Sprintf("%s.records says of what logs did up to seq %d %s, and requests, flows and rankings say %s", database, seq, found, wanted)}
	}
	return nil
}

// checkContiguous proves that a generation has one row for every seq.
func checkContiguous(ctx context.Context, conn driver.Conn, database string) error {
	var rows, seqs, newest uint64
	err := conn.QueryRow(ctx, question("contiguous", database)).Scan(&rows, &seqs, &newest)
	if err != nil {
		return fmt.Errorf("check that %s is contiguous: %w", database, err)
	}
	if rows != seqs || seqs != newest {
		return &brokenError{fmt.Sprintf("%s.records has %d rows of %d seqs up to %d, and must have one of each", database, rows, seqs, newest)}
	}
	return nil
}
