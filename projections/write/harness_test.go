package write

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

const chainID = 31337

// patience is how long a test waits for a condition before it fails.
const patience = wait.Patience

type said = histories.Said

var (
	whole          = histories.Whole
	vaultA, vaultB = histories.VaultAt(0), histories.VaultAt(1)
	alice, bob     = histories.UserAt(1), histories.UserAt(2)
)

func deposit(id int64, owner common.Address, assets int64) said {
	return said{Vault: vaultA, Event: contracts.DepositAccepted{DepositID: whole(id), Owner: owner, PartnerID: 7, Sender: bob, Assets: whole(assets), Shares: whole(1)}}
}

// unattributed returns a deposit without a partner.
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

// started returns a history with two vaults and something of each kind.
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

// generation is a database of its own for a test.
type generation struct {
	ch       readmodel.Config
	database string
	conn     driver.Conn
}

func newGeneration(t testing.TB) *generation {
	t.Helper()
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.Cluster, ch.Prefix = enginetest.ClickHouse(t), enginetest.ClusterName(), fmt.Sprintf("w%d_%d", os.Getpid(), prefixes.Add(1))
	g := &generation{ch: ch, database: ch.Database(1)}
	server, err := ch.Open("")
	must(t, err)
	must(t, ch.CreateEvents(t.Context(), server, g.database))
	g.conn, err = ch.Open(g.database)
	must(t, err)
	t.Cleanup(func() {
		if err := ch.Drop(context.Background(), server, g.database); err != nil {
			t.Error(err)
		}
		g.conn.Close()
		server.Close()
	})
	return g
}

// session opens a session in the generation's database.
func (g *generation) session(t testing.TB) driver.Conn {
	t.Helper()
	session, err := g.ch.OpenSession(g.database)
	must(t, err)
	t.Cleanup(func() { session.Close() })
	return session
}

// builtGeneration returns a generation that contains records, with its lists.
func builtGeneration(t testing.TB, records []*event.Record) *generation {
	t.Helper()
	g := newGeneration(t)
	w := g.writer(t)
	g.write(t, w, records)
	must(t, w.Build(t.Context(), g.session(t)))
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
	built, err := g.ch.CheckGeneration(t.Context(), g.conn, g.database)
	must(t, err)
	w, err := Open(t.Context(), conn, g.ch, g.database, built, nil, nil, counts, slog.New(slog.DiscardHandler))
	must(t, err)
	return w
}

// write writes the records after the writer's position, as one batch.
func (g *generation) write(t testing.TB, w *Writer, records []*event.Record) {
	t.Helper()
	must(t, w.Write(t.Context(), w.Encode(batchOf(t, records[w.Position():]))))
}

func uncounted() Counts {
	return Counts{Batch: func() {}, Rows: func(string, int) {}, Insert: func(string, string) {}, Impossible: func(string) {}, Quarantined: func(string) {}}
}

// tally counts the events of writers.
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

// hear returns Counts that add to the tally.
func (n *tally) hear() Counts {
	return Counts{
		Batch:       func() { n.add(1, "batch") },
		Rows:        func(table string, k int) { n.add(k, "rows", table) },
		Insert:      func(table, outcome string) { n.add(1, table, outcome) },
		Impossible:  func(event string) { n.add(1, "impossible", event) },
		Quarantined: func(event string) { n.add(1, "quarantined", event) },
	}
}

// batchOf returns records as the feed does.
func batchOf(t testing.TB, records []*event.Record) decode.Batch {
	t.Helper()
	raw, err := histories.AsRead(records)
	must(t, err)
	vaults, err := mapping.NewVaults()
	must(t, err)
	facts, err := decode.NewDecoder(chainID, vaults).All(raw)
	must(t, err)
	return decode.Batch{facts}
}

// dies simulates a writer that dies after it has inserted a part of a batch into events, before it inserts into lists.
func dies(t testing.TB, w *Writer, part []decode.Unit) {
	t.Helper()
	e := w.encode(joined(part), w.events.cursor.seq, w.vaults)
	must(t, w.insertEvents(t.Context(), e, part[len(part)-1].End))
}

