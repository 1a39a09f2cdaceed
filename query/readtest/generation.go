package readtest

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Writer is the writer id in all rows.
const Writer = uint64(1)

// Generation is a database that is filled from a log.
type Generation struct {
	ID       int32
	Config   readmodel.Config
	Database string
	Conn     driver.Conn // of the writer

	t       testing.TB
	session driver.Conn // for the definitions
	events  uint64      // the seq up to which the table events is written
	written uint64      // the same for lists
}

// generations keeps tests apart: they share the engine and the prefix that the read-only login has access to.
var generations atomic.Int32

// Config returns the configuration of the engine at an address, with the read-only login.
func Config(clickHouse string) readmodel.Config {
	c := readmodel.DefaultConfig()
	c.Addr, c.QueryUser = clickHouse, "navlog_query"
	return c
}

// New returns a generation with empty tables.
func New(t testing.TB, clickHouse string) *Generation {
	t.Helper()
	c := Config(clickHouse)
	g := &Generation{t: t, ID: generations.Add(1), Config: c}
	g.Database = c.Database(g.ID)
	admin, err := c.Open("")
	g.must(err)
	defer admin.Close()
	g.must(admin.Exec(context.Background(), "CREATE DATABASE "+g.Database+" ENGINE = Atomic"))
	g.must(admin.Exec(context.Background(), readmodel.EventsTable.DDL(g.Database)))
	g.must(admin.Exec(context.Background(), readmodel.ListsTable.DDL(g.Database)))
	g.Conn, err = c.Open(g.Database)
	g.must(err)
	g.session, err = c.OpenSession(g.Database)
	g.must(err)
	t.Cleanup(func() {
		g.Conn.Close()
		g.session.Close()
	})
	return g
}

// Write writes what is new in the log: events, and then lists. Everything new counts as one unit of project.
func (g *Generation) Write(l *Log) {
	g.t.Helper()
	g.WriteEvents(l)
	g.WriteLists(l)
}

// WriteEvents is the first part of Write.
func (g *Generation) WriteEvents(l *Log) {
	g.t.Helper()
	rows := readmodel.EventsTable.NewRows()
	for _, e := range l.Entries[g.events:] {
		rows.Add(eventRow(e, l.ChainID))
	}
	if rows.Len() == 0 {
		return
	}
	batch, err := g.Conn.PrepareBatch(context.Background(), "INSERT INTO events ("+readmodel.EventsTable.Names()+")")
	g.must(err)
	defer batch.Close()
	g.must(rows.Fill(batch.Columns()))
	g.must(batch.Send())
	g.events = l.Seq()
}

// InsertLists inserts rows into lists directly, in addition to those derived from the log.
func (g *Generation) InsertLists(lists []readmodel.ListRow) {
	g.t.Helper()
	rows := readmodel.ListsTable.NewRows()
	for i := range lists {
		rows.Add(&lists[i])
	}
	batch, err := g.Conn.PrepareBatch(context.Background(), "INSERT INTO lists ("+readmodel.ListsTable.Names()+")")
	g.must(err)
	defer batch.Close()
	g.must(rows.Fill(batch.Columns()))
	g.must(batch.Send())
}

// changed is a row that is added to or removed from lists.
type changed struct {
	List  string         `ch:"list"`
	Kind  string         `ch:"kind"`
	Owner common.Address `ch:"owner"`
	Vault common.Address `ch:"vault"`
	User  common.Address `ch:"user"`
}

// longLog is the number of records above which the first write builds the lists, as project does, instead of writing
// one unit.
const longLog = 50_000

