package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/faultproxy"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

const (
	// patience is how long anything that must happen may take.
	patience = 60 * time.Second
	// optionalWait is how long the script waits for things that only make a seed more interesting.
	optionalWait = 3 * time.Second
	pollInterval = 50 * time.Millisecond
	// genesisTime of the chains, in Unix seconds: in the past, like that of a real chain.
	genesisTime = 1_750_000_000
	// firstChainID is the chain id of seed 0.
	firstChainID = 5_000_000
)

// partners to which the traffic is attributed.
var partners = []uint32{7, 42, 4_000_000_000}

// A world is the environment in which a seed is tried.
type world struct {
	plan      Plan
	ctx       context.Context
	anvil     *engines.Anvil
	chain     *rpc.Client
	contracts *devchain.Contracts
	traffic   *devchain.Scenario
	draws     int64 // of traffic
	broker    *engines.Kafka
	proxies   []*faultproxy.Proxy
	urls      []string // of the proxies
	kafka     chainlog.Config
	mapping   string // file of the vaults' mapping; empty: the reference
	sup       *supervisor
	recorder  blockRecorder

	floor uint64 // blocks up to here stay: they deploy the contracts, or ingest considers them final or has dropped them
	top   uint64 // highest head so far
	sure  uint64 // highest final block so far
	least uint64 // lowest confirmations setting so far; 0: only final blocks

	mu         sync.Mutex
	config     ingest.Config
	counts     map[string]int
	injections []string
}

// newWorld starts a chain with contracts and traffic, and the proxies between it and ingest. brokers are those of a
// shared Kafka; without them the world starts its own.
func newWorld(ctx context.Context, plan Plan, dir string, brokers []string) (w *world, err error) {
	w = &world{plan: plan, ctx: ctx, counts: map[string]int{}, recorder: blockRecorder{seen: map[common.Hash]*fact{}},
		least: plan.Confirmations, kafka: chainlog.DefaultConfig()}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	id := firstChainID + plan.Seed
	w.anvil, err = engines.StartAnvil(ctx, filepath.Join(dir, "anvil"),
		engines.AnvilOptions{ChainID: id, SlotsInEpoch: plan.SlotsInEpoch, Timestamp: genesisTime})
	if err != nil {
		return w, err
	}
	if w.chain, err = rpc.DialContext(ctx, w.anvil.URL); err != nil {
		return w, fmt.Errorf("connect to the chain: %w", err)
	}
	w.recorder.chain = ethclient.NewClient(w.chain)
	if w.contracts, err = devchain.Deploy(ctx, w.anvil.URL); err != nil {
		return w, err
	}
	deployed, err := w.head()
	if err != nil {
		return w, err
	}
	w.floor = uint64(deployed.Number)
	w.kafka.Brokers = brokers
	if len(brokers) == 0 {
		if w.broker, err = engines.StartKafka(ctx, filepath.Join(dir, "kafka")); err != nil {
			return w, err
		}
		w.kafka.Brokers = []string{w.broker.Addr}
	}
	w.config = ingest.DefaultConfig()
	w.config.ID, w.config.PollInterval, w.config.Standby = id, plan.Poll, plan.Standby
	w.config.Finality = ingest.Finality{Depth: plan.Finality}
	w.config.Confirmations = ingest.Confirmations(plan.Confirmations)
	w.config.BatchBlocks, w.config.RangesInFlight, w.config.Window = plan.BatchBlocks, plan.RangesInFlight, plan.Window
	w.config.Agreement, w.config.Proof = plan.Agreement, plan.Proof
	if plan.Proof != proof.None {
		w.config.ReceiptsEvery, w.config.ReceiptsPerSecond = time.Second, 500
	}
	if plan.SampleEvery > 0 {
		if w.mapping, err = writeSampled(dir, plan.SampleEvery); err != nil {
			return w, err
		}
	}
	for i, v := range w.contracts.Vaults {
		if !plan.Late || i+1 < len(w.contracts.Vaults) {
			w.config.Vaults = append(w.config.Vaults, w.vault(v))
		}
	}
	for i, e := range plan.Endpoints {
		proxy, url, err := w.startProxy(i+1, e)
		if err != nil {
			return w, err
		}
		w.proxies, w.urls = append(w.proxies, proxy), append(w.urls, url)
	}
	w.sup = &supervisor{deaths: plan.Deaths, count: w.count, dir: dir, spec: func() childSpec {
		w.mu.Lock()
		defer w.mu.Unlock()
		return childSpec{Config: w.config, RPC: w.urls, Kafka: w.kafka}
	}}
	w.newTraffic()
	return w, nil
}

