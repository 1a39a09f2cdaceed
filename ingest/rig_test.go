package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	ethrpc "github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// patience is how long a test waits for a condition.
const patience = wait.Patience

// chainIDs separates tests that share a broker: topics carry the chain id.
var chainIDs atomic.Uint64

// rig is a development chain with contracts and traffic, and a broker.
type rig struct {
	t         *testing.T
	ctx       context.Context
	url       string
	chain     *ethclient.Client
	contracts *devchain.Contracts
	traffic   *devchain.Scenario
	kafka     chainlog.Config
	config    Config
	orders    *orders
	stepping  *sync.RWMutex // held while followsSteps takes a step
}

// orders are the commands that a test issues, and their outcomes.
type orders struct {
	mu       sync.Mutex
	given    []db.PendingVaultCommandsRow
	outcomes map[int64]vaults.Outcome
	fault    error // returned by the registry instead
}

func (o *orders) PendingVaultCommands(
	context.Context, int64,
) (left []db.PendingVaultCommandsRow, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.given {
		if _, ended := o.outcomes[c.ID]; !ended {
			left = append(left, c)
		}
	}
	return left, o.fault
}

func (o *orders) FinishVaultCommand(_ context.Context, p db.FinishVaultCommandParams) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fault == nil {
		o.outcomes[p.ID] = vaults.Outcome{Result: p.Outcome, Detail: p.Detail}
	}
	return o.fault
}

// pending returns how many commands have no outcome.
func (o *orders) pending() int {
	left, _ := o.PendingVaultCommands(context.Background(), 0)
	return len(left)
}

func (o *orders) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault = err
}

// order issues a command about vaults to the running ingest or the next one.
func (r *rig) order(kind string, of ...vaults.Config) (ids []int64) {
	r.orders.mu.Lock()
	defer r.orders.mu.Unlock()
	for _, v := range of {
		argument := ""
		if kind == registry.AddVault {
			var err error
			argument, err = v.Encode()
			r.must(err)
		}
		ids = append(ids, r.give(kind, v, argument))
	}
	return ids
}

// give appends a command about a vault to the orders, which are locked.
func (r *rig) give(kind string, v vaults.Config, argument string) (id int64) {
	id = int64(len(r.orders.given) + 1)
	r.orders.given = append(r.orders.given, db.PendingVaultCommandsRow{ID: id, Kind: kind,
		Vault: common.HexToAddress(v.Address).Bytes(), Argument: []byte(argument)})
	return id
}

// outcome waits until commands have ended, and returns the outcome of the last one.
func (p *process) outcome(ids []int64) (last vaults.Outcome) {
	p.rig.t.Helper()
	p.until("outcome of a command", func(status.Status) bool {
		p.rig.orders.mu.Lock()
		defer p.rig.orders.mu.Unlock()
		for _, id := range ids {
			var ended bool
			if last, ended = p.rig.orders.outcomes[id]; !ended {
				return false
			}
		}
		return true
	})
	return last
}

// partners are those to which the traffic is attributed.
var partners = []uint32{7, 42}

// onEachBroker runs a test against the embedded broker and Apache Kafka; with
// -short, as under the race detector, against the embedded one.
func onEachBroker(t *testing.T, test func(t *testing.T, brokers func(testing.TB) []string)) {
	t.Parallel()
	t.Run("kfake", func(t *testing.T) { test(t, enginetest.Kafka) })
	if !testing.Short() {
		t.Run("apache", func(t *testing.T) { test(t, enginetest.ApacheKafka) })
	}
}

// few leaves out all but one of the cases of a test under -short: the race detector, which makes each take five times
// as long, sees the same goroutines in all of them.
func few[C any](cases []C) []C {
	if testing.Short() {
		return cases[len(cases)/2:][:1]
	}
	return cases
}

// sequential leaves out a test under -short: the goroutines of ingest share nothing in it that they do not share in
// other tests.
func sequential(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector sees the same goroutines in other tests")
	}
}

// kfake is the embedded broker, for tests that need not run on both brokers.
var kfake = enginetest.Kafka

// counterValue returns the value of a counter or gauge.
func counterValue(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	return testutil.ToFloat64(c)
}

