package projections

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

var alice, bob, vaultA, vaultB = userAt(1), userAt(2), vaultAt(0), vaultAt(1)

func deposit(n int64, owner common.Address, partner uint32, assets *big.Int) contracts.Event {
	return contracts.DepositAccepted{DepositID: whole(n), Owner: owner, PartnerID: partner, Sender: bob, Assets: assets,
		Shares: whole(n)}
}

func requested(index int64, owner common.Address) contracts.Event {
	return contracts.WithdrawalRequested{RequestIndex: whole(index), Owner: owner, PartnerID: 7, Receiver: bob,
		Shares: whole(10), AssetsEstimate: whole(11), ExpiresAt: 1_700_000_500}
}

// everyEvent has one of each event, and of each other kind of record.
func everyEvent() *script {
	s := newScript()
	s.Mine()
	s.Mine(emitted{vaultA, deposit(1, alice, 7, whole(1000))}, emitted{vaultA, requested(0, alice)},
		emitted{vaultA, requested(1, alice)}, emitted{vaultA, requested(2, bob)})
	s.Mine(emitted{vaultA, contracts.WithdrawalFunded{RequestIndex: whole(0), Owner: alice, SettlementID: whole(1),
		Shares: whole(10), Assets: whole(12)}},
		emitted{vaultA, contracts.WithdrawalsSettled{SettlementID: whole(1), Funder: bob, RequestCount: whole(1),
			Shares: whole(10), Assets: whole(12), NavPerShare: whole(1)}})
	s.Mine(emitted{vaultA, contracts.WithdrawalClaimed{RequestIndex: whole(0), Owner: alice, Receiver: bob,
		Shares: whole(10), Assets: whole(12)}},
		emitted{vaultA, contracts.WithdrawalCancelled{RequestIndex: whole(1), Owner: alice, Shares: whole(10)}},
		emitted{vaultA, contracts.WithdrawalExpired{RequestIndex: whole(2), Owner: bob, Shares: whole(10)}})
	s.Mine(emitted{vaultA, contracts.NavUpdated{NavID: whole(1), Updater: bob, NavPerShare: power(60, 0),
		TotalAssets: whole(5), TotalSupply: whole(6)}},
		emitted{vaultA, contracts.DepositsSwept{SweepID: whole(1), Custodian: bob, FromDepositID: whole(1),
			ToDepositID: whole(1), Assets: whole(1000)}})
	// an unknown event
	s.Raw(&event.Log{Address: vaultA.Bytes(), Topics: [][]byte{make([]byte, 32)}, TxHash: make([]byte, 32)})
	s.Decision("accept-reorg:open")
	s.Mine()
	return s
}

func TestEmptyLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, _ := w.projector(t)
	if err := p.Ready(); err == nil || p.Status().State != Starting {
		t.Errorf("before Run: ready is %v, status %+v", err, p.Status())
	}
	stop := start(t, p)
	wait.Until(t, func() error {
		if s := p.Status(); s.State != Waiting {
			return fmt.Errorf("status is %+v", s)
		}
		return nil
	})
	if err := p.Ready(); err == nil || !strings.Contains(err.Error(), "no record yet") {
		t.Errorf("ready is %v", err)
	}
	if all, err := db.New(w.pool).ListGenerations(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("generations %v, %v before the log has a record", all, err)
	}
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := verify.Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, verify.Options{}); err == nil ||
		!strings.Contains(err.Error(), "no generation is live") {
		t.Errorf("verify reports %v", err)
	}
}

func TestEveryEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, reg := w.projector(t)
	stop := start(t, p)
	reaches(t, p, s.Seq())
	r := w.verify(t, s.Seq())
	if len(r.Impossible)+len(r.Quarantined) != 0 {
		t.Errorf("want no impossible and no quarantined log, got\n%s", r)
	}
	got := p.Status()
	if got.Generation != 1 || got.Block != s.Number || got.BlockTime == nil || uint64(got.BlockTime.Unix()) != s.Time ||
		got.Lag != 0 {
		t.Errorf("status is %+v, want block %d at %d", got, s.Number, s.Time)
	}
	live, err := db.New(w.pool).LiveGeneration(t.Context())
	if err != nil || live.ID != 1 || !bytes.Equal(live.LogID, s.Records[0].GetOrigin().GetLogId()) ||
		live.Schema != readmodel.Schema() {
		t.Errorf("generation is %+v, %v", live, err)
	}
	compareLines(t, w, "events", "record, event, quarantined, length(payload) > 0", []string{
		"block  false 0", "block  false 0", "block  false 0", "block  false 0", "block  false 0", "block  false 0",
		"block  false 0",
		"decision  false 1", "log DepositAccepted false 0", "log DepositsSwept false 0", "log NavUpdated false 0",
		"log Unknown false 0",
		"log WithdrawalCancelled false 0", "log WithdrawalClaimed false 0", "log WithdrawalExpired false 0",
		"log WithdrawalFunded false 0",
		"log WithdrawalRequested false 0", "log WithdrawalRequested false 0", "log WithdrawalRequested false 0",
		"log WithdrawalsSettled false 1",
		"vault  false 1", "vault  false 1"})
	var payload []byte
	if err := w.conn.QueryRow(t.Context(),
		"SELECT payload FROM "+w.ch.Database(1)+
			".events WHERE record = 'vault' ORDER BY seq LIMIT 1").Scan(&payload); err != nil {
		t.Fatal(err)
	}
	if in, err := chainlog.Decode(chainID, &kgo.Record{Value: payload}); err != nil || in.GetVault().GetSymbol() != "V" ||
		in.GetSeq() != 1 {
		t.Errorf("the vault's payload is %v, %v", in, err)
	}
	if n, err := testutil.GatherAndCount(reg, "navlog_projections_rows_total"); err != nil || n != 1 {
		// events only; lists was built from it
		t.Errorf("rows are counted for %d tables, %v", n, err)
	}
	if got := testutil.ToFloat64(p.measured().rows.WithLabelValues("events")); got != float64(s.Seq()) {
		t.Errorf("%v rows of events are counted, want %d", got, s.Seq())
	}
	wait.Until(t, func() error {
		if got := testutil.ToFloat64(p.measured().seq); got != float64(s.Seq()) {
			return fmt.Errorf("metric seq is %v", got)
		}
		return nil
	})
	// The log continues, then the projector restarts.
	s.Mine(emitted{vaultB, deposit(1, alice, 3, whole(1))}, emitted{vaultB, requested(1, alice)})
	w.append(t, s.Records[s.Seq()-3:])
	reaches(t, p, s.Seq())
	if got := testutil.ToFloat64(p.measured().rows.WithLabelValues("lists")); got < 20 {
		t.Errorf("%v rows of lists are counted", got)
	}
	if err := stop(); err != nil {
		t.Fatalf("Run: %v", err)
	}
	s.Mine(emitted{vaultB, deposit(2, bob, 0, whole(1))})
	w.append(t, s.Records[s.Seq()-2:])
	p, _ = w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	w.equal(t, s.Seq())
}

