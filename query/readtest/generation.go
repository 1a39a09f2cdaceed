package readtest

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Writer is the id of the writer in all rows.
const Writer = uint64(1)

// Generation is a database that is filled out of a log.
type Generation struct {
	ID       int32
	Config   readmodel.Config
	Database string
	Conn     driver.Conn // of the writer

	t       testing.TB
	written map[string]uint64 // by table: the seq up to which it holds the log
	fence   readmodel.Fence
}

// generations keeps tests apart: they share the engine and the prefix that the
// read-only login may read.
var generations atomic.Int32

// Config is that of the engine at an address, with the login that only reads.
func Config(clickHouse string) readmodel.Config {
	c := readmodel.DefaultConfig()
	c.Addr, c.QueryUser = clickHouse, "navlog_query"
	return c
}

// Building makes a generation that has the spine and facts only.
func Building(t testing.TB, clickHouse string) *Generation {
	t.Helper()
	c := Config(clickHouse)
	g := &Generation{t: t, ID: generations.Add(1), Config: c, written: map[string]uint64{}}
	g.Database = c.Database(g.ID)
	admin, err := c.Open("")
	g.must(err)
	defer admin.Close()
	g.must(c.Create(context.Background(), admin, g.Database))
	g.Conn, err = c.Open(g.Database)
	g.must(err)
	t.Cleanup(func() { g.Conn.Close() })
	return g
}

// New makes a generation whose tables are all there, and empty.
func New(t testing.TB, clickHouse string) *Generation {
	t.Helper()
	g := Building(t, clickHouse)
	g.Derive()
	return g
}

// Derive makes the derived tables, with a cursor each.
func (g *Generation) Derive() {
	g.t.Helper()
	ctx := context.Background()
	for _, table := range readmodel.Derived {
		draft := table + "_draft"
		g.must(g.Config.CreateDerived(ctx, g.Conn, g.Database, table, draft))
		g.must(g.Config.Publish(ctx, g.Conn, g.Database, table, draft))
		g.writeCursor(table, 1, 0, g.fence)
	}
}

// Write writes what the log has more than the generation: facts, derived rows, the
// spine. All that is new is taken for one unit of project.
func (g *Generation) Write(l *Log) {
	g.t.Helper()
	g.WriteFacts(l)
	g.WriteDerived(l)
	g.WriteSpine(l)
}

// WriteFacts is the first part of Write.
func (g *Generation) WriteFacts(l *Log) {
	g.t.Helper()
	rows := map[string][][]any{}
	for _, e := range l.Entries[g.written["facts"]:] {
		if table, row := factRow(e); table != "" && !e.Passed {
			rows[table] = append(rows[table], row)
		}
	}
	for table, some := range rows {
		g.Insert(table, columns[table], some)
	}
	g.written["facts"] = l.Seq()
}

// WriteDerived is its second part: the facts must be there. A unit that takes anything
// back, or adds something at or below the newest block, raises the fence.
func (g *Generation) WriteDerived(l *Log) {
	g.t.Helper()
	seq := l.Seq()
	was := g.fence
	if since := g.written["derived"]; since > 0 {
		if ancestor, rewrites := l.rewritten(since); rewrites {
			g.fence = readmodel.Fence{Seq: seq, Block: ancestor, Before: was.Seq}
		}
	}
	for _, table := range readmodel.Derived {
		g.deriveTable(table, seq, readmodel.Cursor{Seq: g.written["derived"], Fence: was}, readmodel.Cursor{Seq: seq, Fence: g.fence})
	}
	g.written["derived"] = seq
}

// WriteSpine is its last part, by which the unit is there.
func (g *Generation) WriteSpine(l *Log) {
	g.t.Helper()
	var rows [][]any
	for _, e := range l.Entries[g.written[readmodel.Spine]:] {
		rows = append(rows, spineRow(e, l.ChainID))
	}
	if len(rows) > 0 {
		g.Insert(readmodel.Spine, columns[readmodel.Spine], rows)
	}
	g.written[readmodel.Spine] = l.Seq()
}