// metric returns the sum of all counters or gauges with a name and these values of labels.
func (p *process) metric(name string, values ...string) (sum float64) {
	p.rig.t.Helper()
	families, err := p.reg.Gather()
	p.rig.must(err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			lacks := func(value string) bool { return !slices.Contains(labels, value) }
			if f.GetName() == "navlog_ingest_"+name && !slices.ContainsFunc(values, lacks) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// newRig starts a chain whose final block is eight below the head, with three empty vaults. Its test runs in parallel
// to others: it has a separate chain and topics, and waits most of the time.
func newRig(t *testing.T, brokers func(testing.TB) []string) *rig {
	t.Helper()
	t.Parallel()
	id := 31_337 + chainIDs.Add(1)
	anvil := enginetest.Anvil(t, engines.AnvilOptions{ChainID: id, SlotsInEpoch: 4})
	ctx, cancel := context.WithTimeout(context.Background(), 10*wait.Patience)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, url: anvil.URL, orders: &orders{outcomes: map[int64]vaults.Outcome{}},
		stepping: new(sync.RWMutex)}
	var err error
	if r.chain, err = ethclient.DialContext(ctx, anvil.URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.chain.Close)
	if r.contracts, err = devchain.Deploy(ctx, anvil.URL); err != nil {
		t.Fatal(err)
	}
	r.kafka = chainlog.DefaultConfig()
	r.kafka.Brokers = brokers(t)
	r.config = DefaultConfig().Complete()
	r.config.Standby = 0 // the effect of a second ingest on the first shows at once
	r.config.ID, r.config.RPC, r.config.PollInterval = id, rpc.Endpoints(anvil.URL), 20*time.Millisecond
	for _, v := range r.contracts.Vaults {
		r.config.Vaults = append(r.config.Vaults, vaults.Config{Address: v.Address.Hex(), StartBlock: v.StartBlock})
	}
	r.newTraffic(1)
	return r
}

func (r *rig) newTraffic(seed int64) {
	r.traffic = devchain.New(r.url, r.contracts, seed, partners, slog.New(slog.DiscardHandler))
}

// steps makes n actions on the chain.
func (r *rig) steps(n int) {
	r.t.Helper()
	if err := r.traffic.Steps(r.ctx, n); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) mine(n uint64) {
	r.t.Helper()
	r.must(devchain.Mine(r.ctx, r.url, n))
}

// feed mines one block once the log has all blocks of the chain. A writer notices only when it writes that it was
// replaced, and it reaches the head only if blocks come no faster than it writes them.
func (r *rig) feed() {
	r.t.Helper()
	cursor, err := chainlog.ReadCursor(r.ctx, r.config.ID, r.kafka.Options()...)
	if err == nil && cursor != nil && cursor.GetHead().GetNumber() >= r.height() {
		r.mine(1)
	}
}

// reorg replaces the newest depth blocks; the transactions in kept are mined again.
func (r *rig) reorg(depth uint64, kept ...devchain.Kept) {
	r.t.Helper()
	r.must(devchain.Reorg(r.ctx, r.url, depth, kept...))
	r.newTraffic(int64(depth))
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) height() uint64 {
	r.t.Helper()
	height, err := r.chain.BlockNumber(r.ctx)
	r.must(err)
	return height
}

// final returns the block that must be final by the configuration.
func (r *rig) final() uint64 {
	r.t.Helper()
	if depth := r.config.Finality.Depth; depth > 0 {
		height := r.height()
		return height - min(height, depth)
	}
	h, err := r.chain.HeaderByNumber(r.ctx, big.NewInt(int64(ethrpc.FinalizedBlockNumber)))
	r.must(err)
	return h.Number.Uint64()
}

// process is a running ingest.
type process struct {
	*Ingest
	rig  *rig
	reg  *prometheus.Registry
	stop context.CancelFunc
	done chan struct{}
	err  error // after done
}

var errKilled = errors.New("killed by the test")

// start runs an ingest with the rig's configuration until stop, or the end of the test. A panic with errKilled ends it
// like a crash of its process.
func (r *rig) start(prepare ...func(*Ingest)) *process {
	r.t.Helper()
	r.must(r.config.Validate())
	reg := newRegistry()
	p := &process{
		Ingest: New(r.config, r.kafka, nil, reg, slog.New(slog.DiscardHandler)),
		rig:    r, reg: reg, done: make(chan struct{}),
	}
	if r.orders != nil {
		p.commands = r.orders
	}
	for _, f := range prepare {
		f(p.Ingest)
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(r.ctx)
	go func() {
		defer close(p.done)
		defer func() {
			if why := recover(); why != nil {
				if why != any(errKilled) {
					panic(why)
				}
				p.err = errKilled
			}
		}()
		p.err = p.Run(ctx)
	}()
	r.t.Cleanup(func() { p.stop(); <-p.done })
	return p
}

// follow starts an ingest and waits until it has caught up.
func (r *rig) follow() *process {
	r.t.Helper()
	p := r.start()
	p.caughtUp()
	return p
}

// index lets an ingest read the chain up to its head, and stops it.
func (r *rig) index() {
	r.t.Helper()
	r.follow().halt()
}

// killed runs an ingest that must be killed by killAt.
func (r *rig) killed(prepare ...func(*Ingest)) {
	r.t.Helper()
	if err := r.start(prepare...).wait(); !errors.Is(err, errKilled) {
		r.t.Fatalf("the ingest was not killed: %v", err)
	}
}

// followWithoutFirst makes steps and lets ingest follow the chain without the first vault, which is late at the next
// start.
func (r *rig) followWithoutFirst(steps int) {
	r.t.Helper()
	all := r.config.Vaults
	r.config.Vaults = all[1:]
	r.steps(steps)
	r.index()
	r.config.Vaults = all
}

// session returns one that the test advances itself.
func (r *rig) session() *session {
	r.t.Helper()
	i := New(r.config, r.kafka, nil, newRegistry(), slog.New(slog.DiscardHandler))
	r.t.Cleanup(i.nodes.Close)
	s := i.newSession()
	r.t.Cleanup(s.close)
	_, err := i.nodes.First(r.ctx)
	r.must(err)
	r.must(s.writer.Fence(r.ctx))
	_, err = s.restore(r.ctx)
	r.must(err)
	return s
}

// halt stops the process gracefully.
func (p *process) halt() {
	p.rig.t.Helper()
	p.stop()
	if err := p.wait(); err != nil {
		p.rig.t.Fatalf("Run ends with %v after its context, want nil", err)
	}
}

// wait returns the result of Run.
func (p *process) wait() error {
	p.rig.t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(patience):
		p.rig.t.Fatalf("Run does not return; status %+v", p.Status())
		return nil
	}
}

// until waits for a condition of the process.
func (p *process) until(what string, condition func(status.Status) bool) {
	p.rig.t.Helper()
	wait.Until(p.rig.t, func() error {
		st := p.Status()
		if condition(st) {
			return nil
		}
		select {
		case <-p.done:
			p.rig.t.Fatalf("ingest ended while waiting for %s: %v", what, p.err)
		default:
		}
		return fmt.Errorf("no %s; status %+v", what, st)
	})
}

// atHead waits until the status says that the log has as many blocks as the chain.
func (p *process) atHead() {
	p.rig.t.Helper()
	p.until("head", func(st status.Status) bool { return st.IndexedBlock == p.rig.height() })
}

// caughtUp waits until the log has the head of the chain, by hash, with every vault, and the finality that follows from
// it.
func (p *process) caughtUp() {
	p.rig.t.Helper()
	p.caughtUpBut(0)
}

// caughtUpBut is caughtUp without that many vaults, which were removed.
func (p *process) caughtUpBut(left int) {
	p.rig.t.Helper()
	p.until("log that reaches the head", func(st status.Status) bool {
		if st.State != status.Following || st.IndexedBlock != p.rig.height() {
			return false
		}
		head, err := p.rig.chain.HeaderByNumber(p.rig.ctx, nil)
		p.rig.must(err)
		cursor := p.rig.cursor()
		if cursor == nil || fmt.Sprintf("%x", cursor.GetHead().GetHash()) != fmt.Sprintf("%x", head.Hash()) {
			return false
		}
		final := p.rig.final()
		behind := 0
		for _, v := range cursor.GetVaults() {
			if v.GetCoveredTo() < st.IndexedBlock {
				behind++
			}
		}
		return behind <= left && cursor.GetFinalBlock() >= final
	})
}

// produce writes a record directly to Kafka.
func (r *rig) produce(record *kgo.Record) {
	r.t.Helper()
	client, err := kgo.NewClient(r.kafka.Options()...)
	r.must(err)
	defer client.Close()
	r.must(client.ProduceSync(r.ctx, record).FirstErr())
}

func (r *rig) writeCursor(value []byte) {
	r.t.Helper()
	r.produce(&kgo.Record{Topic: chainlog.CursorTopic(r.config.ID), Key: []byte(fmt.Sprint(r.config.ID)), Value: value})
}

func mustMarshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// deployAgain deploys the same contracts to the same addresses of a new chain.
func (r *rig) deployAgain() {
	r.t.Helper()
	again, err := devchain.Deploy(r.ctx, r.url)
	r.must(err)
	if again.Vaults[0].Address != r.contracts.Vaults[0].Address {
		r.t.Fatalf("the contracts are at other addresses on a fresh chain")
	}
}

// selectors recognises calls of functions.
func selectors(signatures ...string) func(params string) bool {
	var ids []string
	for _, s := range signatures {
		ids = append(ids, fmt.Sprintf("%x", crypto.Keccak256([]byte(s))[:4]))
	}
	return func(params string) bool {
		return slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(params, id) })
	}
}

func done(detail string) vaults.Outcome {
	return vaults.Outcome{Result: registry.CommandDone, Detail: detail}
}

func refused(detail string) vaults.Outcome {
	return vaults.Outcome{Result: registry.CommandRefused, Detail: detail}
}
