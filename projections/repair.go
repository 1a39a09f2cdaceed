package projections

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Error codes of ClickHouse. A part whose files are empty or cut, as a full disk leaves them,
// gives one of corruptCodes to every reader; which one depends on the file that is read
// first. A disk that is full gives one of fullCodes, or an error of the operating system.
var (
	corruptCodes = []int32{
		27,  // CANNOT_PARSE_INPUT_ASSERTION_FAILED
		32,  // ATTEMPT_TO_READ_AFTER_EOF
		33,  // CANNOT_READ_ALL_DATA
		40,  // CHECKSUM_DOESNT_MATCH
		74,  // CANNOT_READ_FROM_FILE_DESCRIPTOR
		107, // FILE_DOESNT_EXIST
		226, // NO_FILE_IN_DATA_PART
		227, // UNEXPECTED_FILE_IN_DATA_PART
		228, // BAD_SIZE_OF_FILE_IN_DATA_PART
		246, // CORRUPTED_DATA
		271, // CANNOT_DECOMPRESS
	}
	fullCodes = []int32{
		243, // NOT_ENOUGH_SPACE
	}
)

const noSpace = "No space left on device"

// corrupted reports whether ClickHouse could not read what it has stored.
func corrupted(err error) bool {
	e, ok := errors.AsType[*clickhouse.Exception](err)
	return ok && slices.Contains(corruptCodes, e.Code)
}

// diskFull reports whether ClickHouse had no space to write.
func diskFull(err error) bool {
	if err == nil {
		return false
	}
	e, ok := errors.AsType[*clickhouse.Exception](err)
	return ok && slices.Contains(fullCodes, e.Code) || strings.Contains(err.Error(), noSpace)
}

// denied reports whether the login may not do what was asked.
func denied(err error) bool {
	const notEnoughPrivileges = 497
	e, ok := errors.AsType[*clickhouse.Exception](err)
	return ok && e.Code == notEnoughPrivileges
}

// explained says what to do about an error of a term that an operator can end.
func explained(err error) error {
	switch {
	case diskFull(err):
		return fmt.Errorf("the disk of ClickHouse is full: free space, and project goes on by itself (docs/operations.md): %w", err)
	case corrupted(err):
		return fmt.Errorf("ClickHouse cannot read a part of the generation: project looks for broken parts and repairs what it can; if this stays, run `navlog projection rebuild` (docs/operations.md): %w", err)
	}
	return err
}

// repairEvery is the least time between two searches for broken parts, which read everything.
const repairEvery = 30 * time.Second

// Outcomes of a search for broken parts.
const (
	repairNone   = "none"   // no part is broken
	repairDone   = "done"   // each broken part was replaced by those that it was merged from
	repairLost   = "lost"   // rows are lost: the generation is bad
	repairFailed = "failed" // it could not be made
)

var repairOutcomes = []string{repairNone, repairDone, repairLost, repairFailed}

// part is a part of a table.
type part struct {
	name, partition string
	first, last     int64 // numbers of the blocks that it is made of
	rows            uint64
}

// repair looks for broken parts where the keeper suspects some, and replaces each by the parts that it was merged from, where
// these are still on the disk, for about eight minutes after the merge. The lease is held. To
// attach a table again makes ClickHouse load it as at a start: it puts a broken part aside and
// loads the parts that this one covers. If they do not hold all of its rows, the generation is
// broken, and the error is the verdict.
func (k *keeper) repair(ctx context.Context) error {
	if k.clickhouse.Cluster != "" { // ClickHouse fetches a broken part from another replica
		k.suspect = false
		return nil
	}
	if err := k.attach(ctx, k.conn); err != nil { // also what an interrupted repair has detached
		return err
	}
	if len(k.broken) == 0 && (!k.suspect || time.Since(k.searched) < k.repairs) {
		return nil
	}
	k.searched = time.Now()
	conn, err := k.openPatient("")
	if err != nil {
		return err
	}
	defer conn.Close()
	outcome := repairNone
	for _, table := range write.Tables {
		repaired, err := k.repairTable(ctx, conn, table)
		if broken := new(verify.BrokenError); errors.As(err, &broken) {
			k.metrics.repairs.WithLabelValues(repairLost).Inc()
			return k.judge(ctx, err)
		}
		if denied(err) && len(k.broken) == 0 { // what was not detached is as it was, and the writer may have no need of it
			k.log.Error("broken parts not looked for: give the login the rights of docs/operations.md", "error", err)
			outcome = repairFailed
			break
		}
		if err != nil {
			k.metrics.repairs.WithLabelValues(repairFailed).Inc()
			return fmt.Errorf("repair broken parts of %s.%s: %w", k.database, table, err)
		}
		if repaired {
			outcome = repairDone
		}
	}
	k.metrics.repairs.WithLabelValues(outcome).Inc()
	k.suspect = false
	return nil
}