// rewritten tells whether the records after a seq change what was said of blocks that
// were indexed, and which block is the last that they leave as it was.
func (l *Log) rewritten(since uint64) (ancestor uint64, rewrites bool) {
	head := uint64(0)
	for _, e := range l.Live(since, 1<<62) {
		head = max(head, e.Block)
	}
	ancestor = head
	for _, e := range l.Entries[since:] {
		if e.Kind != Vault && (e.Retracts != 0 || e.Block <= head) {
			rewrites = true
			ancestor = min(ancestor, e.Block-1)
		}
	}
	return ancestor, rewrites
}

// shown are the columns of a derived table that say something, as its definition gives
// them.
var shown = map[string]string{
	readmodel.Withdrawals:   "list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, closed_by",
	readmodel.Users:         "list, vault, partner, key, user, first_block, first_ts, deposited, withdrawn",
	readmodel.PartnerTotals: "partner, vault, from_block, until_block, deposits, volume",
}

// typed are they as the table has them.
var typed = map[string]string{
	readmodel.Withdrawals:   "toString(list) AS list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, toString(closed_by) AS closed_by",
	readmodel.Users:         "toString(list) AS list, vault, partner, key, user, first_block, first_ts, deposited, withdrawn",
	readmodel.PartnerTotals: shown[readmodel.PartnerTotals],
}

// isCursor is true for the row of a table that is its cursor.
var isCursor = map[string]string{
	readmodel.Withdrawals:   "list = 'cursor'",
	readmodel.Users:         "list = 'cursor'",
	readmodel.PartnerTotals: "partner = 0",
}