// compareLines compares the sorted result of a query of a table with lines.
func compareLines(t *testing.T, w *world, table, columns string, want []string) {
	t.Helper()
	rows, err := w.conn.Query(t.Context(),
		fmt.Sprintf("SELECT arrayStringConcat(arrayMap(x -> toString(x), [%s]), ' ') AS line FROM %s.%s WHERE sign != 0 "+
			"ORDER BY line",
			"toString("+strings.ReplaceAll(columns, ", ", "), toString(")+")", w.ch.Database(1), table))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		got = append(got, line)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s has\n%s\nwant\n%s", table, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newScript()
	s.Mine(emitted{vaultA, deposit(1, alice, 7, power(191, -1))}, emitted{vaultA, deposit(2, alice, 7, power(191, -1))})
	s.Mine(emitted{vaultA, deposit(3, alice, 7, power(191, 0))}, emitted{vaultA, deposit(4, bob, 7, power(256, -1))})
	s.Mine(emitted{vaultA, contracts.DepositAccepted{DepositID: power(64, 0), Owner: bob, Sender: bob, Assets: whole(1),
		Shares: whole(1)}},
		emitted{vaultA, contracts.WithdrawalFunded{RequestIndex: power(64, 0), Owner: bob, SettlementID: whole(1),
			Shares: whole(1), Assets: whole(1)}})
	cut := logOf(0, 0, common.Hash{}, 0, emitted{vaultA, deposit(5, bob, 7, whole(1))})
	cut.Data = cut.Data[:40]
	s.Raw(cut)
	long := logOf(0, 0, common.Hash{}, 0, emitted{vaultA, deposit(6, bob, 7, whole(1))})
	long.TxHash = append(long.TxHash, 1)
	s.Raw(long)
	s.Raw(&event.Log{Address: vaultA.Bytes()}) // without topics
	s.Mine(emitted{vaultA, deposit(7, alice, 0, whole(0))}, emitted{vaultA, deposit(8, alice, 0, whole(1))})
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	r := w.verify(t, s.Seq())
	if len(r.Quarantined) != 6 {
		t.Errorf("%d logs are quarantined, want 6:\n%s", len(r.Quarantined), r)
	}
	if n := testutil.ToFloat64(p.measured().quarantinedLogs); n != 6 {
		t.Errorf("%v quarantined logs are counted, want 6", n)
	}
	var sum big.Int
	if err := w.conn.QueryRow(t.Context(),
		"SELECT sum(sign * key) FROM "+w.ch.Database(1)+
			".lists WHERE list = 'deposited' AND owner = toFixedString('', 20)").Scan(&sum); err != nil {
		t.Fatal(err)
	}
	if want := power(192, -1); sum.Cmp(want) != 0 { // 2 * (2^191 - 1) + 0 + 1
		t.Errorf("the sum is %d, want %d", &sum, want)
	}
	if n := number(t, w.conn,
		"SELECT count() FROM "+w.ch.Database(1)+".events WHERE quarantined AND length(payload) > 0"); n != 6 {
		t.Errorf("%d quarantined records keep their bytes, want 6", n)
	}
	// They can be retracted like any other log.
	s.Retract(6)
	s.Mine()
	w.append(t, s.Records[p.Status().Seq:])
	reaches(t, p, s.Seq())
	if r := w.verify(t, s.Seq()); len(r.Quarantined) != 0 {
		t.Errorf("quarantined logs that are gone are still listed:\n%s", r)
	}
}

// TestReorganisationBackToTheFirstBranch: a reorganisation A -> B -> A with everything that depends on a block. The
// lists are built while the generation has branch A.
func TestReorganisationBackToTheFirstBranch(t *testing.T) {
	if testing.Short() {
		t.Skip("switches back and forth")
	}
	t.Parallel()
	w, s, p, _ := running(t)
	from := s.Seq()
	rng := rand.New(rand.NewPCG(1, 2))
	a := s.Retract(4)
	var logs []emitted
	for range 12 {
		logs = append(logs, anything(rng, 2, 3))
	}
	s.Enter(s.Make(12, logs...))
	s.Boundary()
	other := s.Seq()
	s.Retract(1)
	for _, b := range a {
		s.Enter(b)
	}
	s.Boundary()
	w.append(t, s.Records[from:other])
	reaches(t, p, other)
	w.verify(t, other)
	w.append(t, s.Records[other:])
	reaches(t, p, s.Seq())
	w.verify(t, s.Seq())
	oracletest.Same(t, "back on branch A", listsOf(t, s.Records), listsOf(t, everyEvent().Records))
}

func TestImpossibleLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newScript()
	s.Mine()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	from := s.Seq()
	claim := contracts.WithdrawalClaimed{RequestIndex: whole(9), Owner: alice, Receiver: bob, Shares: whole(1),
		Assets: whole(5)}
	fund := contracts.WithdrawalFunded{RequestIndex: whole(8), Owner: alice, SettlementID: whole(1), Shares: whole(1),
		Assets: whole(5)}
	sweep := func(from, to int64) contracts.Event {
		return contracts.DepositsSwept{SweepID: whole(1), Custodian: bob, FromDepositID: whole(from), ToDepositID: whole(to),
			Assets: whole(1)}
	}
	s.Mine(emitted{vaultA, claim}, emitted{vaultA, fund},
		emitted{vaultA, sweep(1, 2)}, emitted{vaultA, sweep(4, 5)}, emitted{vaultA, sweep(6, 5)})
	s.Mine(emitted{vaultA, requested(1, alice)}, emitted{vaultA, requested(1, bob)})
	s.Mine(emitted{vaultA, claim})
	w.append(t, s.Records[from:])
	reaches(t, p, s.Seq())
	r := w.verify(t, s.Seq())
	if len(r.Impossible) != 6 {
		t.Errorf("verify lists %d impossible logs, want 6:\n%s", len(r.Impossible), r)
	}
	for name, want := range map[string]float64{"WithdrawalClaimed": 2, "WithdrawalFunded": 1, "WithdrawalRequested": 1,
		"DepositsSwept": 1} {
		if got := testutil.ToFloat64(p.measured().impossibleLogs.WithLabelValues(name)); got != want {
			t.Errorf("%v impossible %s are counted, want %v", got, name, want)
		}
	}
	if n := number(t, w.conn,
		"SELECT toUInt64(sum(sign * claimed)) FROM "+w.ch.Database(1)+
			".lists WHERE list = 'totals' AND owner = scope AND key = 18446744073709551615"); n != 10 {
		t.Errorf("withdrawn is %d, want 10", n)
	}
}

// TestTwoProjectors: one writes, the other stands by and takes over.
func TestTwoProjectors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := busyHistory(rand.New(rand.NewPCG(2, 9)), 30)
	parts := units(s.Records)
	w.append(t, slices.Concat(parts[:3]...)) // both vaults, and a block
	var all [2]*Projections
	var stops [2]func() error
	for i := range all {
		all[i], _ = w.projector(t)
		stops[i] = start(t, all[i])
	}
	leader := -1
	wait.Until(t, func() error {
		for i, p := range all {
			if p.Status().State == Following && all[1-i].Status().State == StandingBy {
				leader = i
				return all[1-i].Ready()
			}
		}
		return fmt.Errorf("states %s and %s", all[0].Status().State, all[1].Status().State)
	})
	half := slices.Concat(parts[3 : len(parts)/2]...)
	w.append(t, half)
	if err := stops[leader](); err != nil {
		t.Fatalf("Run: %v", err)
	}
	w.append(t, slices.Concat(parts[len(parts)/2:]...))
	reaches(t, all[1-leader], s.Seq())
	w.equal(t, s.Seq())
}

// stealLease gives the lease of a generation to an owner that has just ended.
func (w *world) stealLease(t *testing.T, generation int32) {
	t.Helper()
	_, err := w.pool.Exec(t.Context(),
		"UPDATE job_lease SET owner = gen_random_uuid(), fence = fence + 1, until = now() WHERE kind = 'generation' AND "+
			"key = $1", generation)
	must(t, err)
}

// TestLeaseLost: another owner takes the lease.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	w.stealLease(t, 1)
	wait.Until(t, func() error {
		if s := p.Status(); s.State == Following {
			return fmt.Errorf("still following after the lease was lost")
		}
		return nil
	})
	reaches(t, p, s.Seq())
	s.Mine(emitted{vaultA, deposit(2, bob, 7, whole(1))})
	w.append(t, s.Records[p.Status().Seq:])
	reaches(t, p, s.Seq())
	w.equal(t, s.Seq())
}