// repairTable repairs one table. What it detaches stays noted in k.broken until it is known
// whether the rows are there, for attaching may fail while a question still reads the table.
func (k *keeper) repairTable(ctx context.Context, conn driver.Conn, table string) (repaired bool, err error) {
	if len(k.broken[table]) == 0 {
		if err := k.detach(ctx, conn, table); err != nil || len(k.broken[table]) == 0 {
			return false, err
		}
		if err := k.attach(ctx, conn); err != nil {
			return false, err
		}
	}
	after, err := k.parts(ctx, conn, table)
	if err != nil {
		return false, err
	}
	for _, p := range k.broken[table] {
		if !replaced(p, after, table == readmodel.ListsTable.Name) {
			return false, verify.Broken(fmt.Sprintf("part %s of %s.%s is broken, as after a full disk, and the parts that it was merged from are not there any more", p.name, k.database, table))
		}
	}
	k.log.Info("broken parts repaired", "table", table, "parts", len(k.broken[table]))
	delete(k.broken, table)
	return true, nil
}

// detach detaches a table that has broken parts, and notes them.
func (k *keeper) detach(ctx context.Context, conn driver.Conn, table string) error {
	before, err := k.parts(ctx, conn, table)
	if err != nil || len(before) == 0 {
		return err
	}
	names, err := k.brokenParts(ctx, conn, table)
	if err != nil || len(names) == 0 {
		return err
	}
	k.log.Error("broken parts, loading the parts that they were merged from", "table", table, "parts", names)
	if err := conn.Exec(ctx, "DETACH TABLE "+k.database+"."+table); err != nil {
		return fmt.Errorf("detach the table: %w", err)
	}
	if k.broken == nil {
		k.broken = map[string][]part{}
	}
	for _, p := range before {
		if slices.Contains(names, p.name) {
			k.broken[table] = append(k.broken[table], p)
		}
	}
	return nil
}

// replaced reports whether parts, in the order of parts.sql, hold all rows of a broken one. The
// table events keeps every row in a merge, so the rows are counted. The table lists loses rows that
// cancel each other: its parts must have every block number of the broken one, with no gap. Parts
// that the engine has merged with later ones meanwhile count, for no merge loses them.
func replaced(broken part, parts []part, collapses bool) bool {
	var rows uint64
	next, end := broken.first, broken.first-1
	for _, p := range parts {
		if p.partition != broken.partition || p.first < broken.first || p.last > broken.last || p.last <= end {
			continue // of other rows, or merged into the one before
		}
		end = p.last
		rows += p.rows
		if p.first == next {
			next = p.last + 1
		}
	}
	if collapses {
		return next == broken.last+1
	}
	return rows == broken.rows
}

//go:embed sql/parts.sql
var sqlParts string

func (k *keeper) parts(ctx context.Context, conn driver.Conn, table string) (out []part, err error) {
	rows, err := conn.Query(ctx, sqlParts, clickhouse.Named("database", k.database), clickhouse.Named("table", table))
	if err != nil {
		return nil, fmt.Errorf("list the parts: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var p part
		if err := rows.Scan(&p.name, &p.partition, &p.first, &p.last, &p.rows); err != nil {
			return nil, fmt.Errorf("list the parts: %w", err)
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// brokenParts reads all of a table and gives the parts that cannot be read.
func (k *keeper) brokenParts(ctx context.Context, conn driver.Conn, table string) (names []string, err error) {
	rows, err := conn.Query(ctx, "CHECK TABLE "+k.database+"."+table+" SETTINGS check_query_single_value_result = 0")
	if err != nil {
		return nil, fmt.Errorf("check the parts: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, why string
		var sound bool
		if err := rows.Scan(&name, &sound, &why); err != nil {
			return nil, fmt.Errorf("check the parts: %w", err)
		}
		if !sound {
			k.log.Warn("broken part", "table", table, "part", name, "error", why)
			names = append(names, name)
		}
	}
	return names, rows.Err()
}

// attach attaches the tables that a repair has detached, also one that was interrupted.
func (k *keeper) attach(ctx context.Context, conn driver.Conn) error {
	if k.clickhouse.Cluster != "" {
		return nil
	}
	var tables []string
	err := conn.QueryRow(ctx, "SELECT groupArray(table) FROM system.detached_tables WHERE database = {database:String}", clickhouse.Named("database", k.database)).Scan(&tables)
	if denied(err) && len(k.broken) == 0 {
		return nil // a login of before there were repairs, which detached none
	}
	if err != nil {
		return fmt.Errorf("look for detached tables of %s: %w", k.database, err)
	}
	for _, table := range tables {
		if !slices.Contains(write.Tables, table) {
			continue // not ours
		}
		if err := conn.Exec(ctx, "ATTACH TABLE "+k.database+"."+table); err != nil {
			return fmt.Errorf("attach %s.%s again: %w", k.database, table, err)
		}
	}
	return nil
}