func (w *world) vault(v devchain.Vault) vaults.Config {
	c := vaults.Config{Address: v.Address.Hex(), StartBlock: v.StartBlock, Mapping: w.mapping}
	if w.plan.EarlyStart {
		c.StartBlock = 0
	}
	return c
}

// startProxy starts an endpoint and the proxies behind it.
func (w *world) startProxy(number int, e Endpoint) (proxy *faultproxy.Proxy, url string, err error) {
	upstream := w.anvil.URL
	if e.Via != nil {
		if _, upstream, err = w.startProxy(number, *e.Via); err != nil {
			return nil, "", err
		}
	}
	config := faultproxy.DefaultConfig()
	config.Seed, config.Upstreams, config.Faults, config.Rate = e.Seed, []string{upstream}, e.Faults, e.Rate
	config.Behind, config.Ahead = cmp.Or(e.Behind, config.Behind), cmp.Or(e.Ahead, config.Ahead)
	config.RangeLimit, config.ResultLimit = cmp.Or(e.RangeLimit, config.RangeLimit),
		cmp.Or(e.ResultLimit, config.ResultLimit)
	config.CallsPerSecond, config.Pause = e.PerSecond, time.Millisecond
	proxy, err = faultproxy.New(config, func(injected faultproxy.Injection) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.counts["fault "+string(injected.Fault)]++
		w.injections = append(w.injections, fmt.Sprintf("endpoint %d: %s", number, injected))
	})
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen for a fault proxy: %w", err)
	}
	go proxy.Serve(w.ctx, listener)
	return proxy, "http://" + listener.Addr().String(), nil
}

// faults returns how many faults were injected so far.
func (w *world) faults() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.injections)
}

// close ends everything that the world has started.
func (w *world) close() {
	if w.sup != nil {
		w.sup.end()
	}
	if w.broker != nil {
		_ = w.broker.Close()
	}
	if w.chain != nil {
		w.chain.Close()
	}
	if w.anvil != nil {
		w.anvil.Kill()
	}
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// reconfigure changes the configuration of the next process.
func (w *world) reconfigure(change func(*ingest.Config)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.config)
}

// newTraffic creates traffic that knows nothing about an orphaned branch.
func (w *world) newTraffic() {
	w.draws++
	w.traffic = devchain.New(w.anvil.URL, w.contracts, int64(w.plan.Seed)*1000+w.draws, partners,
		slog.New(slog.DiscardHandler))
}

type header struct {
	Number hexutil.Uint64
	Hash   common.Hash
	Time   hexutil.Uint64 `json:"timestamp"`
}

// head returns the newest block.
func (w *world) head() (h header, err error) {
	if err = w.chain.CallContext(w.ctx, &h, "eth_getBlockByNumber", "latest", false); err != nil {
		err = fmt.Errorf("read the newest block: %w", err)
	}
	return h, err
}

// moved records how far the chain has come: blocks that may be final now must never be reorganised.
func (w *world) moved() error {
	head, err := w.head()
	if err != nil {
		return err
	}
	n := uint64(head.Number)
	w.top, w.sure = max(w.top, n), max(w.sure, w.final(n))
	w.floor = max(w.floor, w.final(n), n-min(n, w.config.Window))
	return nil
}

// final returns the block that is final when the head is at n.
func (w *world) final(n uint64) uint64 {
	depth := w.config.Finality.Depth
	if depth == 0 {
		depth = 2 * uint64(w.plan.SlotsInEpoch)
	}
	return n - min(n, depth)
}

// mine mines empty blocks, a second apart.
func (w *world) mine(n int) error {
	for range n {
		head, err := w.head()
		if err != nil {
			return err
		}
		if err := w.command("evm_setNextBlockTimestamp", head.Time+1); err != nil {
			return err
		}
		if err := w.command("evm_mine"); err != nil {
			return err
		}
	}
	return w.moved()
}

