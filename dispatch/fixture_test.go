// The hardest cases of webhook delivery have a test with that name, whose suffix says what
// is special:
//
//	 1  offset passes a failed record    TestOffsetPassesAFailedRecord
//	 2  SIGKILL between POST, record     TestSIGKILLBetweenPostAndRecord (-kills)
//	 3  SIGKILL between insert, commit   TestSIGKILLBetweenInsertAndCommit
//	 4  full topic replay                TestFullTopicReplay (-replay-events)
//	 5  rebalance during 10 s POSTs      TestRebalanceDuring10sPOSTs (-rebalances)
//	 6  one dead partner                 TestOneDeadPartner; times by make bench-dispatch
//	 7  hostile bodies                   TestHostileBodies...
//	 8  DNS games                        TestDNSGames
//	 9  redirects                        TestRedirects
//	10  host spellings                   TestHostSpellings
//	11  overwrite while retrying         TestOverwriteWhileRetrying...
//	12  breaker life                     TestBreakerLife...; 50,000 parked by make bench-dispatch
//	13  signature bytes and clocks       TestSignatureBytesAndClocks, TestForeignLibrariesVerify
//	14  PostgreSQL in trouble            TestPostgresTrouble...
//	15  duplicates and herds             TestHiddenDuplicatesAndHerds...
//
// With many events or kills, as before a release:
//
//	go test ./dispatch -timeout 60m -patience 10m -run 'SIGKILL|FullTopicReplay|Rebalance' -kills 50 -replay-events 100000 -rebalances 90

package dispatch

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const (
	testChain = 31337
	testLog   = "the log of tests"
	// urlToken represents the secrets that partners put into their URLs.
	urlToken   = "sesame-in-the-url"
	testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// fixture is a Kafka and a PostgreSQL of one test, with the log of its dispatchers.
type fixture struct {
	*testing.T
	kafka   chainlog.Config
	url     string // of PostgreSQL
	pool    *pgxpool.Pool
	queries *db.Queries
	sealer  *registry.Sealer
	logged  *lockedBuffer
	caFiles []byte
	// released is closed when receivers should release the requests that they hold.
	released chan struct{}
	release  func()
}

// newFixture marks its test as parallel: it has its own broker topics and database, and waits most of the time.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return newFixtureOn(t, enginetest.Kafka(t))
}

func newFixtureOn(t *testing.T, brokers []string) *fixture {
	t.Helper()
	return newFixtureIn(t, brokers, registrytest.Postgres(t))
}

func newFixtureIn(t *testing.T, brokers []string, postgres string) *fixture {
	t.Helper()
	kafka := chainlog.DefaultConfig()
	kafka.Brokers, kafka.ReferralPartitions = brokers, 3
	f := &fixture{T: t, kafka: kafka, url: postgres, logged: &lockedBuffer{}, sealer: partners.Sealer()}
	f.pool = f.openPool()
	f.queries = db.New(f.pool)
	f.released = make(chan struct{})
	f.release = sync.OnceFunc(func() { close(f.released) })
	f.makeTopics()
	t.Cleanup(func() {
		if n := f.number("SELECT count(*) FROM dead_record WHERE value = 'aborted'"); n != 0 {
			t.Errorf("%d records of aborted transactions were read", n)
		}
		for _, secret := range []string{"whsec_", strings.TrimPrefix(testSecret, "whsec_"), urlToken} {
			if strings.Contains(f.logged.String(), secret) {
				t.Errorf("the log contains %s:\n%s", secret, f.logged)
			}
		}
	})
	return f
}

func (f *fixture) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) openPool() *pgxpool.Pool {
	c := registry.DefaultConfig()
	c.MaxConns = 4 // PostgreSQL needs 15 ms of processor time for a new connection, and tests run several dispatchers
	c.URL = f.url
	pool, err := registry.Open(f.Context(), c)
	f.check(err)
	f.Cleanup(pool.Close)
	return pool
}

func (f *fixture) admin() *kadm.Client {
	client, err := kgo.NewClient(f.kafka.Options()...)
	f.check(err)
	f.Cleanup(client.Close)
	return kadm.NewClient(client)
}

func (f *fixture) makeTopics() {
	f.Helper()
	f.check(chainlog.EnsureTopics(f.Context(), f.admin(), testChain, f.kafka.Topology()))
}

// onePartition recreates the topics with one partition, so that all records are in one order.
func (f *fixture) onePartition() {
	f.Helper()
	_, err := f.admin().DeleteTopics(
		f.Context(), chainlog.ReferralDeposits(testChain), chainlog.ReferralWithdrawals(testChain),
	)
	f.check(err)
	f.kafka.ReferralPartitions = 1
	f.makeTopics()
}

// quick shortens the durations of specified that would make tests slow, in proportion.
func quick() timing {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return timing{
		scan: ms(50), topics: ms(200), command: 5 * time.Second,
		database: 10 * time.Second, prune: ms(100), hanging: time.Minute, proof: 20 * time.Second,
	}
}