// WriteLists is the last part of Write, which completes the unit: it updates lists to match their definitions. It
// uses a single insert that becomes a single part, in which the rows that cancel old ones precede the new ones.
func (g *Generation) WriteLists(l *Log) {
	g.t.Helper()
	seq := l.Seq()
	if g.written == 0 && seq > longLog {
		g.must(readmodel.BuildLists(context.Background(), g.session, readmodel.ListsTable.Name, seq, 0))
		g.written = seq
		return
	}
	ctx := readmodel.Parameters(context.Background(), nil)
	held := "SELECT " + listed + " FROM lists WHERE list != 'touched' GROUP BY " + listed + " HAVING sum(sign) > 0"
	wanted := "SELECT " + listed + " FROM " + g.wanted(ctx, seq)
	gone, come := "("+held+") EXCEPT ("+wanted+")", "("+wanted+") EXCEPT ("+held+")"
	var changes []changed
	g.must(g.Conn.Select(ctx, &changes, "SELECT list, kind, owner, vault, user FROM ("+gone+") UNION ALL SELECT list, kind, owner, vault, user FROM ("+come+")"))
	keys := map[string]bool{}
	for _, c := range changes {
		list, _ := readmodel.ListNamed(c.List)
		kind, _ := readmodel.KindNamed(c.Kind)
		row := readmodel.ListRow{List: list, Kind: kind, Owner: c.Owner, Vault: c.Vault, User: c.User}
		for _, key := range row.Touches() {
			keys[fmt.Sprintf("unhex('%x')", key[:])] = true
		}
	}
	ancestor, rewrites := l.rewritten(g.written)
	id := uint64(0)
	if rewrites {
		id = ancestor + 1
	}
	touched := fmt.Sprintf("SELECT * REPLACE ('touched' AS list, toInt256(%[1]d) AS key, toUInt64(%[1]d) AS seq, toUInt64(%[2]d) AS id, CAST([%[3]s], 'Array(FixedString(21))') AS touched) FROM (%[4]s) LIMIT 1",
		seq, id, strings.Join(slices.Sorted(maps.Keys(keys)), ", "), "SELECT "+listed+" FROM ("+blank()+")")
	g.must(g.Conn.Exec(ctx, fmt.Sprintf(`INSERT INTO lists (sign, %[1]s) SELECT * FROM (SELECT toInt8(-1) AS sign, * FROM (%[2]s) UNION ALL SELECT toInt8(1), * FROM (%[3]s) UNION ALL SELECT toInt8(1), * FROM (%[4]s))
		ORDER BY sign SETTINGS max_threads = 1, min_insert_block_size_rows = 1000000, min_insert_block_size_bytes = 1000000000`, listed, gone, come, touched)))
	g.written = seq
}

