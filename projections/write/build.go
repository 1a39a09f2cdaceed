package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// draftMark is in the name of a derived table that is not finished.
const draftMark = "_draft_"

// clean removes what an interrupted Derive left: drafts, and where not all derived
// tables got their names, those that did. Nobody has read them.
func (w *Writer) clean(ctx context.Context, derived []string) error {
	var tables []string
	rows, err := w.conn.Query(ctx, "SELECT name FROM system.tables WHERE database = {database:String}", clickhouse.Named("database", w.database))
	if err != nil {
		return fmt.Errorf("read the tables of %s: %w", w.database, err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return fmt.Errorf("read the tables of %s: %w", w.database, err)
		}
		if strings.Contains(name, draftMark) {
			tables = append(tables, name)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the tables of %s: %w", w.database, err)
	}
	if len(derived) < len(readmodel.Derived) {
		tables = append(tables, derived...)
	}
	for _, table := range tables {
		if err := w.ch.Discard(ctx, w.conn, w.database, table); err != nil {
			return err
		}
	}
	return nil
}

// concerning says which facts are of units that concern a derived table, as concerns
// does: their tables, and the condition on their rows.
var concerning = map[string]map[string]string{
	readmodel.Withdrawals:   {readmodel.WithdrawalEvents: "1"},
	readmodel.Users:         {readmodel.Deposits: "1", readmodel.WithdrawalEvents: "kind IN ('requested', 'claimed')"},
	readmodel.PartnerTotals: {readmodel.Deposits: "partner > 0"},
}

// whole tells whether the derived tables have every unit of the spine that concerns them.
// They may lack some: a writer that was paused in Derive goes on when another writer has
// long written more, and makes them as of an older seq. Such tables are removed, to be
// derived again. Before that it waits cursorAge: by then the late writer's cursors are
// too old to be used, and it cannot take the new tables for its own.
func (w *Writer) whole(ctx context.Context) (bool, error) {
	for table, s := range w.derived {
		for facts, of := range concerning[table] {
			var lacking uint64
			between := readmodel.Parameters(ctx, map[string]uint64{"after": s.cursor.Seq, "to": w.Position()})
			if err := w.conn.QueryRow(between, "SELECT count() FROM "+facts+" WHERE seq > {after:UInt64} AND seq <= {to:UInt64} AND "+of).Scan(&lacking); err != nil {
				return false, fmt.Errorf("look for what %s.%s lacks of %s: %w", w.database, table, facts, err)
			}
			if lacking == 0 {
				continue
			}
			w.log.Warn("the derived tables are older than the facts, they are made again", "table", table, "cursor", s.cursor.Seq, "seq", w.Position())
			for _, table := range readmodel.Derived {
				if err := w.ch.Discard(ctx, w.conn, w.database, table); err != nil {
					return false, err
				}
			}
			clear(w.derived)
			return false, pause(ctx, cursorAge)
		}
	}
	return true, nil
}

// Derive makes the derived tables as of the position, each from its definition: as
// a draft under a name that nobody else has, which gets the table's name when it is
// whole. A writer that was stopped and comes late finishes a draft that nobody will
// read. patient is a connection to the generation's database for statements that
// take long.
func (w *Writer) Derive(ctx context.Context, patient driver.Conn) error {
	drafts := map[string]string{}
	for _, table := range readmodel.Derived {
		drafts[table] = fmt.Sprintf("%s%s%x", table, draftMark, w.id)
		if err := w.ch.CreateDerived(ctx, w.conn, w.database, table, drafts[table]); err != nil {
			return err
		}
		if err := w.build(ctx, patient, table, drafts[table]); err != nil {
			return errors.Join(fmt.Errorf("derive %s.%s as of seq %d: %w", w.database, table, w.Position(), err), w.ch.Discard(context.WithoutCancel(ctx), w.conn, w.database, drafts[table]))
		}
	}
	for _, table := range readmodel.Derived {
		if err := w.ch.Publish(ctx, w.conn, w.database, table, drafts[table]); err != nil {
			return err
		}
	}
	for _, table := range readmodel.Derived {
		s, err := w.open(ctx, table)
		if err != nil {
			return err
		}
		w.derived[table] = s
	}
	return w.know(ctx)
}

// build fills a draft, and gives it its cursor.
func (w *Writer) build(ctx context.Context, patient driver.Conn, table, draft string) error {
	columns := dataColumns(table)
	statement := "INSERT INTO " + draft + " (sign, " + columns + ") SELECT 1, " + columns + " FROM (\n" + readmodel.Definition(table) + ")"
	settings := clickhouse.Settings{
		"insert_deduplicate":          0, // no block of it is sent twice, and equal ones must all count
		"max_insert_block_size":       1 << 20,
		"min_insert_block_size_rows":  1 << 20,
		"min_insert_block_size_bytes": 1 << 30,
		"max_insert_threads":          1,
		"max_threads":                 2,
	}
	ask := clickhouse.Context(readmodel.Parameters(ctx, map[string]uint64{"seq": w.Position()}), clickhouse.WithSettings(settings))
	if err := patient.Exec(ask, statement); err != nil {
		return err
	}
	r := newRows(table, w.id)
	r.cursor(readmodel.Cursor{Seq: w.Position(), Writer: w.id}, 1)
	s := &swapper{conn: w.conn, table: draft}
	return s.send(ctx, r, 0)
}

// dataColumns are the columns of a derived table that its definition gives.
func dataColumns(table string) string {
	var names []string
	all := layouts[table]
	for _, l := range all[1 : len(all)-len(cursorColumns)] {
		names = append(names, l.name)
	}
	return strings.Join(names, ", ")
}

// know reads what a writer of a derived generation must know of the spine: the
// vaults, and the newest block.
func (w *Writer) know(ctx context.Context) error {
	records, err := w.vaultRecords(ctx)
	if err != nil {
		return err
	}
	w.vaults, w.said = map[common.Address]bool{}, map[common.Address]bool{}
	for _, r := range records {
		w.said[r.address] = !r.removed
		if !r.Passed {
			w.vaults[r.address] = true
		}
	}
	w.newest, err = w.readNewest(ctx)
	return err
}

// written gives a question the position: another writer may have gone on.
func (w *Writer) written(ctx context.Context) context.Context {
	return readmodel.Parameters(ctx, map[string]uint64{"seq": w.Position()})
}

// vaultRecord is a record about a vault.
type vaultRecord struct {
	Passed  bool   `ch:"passed"`
	Payload string `ch:"payload"`
	address common.Address
	removed bool
}

func (w *Writer) vaultRecords(ctx context.Context) (records []vaultRecord, err error) {
	err = w.conn.Select(w.written(ctx), &records, "SELECT passed, payload FROM records WHERE kind = 'vault' AND sign > 0 AND seq <= {seq:UInt64} ORDER BY seq")
	for i := 0; err == nil && i < len(records); i++ {
		var record event.Record
		err = proto.Unmarshal([]byte(records[i].Payload), &record)
		records[i].address, records[i].removed = common.BytesToAddress(record.GetVault().GetAddress()), record.GetVault().GetRemoved()
	}
	if err != nil {
		return nil, fmt.Errorf("read the vaults of %s: %w", w.database, err)
	}
	return records, nil
}

// LogVaults are the vaults that the log tells of up to the position.
func (w *Writer) LogVaults(ctx context.Context) (out []common.Address, err error) {
	records, err := w.vaultRecords(ctx)
	for _, r := range records {
		if !slices.Contains(out, r.address) {
			out = append(out, r.address)
		}
	}
	return out, err
}

// newestBlock is the question for the newest indexed block: of the records about a
// block the newest one says whether it is indexed.
const newestBlock = `SELECT block FROM (
  SELECT block, sign FROM records WHERE kind = 'block' AND seq <= {seq:UInt64} ORDER BY kind DESC, block DESC, seq DESC LIMIT 1 BY block
) WHERE sign > 0 LIMIT 1`

func (w *Writer) readNewest(ctx context.Context) (newest uint64, err error) {
	rows, err := w.conn.Query(w.written(ctx), newestBlock)
	if err != nil {
		return 0, fmt.Errorf("read the newest block of %s: %w", w.database, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&newest); err != nil {
			return 0, fmt.Errorf("read the newest block of %s: %w", w.database, err)
		}
	}
	return newest, rows.Err()
}