// TestBehindPgBouncer: two projectors whose PostgreSQL sessions change hands after each transaction. One writes, and
// the other one takes over.
func TestBehindPgBouncer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PgBouncer")
	}
	t.Parallel()
	w := newWorld(t)
	url := enginetest.PgBouncer(t, w.pool.Config().ConnString())
	s := everyEvent()
	w.append(t, s.Records)
	w.pooled(t, url)
	first, _ := w.projector(t)
	stop := start(t, first)
	reaches(t, first, s.Seq())
	w.pooled(t, url)
	second, _ := w.projector(t)
	start(t, second)
	wait.Until(t, func() error {
		if s := second.Status(); s.State != StandingBy || second.Ready() != nil {
			return fmt.Errorf("the second one is %s", s.State)
		}
		return nil
	})
	must(t, stop())
	s.Mine(emitted{vaultA, deposit(2, bob, 7, whole(1))})
	w.append(t, s.Records[first.Status().Seq:])
	reaches(t, second, s.Seq())
	w.verify(t, s.Seq())
}

// pooled makes the next projectors connect to PostgreSQL through a pooler.
func (w *world) pooled(t *testing.T, url string) {
	t.Helper()
	pool, err := registry.Open(t.Context(), registry.Config{URL: url, MaxConns: 8, Pooled: true})
	must(t, err)
	t.Cleanup(pool.Close)
	w.pool = pool
}

// registered adds a generation to the registry by hand.
func (w *world) registered(t *testing.T, id int32, logID []byte, schema, state string) {
	t.Helper()
	if err := db.New(w.pool).CreateGeneration(t.Context(),
		db.CreateGenerationParams{ID: id, LogID: logID, Schema: schema, State: state}); err != nil {
		t.Fatal(err)
	}
}

// TestDatabaseComesFirst: serve connects to a generation as soon as PostgreSQL has it, so its database exists by then.
func TestDatabaseComesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	unreachable := w.ch
	unreachable.Addr = "127.0.0.1:1"
	conn, err := unreachable.Open("")
	must(t, err)
	defer conn.Close()
	made, err := (&stores{chainID, w.kafka, unreachable, conn, w.pool}).create(t.Context(), 1, s.Records[0].GetOrigin())
	if made || err == nil {
		t.Errorf("without ClickHouse: made %v, error %v", made, err)
	}
	generations, err := db.New(w.pool).ListGenerations(t.Context())
	must(t, err)
	if len(generations) != 0 {
		t.Errorf("PostgreSQL has %d generations", len(generations))
	}
}

