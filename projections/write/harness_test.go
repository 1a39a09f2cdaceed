package write

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

const chainID = 31337

// patience is how long a test waits for a condition before it fails.
const patience = time.Minute

type said = histories.Said

var (
	whole          = histories.Whole
	vaultA, vaultB = histories.VaultAt(0), histories.VaultAt(1)
	alice, bob     = histories.UserAt(1), histories.UserAt(2)
)

func deposit(id int64, owner common.Address, assets int64) said {
	return said{Vault: vaultA, Event: contracts.DepositAccepted{DepositID: whole(id), Owner: owner, PartnerID: 7, Sender: bob, Assets: whole(assets), Shares: whole(1)}}
}

// unattributed is a deposit that no partner brought: of the derived tables it concerns users alone.
func unattributed(id int64, owner common.Address) said {
	return said{Vault: vaultA, Event: contracts.DepositAccepted{DepositID: whole(id), Owner: owner, Sender: bob, Assets: whole(1), Shares: whole(1)}}
}

func request(index int64, owner common.Address) said {
	return said{Vault: vaultA, Event: contracts.WithdrawalRequested{RequestIndex: whole(index), Owner: owner, Receiver: bob, Shares: whole(1), AssetsEstimate: whole(11)}}
}

func fund(index int64) said {
	return said{Vault: vaultA, Event: contracts.WithdrawalFunded{RequestIndex: whole(index), Owner: alice, SettlementID: whole(1), Shares: whole(1), Assets: whole(12)}}
}

func claim(index int64, owner common.Address, assets int64) said {
	return said{Vault: vaultA, Event: contracts.WithdrawalClaimed{RequestIndex: whole(index), Owner: owner, Receiver: bob, Shares: whole(1), Assets: whole(assets)}}
}

func nav(value int64) said {
	return said{Vault: vaultA, Event: contracts.NavUpdated{NavID: whole(1), Updater: bob, NavPerShare: whole(value), TotalAssets: whole(5), TotalSupply: whole(6)}}
}

func sweep(from, to int64) said {
	return said{Vault: vaultA, Event: contracts.DepositsSwept{SweepID: whole(1), Custodian: bob, FromDepositID: whole(from), ToDepositID: whole(to), Assets: whole(1)}}
}

// started is a history whose two vaults joined, and something of each kind in it.
func started() *histories.Script {
	s := histories.New(chainID)
	s.Vault(vaultA)
	s.Vault(vaultB)
	s.Mine()
	s.Mine(deposit(1, alice, 1000), request(0, alice), request(1, alice), request(2, bob), nav(3))
	s.Mine(deposit(2, bob, 10), fund(0), sweep(1, 1))
	s.Mine(claim(0, alice, 12), deposit(3, bob, 5))
	return s
}

var prefixes atomic.Int64

// generation is a database of the test's own.
type generation struct {
	ch       readmodel.Config
	database string
	conn     driver.Conn
}

func newGeneration(t testing.TB) *generation {
	t.Helper()
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.Prefix = enginetest.ClickHouse(t), fmt.Sprintf("w%d_%d", os.Getpid(), prefixes.Add(1))
	g := &generation{ch: ch, database: ch.Database(1)}
	server, err := ch.Open("")
	must(t, err)
	must(t, ch.Create(t.Context(), server, g.database))
	g.conn, err = ch.Open(g.database)
	must(t, err)
	t.Cleanup(func() {
		if err := server.Exec(context.Background(), "DROP DATABASE "+g.database); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
		g.conn.Close()
		server.Close()
	})
	return g
}

// derivedGeneration is one that holds records, with its derived tables.
func derivedGeneration(t testing.TB, records []*event.Record) *generation {
	t.Helper()
	g := newGeneration(t)
	w := g.writer(t)
	g.write(t, w, records)
	must(t, w.Derive(t.Context(), g.conn))
	return g
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writer opens a writer as a projector does.
func (g *generation) writer(t testing.TB) *Writer {
	t.Helper()
	return g.writerOver(t, g.conn, uncounted())
}

func (g *generation) writerOver(t testing.TB, conn driver.Conn, counts Counts) *Writer {
	t.Helper()
	derived, err := g.ch.CheckTables(t.Context(), g.conn, g.database)
	must(t, err)
	w, err := Open(t.Context(), conn, g.ch, g.database, derived, nil, counts, slog.New(slog.DiscardHandler))
	must(t, err)
	return w
}

// write has a writer write the records after its position, as one batch.
func (g *generation) write(t testing.TB, w *Writer, records []*event.Record) {
	t.Helper()
	must(t, w.Write(t.Context(), w.Encode(batchOf(t, records[w.Position():]))))
}

func uncounted() Counts {
	return Counts{Rows: func(string, int) {}, Insert: func(string, string) {}, Impossible: func(string) {}, Quarantined: func(string) {}}
}

// tally counts what writers tell.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (n *tally) add(k int, what ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.counts == nil {
		n.counts = map[string]int{}
	}
	n.counts[strings.Join(what, " ")] += k
}

