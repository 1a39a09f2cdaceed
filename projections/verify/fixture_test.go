package verify

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// The tests fill the tables in the plainest way: facts row by row from records,
// and derived tables by what their definition gives and they do not hold. So they
// depend on nothing that verify is to judge.

const (
	chainID = 31337
	// patience is how long a test waits for a condition before it fails.
	patience = 90 * time.Second
)

type said = histories.Said

var (
	vaultA     = histories.VaultAt(1)
	alice, bob = histories.UserAt(1), histories.UserAt(2)
	whole      = histories.Whole
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, which lacks %q", err, word)
		}
	}
}

var prefixes atomic.Int64

// generation is one of a test's own, at the end of a log.
type generation struct {
	ch      readmodel.Config
	id      int32
	conn    driver.Conn // to its database
	late    []common.Address
	written uint64 // the last seq that it has
}

// newGeneration makes a generation without derived tables.
func newGeneration(t testing.TB) *generation {
	t.Helper()
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.Prefix = enginetest.ClickHouse(t), fmt.Sprintf("v%d_%d", os.Getpid(), prefixes.Add(1))
	return another(t, ch, 1)
}

func another(t testing.TB, ch readmodel.Config, id int32) *generation {
	t.Helper()
	outside, err := ch.OpenPatient("")
	must(t, err)
	must(t, ch.Create(t.Context(), outside, ch.Database(id)))
	g := &generation{ch: ch, id: id}
	g.conn, err = ch.OpenPatient(ch.Database(id))
	must(t, err)
	t.Cleanup(func() {
		g.conn.Close()
		if err := outside.Exec(context.Background(), "DROP DATABASE IF EXISTS "+ch.Database(id)); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
		outside.Close()
	})
	return g
}

// filled is a generation that has a log, and its derived tables.
func filled(t testing.TB, records []*event.Record) *generation {
	t.Helper()
	g := newGeneration(t)
	g.build(t, records)
	g.derive(t)
	return g
}

// build writes facts and the spine.
func (g *generation) build(t testing.TB, records []*event.Record) {
	t.Helper()
	g.facts(t, records)
	g.spine(t, records)
}

// derive makes the derived tables.
func (g *generation) derive(t testing.TB) {
	t.Helper()
	for _, table := range readmodel.Derived {
		draft := table + "_draft"
		must(t, g.ch.CreateDerived(t.Context(), g.conn, g.ch.Database(g.id), table, draft))
		g.update(t, table, draft, g.written)
		must(t, g.ch.Publish(t.Context(), g.conn, g.ch.Database(g.id), table, draft))
	}
}

// live writes units as a projector does: facts, derived tables, and then the spine.
func (g *generation) live(t testing.TB, records []*event.Record) {
	t.Helper()
	for _, unit := range histories.Units(records) {
		g.facts(t, unit)
		for _, table := range readmodel.Derived {
			g.update(t, table, table, unit[len(unit)-1].GetSeq())
		}
		g.spine(t, unit)
	}
}

// columns of the derived tables that their definitions give, as text where the table
// has an enum, a condition that only the cursor row meets, and its values.
var columns = map[string]struct{ names, texts, cursor, values string }{
	readmodel.Withdrawals: {"list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, closed_by",
		"toString(list) AS list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, toString(closed_by) AS closed_by",
		"list = 'cursor'", "'cursor', toFixedString('', 20), 0, 0, toFixedString('', 20), 0, toFixedString('', 20), 0, 0, 0, 0, 0, ''"},
	readmodel.Users: {"list, vault, partner, key, user, first_block, first_ts, deposited, withdrawn",
		"toString(list) AS list, vault, partner, key, user, first_block, first_ts, deposited, withdrawn",
		"list = 'cursor'", "'cursor', toFixedString('', 20), 0, 0, toFixedString('', 20), 0, 0, 0, 0"},
	readmodel.PartnerTotals: {"partner, vault, from_block, until_block, deposits, volume",
		"partner, vault, from_block, until_block, deposits, volume", "partner = 0", "0, toFixedString('', 20), 0, {never:UInt64}, 0, 0"},
}

