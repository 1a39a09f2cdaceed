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

// failedWith reports whether an error is one of ClickHouse with one of some codes.
func failedWith(err error, codes ...int32) bool {
	e, ok := errors.AsType[*clickhouse.Exception](err)
	return ok && slices.Contains(codes, e.Code)
}

// corrupted reports whether ClickHouse could not read what it has stored. A part with empty or truncated files, as a
// full disk leaves them, causes one of these codes for every reader, depending on the file that is read first.
func corrupted(err error) bool {
	return failedWith(err,
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
	)
}

// diskFull reports whether an error has the code of ClickHouse for a full disk, or the text of the operating system.
func diskFull(err error) bool {
	const notEnoughSpace = 243
	return failedWith(err, notEnoughSpace) || err != nil && strings.Contains(err.Error(), "No space left on device")
}

func denied(err error) bool {
	const notEnoughPrivileges = 497
	return failedWith(err, notEnoughPrivileges)
}

// explained adds what to do to an error that an operator can resolve.
func explained(err error) error {
	switch {
	case diskFull(err):
		return fmt.Errorf("the disk of ClickHouse is full: free space, and project continues by itself "+
			"(docs/operations.md): %w", err)
	case corrupted(err):
		return fmt.Errorf("ClickHouse cannot read a part of the generation: project looks for broken parts and repairs "+
			"what it can; if this stays, run `navlog projection rebuild` (docs/operations.md): %w", err)
	}
	return err
}

// repairEvery is the minimum time between two searches for broken parts, which read everything.
const repairEvery = 30 * time.Second

// Outcomes of a search for broken parts.
const (
	repairNone   = "none"   // no part is broken
	repairDone   = "done"   // each broken part was replaced by the parts that it was merged from
	repairLost   = "lost"   // rows are lost: the generation is bad
	repairFailed = "failed" // the search failed
)

var repairOutcomes = []string{repairNone, repairDone, repairLost, repairFailed}

type part struct {
	Name      string `ch:"name"`
	Partition string `ch:"partition_id"`
	First     int64  `ch:"min_block_number"`
	Last      int64  `ch:"max_block_number"`
	Rows      uint64 `ch:"rows"`
}

// repair searches for broken parts if the keeper suspects some, and replaces each by the parts that it was merged
// from, if these are still on the disk, as they are for about eight minutes after the merge. The caller has the
// lease. Attaching a table again makes ClickHouse load it as at a start: it sets a broken part aside and loads the
// parts that this one covers. If they do not have all of its rows, the generation is broken, and marked bad.
func (k *keeper) repair(ctx context.Context) error {
	if k.clickhouse.Cluster != "" { // ClickHouse fetches a broken part from another replica
		k.partsSuspect = false
		return nil
	}
	if err := k.attach(ctx, k.conn); err != nil { // also what an interrupted repair has detached
		return err
	}
	if len(k.broken) == 0 && (!k.partsSuspect || time.Since(k.searched) < k.repairs) {
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
		if is[*verify.BrokenError](err) {
			k.metrics.repairs.WithLabelValues(repairLost).Inc()
			return verify.MarkIfBroken(ctx, k.pool, k.ID, err)
		}
		if denied(err) && len(k.broken) == 0 { // what was not detached is unchanged, and the writer may not need it
			k.log.Error("broken parts not searched for: grant the login the rights in docs/operations.md", "error", err)
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
	k.partsSuspect = false
	return nil
}

// repairTable repairs one table. What it detaches stays in k.broken until it is known whether the rows are there,
// because attaching may fail while a query still reads the table.
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
			return false, verify.Broken("part %s of %s.%s is broken, as after a full disk, and the parts that it "+
				"was merged from are not there any more", p.Name, k.database, table)
		}
	}
	k.log.Info("broken parts repaired", "table", table, "parts", len(k.broken[table]))
	delete(k.broken, table)
	return true, nil
}

// detach detaches a table that has broken parts, and records them.
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
		if slices.Contains(names, p.Name) {
			k.broken[table] = append(k.broken[table], p)
		}
	}
	return nil
}

// replaced reports whether parts, in the order of parts.sql, have all rows of a broken one. A merge of the table
// events keeps every row, so the rows are counted. A merge of lists removes rows that cancel each other: its parts
// must have every block number of the broken one, without a gap. Parts that the engine has merged with later ones
// since then count too, because no merge loses them.
func replaced(broken part, parts []part, collapses bool) bool {
	var rows uint64
	next, end := broken.First, broken.First-1
	for _, p := range parts {
		if p.Partition != broken.Partition || p.First < broken.First || p.Last > broken.Last || p.Last <= end {
			continue // it has other rows, or was merged into the previous one
		}
		end = p.Last
		rows += p.Rows
		if p.First == next {
			next = p.Last + 1
		}
	}
	if collapses {
		return next == broken.Last+1
	}
	return rows == broken.Rows
}

//go:embed sql/parts.sql
var sqlParts string

func (k *keeper) parts(ctx context.Context, conn driver.Conn, table string) (out []part, err error) {
	if err := conn.Select(ctx, &out, sqlParts, clickhouse.Named("database", k.database),
		clickhouse.Named("table", table)); err != nil {
		return nil, fmt.Errorf("list the parts: %w", err)
	}
	return out, nil
}

// brokenParts reads the whole table and returns the parts that cannot be read.
func (k *keeper) brokenParts(ctx context.Context, conn driver.Conn, table string) (names []string, err error) {
	var parts []struct {
		Name  string `ch:"part_path"`
		Sound bool   `ch:"is_passed"`
		Why   string `ch:"message"`
	}
	if err := conn.Select(ctx, &parts,
		"CHECK TABLE "+k.database+"."+table+" SETTINGS check_query_single_value_result = 0"); err != nil {
		return nil, fmt.Errorf("check the parts: %w", err)
	}
	for _, p := range parts {
		if !p.Sound {
			k.log.Warn("broken part", "table", table, "part", p.Name, "error", p.Why)
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// attach attaches the tables that a repair has detached, including an interrupted one.
func (k *keeper) attach(ctx context.Context, conn driver.Conn) error {
	var tables []string
	err := conn.QueryRow(ctx, "SELECT groupArray(table) FROM system.detached_tables WHERE database = {database:String}",
		clickhouse.Named("database", k.database)).Scan(&tables)
	if denied(err) && len(k.broken) == 0 {
		return nil // a login from before repairs existed, which has detached none
	}
	if err != nil {
		return fmt.Errorf("look for detached tables of %s: %w", k.database, err)
	}
	for _, table := range tables {
		if !slices.Contains(write.Tables, table) {
			continue // not a table of navlog
		}
		if err := conn.Exec(ctx, "ATTACH TABLE "+k.database+"."+table); err != nil {
			return fmt.Errorf("attach %s.%s again: %w", k.database, table, err)
		}
	}
	return nil
}
