package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry/db"
)

// BrokenError says that a generation's rows cannot be what a log says.
type BrokenError struct{ what string }

func (e *BrokenError) Error() string { return e.what + ": rows were lost or doubled" }

// Broken is the error that says what rows cannot be.
func Broken(what string) *BrokenError { return &BrokenError{what} }

// Condemn marks a generation bad when an audit's verdict is that it is broken,
// whatever it is used for: better no answer than a wrong one. It gives the
// *BrokenError then, wrapped in what to do, and any other verdict as it is.
func Condemn(ctx context.Context, pool *pgxpool.Pool, id int32, verdict error) error {
	if broken := new(BrokenError); !errors.As(verdict, &broken) {
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

// factsOf are the events that give a table a row, one for each log and one for
// each retraction of it.
var factsOf = map[string]string{
	readmodel.Deposits:         "'DepositAccepted'",
	readmodel.WithdrawalEvents: "'WithdrawalRequested', 'WithdrawalFunded', 'WithdrawalClaimed', 'WithdrawalCancelled', 'WithdrawalExpired'",
	readmodel.Navs:             "'NavUpdated'",
	readmodel.Sweeps:           "'DepositsSwept'",
}

// Audit proves that the generation of a connection's database lost no row of what
// all else is made of, and doubled none: the spine has one row for every seq, and
// each table of facts has a row of exactly those seqs that the spine says it must
// have. The derived tables have one cursor row each and add up to what the facts do,
// which finds most of what they can lose; all of it only Verify finds. Audit takes
// seconds, can run beside the writer, and gives a *BrokenError when the proof fails.
func Audit(ctx context.Context, conn driver.Conn) error {
	var rows, seqs, newest uint64
	if err := conn.QueryRow(ctx, question("contiguous")).Scan(&rows, &seqs, &newest); err != nil {
		return fmt.Errorf("count the rows of the spine: %w", err)
	}
	if rows != seqs || seqs != newest {
		return &BrokenError{fmt.Sprintf("%s has %d rows of %d seqs up to %d, and must have one of each", readmodel.Spine, rows, seqs, newest)}
	}
	for _, table := range readmodel.Facts {
		var found, wanted fingerprint
		ask := question("audit_rows", "{table}", table, "{events}", factsOf[table])
		if err := conn.QueryRow(readmodel.Parameters(ctx, numbers{"seq": newest}), ask).Scan(&found.rows, &found.hash, &wanted.rows, &wanted.hash); err != nil {
			return fmt.Errorf("audit %s: %w", table, err)
		}
		if found != wanted {
			return &BrokenError{fmt.Sprintf("%s has %d rows up to seq %d, and must have one for each of %d logs", table, found.rows, newest, wanted.rows)}
		}
	}
	there, err := derivedTables(ctx, conn)
	if err != nil {
		return err
	}
	for _, table := range readmodel.Derived {
		if !there[table] {
			continue
		}
		if err := auditDerived(ctx, conn, table); err != nil {
			return err
		}
	}
	return nil
}

// auditDerived compares sums over a derived table with those over the facts up to
// its cursor: a table that is behind lost nothing, and its writer sees to it. One
// that is ahead of the spine, as it is for a moment at every unit and after a crash
// until the unit is ended, is left to the next audit.
func auditDerived(ctx context.Context, conn driver.Conn, table string) error {
	seq, err := readmodel.LastSeq(ctx, conn, readmodel.Spine)
	if err != nil {
		return err
	}
	var written uint64
	var cursors int64
	var found, wanted string
	if err := conn.QueryRow(readmodel.Parameters(ctx, nil), question("audit_"+table)).Scan(&written, &cursors, &found, &wanted); err != nil {
		return fmt.Errorf("audit %s: %w", table, err)
	}
	switch {
	case written > seq:
		return nil
	case cursors != 1:
		return &BrokenError{fmt.Sprintf("%s has %d live cursor rows, and must have one", table, cursors)}
	case found != wanted:
		return &BrokenError{fmt.Sprintf("%s comes to %s up to seq %d, and must come to %s", table, found, written, wanted)}
	}
	return nil
}
