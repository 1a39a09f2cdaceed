package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/readmodel/expect"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// The tests fill the tables in the simplest way: events row by row from records, and lists with the difference to
// their definitions. So they depend on no writer.

const (
	chainID = 31337
	// patience is how long a test waits for a condition before it fails.
	patience = 90 * time.Second
)

type emitted = histories.Emitted

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

// generation is a test's own generation, at the end of a log.
type generation struct {
	ch      readmodel.Config
	id      int32
	conn    driver.Conn // to its database
	session driver.Conn
	log     *oracle.Fold // what its events have
	lists   expect.Table // what its lists have
}

// newGeneration creates a generation without lists.
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
	must(t, ch.CreateEvents(t.Context(), outside, ch.Database(id)))
	g := &generation{ch: ch, id: id, log: oracle.New(nil)}
	g.conn, err = ch.OpenPatient(ch.Database(id))
	must(t, err)
	g.session, err = ch.OpenSession(ch.Database(id))
	must(t, err)
	t.Cleanup(func() {
		g.conn.Close()
		g.session.Close()
		if err := outside.Exec(context.Background(), "DROP DATABASE IF EXISTS "+ch.Database(id)); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
		outside.Close()
	})
	return g
}

// filled returns a generation with a log and its lists.
func filled(t testing.TB, records []*event.Record) *generation {
	t.Helper()
	g := newGeneration(t)
	g.events(t, records)
	g.build(t)
	return g
}

// writer is the writer's id.
const writer = 1

func (g *generation) events(t testing.TB, records []*event.Record) {
	t.Helper()
	rows := readmodel.EventsTable.NewRows()
	var unit []oracle.Record
	for _, r := range records {
		must(t, g.log.Apply(r))
		value, err := proto.Marshal(r)
		must(t, err)
		if unit = append(unit, oracle.Record{Record: r, Value: value, Passed: g.log.Skips(r)}); !r.GetBoundary() {
			continue
		}
		for _, all := range oracle.Rows(g.log.Vaults(), unit) {
			for i := range all {
				all[i].Writer = writer
				rows.Add(&all[i])
			}
		}
		unit = nil
	}
	ctx := clickhouse.Context(t.Context(),
		clickhouse.WithSettings(clickhouse.Settings{"deduplicate_insert": "disable", "deduplicate_insert_select": "disable"}))
	b, err := g.conn.PrepareBatch(ctx, "INSERT INTO events ("+readmodel.EventsTable.Names()+")")
	must(t, err)
	must(t, rows.Fill(b.Columns()))
	must(t, b.Send())
}

// build builds the lists.
func (g *generation) build(t testing.TB) {
	t.Helper()
	must(t, g.ch.CreateLists(t.Context(), g.conn, g.ch.Database(g.id), readmodel.ListsTable.Name))
	must(t, readmodel.BuildLists(t.Context(), g.session, readmodel.ListsTable.Name, g.log.Seq(), writer))
	g.lists.Become(g.content())
}

// live writes units as a projector does: events, and then the lists.
func (g *generation) live(t testing.TB, records []*event.Record) {
	t.Helper()
	for _, unit := range histories.Units(records) {
		g.events(t, unit)
		g.update(t)
	}
}

// update makes the lists those of the fold of the log, in one insert.
func (g *generation) update(t testing.TB) {
	t.Helper()
	rows := readmodel.ListsTable.NewRows()
	changes := g.lists.Become(g.content())
	for i := range changes {
		rows.Add(&changes[i])
	}
	b, err := g.conn.PrepareBatch(t.Context(), "INSERT INTO lists ("+readmodel.ListsTable.Names()+")")
	must(t, err)
	must(t, rows.Fill(b.Columns()))
	must(t, b.Send())
}

// content returns the rows of lists for the log that was written.
func (g *generation) content() []readmodel.ListRow {
	return append(g.log.Lists(), g.log.Cursor(writer)...)
}