// update writes what a table's definition gives at a seq and the table does not
// hold, and what it holds too much, and moves its cursor, in one insert.
func (g *generation) update(t testing.TB, table, name string, seq uint64) {
	t.Helper()
	c := columns[table]
	ask := strings.NewReplacer("{name}", name, "{columns}", c.names, "{cursor}", c.cursor, "{values}", c.values,
		"{texts}", c.texts,
		"{definition}", readmodel.Definition(table)).Replace(`
INSERT INTO {name} ({columns}, sign, seq, writer, fence_seq)
SELECT {columns}, toInt8(n) AS sign, at, 1, 0 FROM (
  SELECT {columns}, sum(s) AS n, {seq:UInt64} AS at FROM (
    SELECT {texts}, toInt64(1) AS s FROM ({definition})
    UNION ALL
    SELECT {texts}, -toInt64(sign) FROM (SELECT * FROM {name} WHERE NOT ({cursor}))
  ) GROUP BY {columns} HAVING n != 0
  UNION ALL SELECT {values}, 1, {seq:UInt64}
  UNION ALL SELECT {texts}, -1, seq FROM (SELECT * FROM {name} WHERE {cursor}) GROUP BY {columns}, seq HAVING sum(sign) > 0
) ORDER BY sign`)
	ctx := clickhouse.Context(readmodel.Parameters(t.Context(), numbers{"seq": seq}), clickhouse.WithSettings(clickhouse.Settings{"max_insert_threads": 1, "insert_deduplicate": 0}))
	if err := g.conn.Exec(ctx, ask); err != nil {
		t.Fatalf("derive %s at seq %d: %v", table, seq, err)
	}
}

func (g *generation) spine(t testing.TB, records []*event.Record) {
	t.Helper()
	b := g.batch(t, readmodel.Spine, "seq, sign, retracts, writer, kind, event, boundary, quarantined, passed, block, hash, ts, vault, user, tx, log_index, payload")
	for _, r := range records {
		payload, err := proto.Marshal(r)
		must(t, err)
		name, quarantined := oracle.Named(r)
		l, block := r.GetLog(), r.GetBlock()
		number, hash, at, index := block.GetNumber(), block.GetHash(), block.GetTime(), uint32(0)
		if l != nil {
			number, hash, at, index = l.GetBlockNumber(), l.GetBlockHash(), l.GetBlockTime(), l.GetLogIndex()
		}
		said, _, _ := oracle.Read(r)
		vault := common.BytesToAddress(append(l.GetAddress(), r.GetVault().GetAddress()...))
		if block != nil || l != nil && !quarantined && name != "WithdrawalsSettled" {
			payload = nil
		}
		must(t, b.Append(r.GetSeq(), chainlog.Sign(r), r.GetRetracts(), uint64(1), chainlog.TypeOf(r), name, r.GetBoundary(), quarantined, g.passes(r),
			number, common.BytesToHash(hash).Bytes(), uint32(at), vault.Bytes(), ownerOf(said.Event).Bytes(), common.BytesToHash(l.GetTxHash()).Bytes(), index, payload))
	}
	must(t, b.Send())
	g.written = records[len(records)-1].GetSeq()
}

func (g *generation) passes(r *event.Record) bool {
	return slices.Contains(g.late, common.BytesToAddress(r.GetLog().GetAddress())) || r.GetVault() != nil && slices.Contains(g.late, common.BytesToAddress(r.GetVault().GetAddress()))
}

func (g *generation) batch(t testing.TB, table, columns string) driver.Batch {
	t.Helper()
	ctx := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"insert_deduplicate": 0}))
	b, err := g.conn.PrepareBatch(ctx, "INSERT INTO "+table+" ("+columns+")")
	must(t, err)
	return b
}

