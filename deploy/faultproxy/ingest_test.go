package faultproxy_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/faultproxy"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
)

var seeds = flag.Uint64("seeds", 3, "how many seeds the tests of ingest run with")

// rig is a development chain with traffic, a broker, and an ingest that sees the chain through a fault proxy.
type rig struct {
	t         *testing.T
	ctx       context.Context
	url       string // of the chain itself
	chain     *ethclient.Client
	contracts *devchain.Contracts
	traffic   *devchain.Scenario
	proxy     *faultproxy.Proxy
	kafka     chainlog.Config
	config    ingest.Config

	mu    sync.Mutex
	lines []string
}

var chainIDs atomic.Uint64

func newRig(t *testing.T, seed uint64, faults ...faultproxy.Fault) *rig {
	t.Helper()
	id := 41_337 + chainIDs.Add(1)
	anvil := enginetest.Anvil(t, engines.AnvilOptions{ChainID: id, SlotsInEpoch: 4}) // the block 8 below the head is final
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, url: anvil.URL}
	var err error
	r.chain, err = ethclient.DialContext(ctx, anvil.URL)
	r.must(err)
	t.Cleanup(r.chain.Close)
	r.contracts, err = devchain.Deploy(ctx, anvil.URL)
	r.must(err)
	r.newTraffic(int64(seed))

	config := faultproxy.DefaultConfig()
	config.Seed, config.Upstreams, config.Faults, config.Rate = seed, []string{anvil.URL}, faults, 0.05
	config.RangeLimit, config.ResultLimit, config.Pause = 4, 10, time.Millisecond
	r.proxy, err = faultproxy.New(config, func(i faultproxy.Injection) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lines = append(r.lines, i.String())
	})
	r.must(err)
	server := httptest.NewServer(r.proxy)
	t.Cleanup(server.Close)

	r.kafka = chainlog.DefaultConfig()
	r.kafka.Brokers = enginetest.Kafka(t)
	r.config = ingest.DefaultConfig()
	r.config.ID, r.config.RPC, r.config.PollInterval = id, rpc.Endpoints(server.URL), 20*time.Millisecond
	for _, v := range r.contracts.Vaults {
		r.config.Vaults = append(r.config.Vaults, vaults.Config{Address: v.Address.Hex(), StartBlock: v.StartBlock})
	}
	return r
}

func (r *rig) newTraffic(seed int64) {
	r.traffic = devchain.New(r.url, r.contracts, seed, []uint32{7, 42}, slog.New(slog.DiscardHandler))
}

// reorg replaces that many blocks.
func (r *rig) reorg(depth uint64) error {
	err := devchain.Reorg(r.ctx, r.url, depth)
	r.newTraffic(int64(depth))
	return err
}

func (r *rig) steps(n int) {
	r.t.Helper()
	r.must(r.traffic.Steps(r.ctx, n))
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) injections() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// indexer is an ingest that is restarted whenever it exits, as a supervisor would do, because it exits at its start if
// no node responds.
type indexer struct {
	*rig
	now  atomic.Pointer[ingest.Ingest]
	dead chan error // the error that ended it for good
}

func (r *rig) start() *indexer {
	r.t.Helper()
	r.must(r.config.Validate())
	x := &indexer{rig: r, dead: make(chan error, 1)}
	ctx, stop := context.WithCancel(r.ctx)
	x.now.Store(r.newIngest())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			err := x.now.Load().Run(ctx)
			var refused *rpc.RefusedError
			if ctx.Err() != nil {
				return
			}
			if err == nil || errors.As(err, &refused) || errors.Is(err, writer.ErrFenced) {
				x.dead <- err
				return
			}
			x.now.Store(r.newIngest())
		}
	}()
	r.t.Cleanup(func() { stop(); <-done })
	return x
}