// wanted returns a table with the live rows of lists up to a seq, by their definitions. Most tests begin with the same
// log, and the definitions take a second of processor time, so a first write is kept for the next test.
func (g *Generation) wanted(ctx context.Context, seq uint64) string {
	g.t.Helper()
	derive := func() {
		g.t.Helper()
		g.must(g.Conn.Exec(ctx, "CREATE OR REPLACE TABLE wanted AS lists ENGINE = Memory"))
		g.must(readmodel.Derive(context.Background(), g.session, seq))
		for _, d := range readmodel.Definitions {
			g.must(g.session.Exec(ctx, "INSERT INTO wanted (sign, "+d.Columns+") SELECT 1, "+d.Columns+" FROM ("+d.SQL()+")"))
		}
	}
	if g.written > 0 {
		derive()
		return "wanted"
	}
	var events string // all rows of the table, which tests also change without a log
	g.must(g.Conn.QueryRow(ctx, "SELECT concat(toString(count()), '_', hex(sum(sipHash64(*))), hex(sum(cityHash64(*)))) FROM events").Scan(&events))
	table := fmt.Sprintf("readtest.wanted_%d_%s", seq, events)
	one, _ := firstWrites.LoadOrStore(g.Config.Addr+" "+table, new(sync.Mutex))
	one.(*sync.Mutex).Lock()
	defer one.(*sync.Mutex).Unlock()
	var kept uint8
	g.must(g.Conn.QueryRow(ctx, "EXISTS TABLE "+table).Scan(&kept))
	if kept == 0 {
		derive()
		g.must(g.Conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS readtest ENGINE = Atomic"))
		g.must(g.Conn.Exec(ctx, "CREATE OR REPLACE TABLE "+table+"_filling ENGINE = MergeTree ORDER BY () AS SELECT * FROM wanted"))
		g.must(g.Conn.Exec(ctx, "RENAME TABLE "+table+"_filling TO "+table))
	}
	return table
}

// firstWrites has a mutex for each kept table of wanted, so that parallel tests derive it once.
var firstWrites sync.Map

// listed are the columns of lists except sign.
var listed = strings.ReplaceAll(readmodel.ListsTable.Names(), " sign,", "")

// blank returns a query for a row of lists in which every column has its default.
func blank() string {
	var columns []string
	for _, c := range readmodel.ListsTable.Columns {
		if c.Name != "sign" {
			columns = append(columns, fmt.Sprintf("defaultValueOfTypeName('%s') AS %s", strings.ReplaceAll(c.Type, "'", "\\'"), c.Name))
		}
	}
	return "SELECT " + strings.Join(columns, ", ")
}

// rewritten reports whether the records after a seq retract any others, and the last block that they leave unchanged.
func (l *Log) rewritten(since uint64) (ancestor uint64, rewrites bool) {
	ancestor = readmodel.Never
	for _, e := range l.Entries[since:] {
		if e.Kind != Vault && e.Retracts != 0 {
			rewrites = true
			ancestor = min(ancestor, e.Block-1)
		}
	}
	return ancestor, rewrites
}

// eventNames are the contract event names of the kinds of facts.
var eventNames = map[Kind]string{
	Deposit: "DepositAccepted", Request: "WithdrawalRequested", Funding: "WithdrawalFunded", Claim: "WithdrawalClaimed",
	Cancel: "WithdrawalCancelled", Expiry: "WithdrawalExpired", Nav: "NavUpdated", Sweep: "DepositsSwept", Settlement: "WithdrawalsSettled",
}

// effects are the effects of the kinds of facts.
var effects = map[Kind]readmodel.EffectKind{
	Deposit: readmodel.Deposit, Request: readmodel.Requested, Funding: readmodel.Funded, Claim: readmodel.Claimed, Cancel: readmodel.Cancelled,
	Expiry: readmodel.Expired, Nav: readmodel.Valuation, Sweep: readmodel.Sweep, Settlement: readmodel.Settled,
}

func eventRow(e Entry, chainID uint64) *readmodel.EventRow {
	row := &readmodel.EventRow{Seq: e.Seq, Sign: 1, Retracts: e.Retracts, Writer: Writer, Boundary: e.Boundary, Quarantined: e.Quarantined, Passed: e.Passed,
		Block: e.Block, Hash: e.Hash, TS: e.At(), Vault: e.Fact.Vault, Tx: e.Tx, LogIndex: e.Index, Event: eventNames[e.Kind]}
	if e.Retracts != 0 {
		row.Sign = -1
	}
	switch e.Kind {
	case Block:
		row.Record = readmodel.BlockRecord
		return row
	case Vault:
		row.Record, row.TS, row.Vault = readmodel.VaultRecord, 0, common.BytesToAddress(e.Meta.Address)
		row.Payload = marshalled(&event.Record{Seq: e.Seq, Retracts: e.Retracts, ChainId: chainID, Fact: &event.Record_Vault{Vault: e.Meta}})
		return row
	case Settlement:
		row.Payload = settlement(e, chainID)
	}
	if e.Quarantined {
		return row
	}
	row.Effect, row.Effects = effects[e.Kind], 1
	if ofUser[e.Kind] {
		row.User = e.User
	}
	row.Other, row.Partner, row.ID, row.IDTo, row.Expires = e.Other, e.Partner, e.ID, e.To, e.Expires
	row.Assets, row.Shares, row.Nav = amount(e.Assets), amount(e.Shares), amount(e.Price)
	if e.Largest {
		row.Assets.SubUint64(row.Assets.Lsh(uint256.NewInt(1), 191), 1)
		row.Shares = row.Assets
	}
	switch e.Kind {
	case Nav:
		row.Shares = amount(e.Supply)
		if e.Sampled {
			row.Record, row.Event, row.LogIndex = readmodel.SampleRecord, "", readmodel.SampleIndex
			row.NoAssets, row.NoShares, row.NavDigits = true, true, 18
		}
	case Funding, Claim, Cancel, Expiry: // the reference contracts identify a request by its number
		row.By = readmodel.ByID
	}
	return row
}

// amount converts a number of a fact, none of which is negative.
func amount(n int64) (out readmodel.Amount) {
	out.SetUint64(uint64(n))
	return out
}

func marshalled(r *event.Record) string {
	b, err := proto.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// ofUser are the kinds of facts that name a user.
var ofUser = map[Kind]bool{Deposit: true, Request: true, Funding: true, Claim: true, Cancel: true, Expiry: true}

// settlement returns the payload of a log whose values have no columns of their own.
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
	return marshalled(&event.Record{Seq: e.Seq, Retracts: e.Retracts, ChainId: chainID, Fact: &event.Record_Log{Log: l}})
}

// Live returns the live rows of lists, except touched, as text.
func (g *Generation) Live() string {
	g.t.Helper()
	var rows []struct {
		Line string `ch:"line"`
	}
	g.must(g.Conn.Select(context.Background(), &rows, "SELECT toString(tuple("+listed+")) AS line FROM lists WHERE list != 'touched' GROUP BY "+listed+" HAVING sum(sign) > 0 ORDER BY line"))
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&b, r.Line)
	}
	return b.String()
}

// Count returns the number of rows of a table; of may include a WHERE clause.
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

// Merge merges tables into one part each. It repeats, because the engine refuses while it merges parts of the table itself.
func (g *Generation) Merge(tables ...string) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for _, table := range tables {
		for {
			err := g.Conn.Exec(ctx, "OPTIMIZE TABLE "+table+" FINAL SETTINGS optimize_throw_if_noop = 1")
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				g.must(err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

func (g *Generation) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(strings.TrimSpace(err.Error()))
	}
}