func (g *generation) facts(t testing.TB, records []*event.Record) {
	t.Helper()
	deposits := g.batch(t, readmodel.Deposits, "seq, sign, retracts, writer, vault, deposit_id, user, sender, partner, assets, shares, block, ts, tx, log_index")
	events := g.batch(t, readmodel.WithdrawalEvents, "seq, sign, retracts, writer, vault, request_index, kind, user, receiver, partner, shares, assets, expires_ts, block, ts, tx, log_index")
	navs := g.batch(t, readmodel.Navs, "seq, sign, retracts, writer, vault, nav_per_share, total_assets, total_supply, block, ts, tx, log_index")
	sweeps := g.batch(t, readmodel.Sweeps, "seq, sign, retracts, writer, vault, from_id, to_id, assets, block, ts, tx, log_index")
	for _, r := range records {
		l, counts, _ := oracle.Read(r)
		if !counts || g.passes(r) {
			continue
		}
		put := func(b driver.Batch, values ...any) {
			head := []any{r.GetSeq(), chainlog.Sign(r), r.GetRetracts(), uint64(1), l.Vault.Bytes()}
			must(t, b.Append(append(append(head, values...), l.Block, uint32(l.Time), l.Tx.Bytes(), l.Index)...))
		}
		about := func(index *big.Int, kind string, user, receiver common.Address, partner uint32, shares, assets *big.Int, expires uint64) {
			put(events, index.Uint64(), kind, user.Bytes(), receiver.Bytes(), partner, shares, assets, expires)
		}
		none := common.Address{}
		switch e := l.Event.(type) {
		case contracts.DepositAccepted:
			put(deposits, e.DepositID.Uint64(), e.Owner.Bytes(), e.Sender.Bytes(), e.PartnerID, e.Assets, e.Shares)
		case contracts.WithdrawalRequested:
			about(e.RequestIndex, "requested", e.Owner, e.Receiver, e.PartnerID, e.Shares, e.AssetsEstimate, e.ExpiresAt)
		case contracts.WithdrawalFunded:
			about(e.RequestIndex, "funded", e.Owner, none, 0, e.Shares, e.Assets, 0)
		case contracts.WithdrawalClaimed:
			about(e.RequestIndex, "claimed", e.Owner, none, 0, e.Shares, e.Assets, 0)
		case contracts.WithdrawalCancelled:
			about(e.RequestIndex, "cancelled", e.Owner, none, 0, e.Shares, whole(0), 0)
		case contracts.WithdrawalExpired:
			about(e.RequestIndex, "expired", e.Owner, none, 0, e.Shares, whole(0), 0)
		case contracts.NavUpdated:
			put(navs, e.NavPerShare, e.TotalAssets, e.TotalSupply)
		case contracts.DepositsSwept:
			put(sweeps, e.FromDepositID.Uint64(), e.ToDepositID.Uint64(), e.Assets)
		}
	}
	for _, b := range []driver.Batch{deposits, events, navs, sweeps} {
		if b.Rows() == 0 {
			must(t, b.Abort())
			continue
		}
		must(t, b.Send())
	}
}