// same fails the test unless two sets of lines are equal.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	counts := map[string]int{}
	for _, line := range got {
		counts[line]++
	}
	for _, line := range want {
		counts[line]--
	}
	for _, line := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[line]; n > 0 {
			t.Errorf("%s: %d too many of\n%s", what, n, line)
		} else if n < 0 {
			t.Errorf("%s: %d lacking of\n%s", what, -n, line)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// lines returns the results of a query with one text column.
func (g *generation) lines(t testing.TB, question string, numbers map[string]uint64) []string {
	t.Helper()
	return lines(t, g.conn, question, numbers)
}

func lines(t testing.TB, conn driver.Conn, question string, numbers map[string]uint64) (lines []string) {
	t.Helper()
	rows, err := conn.Query(readmodel.Parameters(t.Context(), numbers), question)
	if err != nil {
		t.Fatalf("%s\n%v", question, err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		must(t, rows.Scan(&line))
		lines = append(lines, line)
	}
	must(t, rows.Err())
	return lines
}

// passed returns the vaults whose records the generation skips.
func (g *generation) passed(t testing.TB) (vaults []common.Address) {
	t.Helper()
	for _, v := range g.lines(t, "SELECT DISTINCT hex(vault) FROM events WHERE passed", nil) {
		vaults = append(vaults, common.HexToAddress(v))
	}
	return vaults
}

// equal fails the test unless both tables equal the oracle's result for the records, and lists also its definitions.
func (g *generation) equal(t testing.TB, records []*event.Record) {
	t.Helper()
	passed := g.passed(t)
	var want []string
	var unit []oracle.Record
	vaults, err := mapping.NewVaults()
	must(t, err)
	for _, r := range records {
		if v := r.GetVault(); v != nil {
			must(t, vaults.Apply(v))
		}
		value, err := proto.Marshal(r)
		must(t, err)
		if unit = append(unit, oracle.Record{Record: r, Value: value, Passed: slices.Contains(passed, vaultOf(r))}); !r.GetBoundary() {
			continue
		}
		for _, rows := range oracle.Rows(vaults, unit) {
			for i := range rows {
				want = append(want, readmodel.EventsTable.Line(&rows[i], "writer"))
			}
		}
		unit = nil
	}
	same(t, "events", g.lines(t, "SELECT "+readmodel.EventsTable.LineSQL("writer")+" FROM events", nil), want)
	g.listed(t, records)
	g.check(t)
}

// vaultOf returns the vault of a record; zero for none.
func vaultOf(r *event.Record) common.Address {
	if r.GetLog() != nil {
		return mapping.VaultOf(r.GetLog())
	}
	if r.GetSample() != nil {
		return common.BytesToAddress(r.GetSample().GetVault())
	}
	return common.BytesToAddress(r.GetVault().GetAddress())
}

// listed compares lists with the oracle's result for records.
func (g *generation) listed(t testing.TB, records []*event.Record) {
	t.Helper()
	fold, cursor := oracle.New(nil), readmodel.ListsCursor{Seq: uint64(len(records))}
	retracted := false
	for _, r := range records {
		must(t, fold.Apply(r))
		retracted = retracted || r.GetRetracts() != 0
		if r.GetBoundary() && retracted {
			cursor.Rewrites++
			retracted = false
		}
	}
	rows := fold.Lists(g.passed(t)...)
	for _, r := range rows {
		if r.List == readmodel.Blocks && r.Block >= cursor.Block {
			cursor.Block, cursor.TS = r.Block, r.TS
		}
	}
	var want []string
	for _, r := range append(rows, cursor.Rows(0)...) {
		want = append(want, readmodel.ListsTable.Line(&r, "sign", "writer"))
	}
	same(t, fmt.Sprintf("lists at seq %d", len(records)), slices.Collect(maps.Keys(g.live(t))), want)
}

// live returns the live rows of lists, except those of the list touched, each with the keys that name it there.
func (g *generation) live(t testing.TB) map[string][]readmodel.TouchedKey {
	t.Helper()
	out := map[string][]readmodel.TouchedKey{}
	line := readmodel.ListsTable.LineSQL("sign", "writer")
	rows, err := g.conn.Query(t.Context(), "SELECT "+line+" AS line, toInt8(list), toInt8(kind), owner, vault, user, toInt64(sum(sign)) AS n FROM lists WHERE list != 'touched' "+
		"GROUP BY line, list, kind, owner, vault, user HAVING n != 0")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		var list, kind int8
		var row readmodel.ListRow
		var n int64
		must(t, rows.Scan(&text, &list, &kind, &row.Owner, &row.Vault, &row.User, &n))
		row.List, row.Kind = readmodel.List(list), readmodel.EffectKind(kind)
		if n != 1 {
			t.Fatalf("the signs of a row of lists add up to %d: %s", n, text)
		}
		out[text] = row.Touches()
	}
	must(t, rows.Err())
	return out
}

// check compares lists with its definitions over events.
func (g *generation) check(t testing.TB) {
	t.Helper()
	cursor, err := readmodel.ReadListsCursor(t.Context(), g.conn, readmodel.ListsTable.Name)
	must(t, err)
	line := readmodel.ListsTable.LineSQL("sign", "writer")
	var want []string
	session := g.session(t)
	defer session.Close()
	must(t, readmodel.Derive(t.Context(), session, cursor.Seq))
	for _, d := range readmodel.Definitions {
		want = append(want, lines(t, session, "SELECT "+line+" FROM ("+d.Rows()+")", nil)...)
	}
	same(t, fmt.Sprintf("lists at seq %d, by its definitions", cursor.Seq), slices.Collect(maps.Keys(g.live(t))), want)
}

// touched returns the keys that units after a seq touched.
func (g *generation) touched(t testing.TB, after uint64) map[readmodel.TouchedKey]bool {
	t.Helper()
	out := map[readmodel.TouchedKey]bool{}
	question := "SELECT hex(arrayJoin(touched)) FROM lists WHERE list = 'touched' AND key > {after:UInt64} AND seq > {after:UInt64}"
	for _, key := range g.lines(t, question, map[string]uint64{"after": after}) {
		out[readmodel.TouchedKey(common.FromHex(key))] = true
	}
	return out
}
