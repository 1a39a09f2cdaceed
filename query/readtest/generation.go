package readtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/readmodel/expect"
)

// Generation is a database that is filled from a log.
type Generation struct {
	ID       int32
	Config   readmodel.Config
	Database string
	Conn     driver.Conn // of the writer

	t       testing.TB
	events  uint64 // the seq up to which the table events is written
	written uint64 // the same for lists
	lists   expect.Table
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
	g.must(admin.Exec(context.Background(), readmodel.EventsTable.DDL(g.Database+".events")))
	g.must(admin.Exec(context.Background(), readmodel.ListsTable.DDL(g.Database+".lists")))
	g.Conn, err = c.Open(g.Database)
	g.must(err)
	t.Cleanup(func() { g.Conn.Close() })
	return g
}

// Write writes the new records of the log: into events, and then into lists. All of them count as one unit of project.
func (g *Generation) Write(l *Log) {
	g.t.Helper()
	g.WriteEvents(l)
	g.WriteLists(l)
}

// WriteEvents is the first part of Write.
func (g *Generation) WriteEvents(l *Log) {
	g.t.Helper()
	var rows []readmodel.EventRow
	for _, e := range l.Entries[g.events:] {
		for _, effect := range e.Effects() {
			rows = append(rows, *eventRow(effect, l.ChainID))
		}
	}
	if len(rows) > 0 {
		insert(g, readmodel.EventsTable, rows)
	}
	g.events = l.Seq()
}

// insert inserts rows into a table, as a single part.
func insert[T any](g *Generation, table *readmodel.Table[T], all []T) {
	g.t.Helper()
	rows := table.NewRows()
	for i := range all {
		rows.Add(&all[i])
	}
	batch, err := g.Conn.PrepareBatch(context.Background(), "INSERT INTO "+table.Name+" ("+table.Names()+")")
	g.must(err)
	defer batch.Close()
	g.must(rows.Fill(batch.Columns()))
	g.must(batch.Send())
}

// InsertLists inserts rows into lists, in addition to those of the log, as a single part.
func (g *Generation) InsertLists(lists []readmodel.ListRow) {
	g.t.Helper()
	insert(g, readmodel.ListsTable, lists)
}

// WriteLists is the last part of Write, which completes the unit: it updates lists to the log. It uses a single insert
// that becomes a single part, in which the rows that cancel old ones precede the new ones.
func (g *Generation) WriteLists(l *Log) {
	g.t.Helper()
	changes := g.lists.Become(l.lists())
	touched := map[readmodel.TouchedKey]bool{}
	for i := range changes {
		for _, key := range changes[i].Touches() {
			touched[key] = true
		}
	}
	unit := readmodel.ListRow{List: readmodel.TouchedList, Key: *uint256.NewInt(l.Seq()), Sign: 1, Seq: l.Seq(),
		Touched: readmodel.JoinTouched(maps.Keys(touched))}
	if ancestor, rewrites := l.rewritten(g.written); rewrites {
		unit.ID = ancestor + 1
	}
	g.InsertLists(append(changes, unit))
	g.written = l.Seq()
}

// lists returns the rows of lists at the end of the log, except touched.
func (l *Log) lists() []readmodel.ListRow {
	var effects []readmodel.EventRow
	blocks := map[uint64]readmodel.ListRow{}
	for _, e := range l.Live(l.Seq(), readmodel.Never) {
		for _, effect := range e.Effects() {
			row := eventRow(effect, l.ChainID)
			switch {
			case e.Kind == Block:
				blocks[e.Block] = readmodel.ListRow{List: readmodel.Blocks, Key: *uint256.NewInt(e.Block), Block: e.Block,
					Hash: row.Hash, TS: row.TS}
			case row.Effect != readmodel.NoEffect && !row.Passed:
				effects = append(effects, *row)
			}
		}
	}
	slices.SortStableFunc(effects, func(a, b readmodel.EventRow) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex))
	})
	rows := slices.AppendSeq(expect.Lists(effects), maps.Values(blocks))
	cursor := readmodel.ListsCursor{Seq: l.Seq(), Rewrites: l.rewrites()}
	if len(blocks) > 0 {
		newest := blocks[slices.Max(slices.Collect(maps.Keys(blocks)))]
		cursor.Block, cursor.TS = newest.Block, newest.TS
	}
	return append(rows, cursor.Rows(0)...)
}