func quickLane() lane.Timing {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return lane.Timing{
		Retries: []time.Duration{ms(10), ms(50), ms(150)}, Deadline: 20 * time.Second,
		OpenMin: ms(50), OpenMax: ms(200), Idle: lane.Specified().Idle, Scan: ms(50), Database: 10 * time.Second,
	}
}

// dispatcher returns a dispatcher with its own pool and metrics; change may be nil.
func (f *fixture) dispatcher(change func(*Dispatch)) *Dispatch {
	f.Helper()
	g, err := guard.New(guard.Config{AllowNetworks: []string{partners.Network}})
	f.check(err)
	c := DefaultConfig()
	c.ChainID = testChain
	if len(f.caFiles) > 0 {
		c.CAFile = filepath.Join(f.TempDir(), "ca.pem")
		f.check(os.WriteFile(c.CAFile, f.caFiles, 0o600))
	}
	f.check(c.Validate())
	d := New(c, f.kafka, f.openPool(), f.sealer, g, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(f.logged, nil)))
	d.timing, d.shared.Timing = quick(), quickLane()
	if change != nil {
		change(d)
	}
	return d
}

// connect makes a dispatcher use another pool.
func (d *Dispatch) connect(pool *pgxpool.Pool) {
	q := db.New(pool)
	d.pool, d.queries, d.endpoints.queries, d.shared.Queries, d.intakes.Queries, d.shared.Leases.Queries = pool, q, q, q,
		q, q
}

// run starts a dispatcher; stop, or the end of the test, ends it and waits.
func (f *fixture) run(d *Dispatch) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.Errorf("Run: %v", err)
		}
	})
	f.Cleanup(stop)
	return stop
}

// readEndpoints makes a dispatcher know the endpoints as they are now, and not only after endpointsAge. The first read
// may have begun before.
func (f *fixture) readEndpoints(d *Dispatch) {
	f.Helper()
	for range 2 {
		_, err, _ := d.endpoints.reads.Do("", func() (any, error) { return d.endpoints.read(f.Context()) })
		f.check(err)
	}
}

func (f *fixture) start(change func(*Dispatch)) *Dispatch {
	f.Helper()
	d := f.dispatcher(change)
	f.run(d)
	return d
}

var patience = flag.Duration(
	"patience", wait.Patience, "how long a test waits for an expected condition: raise it for more events",
)

// eventually waits for a condition.
func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	if !f.until(holds) {
		f.Fatalf("timed out waiting for: %s; deliveries %v, attempts %v\n%s", what, f.states(), f.attempts(), f.logged)
	}
}

// until waits for a condition without querying PostgreSQL, and reports whether it became
// true.
func (f *fixture) until(holds func() bool) bool {
	ctx, cancel := context.WithTimeout(f.Context(), *patience)
	defer cancel()
	return wait.Poll(ctx, 5*time.Millisecond, func() (bool, error) { return holds(), nil }) == nil
}

// partner creates a partner with the test secret, without URL if url is empty.
func (f *fixture) partner(id int64, url string) {
	f.Helper()
	_, err := partners.Make(f.Context(), f.pool, id, fmt.Sprintf("partner %d", id), "")
	f.check(err)
	f.exec("UPDATE endpoint SET secret = $1 WHERE partner_id = $2", f.sealer.Seal(id, testSecret), id)
	if url != "" {
		f.setURL(id, url)
	}
}

func (f *fixture) setURL(id int64, url string) {
	f.Helper()
	f.check(partners.Register(f.Context(), f.pool, id, url))
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	_, err := f.pool.Exec(f.Context(), sql, args...)
	f.check(err)
}

// refuse makes PostgreSQL reject an operation, such as "INSERT ON delivery", for the rows of a condition, until the
// caller calls allow.
func (f *fixture) refuse(operation, when string) (allow func()) {
	f.Helper()
	f.exec("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
	f.exec("CREATE TRIGGER refuse BEFORE " + operation + " FOR EACH ROW WHEN (" + when + ") EXECUTE FUNCTION refuse()")
	return func() { f.exec("DROP FUNCTION refuse CASCADE") }
}

func (f *fixture) number(sql string, args ...any) (n int64) {
	f.Helper()
	f.check(f.pool.QueryRow(context.WithoutCancel(f.Context()), sql, args...).Scan(&n))
	return n
}

// states counts deliveries by state.
func (f *fixture) states() map[string]int {
	f.Helper()
	rows, err := f.pool.Query(context.Background(), "SELECT state, count(*) FROM delivery GROUP BY state")
	f.check(err)
	states, state, n := map[string]int{}, "", 0
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error { states[state] = n; return nil })
	f.check(err)
	return states
}