// change runs statements and waits until their effects are complete, also at a test's end.
func (g *generation) change(t testing.TB, statements ...string) {
	t.Helper()
	ctx := clickhouse.Context(context.WithoutCancel(t.Context()),
		clickhouse.WithSettings(clickhouse.Settings{"mutations_sync": 2, "deduplicate_insert": "disable",
			"deduplicate_insert_select": "disable"}))
	for _, statement := range statements {
		if err := g.conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// everyEvent returns a history with each kind of log.
func everyEvent() *histories.Script {
	deposit := func(id int64, who common.Address, partner uint32, assets int64) contracts.Event {
		return contracts.DepositAccepted{DepositID: whole(id), Owner: who, Sender: bob, PartnerID: partner,
			Assets: whole(assets), Shares: whole(assets)}
	}
	requested := func(index int64, who common.Address) contracts.Event {
		return contracts.WithdrawalRequested{RequestIndex: whole(index), Owner: who, Receiver: bob, PartnerID: 7,
			Shares: whole(10), AssetsEstimate: whole(11), ExpiresAt: 1_800_000_000}
	}
	s := histories.New(chainID)
	s.Vault(vaultA)
	s.Mine()
	s.Mine(emitted{Vault: vaultA, Event: deposit(1, alice, 7, 1000)}, emitted{Vault: vaultA, Event: requested(0, alice)},
		emitted{Vault: vaultA, Event: requested(1, alice)}, emitted{Vault: vaultA, Event: requested(2, bob)})
	s.Mine(emitted{Vault: vaultA,
		Event: contracts.WithdrawalFunded{RequestIndex: whole(0), Owner: alice, SettlementID: whole(1), Shares: whole(10),
			Assets: whole(12)}},
		emitted{Vault: vaultA, Event: contracts.WithdrawalsSettled{SettlementID: whole(1), Funder: bob,
			RequestCount: whole(1), Shares: whole(10), Assets: whole(12), NavPerShare: whole(1)}})
	s.Mine(emitted{Vault: vaultA,
		Event: contracts.WithdrawalClaimed{RequestIndex: whole(0), Owner: alice, Receiver: bob, Shares: whole(10),
			Assets: whole(12)}},
		emitted{Vault: vaultA, Event: contracts.WithdrawalCancelled{RequestIndex: whole(1), Owner: alice, Shares: whole(10)}},
		emitted{Vault: vaultA, Event: contracts.WithdrawalExpired{RequestIndex: whole(2), Owner: bob, Shares: whole(10)}})
	s.Mine(emitted{Vault: vaultA,
		Event: contracts.NavUpdated{NavID: whole(1), Updater: bob, NavPerShare: histories.Power(60, 0), TotalAssets: whole(5),
			TotalSupply: whole(6)}},
		emitted{Vault: vaultA, Event: contracts.DepositsSwept{SweepID: whole(1), Custodian: bob, FromDepositID: whole(1),
			ToDepositID: whole(1), Assets: whole(1000)}})
	// an unknown event
	s.Raw(&event.Log{Address: vaultA.Bytes(), Topics: [][]byte{make([]byte, 32)}, TxHash: make([]byte, 32)})
	s.Decision("accept-reorg:open")
	s.Mine(emitted{Vault: vaultA, Event: deposit(2, bob, 7, 50)}, emitted{Vault: vaultA, Event: requested(3, bob)})
	s.Mine(emitted{Vault: vaultA, Event: deposit(3, alice, 0, 1)})
	s.Retract(1)
	s.Boundary()
	s.Mine()
	return s
}

// compared returns the report about a generation and a log that was never written to Kafka.
func (g *generation) compared(t testing.TB, records []*event.Record) *Report {
	t.Helper()
	v := newVerifier(connections{g.conn, g.session}, recordsLog(records), Options{})
	must(t, v.tables(t.Context()))
	return v.report
}

// recordsLog is a log that was never written to Kafka.
func recordsLog(records []*event.Record) readLog {
	return func(_ context.Context, after chainlog.Position, to uint64, visit func(chainlog.Entry) error) error {
		if to > uint64(len(records)) {
			return fmt.Errorf("the tables are at seq %d and the log has %d records", to, len(records))
		}
		for _, r := range records[after.Seq:max(to, after.Seq)] {
			value, err := proto.Marshal(r)
			if err != nil {
				return fmt.Errorf("encode record %d: %w", r.GetSeq(), err)
			}
			if err := visit(chainlog.Entry{Record: r, Offset: int64(r.GetSeq()), Value: value}); err != nil {
				return err
			}
		}
		return nil
	}
}

// equal fails the test unless everything equals the records.
func (g *generation) equal(t testing.TB, records []*event.Record) *Report {
	t.Helper()
	r := g.compared(t, records)
	if r.Err() != nil || r.Seq != uint64(len(records)) {
		t.Fatalf("want all equal at seq %d, got\n%s", len(records), r)
	}
	return r
}

// check returns the check with a name from a report.
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
	pg.URL = registrytest.Postgres(t)
	var err error
	w.pool, err = registry.Open(t.Context(), pg)
	must(t, err)
	t.Cleanup(w.pool.Close)
	w.kafka.Brokers = enginetest.Kafka(t)
	w.producer, err = kgo.NewClient(append([]kgo.Opt{kgo.TransactionalID("test"),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}, w.kafka.Options()...)...)
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
	var topics []string
	for _, r := range unit {
		out, err := chainlog.Encode(r)
		must(t, err)
		topics = append(topics, out.Topic)
		w.producer.Produce(t.Context(), out, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	must(t, w.producer.Flush(t.Context()))
	must(t, chainlog.EndTransaction(t.Context(), w.producer, kgo.TryCommit, topics...))
}

// registered adds the generation to the registry.
func (w *world) registered(t *testing.T, state string) {
	t.Helper()
	must(t, db.New(w.pool).CreateGeneration(t.Context(),
		db.CreateGenerationParams{ID: w.id, LogID: make([]byte, 16), Schema: readmodel.Schema(), State: state}))
}

// unrestored returns a random history in which no vault is restored: one generation can represent it, wherever in the
// history its lists are built.
func unrestored(rng *rand.Rand, steps int) *histories.Script {
	for {
		s, removed, restored := histories.Random(rng, chainID, steps, "lagoon-v0.6", "midas", "veda", "yo"),
			map[common.Address]bool{}, false
		for _, r := range s.Records {
			if v := r.GetVault(); v != nil {
				a := common.Address(v.GetAddress())
				restored = restored || removed[a]
				removed[a] = v.GetRemoved()
			}
		}
		if !restored {
			return s
		}
	}
}