// rewrites returns the number of units that retract records.
func (l *Log) rewrites() (units uint64) {
	retracts := false
	for _, e := range l.Entries {
		if retracts = retracts || e.Retracts != 0; retracts && e.Boundary {
			units, retracts = units+1, false
		}
	}
	return units
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

// kinds are the contract event and the effect of each kind of fact, and whether it names a user.
var kinds = map[Kind]struct {
	event  string
	effect readmodel.EffectKind
	ofUser bool
}{
	Deposit: {"DepositAccepted", readmodel.Deposit, true}, Void: {"DepositRequestCanceled", readmodel.Void, true},
	Price:   {"SettleDeposit", readmodel.PricedDeposits, false},
	Request: {"WithdrawalRequested", readmodel.Requested, true}, Funding: {"WithdrawalFunded", readmodel.Funded, true},
	Claim: {"WithdrawalClaimed", readmodel.Claimed, true}, Cancel: {"WithdrawalCancelled", readmodel.Cancelled, true},
	Expiry: {"WithdrawalExpired", readmodel.Expired, true}, Nav: {"NavUpdated", readmodel.Valuation, false},
	Sweep: {"DepositsSwept", readmodel.Sweep, false}, Settlement: {"WithdrawalsSettled", readmodel.Settled, false},
}

func eventRow(e Entry, chainID uint64) *readmodel.EventRow {
	row := &readmodel.EventRow{Seq: e.Seq, Sign: 1, Retracts: e.Retracts, Writer: 1, Boundary: e.Boundary,
		Quarantined: e.Quarantined, Passed: e.Passed, Block: e.Block, Hash: e.Hash, TS: e.At(), Vault: e.Fact.Vault, Tx: e.Tx,
		LogIndex: e.Index, Event: cmp.Or(e.Event, kinds[e.Kind].event)}
	if e.Retracts != 0 {
		row.Sign = -1
	}
	switch e.Kind {
	case Block:
		row.Record = readmodel.BlockRecord
		return row
	case Vault:
		row.Record, row.TS, row.Vault = readmodel.VaultRecord, 0, common.BytesToAddress(e.Meta.Address)
		payload, err := proto.Marshal(&event.Record{Seq: e.Seq, Retracts: e.Retracts, ChainId: chainID,
			Fact: &event.Record_Vault{Vault: e.Meta}})
		if err != nil {
			panic(err)
		}
		row.Payload = string(payload)
		return row
	}
	if e.Quarantined {
		return row
	}
	row.Effect, row.Effects, row.Sub = kinds[e.Kind].effect, uint8(1+len(e.Also)), e.Sub
	if e.Cancels {
		row.Effect, row.User, row.ID, row.By = readmodel.Cancelled, e.User, NoRequest, readmodel.ByID
		return row
	}
	if kinds[e.Kind].ofUser {
		row.User = e.User
	}
	row.Other, row.Partner, row.ID, row.IDTo, row.Expires = e.Other, e.Partner, e.ID, e.To, e.Expires
	row.Assets, row.Shares, row.Nav = amount(e.Assets), amount(e.Shares), amount(e.Price)
	if e.Largest {
		row.Assets.SubUint64(row.Assets.Lsh(uint256.NewInt(1), 191), 1)
		row.Shares = row.Assets
	}
	switch e.Kind {
	case Deposit:
		row.Grouped, row.GroupID = e.Group > 0, e.Group
	case Void:
		if row.By, row.GroupID = readmodel.ByOwner, e.Group; e.Group == 0 {
			row.By, row.User = readmodel.ByID, common.Address{}
		}
	case Price:
		row.By, row.GroupID, row.GroupTo, row.IDTo = readmodel.ByGroup, e.Group, e.Group, 0
		if e.To != 0 {
			row.By, row.GroupID, row.GroupTo = readmodel.ByUpToGroup, 0, e.To
		}
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

// Merge merges tables into one part each. It repeats, because the engine refuses while it merges parts of the table
// itself.
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