// attempts counts them by status or error.
func (f *fixture) attempts() map[string]int {
	f.Helper()
	rows, err := f.pool.Query(
		context.Background(), "SELECT coalesce(error, status::text, ''), count(*) FROM attempt GROUP BY 1",
	)
	f.check(err)
	ends, end, n := map[string]int{}, "", 0
	_, err = pgx.ForEachRow(rows, []any{&end, &n}, func() error { ends[end] = n; return nil })
	f.check(err)
	return ends
}

// replay replays an event of a partner, as a command does.
func (f *fixture) replay(partner int64, event uuid.UUID) {
	f.Helper()
	if !f.replays(partner, event) {
		f.Fatalf("event %s of partner %d cannot be replayed", event, partner)
	}
}

// replays tries to replay an event, and reports whether it was replayed: an event of another partner, or one that is
// still pending, is not.
func (f *fixture) replays(partner int64, event uuid.UUID) bool {
	f.Helper()
	n, err := f.queries.ReplayDelivery(f.Context(), db.ReplayDeliveryParams{EventID: event, PartnerID: partner})
	f.check(err)
	return n == 1
}

func (f *fixture) in(state string, n int) func() bool {
	return func() bool { return f.states()[state] == n }
}

// produce writes values in one transaction, after an aborted one, as a crashed ingest
// leaves behind.
func (f *fixture) produce(topic string, values ...[]byte) {
	f.Helper()
	client, err := kgo.NewClient(append(f.kafka.Options(), kgo.TransactionalID("test"))...)
	f.check(err)
	defer client.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		f.check(client.BeginTransaction())
		records := make([]*kgo.Record, len(values))
		for i, v := range values {
			if !end { // counts as poison if it is ever read
				v = []byte("aborted")
			}
			// ingest uses the partner's id as the key; here the records are spread.
			records[i] = &kgo.Record{Topic: topic, Key: []byte{byte(i)}, Value: v}
		}
		f.check(client.ProduceSync(f.Context(), records...).FirstErr())
		f.check(client.Flush(f.Context()))
		f.check(chainlog.EndTransaction(f.Context(), client, end, topic))
	}
}

func (f *fixture) deposits(partner uint32, from, to int) {
	f.Helper()
	var values [][]byte
	for n := from; n < to; n++ {
		values = append(values, encode(f.T, deposit(f.T, partner, n)))
	}
	f.produce(chainlog.ReferralDeposits(testChain), values...)
}

// delivers produces more deposits of partner 7, and waits until all of them are delivered, from its first one on.
func (f *fixture) delivers(from, to int) {
	f.Helper()
	f.deposits(7, from, to)
	f.eventually("delivered", f.in(registry.Delivered, to))
}

func encode(t *testing.T, r *event.Referral) []byte {
	t.Helper()
	b, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	vaultAddress = common.HexToAddress("0x5fbdb2315678afecb367f032d93f642f64180aa3")
	userAddress  = common.HexToAddress("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
)

// deposit returns the n-th deposit of a partner's user, with the bytes of a real log.
func deposit(t *testing.T, partner uint32, n int) *event.Referral {
	return referral(t, event.Referral_KIND_DEPOSIT, partner, n, contracts.DepositAccepted{
		DepositID: big.NewInt(int64(n)), Owner: userAddress, PartnerID: partner, Sender: userAddress,
		Assets: big.NewInt(1_000_000), Shares: big.NewInt(999),
	})
}

func withdrawal(t *testing.T, partner uint32, n int) *event.Referral {
	return referral(t, event.Referral_KIND_WITHDRAWAL, partner, n, contracts.WithdrawalRequested{
		RequestIndex: big.NewInt(int64(n)), Owner: userAddress, PartnerID: partner, Receiver: userAddress,
		Shares: big.NewInt(500), AssetsEstimate: big.NewInt(501),
	})
}

func referral(t *testing.T, kind event.Referral_Kind, partner uint32, n int, fact contracts.Event) *event.Referral {
	t.Helper()
	topics, data, err := contracts.Encode(fact)
	if err != nil {
		t.Fatal(err)
	}
	log := &event.Log{
		Address: vaultAddress.Bytes(), Data: data, BlockNumber: 1000 + uint64(n), BlockHash: make([]byte, 32),
		BlockTime: 1_700_000_000 + uint64(n), TxHash: txHash(n).Bytes(), LogIndex: 3,
	}
	for _, topic := range topics {
		log.Topics = append(log.Topics, topic.Bytes())
	}
	return &event.Referral{
		ChainId: testChain, Kind: kind, PartnerId: partner, Seq: uint64(n), LogId: []byte(testLog), Log: log,
	}
}

func txHash(n int) common.Hash { return common.BigToHash(big.NewInt(0xabc000 + int64(n))) }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (f *fixture) text(sql string, args ...any) (s string) {
	f.Helper()
	f.check(f.pool.QueryRow(f.Context(), sql, args...).Scan(&s))
	return s
}

func deliveryID(t *testing.T) uuid.UUID {
	t.Helper()
	return uuid.MustParse(depositID)
}