// deriveTable brings a table to what its definition says at a seq, with its cursor, in
// one insert that is one part: what is no longer true is taken back before what is true
// now is added.
func (g *Generation) deriveTable(table string, seq uint64, was, now readmodel.Cursor) {
	g.t.Helper()
	ctx := readmodel.Parameters(context.Background(), map[string]uint64{"seq": seq})
	held, wanted := g.held(table), wanted(table)
	rows := func(sign int, rows, except string) string {
		return fmt.Sprintf("SELECT %d AS sign, {seq:UInt64} AS seq, 0 AS fence_seq, 0 AS fence_block, 0 AS fence_before, %s FROM (%s EXCEPT %s)", sign, shown[table], rows, except)
	}
	cursor := func(sign int, c readmodel.Cursor) string {
		return fmt.Sprintf("SELECT %d, %d, %d, %d, %d, %s", sign, c.Seq, c.Fence.Seq, c.Fence.Block, c.Fence.Before, cursorRow[table])
	}
	g.must(g.Conn.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (sign, seq, fence_seq, fence_block, fence_before, %s, writer)
		SELECT *, %d FROM (%s) ORDER BY sign SETTINGS max_threads = 1, min_insert_block_size_rows = 1000000, min_insert_block_size_bytes = 1000000000`,
		table, shown[table], Writer, strings.Join([]string{rows(-1, held, wanted), cursor(-1, was), rows(1, wanted, held), cursor(1, now)}, " UNION ALL "))))
}

// cursorRow is what a cursor row has in the columns of shown.
var cursorRow = map[string]string{
	readmodel.Withdrawals:   "'cursor', toFixedString('', 20), 0, 0, toFixedString('', 20), 0, toFixedString('', 20), toInt256(0), 0, 0, 0, 0, ''",
	readmodel.Users:         "'cursor', toFixedString('', 20), toUInt32(0), toInt256(0), toFixedString('', 20), 0, 0, toInt256(0), toInt256(0)",
	readmodel.PartnerTotals: "toUInt32(0), toFixedString('', 20), 0, {never:UInt64}, 0, toInt256(0)",
}

// held are the live rows of a derived table, and wanted what its definition says.
func (g *Generation) held(table string) string {
	return fmt.Sprintf("SELECT %s FROM (SELECT sign, %s FROM %s WHERE NOT %s) GROUP BY %s HAVING sum(sign) > 0",
		shown[table], typed[table], table, isCursor[table], shown[table])
}

func wanted(table string) string {
	return "SELECT " + shown[table] + " FROM (" + readmodel.Definition(table) + ")"
}

func (g *Generation) writeCursor(table string, sign int8, seq uint64, fence readmodel.Fence) {
	g.t.Helper()
	names, values := "sign, seq, writer, fence_seq, fence_block, fence_before", []any{sign, seq, Writer, fence.Seq, fence.Block, fence.Before}
	if table == readmodel.PartnerTotals {
		names, values = names+", until_block", append(values, readmodel.Never)
	}
	g.Insert(table, names, [][]any{values})
}

// eventNames are what the contracts call what their logs say.
var eventNames = map[Kind]string{
	Deposit: "DepositAccepted", Request: "WithdrawalRequested", Funding: "WithdrawalFunded", Claim: "WithdrawalClaimed",
	Cancel: "WithdrawalCancelled", Expiry: "WithdrawalExpired", Nav: "NavUpdated", Sweep: "DepositsSwept", Settlement: "WithdrawalsSettled",
}

var columns = map[string]string{
	readmodel.Spine:            "seq, sign, retracts, writer, kind, event, boundary, quarantined, passed, block, hash, ts, vault, user, tx, log_index, payload",
	readmodel.Deposits:         "seq, sign, retracts, writer, vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index",
	readmodel.WithdrawalEvents: "seq, sign, retracts, writer, vault, request_index, kind, user, receiver, partner, shares, assets, expires_ts, block, ts, tx, log_index",
	readmodel.Navs:             "seq, sign, retracts, writer, vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index",
	readmodel.Sweeps:           "seq, sign, retracts, writer, vault, from_id, to_id, assets, block, ts, tx, log_index",
}

func (e Entry) sign() int8 {
	if e.Retracts != 0 {
		return -1
	}
	return 1
}

func spineRow(e Entry, chainID uint64) []any {
	kind, ts, payload := "log", e.At(), ""
	switch e.Kind {
	case Block:
		kind = "block"
	case Vault:
		kind, ts = "vault", 0
		b, err := proto.Marshal(&event.Record{Seq: e.Seq, Retracts: e.Retracts, ChainId: chainID, Fact: &event.Record_Vault{Vault: e.Meta}})
		if err != nil {
			panic(err)
		}
		payload = string(b)
	case Settlement:
		payload = settlement(e, chainID)
	}
	vault, user := e.Fact.Vault, e.User
	if e.Kind == Vault {
		vault = common.BytesToAddress(e.Meta.Address)
	}
	if e.Quarantined || !ofUser[e.Kind] {
		user = common.Address{}
	}
	return []any{e.Seq, e.sign(), e.Retracts, Writer, kind, eventNames[e.Kind], e.Boundary, e.Quarantined, e.Passed, e.Block, e.Hash.Bytes(), ts, vault.Bytes(), user.Bytes(), e.Tx.Bytes(), e.Index, payload}
}

// ofUser are the kinds of facts that name a user.
var ofUser = map[Kind]bool{Deposit: true, Request: true, Funding: true, Claim: true, Cancel: true, Expiry: true}

// settlement is the record of a log that no table of facts has.
func settlement(e Entry, chainID uint64) string {
	n := big.NewInt
	topics, data, err := contracts.Encode(contracts.WithdrawalsSettled{SettlementID: n(int64(e.ID)), RequestCount: n(1), Shares: n(e.Shares), Assets: n(e.Assets), NavPerShare: n(e.Price)})
	if err != nil {
		panic(err)
	}
	l := &event.Log{Address: e.Fact.Vault.Bytes(), Data: data, BlockNumber: e.Block, BlockTime: uint64(BlockTime(e.Block)), TxHash: e.Tx.Bytes(), LogIndex: e.Index}
	for _, topic := range topics {
		l.Topics = append(l.Topics, topic.Bytes())
	}
	b, err := proto.Marshal(&event.Record{Seq: e.Seq, Retracts: e.Retracts, ChainId: chainID, Fact: &event.Record_Log{Log: l}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// requestKinds are what withdrawal_events calls its facts.
var requestKinds = map[Kind]string{Request: "requested", Funding: "funded", Claim: "claimed", Cancel: "cancelled", Expiry: "expired"}

func factRow(e Entry) (table string, row []any) {
	if e.Quarantined {
		return "", nil
	}
	start := []any{e.Seq, e.sign(), e.Retracts, Writer, e.Fact.Vault.Bytes()}
	end := []any{e.Block, e.At(), e.Tx.Bytes(), e.Index}
	n := big.NewInt
	switch e.Kind {
	case Deposit:
		return readmodel.Deposits, slices.Concat(start, []any{e.ID, e.User.Bytes(), e.Other.Bytes(), e.Partner, n(e.Assets), n(e.Shares)}, end)
	case Nav:
		return readmodel.Navs, slices.Concat(start, []any{n(e.Price), n(e.Assets), n(e.Supply)}, end)
	case Sweep:
		return readmodel.Sweeps, slices.Concat(start, []any{e.ID, e.To, n(e.Assets)}, end)
	case Request, Funding, Claim, Cancel, Expiry:
		of := e
		if e.Kind != Request {
			of.Other, of.Partner, of.Shares, of.Expires = [20]byte{}, 0, 0, 0
		}
		if e.Kind == Cancel || e.Kind == Expiry {
			of.Assets = 0
		}
		return readmodel.WithdrawalEvents, slices.Concat(start, []any{e.ID, requestKinds[e.Kind], e.User.Bytes(), of.Other.Bytes(), of.Partner, n(of.Shares), n(of.Assets), of.Expires}, end)
	}
	return "", nil
}

// Insert writes rows into a table.
func (g *Generation) Insert(table, names string, rows [][]any) {
	g.t.Helper()
	batch, err := g.Conn.PrepareBatch(context.Background(), "INSERT INTO "+table+" ("+names+")")
	g.must(err)
	defer batch.Close()
	for _, row := range rows {
		if err := batch.Append(row...); err != nil {
			g.t.Fatalf("insert into %s: %v", table, err)
		}
	}
	if err := batch.Send(); err != nil {
		g.t.Fatalf("insert into %s: %v", table, err)
	}
}

// Wrong is how many rows a derived table has that its definition has not at a seq, and
// the other way round.
func (g *Generation) Wrong(table string, seq uint64) (rows uint64) {
	g.t.Helper()
	held, wanted := g.held(table), wanted(table)
	ctx := readmodel.Parameters(context.Background(), map[string]uint64{"seq": seq})
	question := fmt.Sprintf("SELECT count() FROM ((%[1]s EXCEPT %[2]s) UNION ALL (%[2]s EXCEPT %[1]s))", held, wanted)
	g.must(g.Conn.QueryRow(ctx, question).Scan(&rows))
	return rows
}

// Count is how many rows there are of a table, which may have a WHERE.
func (g *Generation) Count(of string) (rows uint64) {
	g.t.Helper()
	g.must(g.Conn.QueryRow(context.Background(), "SELECT count() FROM "+of).Scan(&rows))
	return rows
}

// Exec runs a statement in the database of the generation.
func (g *Generation) Exec(statement string) {
	g.t.Helper()
	g.must(g.Conn.Exec(context.Background(), statement))
}

func (g *Generation) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(strings.TrimSpace(err.Error()))
	}
}