func (r *rig) newIngest() *ingest.Ingest {
	return ingest.New(r.config, r.kafka, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
}

// until waits for a condition of ingest's status.
func (x *indexer) until(what string, condition func(status.Status) bool) {
	x.t.Helper()
	wait.Until(x.t, func() error {
		st := x.now.Load().Status()
		if condition(st) {
			return nil
		}
		if st.State == status.Frozen {
			x.t.Fatalf("ingest froze while waiting for %s: %s\ninjected:\n%s", what, st.Reason, x.injections())
		}
		select {
		case err := <-x.dead:
			x.t.Fatalf("ingest ended while waiting for %s: %v\ninjected:\n%s", what, err, x.injections())
		default:
		}
		return fmt.Errorf("no %s; status %+v", what, st)
	})
}

// caughtUp waits until the chain's head is in the log, by its hash.
func (x *indexer) caughtUp() {
	x.t.Helper()
	head, err := x.chain.HeaderByNumber(x.ctx, nil)
	x.must(err)
	hash := head.Hash()
	x.until("log that reaches the head", func(st status.Status) bool {
		if st.State != status.Following || st.IndexedBlock != head.Number.Uint64() {
			return false
		}
		cursor, err := chainlog.ReadCursor(x.ctx, x.config.ID, x.kafka.Options()...)
		x.must(err)
		return bytes.Equal(cursor.GetHead().GetHash(), hash[:])
	})
}

// eachSeed runs a test with each seed; a failing seed can be rerun with -run 'Test.../seed=N'.
func eachSeed(t *testing.T, test func(t *testing.T, seed uint64)) {
	for seed := uint64(1); seed <= *seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { test(t, seed) })
	}
}

// life lets the chain grow while ingest reads it through the faults, and then compares the log with the chain.
func (r *rig) life(stages int) {
	r.t.Helper()
	r.steps(20)
	x := r.start()
	for stage := range stages {
		x.caughtUp()
		if stage%2 == 1 {
			r.must(r.reorg(uint64(1 + stage%4)))
		}
		r.steps(4)
	}
	r.proxy.Off()
	x.caughtUp()
	logs := r.verify()
	counts := r.proxy.Counts()
	if logs == 0 || len(counts) == 0 {
		r.t.Errorf("no fault was injected: %d logs, injected %v", logs, counts)
	}
	r.t.Logf("%d logs, injected %v", logs, counts)
}

// lossyRanges are faults that ingest cannot detect in a range of final blocks: a block's bloom reveals a missing log
// only if the block has no other log of that vault and event.
var lossyRanges = []faultproxy.Fault{faultproxy.PartialLogs, faultproxy.TruncatedLogs}

// No block is final: every block is read by its hash, with all its logs.
func TestIngestAtTheHead(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector runs on ingest in its own tests, and on the proxy in the other tests of this package")
	}
	eachSeed(t, func(t *testing.T, seed uint64) {
		r := newRig(t, seed, faultproxy.All()...)
		r.config.Finality = ingest.Finality{Depth: 500}
		r.life(6)
	})
}

// The first blocks are final: they are read as ranges.
func TestIngestBackfill(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector runs on ingest in its own tests, and on the proxy in the other tests of this package")
	}
	eachSeed(t, func(t *testing.T, seed uint64) {
		newRig(t, seed, faultproxy.Except(lossyRanges...)...).life(6)
	})
}

// The proofs by receipts find a log that was lost in a range of old blocks, and find nothing if none was lost.
func TestLostLogsAreDisproven(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector runs on ingest in its own tests, and on the proxy in the other tests of this package")
	}
	lost := 0
	for _, f := range append([]faultproxy.Fault{faultproxy.EmptyLogs, faultproxy.ShortLogs}, lossyRanges...) {
		r := newRig(t, 1, f)
		r.config.Window, r.config.Finality = 4, ingest.Finality{Depth: 4}
		r.config.ReceiptsEvery, r.config.ReceiptsPerSecond = time.Second, 10_000
		r.config.BatchBlocks = 7
		r.must(r.proxy.SetRate(1))
		r.steps(40)
		x := r.start()
		x.until("faults, or the end of the history", func(st status.Status) bool { return r.proxy.Counts()[f] >= 3 || st.State == status.Following })
		r.proxy.Off()
		x.caughtUp()
		missing := r.missing()
		x.until("proof", func(st status.Status) bool { return st.Disproven != "" || st.ProvenTo == st.FinalBlock })
		if st := x.now.Load().Status(); (missing > 0) != (st.Disproven != "") {
			t.Errorf("%s: the log lacks %d logs, disproven: %q", f, missing, st.Disproven)
		}
		lost += missing
	}
	if lost == 0 {
		t.Error("no log was lost: the test shows nothing")
	}
}