func (n *tally) of(what ...string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[strings.Join(what, " ")]
}

// hear is the counts that a writer is given.
func (n *tally) hear() Counts {
	return Counts{
		Rows:        func(table string, k int) { n.add(k, "rows", table) },
		Insert:      func(table, outcome string) { n.add(1, table, outcome) },
		Impossible:  func(event string) { n.add(1, "impossible", event) },
		Quarantined: func(event string) { n.add(1, "quarantined", event) },
	}
}

// batchOf is records as the feed gives them.
func batchOf(t testing.TB, records []*event.Record) decode.Batch {
	t.Helper()
	var raw []chainlog.Raw
	for _, r := range records {
		value, err := proto.Marshal(r)
		must(t, err)
		raw = append(raw, chainlog.Raw{Seq: r.GetSeq(), Boundary: r.GetBoundary(), Offset: int64(r.GetSeq()), Value: value})
	}
	facts, err := decode.All(chainID, raw)
	must(t, err)
	return decode.Batch{facts}
}

// joined is batches as one.
func joined(units []decode.Unit) (all decode.Batch) {
	for _, u := range units {
		all = append(all, u.Facts...)
	}
	return all
}

// dies gives a part of a batch to some tables only, as a writer that dies then.
func dies(t testing.TB, w *Writer, part []decode.Unit, has func(table string) bool) {
	t.Helper()
	rows := w.encode(joined(part), w.vaults)
	units := w.kept(part)
	if !w.Derived() {
		rows, units = w.encode(joined(part), nil), nil
	}
	for _, table := range slices.Concat(readmodel.Facts, readmodel.Derived) {
		if !has(table) {
			delete(w.facts, table)
			delete(w.derived, table)
		}
	}
	must(t, w.insertAhead(t.Context(), rows, units))
}

// equal fails the test unless all tables hold what records say: the spine, the
// facts, and the derived tables by their definitions and by the oracle.
func (g *generation) equal(t testing.TB, records []*event.Record) {
	t.Helper()
	r, err := verify.Records(t.Context(), g.conn, records, verify.Options{})
	must(t, err)
	if r.Err() != nil || r.Seq != uint64(len(records)) {
		t.Fatalf("want all equal at seq %d, got\n%s", len(records), r)
	}
	for _, c := range r.Checks {
		if strings.Contains(c.Name, "not derived yet") {
			t.Fatalf("want derived tables, got\n%s", r)
		}
	}
	must(t, verify.Audit(t.Context(), g.conn))
}

// check compares the derived tables with their definitions, both ways, where they
// are not ahead of the spine.
func (g *generation) check(t testing.TB) {
	t.Helper()
	spine, err := readmodel.ReadCursor(t.Context(), g.conn, readmodel.Spine, 0)
	must(t, err)
	for _, table := range readmodel.Derived {
		cursor, err := readmodel.ReadCursor(t.Context(), g.conn, table, 0)
		must(t, err)
		if cursor.Seq > spine.Seq {
			continue // a killed writer's rows, which the facts may not have yet
		}
		columns := dataColumns(table)
		question := "SELECT toString(tuple(" + columns + ")) AS row, toInt64(sum(s)) AS n FROM (SELECT " + columns + ", toInt64(sign) AS s FROM " + table +
			" WHERE NOT (" + readmodel.CursorRow(table) + ") UNION ALL SELECT " + columns + ", toInt64(-1) FROM (" + readmodel.Definition(table) + ")) GROUP BY " + columns + " HAVING n != 0 LIMIT 5"
		var rows []struct {
			Row string `ch:"row"`
			N   int64  `ch:"n"`
		}
		must(t, g.conn.Select(readmodel.Parameters(t.Context(), map[string]uint64{"seq": cursor.Seq}), &rows, question))
		if len(rows) > 0 {
			t.Fatalf("%s at seq %d: of the rows that differ, how many more the table has than its definition: %v", table, cursor.Seq, rows)
		}
	}
}