// TestRefusals: a projector that cannot write reports why, and does not end.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	logID := s.Records[0].GetOrigin().GetLogId()
	ctx := context.Background()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, w *world)
		words   []string
	}{
		"another log": {func(t *testing.T, w *world) {
			w.registered(t, 1, bytes.Repeat([]byte{9}, 16), readmodel.Schema(), registry.Live)
		}, []string{"generation 1 was made from log 0909", "navlog projection rebuild"}},
		"another log, while the first generation is built": {func(t *testing.T, w *world) {
			w.registered(t, 1, bytes.Repeat([]byte{9}, 16), readmodel.Schema(), registry.Building)
		}, []string{"generation 1 was made from log 0909", "navlog projection rebuild"}},
		"unknown schema": {func(t *testing.T, w *world) {
			w.registered(t, 1, logID, "fedcba987654", registry.Live)
		}, []string{"has schema fedcba987654", readmodel.Schema(), "navlog projection rebuild"}},
		"none live": {func(t *testing.T, w *world) {
			w.registered(t, 1, logID, readmodel.Schema(), registry.Bad)
		}, []string{"no generation is live", "1 (bad)", "navlog projection rebuild"}},
		"rows of an unknown generation": {func(t *testing.T, w *world) {
			must(t, w.ch.CreateEvents(ctx, w.conn, w.ch.Database(1)))
			must(t, w.conn.Exec(ctx, "INSERT INTO "+w.ch.Database(1)+".events (seq) VALUES (5)"))
		}, []string{"holds rows (events up to seq 5)", "drop the database"}},
		"a hole": {func(t *testing.T, w *world) {
			w.registered(t, 1, logID, readmodel.Schema(), registry.Live)
			must(t, w.ch.CreateEvents(ctx, w.conn, w.ch.Database(1)))
			must(t, w.conn.Exec(ctx, "INSERT INTO "+w.ch.Database(1)+".events (seq) VALUES (1), (2), (4)"))
		}, []string{"events has 3 rows of 3 seqs up to seq 4", "marked bad", "navlog projection rebuild"}},
		"a double": {func(t *testing.T, w *world) {
			w.registered(t, 1, logID, readmodel.Schema(), registry.Live)
			must(t, w.ch.CreateEvents(ctx, w.conn, w.ch.Database(1)))
			must(t, w.conn.Exec(ctx, "INSERT INTO "+w.ch.Database(1)+".events (seq) VALUES (1), (2), (2)"))
		}, []string{"events has 3 rows of 2 effects up to seq 2", "marked bad"}},
		"an altered table": {func(t *testing.T, w *world) {
			w.registered(t, 1, logID, readmodel.Schema(), registry.Live)
			must(t, w.ch.CreateEvents(ctx, w.conn, w.ch.Database(1)))
			must(t, w.conn.Exec(ctx, "ALTER TABLE "+w.ch.Database(1)+
				".events MODIFY SETTING non_replicated_deduplication_window = 0"))
		}, []string{"events lacks non_replicated_deduplication_window = 100000", "navlog projection rebuild"}},
		"an older copy of the log": {func(t *testing.T, w *world) {
			w.registered(t, 1, logID, readmodel.Schema(), registry.Live)
			must(t, w.ch.CreateEvents(ctx, w.conn, w.ch.Database(1)))
			must(t, w.conn.Exec(ctx, "INSERT INTO "+w.ch.Database(1)+".events (seq) SELECT number + 1 FROM numbers(1000)"))
		}, []string{"ends before seq 1000", "replaced by an older copy"}},
		"a corrupt record": {func(t *testing.T, w *world) {
			r, err := chainlog.Encode(s.Records[0])
			must(t, err)
			r.Value = []byte("not a record")
			must(t, w.producer.BeginTransaction())
			must(t, w.producer.ProduceSync(ctx, r).FirstErr())
			must(t, chainlog.EndTransaction(ctx, w.producer, kgo.TryCommit, r.Topic))
		}, []string{"is corrupt", "chain.31337.log"}},
		"a hole in the log": {func(t *testing.T, w *world) {
			w.transaction(t, []*event.Record{{Seq: s.Seq() + 2, ChainId: chainID, Boundary: true, Fact: s.Records[1].Fact}},
				kgo.TryCommit)
		}, []string{"records were lost"}},
		"a forked log": {func(t *testing.T, w *world) {
			parts := units(s.Records)
			var again []*event.Record // the last unit, as another writer read it
			for _, r := range parts[len(parts)-1] {
				r = proto.Clone(r).(*event.Record)
				r.GetBlock().Time += 77
				again = append(again, r)
			}
			w.transaction(t, again, kgo.TryCommit)
		}, []string{"goes back to seq", "two writers", "restore the topic"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.append(t, s.Records)
			c.prepare(t, w)
			p, _ := w.projector(t)
			refuses(t, p, c.words...)
			if strings.Contains(fmt.Sprint(c.words), "marked bad") {
				all, err := db.New(w.pool).ListGenerations(ctx)
				if err != nil || len(all) != 1 || all[0].State != registry.Bad {
					t.Errorf("generations are %+v, %v", all, err)
				}
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnreachableEngines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, _ := w.projector(t)
	p.clickhouse.Addr = "127.0.0.1:1"
	p.open = p.clickhouse.Open
	failing(t, p, "reach ClickHouse", "is clickhouse.addr right and the server up?")
	w.kafka.Brokers = []string{"127.0.0.1:1"}
	p, _ = w.projector(t)
	failing(t, p, "reach Kafka at 127.0.0.1:1 (kafka.brokers)", "check that a broker is up there")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	err := Config{MaxRows: 0, Linger: -1}.Validate()
	for _, want := range []string{"projections.maxRows is 0", "projections.linger is -1ns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