func (w *world) command(method string, arguments ...any) error {
	if err := w.chain.CallContext(w.ctx, nil, method, arguments...); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

func (w *world) steps(n int) error {
	if err := w.traffic.Steps(w.ctx, n); err != nil {
		return err
	}
	return w.moved()
}

// raiseHead makes the head higher than ever before, because ingest does not accept a lower one.
func (w *world) raiseHead() error {
	head, err := w.head()
	if err != nil {
		return err
	}
	if n := uint64(head.Number); n <= w.top {
		return w.mine(int(w.top - n + 1))
	}
	return nil
}

// cursor returns the newest cursor, or nil if there is none or the broker is down.
func (w *world) cursor() *event.Cursor {
	ctx, cancel := context.WithTimeout(w.ctx, optionalWait)
	defer cancel()
	c, err := w.newestCursor(ctx)
	if err != nil {
		return nil
	}
	return c
}

func (w *world) newestCursor(ctx context.Context) (*event.Cursor, error) {
	records, err := stack.Records(ctx, w.kafka.Brokers, chainlog.CursorTopic(w.config.ID))
	if err != nil || len(records) == 0 {
		return nil, err
	}
	c := new(event.Cursor)
	if err := proto.Unmarshal(records[len(records)-1].Value, c); err != nil {
		return nil, fmt.Errorf("the newest cursor is invalid: %w", err)
	}
	return c, nil
}

// atHead reports whether the head of the chain is in the log.
func (w *world) atHead() (bool, error) {
	head, err := w.head()
	if err != nil {
		return false, err
	}
	c := w.cursor()
	return c != nil && bytes.Equal(c.GetHead().GetHash(), head.Hash[:]), nil
}

// settle waits for a limited time until ingest is at the head.
func (w *world) settle() error {
	_, err := w.eventually(optionalWait, w.atHead)
	return err
}

// reach waits until ingest is at the head, which it must reach.
func (w *world) reach() error {
	there, err := w.eventually(patience, w.atHead)
	if err == nil && !there {
		err = fmt.Errorf("ingest has not reached the head within %s", patience)
	}
	return err
}

// errLate ends a wait that has reached its limit.
var errLate = errors.New("it took too long")

// eventually waits for a condition and reports whether it became true.
func (w *world) eventually(limit time.Duration, condition func() (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(w.ctx, limit, errLate)
	defer cancel()
	err := wait.Poll(ctx, pollInterval, func() (bool, error) {
		ok, err := condition()
		if !ok && err == nil {
			err = w.sup.err()
		}
		return ok, err
	})
	if errors.Is(err, errLate) {
		return false, nil
	}
	return err == nil, err
}

// finish ends all faults that are not endless, and waits until the log is complete.
func (w *world) finish() error {
	w.sup.mu.Lock()
	w.sup.deaths = nil
	w.sup.mu.Unlock()
	for i, p := range w.proxies {
		if !w.plan.Endpoints[i].Endless {
			p.Off()
		}
	}
	if w.plan.FreshEnd {
		if err := w.sup.stop(true); err != nil {
			return err
		}
		w.sup.start()
	}
	if err := w.raiseHead(); err != nil {
		return err
	}
	var short string
	done, err := w.eventually(patience, func() (done bool, err error) {
		short, err = w.short()
		return short == "", err
	})
	if err == nil && !done {
		err = fmt.Errorf("ingest has not caught up within %s of the last fault: %s", patience, short)
	}
	if err == nil && w.plan.Proven {
		err = w.judged()
	}
	return err
}

// judged waits until ingest has proven the log up to the final block, or has found that it contradicts the chain.
func (w *world) judged() error {
	done, err := w.eventually(patience, func() (bool, error) {
		c := w.cursor()
		unproven := func(v *event.Coverage) bool { return v.GetProvenTo() < c.GetFinalBlock() }
		return strings.Contains(w.sup.outputTail(), "the log contradicts the chain") || c != nil &&
			!slices.ContainsFunc(c.GetVaults(), unproven), nil
	})
	if err == nil && !done {
		err = fmt.Errorf("ingest has neither proven nor disproven the log within %s", patience)
	}
	return err
}

// short returns what the log still lacks.
func (w *world) short() (string, error) {
	head, err := w.head()
	if err != nil {
		return "", err
	}
	c, n := w.cursor(), uint64(head.Number)
	final, due := w.final(n), w.final(n)
	if few := uint64(w.config.Confirmations); few > 0 {
		due = max(due, n+1-min(n+1, few))
	}
	switch {
	case c == nil:
		return "there is no cursor", nil
	case c.GetFrozen() != "":
		return "", errors.New("ingest is frozen: " + c.GetFrozen())
	case !bytes.Equal(c.GetHead().GetHash(), head.Hash[:]):
		return fmt.Sprintf("the log is at block %d (0x%x), the chain at block %d (%s)", c.GetHead().GetNumber(),
			c.GetHead().GetHash(), n, head.Hash), nil
	case c.GetFinalBlock() < final:
		return fmt.Sprintf("the final block is %d in the log and %d in the chain", c.GetFinalBlock(), final), nil
	case c.GetReferralBlock() < due:
		return fmt.Sprintf("referrals are written up to block %d instead of %d", c.GetReferralBlock(), due), nil
	case len(c.GetVaults()) < len(w.config.Vaults):
		return fmt.Sprintf("%d of %d vaults are in the log", len(c.GetVaults()), len(w.config.Vaults)), nil
	}
	for _, v := range c.GetVaults() {
		if v.GetCoveredTo() < n {
			return fmt.Sprintf("vault 0x%x is in the log up to block %d of %d", v.GetAddress(), v.GetCoveredTo(), n), nil
		}
	}
	return "", nil
}