// pastRows are the questions for what a derived table says of a block, in words.
var pastRows = map[string]string{
	readmodel.Withdrawals: `SELECT concatWithSeparator(' ', toString(list), lower(hex(user)), lower(hex(owner)), lower(hex(vault)), toString(request_index), toString(estimate), toString(expires_ts),
		toString(requested_block), toString(requested_log), toString(if(funded_block > {block:UInt64}, {never:UInt64}, funded_block)),
		toString(if(closed_block > {block:UInt64}, {never:UInt64}, closed_block)), if(closed_block > {block:UInt64}, '', toString(closed_by))) AS line
		FROM withdrawals WHERE requested_block <= {block:UInt64} AND NOT ({cursor})
		GROUP BY list, user, owner, vault, request_index, estimate, expires_ts, requested_block, requested_log, funded_block, closed_block, closed_by HAVING sum(sign) > 0 ORDER BY line`,
	readmodel.Users: `SELECT concatWithSeparator(' ', toString(list), lower(hex(vault)), toString(partner), toString(key), lower(hex(user)), toString(first_block), toString(first_ts)) AS line
		FROM users WHERE list IN ('member', 'first') AND first_block <= {block:UInt64}
		GROUP BY list, vault, partner, key, user, first_block, first_ts HAVING sum(sign) > 0 ORDER BY line`,
	readmodel.PartnerTotals: `SELECT concatWithSeparator(' ', toString(partner), lower(hex(vault)), toString(from_block),
		toString(if(until_block > {block:UInt64}, {never:UInt64}, until_block)), toString(deposits), toString(volume)) AS line
		FROM partner_totals WHERE from_block <= {block:UInt64} AND NOT ({cursor})
		GROUP BY partner, vault, from_block, until_block, deposits, volume HAVING sum(sign) > 0 ORDER BY line`,
}

// pastLines is what they must say, by the oracle.
func pastLines(b *oracle.Books) map[string][]string {
	out := map[string][]string{}
	add := func(table, format string, values ...any) {
		out[table] = append(out[table], fmt.Sprintf(format, values...))
	}
	for k, w := range b.Withdrawals {
		ask := w.Ask()
		for list, user := range map[string]common.Address{"queue": {}, "user": ask.Owner} {
			add(readmodel.Withdrawals, "%s %x %x %x %d %d %d %d %d %d %d %s", list, user[:], ask.Owner[:], k.Vault[:], k.Index, ask.AssetsEstimate, ask.ExpiresAt,
				w.Requested.Block, w.Requested.Index, oracle.BlockOf(w.Funded), oracle.BlockOf(w.Ended), w.EndedBy())
		}
	}
	for scope, members := range b.Members {
		for a, since := range members {
			add(readmodel.Users, "member %x %d 0 %x %d %d", scope.Vault[:], scope.Partner, a[:], since.Block, since.Time)
		}
	}
	for a, u := range b.Users {
		if u.First.Block != oracle.Never {
			add(readmodel.Users, "member %x 0 0 %x %d %d", make([]byte, 20), a[:], u.First.Block, u.First.Time)
			add(readmodel.Users, "first %x 0 %d %x %d %d", make([]byte, 20), new(big.Int).SetUint64(u.First.Block), a[:], u.First.Block, u.First.Time)
		}
	}
	for k, totals := range b.Totals {
		for _, n := range totals {
			add(readmodel.PartnerTotals, "%d %x %d %d %d %d", k.Partner, k.Vault[:], n.Block, n.Until, n.Deposits, n.Volume)
		}
	}
	for _, lines := range out {
		slices.Sort(lines)
	}
	return out
}

// past compares what the derived tables say of a block, whatever writer died in the
// middle of a unit, with what the records up to the spine's last seq say of it,
// wherever the fence lets a reader believe the table. It tells how many it compared.
func (g *generation) past(t testing.TB, records []*event.Record, block uint64, passed ...common.Address) (compared int) {
	t.Helper()
	spine, err := readmodel.ReadCursor(t.Context(), g.conn, readmodel.Spine, 0)
	must(t, err)
	fold := oracle.New()
	for _, r := range records[:spine.Seq] {
		must(t, fold.Apply(r))
	}
	books := fold.Books(block, passed...)
	want := pastLines(books)
	for _, table := range readmodel.Derived {
		cursor, err := readmodel.ReadCursor(t.Context(), g.conn, table, 0)
		must(t, err)
		if block > books.Block || !cursor.Fence.Holds(spine.Seq, block) {
			continue
		}
		var rows []struct {
			Line string `ch:"line"`
		}
		ask := strings.ReplaceAll(pastRows[table], "{cursor}", readmodel.CursorRow(table))
		must(t, g.conn.Select(readmodel.Parameters(t.Context(), map[string]uint64{"block": block}), &rows, ask))
		var got []string
		for _, r := range rows {
			got = append(got, r.Line)
		}
		if !slices.Equal(got, want[table]) {
			t.Fatalf("%s, whose cursor is %+v, says of block %d at seq %d\n%s\nwant\n%s", table, cursor, block, spine.Seq, strings.Join(got, "\n"), strings.Join(want[table], "\n"))
		}
		compared++
	}
	return compared
}