// change runs statements, and waits for what they start; at a test's end too.
func (g *generation) change(t testing.TB, statements ...string) {
	t.Helper()
	ctx := clickhouse.Context(context.WithoutCancel(t.Context()), clickhouse.WithSettings(clickhouse.Settings{"mutations_sync": 2, "insert_deduplicate": 0}))
	for _, statement := range statements {
		if err := g.conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// everyEvent is a history with each kind of log.
func everyEvent() *histories.Script {
	deposit := func(id int64, who common.Address, partner uint32, assets int64) contracts.Event {
		return contracts.DepositAccepted{DepositID: whole(id), Owner: who, Sender: bob, PartnerID: partner, Assets: whole(assets), Shares: whole(assets)}
	}
	requested := func(index int64, who common.Address) contracts.Event {
		return contracts.WithdrawalRequested{RequestIndex: whole(index), Owner: who, Receiver: bob, PartnerID: 7, Shares: whole(10), AssetsEstimate: whole(11), ExpiresAt: 1_800_000_000}
	}
	s := histories.New(chainID)
	s.Vault(vaultA)
	s.Mine()
	s.Mine(said{Vault: vaultA, Event: deposit(1, alice, 7, 1000)}, said{Vault: vaultA, Event: requested(0, alice)}, said{Vault: vaultA, Event: requested(1, alice)}, said{Vault: vaultA, Event: requested(2, bob)})
	s.Mine(said{Vault: vaultA, Event: contracts.WithdrawalFunded{RequestIndex: whole(0), Owner: alice, SettlementID: whole(1), Shares: whole(10), Assets: whole(12)}},
		said{Vault: vaultA, Event: contracts.WithdrawalsSettled{SettlementID: whole(1), Funder: bob, RequestCount: whole(1), Shares: whole(10), Assets: whole(12), NavPerShare: whole(1)}})
	s.Mine(said{Vault: vaultA, Event: contracts.WithdrawalClaimed{RequestIndex: whole(0), Owner: alice, Receiver: bob, Shares: whole(10), Assets: whole(12)}},
		said{Vault: vaultA, Event: contracts.WithdrawalCancelled{RequestIndex: whole(1), Owner: alice, Shares: whole(10)}},
		said{Vault: vaultA, Event: contracts.WithdrawalExpired{RequestIndex: whole(2), Owner: bob, Shares: whole(10)}})
	s.Mine(said{Vault: vaultA, Event: contracts.NavUpdated{NavID: whole(1), Updater: bob, NavPerShare: histories.Power(60, 0), TotalAssets: whole(5), TotalSupply: whole(6)}},
		said{Vault: vaultA, Event: contracts.DepositsSwept{SweepID: whole(1), Custodian: bob, FromDepositID: whole(1), ToDepositID: whole(1), Assets: whole(1000)}})
	s.Raw(&event.Log{Address: vaultA.Bytes(), Topics: [][]byte{make([]byte, 32)}, TxHash: make([]byte, 32)}) // none of ours
	s.Decision("accept-reorg:open")
	s.Mine(said{Vault: vaultA, Event: deposit(2, bob, 7, 50)}, said{Vault: vaultA, Event: requested(3, bob)})
	s.Mine(said{Vault: vaultA, Event: deposit(3, alice, 0, 1)})
	s.Retract(1)
	s.Boundary()
	s.Mine()
	return s
}

// compared is the report about a generation, and a log that was never written.
func (g *generation) compared(t testing.TB, records []*event.Record) *Report {
	t.Helper()
	r, err := Records(t.Context(), g.conn, records, Options{})
	must(t, err)
	return r
}

// equal fails the test unless all is as the records say.
func (g *generation) equal(t testing.TB, records []*event.Record) *Report {
	t.Helper()
	r := g.compared(t, records)
	if r.Err() != nil || r.Seq != uint64(len(records)) {
		t.Fatalf("want all equal at seq %d, got\n%s", len(records), r)
	}
	return r
}

// check gives the check of a report with a name.
func check(t testing.TB, checks []Check, name string) Check {
	t.Helper()
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no check %q in %+v", name, checks)
	}
	return checks[i]
}

// world is what `navlog verify` works with.
type world struct {
	*generation
	kafka    chainlog.Config
	pool     *pgxpool.Pool
	producer *kgo.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{generation: newGeneration(t), kafka: chainlog.DefaultConfig()}
	pg := registry.DefaultConfig()
	pg.URL = enginetest.Postgres(t)
	var err error
	w.pool, err = registry.Open(t.Context(), pg)
	must(t, err)
	t.Cleanup(w.pool.Close)
	w.kafka.Brokers = enginetest.Kafka(t)
	w.producer, err = kgo.NewClient(append([]kgo.Opt{kgo.TransactionalID("test"), kgo.RecordPartitioner(kgo.ManualPartitioner())}, w.kafka.Options()...)...)
	must(t, err)
	t.Cleanup(w.producer.Close)
	must(t, chainlog.EnsureTopics(t.Context(), kadm.NewClient(w.producer), chainID, w.kafka.Topology()))
	return w
}

// append writes records to the log, one transaction for each unit.
func (w *world) append(t *testing.T, records []*event.Record) {
	t.Helper()
	for _, unit := range histories.Units(records) {
		w.transaction(t, unit)
	}
}

func (w *world) transaction(t *testing.T, unit []*event.Record) {
	t.Helper()
	must(t, w.producer.BeginTransaction())
	for _, r := range unit {
		out, err := chainlog.Encode(r)
		must(t, err)
		w.producer.Produce(t.Context(), out, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	must(t, w.producer.Flush(t.Context()))
	must(t, w.producer.EndTransaction(t.Context(), kgo.TryCommit))
}

// registered makes the generation known.
func (w *world) registered(t *testing.T, state string) {
	t.Helper()
	must(t, db.New(w.pool).CreateGeneration(t.Context(), db.CreateGenerationParams{ID: w.id, LogID: make([]byte, 16), Schema: readmodel.Schema(), State: state}))
}
