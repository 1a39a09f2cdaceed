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

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

const chainID = 31337

// patience is how long a test waits for a condition before it fails.
const patience = wait.Patience

type emitted = histories.Emitted

var (
	whole          = histories.Whole
	vaultA, vaultB = histories.VaultAt(0), histories.VaultAt(1)
	alice, bob     = histories.UserAt(1), histories.UserAt(2)
)

func deposit(id int64, owner common.Address, assets int64) emitted {
	return emitted{Vault: vaultA,
		Event: contracts.DepositAccepted{DepositID: whole(id), Owner: owner, PartnerID: 7, Sender: bob, Assets: whole(assets),
			Shares: whole(1)}}
}

// unattributed returns a deposit without a partner.
func unattributed(id int64, owner common.Address) emitted {
	return emitted{Vault: vaultA,
		Event: contracts.DepositAccepted{DepositID: whole(id), Owner: owner, Sender: bob, Assets: whole(1), Shares: whole(1)}}
}

func request(index int64, owner common.Address) emitted {
	return emitted{Vault: vaultA,
		Event: contracts.WithdrawalRequested{RequestIndex: whole(index), Owner: owner, Receiver: bob, Shares: whole(1),
			AssetsEstimate: whole(11)}}
}

func fund(index int64) emitted {
	return emitted{Vault: vaultA,
		Event: contracts.WithdrawalFunded{RequestIndex: whole(index), Owner: alice, SettlementID: whole(1), Shares: whole(1),
			Assets: whole(12)}}
}

func claim(index int64, owner common.Address, assets int64) emitted {
	return emitted{Vault: vaultA,
		Event: contracts.WithdrawalClaimed{RequestIndex: whole(index), Owner: owner, Receiver: bob, Shares: whole(1),
			Assets: whole(assets)}}
}

func nav(value int64) emitted {
	return emitted{Vault: vaultA,
		Event: contracts.NavUpdated{NavID: whole(1), Updater: bob, NavPerShare: whole(value), TotalAssets: whole(5),
			TotalSupply: whole(6)}}
}

func sweep(from, to int64) emitted {
	return emitted{Vault: vaultA,
		Event: contracts.DepositsSwept{SweepID: whole(1), Custodian: bob, FromDepositID: whole(from), ToDepositID: whole(to),
			Assets: whole(1)}}
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
	without  []common.Address // vaults that it omits
}

func newGeneration(t testing.TB) *generation {
	t.Helper()
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.Cluster, ch.Prefix = enginetest.ClickHouse(t), enginetest.ClusterName(),
		fmt.Sprintf("w%d_%d", os.Getpid(), prefixes.Add(1))
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
	w, err := Open(t.Context(), conn, g.ch, g.database, built, bytesOf(g.without), nil, counts,
		slog.New(slog.DiscardHandler))
	must(t, err)
	return w
}

// write writes the records after the writer's position, as one batch.
func (g *generation) write(t testing.TB, w *Writer, records []*event.Record) {
	t.Helper()
	must(t, w.Write(t.Context(), w.Encode(batchOf(t, records[w.Position():]))))
}

func uncounted() Counts {
	return Counts{Batch: func() {}, Rows: func(string, int) {}, Insert: func(string, string) {},
		Impossible: func(string) {}, Quarantined: func(int) {}}
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

// callbacks returns Counts that add to the tally.
func (n *tally) callbacks() Counts {
	return Counts{
		Batch:       func() { n.add(1, "batch") },
		Rows:        func(table string, k int) { n.add(k, "rows", table) },
		Insert:      func(table, outcome string) { n.add(1, table, outcome) },
		Impossible:  func(event string) { n.add(1, "impossible", event) },
		Quarantined: func(k int) { n.add(k, "quarantined") },
	}
}

// batchOf returns records of vaults of the reference contracts as the feed does.
func batchOf(t testing.TB, records []*event.Record) decode.Batch {
	t.Helper()
	vaults, err := mapping.NewVaults()
	must(t, err)
	return batchWith(t, records, vaults)
}

// batchWith returns records as the feed does, which has the mappings of the vaults.
func batchWith(t testing.TB, records []*event.Record, vaults *mapping.Vaults) decode.Batch {
	t.Helper()
	raw, err := histories.AsRead(records)
	must(t, err)
	facts, err := decode.NewDecoder(chainID, vaults).All(raw)
	must(t, err)
	return decode.Batch{facts}
}

// crash simulates a writer that crashes after it has inserted a part of a batch into events, before it inserts into
// lists. It returns the error of a generation that cannot represent the part.
func crash(t testing.TB, w *Writer, part []decode.Unit) error {
	t.Helper()
	if err := w.skip(part); err != nil {
		return err
	}
	e := w.encode(joined(part), w.events.cursor.seq)
	return w.insertEvents(t.Context(), e)
}

// equal fails the test unless both tables equal the oracle's result for the records.
func (g *generation) equal(t testing.TB, records []*event.Record) {
	t.Helper()
	oracletest.Equal(t, g.conn, records)
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
		want = append(want, oracletest.Lines(t, session, "SELECT "+line+" FROM ("+d.Rows()+")", nil)...)
	}
	got := slices.Collect(maps.Keys(oracletest.Live(t, g.conn)))
	oracletest.Same(t, fmt.Sprintf("lists at seq %d, by its definitions", cursor.Seq), got, want)
}

// touched returns the keys that units after a seq touched.
func (g *generation) touched(t testing.TB, after uint64) map[readmodel.TouchedKey]bool {
	t.Helper()
	out := map[readmodel.TouchedKey]bool{}
	question := "SELECT hex(arrayJoin(touched)) FROM lists WHERE list = 'touched' AND key > {after:UInt64} AND seq > " +
		"{after:UInt64}"
	for _, key := range oracletest.Lines(t, g.conn, question, map[string]uint64{"after": after}) {
		out[readmodel.TouchedKey(common.FromHex(key))] = true
	}
	return out
}

func bytesOf(all []common.Address) (out [][]byte) {
	for _, a := range all {
		out = append(out, a[:])
	}
	return out
}