// Each fault that ingest can detect, in its first requested range: ingest reports it or retries, and the log is
// complete.
func TestIngestSeesThrough(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector runs on ingest in its own tests, and on the proxy in the other tests of this package")
	}
	for _, f := range []faultproxy.Fault{
		faultproxy.WrongHash, faultproxy.EmptyLogs, faultproxy.Stale, faultproxy.ShortLogs, faultproxy.BeyondHead, faultproxy.BlockOverLimit, faultproxy.RangeResults, faultproxy.ResponseSize, faultproxy.RangeWide, faultproxy.RangeLimited, faultproxy.RangeMaximum,
		faultproxy.LimitExceeded, faultproxy.QueryTimeout, faultproxy.Range413,
	} {
		t.Run(string(f), func(t *testing.T) {
			r := newRig(t, 1, f)
			r.must(r.proxy.SetRate(1))
			r.steps(20)
			x := r.start()
			x.until("fault", func(status.Status) bool { return r.proxy.Counts()[f] > 0 })
			switch f { // the others are limits that smaller requests respect
			case faultproxy.WrongHash, faultproxy.EmptyLogs, faultproxy.Stale, faultproxy.ShortLogs, faultproxy.BeyondHead:
				r.proxy.Off()
			}
			x.caughtUp()
			r.verify()
		})
	}
}

// A provider with all limits at once: blocks in a range, results, response size, and calls per second, counting each
// call of a batch. Ingest knows none of these limits, and reads the history without help from an operator. The limits
// are proxies in a chain, the widest limit first, because a single proxy draws only one fault per call.
func TestIngestOfALimitedProvider(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector runs on ingest in its own tests, and on the proxy in the other tests of this package")
	}
	r := newRig(t, 1)
	const blocks = 600
	for range 4 {
		r.steps(20)
		r.must(r.chain.Client().CallContext(r.ctx, nil, "anvil_mine", hexutil.Uint64(blocks/4)))
	}
	url, limits := r.url, []*faultproxy.Proxy{}
	for _, c := range []faultproxy.Config{
		{Faults: []faultproxy.Fault{faultproxy.RangeLimited}, RangeLimit: 40},
		{Faults: []faultproxy.Fault{faultproxy.RangeResults}, ResultLimit: 30},
		{Faults: []faultproxy.Fault{faultproxy.ResponseSize}, ResultLimit: 12},
		{CallsPerSecond: 60},
	} {
		config := faultproxy.DefaultConfig()
		config.Upstreams, config.Faults, config.Rate, config.CallsPerSecond = []string{url}, c.Faults, 1, c.CallsPerSecond
		config.ResultLimit, config.RangeLimit = max(1, c.ResultLimit), max(1, c.RangeLimit)
		proxy, err := faultproxy.New(config, nil)
		r.must(err)
		server := httptest.NewServer(proxy)
		t.Cleanup(server.Close)
		url, limits = server.URL, append(limits, proxy)
	}
	r.config.RPC, r.config.Window, r.config.PollInterval = rpc.Endpoints(url), 150, time.Second
	x := r.start()
	x.caughtUp()
	if logs := r.verify(); logs < 40 {
		t.Errorf("%d logs: the limits of answers were not met", logs)
	} else {
		t.Logf("%d logs", logs)
	}
	met := func(i int, f faultproxy.Fault) int { return limits[i].Counts()[f] }
	wide, results, size, often := met(0, faultproxy.RangeLimited), met(1, faultproxy.RangeResults), met(2, faultproxy.ResponseSize), met(3, faultproxy.TooManyRequests)
	if wide == 0 || results+size == 0 || often == 0 { // which of the two limits on long responses is met first depends on chance
		t.Errorf("a limit was not met: ranges %d times, results %d, sizes %d, calls a second %d", wide, results, size, often)
	}
	t.Logf("met: ranges %d times, results %d, sizes %d, calls a second %d", wide, results, size, often)
}
