package ingest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/event"
)

func TestReorganisations(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		r.steps(25)
		p := r.follow()
		before := r.verify()

		for _, depth := range []uint64{1, 5, 8} { // 8: the common ancestor is the final block
			r.steps(3)
			p.caughtUp()
			r.reorg(depth)
			p.caughtUp()
			if got := reorgOf(r.verify()); got < depth {
				t.Fatalf("the last reorganisation in the log retracted %d blocks, want %d", got, depth)
			}
		}

		r.steps(4) // a reorganisation of the branch of a reorganisation
		p.caughtUp()
		r.reorg(4)
		p.caughtUp()
		r.steps(2)
		p.caughtUp()
		r.reorg(3)
		p.caughtUp()
		if all := r.verify(); len(all) <= len(before) {
			t.Fatal("the log did not grow")
		}
		if n := counterValue(t, p.status.Reorgs); n < 4 {
			t.Errorf("navlog_ingest_reorgs_total is %v, want at least 4", n)
		}
	})
}

// reorgOf counts the blocks that the last retractions of the log retracted.
func reorgOf(all []*event.Record) (blocks uint64) {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].GetRetracts() == 0 {
			if blocks > 0 {
				return blocks
			}
			continue
		}
		if all[i].GetBlock() != nil {
			blocks++
		}
	}
	return blocks
}

// A reorganisation that takes more calls than a node answers without an error is followed over several attempts: each
// continues with the blocks that the ones before it read.
func TestReorganisationThroughErrors(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Finality, r.config.Window = Finality{Depth: 60}, 64
	r.steps(70)
	var calls atomic.Int64
	node := r.throughProxy(honest)
	p := r.follow()
	const depth = 30
	var bare atomic.Bool
	node.use(func(method string, _ []json.RawMessage, pass func() json.RawMessage) (any, error, bool) {
		if n := calls.Add(1); n < 5 || method != "eth_getBlockByHash" || bare.Swap(true) {
			return nil, errNoMethod, n%20 == 0
		}
		header := map[string]any{} // one of them lacks its bloom, once
		if err := json.Unmarshal(pass(), &header); err != nil {
			t.Error(err)
		}
		delete(header, "logsBloom")
		return header, nil, true
	})
	r.reorg(depth)
	r.steps(5)
	p.caughtUp()
	if got := reorgOf(r.verify()); got != depth || calls.Load() < 2*depth {
		t.Errorf("%d blocks were retracted after %d calls, want %d", got, calls.Load(), depth)
	}
}

// The transactions of the lost blocks are mined again, in other blocks.
func TestSameTransactionInAnotherBlock(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(20)
	p := r.follow()
	all, live := r.log()
	newest := live[len(live)-1]
	for i := len(live) - 1; newest.GetLog() == nil || newest.GetLog().GetBlockNumber()+6 < r.height(); i-- {
		newest = live[i]
	}
	lost := newest.GetLog()
	depth := r.height() - lost.GetBlockNumber() + 1
	if depth < 2 { // so that there is another block to be in
		r.mine(1)
		p.caughtUp()
		depth++
	}
	r.reorg(depth, devchain.Kept{Hash: common.Hash(lost.GetTxHash()), Block: 1})
	p.caughtUp()
	r.verify()
	again, _ := r.log()
	var found bool
	for _, record := range again[len(all):] {
		l := record.GetLog()
		if l != nil && record.GetRetracts() == 0 && string(l.GetTxHash()) == string(lost.GetTxHash()) {
			found = true
			if l.GetBlockNumber() != lost.GetBlockNumber()+1 {
				t.Errorf("the transaction was mined again in block %d, want block %d", l.GetBlockNumber(), lost.GetBlockNumber()+1)
			}
		}
	}
	if !found {
		t.Error("the transaction was not mined again")
	}
}

func TestOfflineReorganisation(t *testing.T) {
	sequential(t)
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		r.steps(20)
		for _, depth := range []uint64{1, 5, 8} { // 8: the common ancestor is the final block
			r.index()
			r.reorg(depth)
			if depth > 1 {
				r.steps(12) // so many that the lost blocks are final when it comes back
			}
			p := r.follow()
			if got := reorgOf(r.verify()); got != depth {
				t.Errorf("the log retracted %d blocks, want %d", got, depth)
			}
			p.halt()
			r.steps(9)
		}
	})
}

// The chain is reorganised between two calls: after a block's header was read and before its logs are, and while the
// new branch is read.
func TestReorganisationDuringAFetch(t *testing.T) {
	for name, when := range map[string]func(method string, params []json.RawMessage) bool{
		"header, then logs": func(method string, params []json.RawMessage) bool {
			return method == "eth_getLogs" && strings.Contains(string(params[0]), "blockHash")
		},
		"head, then the block at the log's height": func(method string, params []json.RawMessage) bool {
			return method == "eth_getBlockByNumber" && strings.HasPrefix(string(params[0]), `"0x`)
		},
		"block, then its parent": func(method string, _ []json.RawMessage) bool { return method == "eth_getBlockByHash" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(20)
			between := r.throughProxy(honest)
			p := r.start()
			var happened atomic.Int32
			for round := range uint64(4) {
				p.caughtUp()
				p.halt()
				r.reorg(1 + round)
				r.steps(4)
				var once atomic.Bool
				between.use(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
					if when(method, params) && once.CompareAndSwap(false, true) {
						if err := devchain.Reorg(r.ctx, r.url, 1+(round+1)%4); err != nil {
							t.Error(err)
						}
						happened.Add(1)
					}
					return nil, nil, false
				})
				p = r.follow()
				r.verify()
				between.use(honest)
				r.newTraffic(int64(round) + 50)
				r.steps(3)
			}
			if happened.Load() == 0 {
				t.Error("no reorganisation took place between two calls")
			}
		})
	}
}

// A head that is lower than the log proves nothing; a chain that went back and grew past the log again is a
// reorganisation.
func TestShorterChain(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(15)
	snapshot, err := devchain.Snapshot(r.ctx, r.url)
	r.must(err)
	r.steps(3)
	watched := r.throughProxy(honest)
	p := r.follow()
	seq := p.Status().Seq
	r.must(devchain.Revert(r.ctx, r.url, snapshot))
	p.until("report of the lower head",
		func(st status.Status) bool { return strings.Contains(st.Reason, "below the log's block") })
	watched.polled(p)
	if now := p.Status(); now.Seq != seq || now.State != status.Following {
		t.Fatalf("a lower head changed the log: %+v", now)
	}
	r.newTraffic(99)
	r.steps(6)
	p.caughtUp()
	if r.verify(); counterValue(t, p.status.Reorgs) == 0 {
		t.Error("no reorganisation was counted")
	}
}

func TestFreezeBeyondFinality(t *testing.T) {
	for name, deep := range map[string]struct {
		finality Finality
		window   uint64
		want     string
	}{
		"final":  {Finality{}, 1024, "is final"},
		"window": {Finality{}, 4, "below the window of 4 blocks"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.config.Finality, r.config.Window = deep.finality, deep.window
			r.steps(25)
			p := r.follow()
			seq := p.Status().Seq
			if name == "window" {
				r.reorg(6)
			} else {
				r.reorg(12)
			}
			p.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })
			if err := p.Ready(); err == nil || !strings.Contains(err.Error(), deep.want) {
				t.Errorf("Ready is %v, want an error with %q", err, deep.want)
			}
			if p.metric("frozen") != 1 {
				t.Error("navlog_ingest_frozen is not 1")
			}
			p.halt()

			again := r.start() // a restart does not end the freeze
			again.until("freeze after a restart", func(st status.Status) bool { return st.State == status.Frozen })
			cursor := r.cursor()
			if all, _ := r.log(); cursor.GetSeq() != seq || uint64(len(all)) != seq ||
				!strings.Contains(cursor.GetFrozen(), deep.want) {
				t.Errorf("the frozen log has %d records, the cursor has seq %d (%q), want %d", len(all), cursor.GetSeq(),
					cursor.GetFrozen(), seq)
			}
			again.halt()
		})
	}
}

// After chain.window was raised, blocks that the smaller window dropped are not retracted in part: of a block below it
// only a referral is known.
func TestReorganisationAfterTheWindowWasRaised(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Window = 3
	r.steps(20)
	depositor := r.depositor()
	r.mine(12)
	p := r.follow()
	depositor.deposit(5, 7)
	r.mine(5)
	p.caughtUp()
	p.halt()
	seq := r.cursor().GetSeq()

	r.config.Window = 1024
	p = r.follow()
	r.reorg(6) // with the deposit's block
	p.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })
	if all, _ := r.log(); uint64(len(all)) != seq {
		t.Errorf("the log has %d records, and had %d before the reorganisation", len(all), seq)
	}
	_, err := r.resume(true)
	r.must(err)
	p.caughtUp()
	r.config.Window = 3 // the window with which most of the blocks were recorded
	r.verify()
}

// A -> B -> A: the same block comes back, and its logs with it.
func TestBlockComesBack(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(15)
	depositor := r.depositor()
	p := r.follow()
	block := func(amount int64) *types.Header {
		depositor.deposit(amount, 7)
		h, err := r.chain.HeaderByNumber(r.ctx, nil)
		r.must(err)
		p.caughtUp()
		return h
	}
	snapshot := func() string {
		id, err := devchain.Snapshot(r.ctx, r.url)
		r.must(err)
		return id
	}

	before := snapshot()
	first := block(1)
	r.must(devchain.Revert(r.ctx, r.url, before))
	before = snapshot()
	block(2)
	r.must(devchain.Revert(r.ctx, r.url, before))
	if back := block(1); back.Hash() != first.Hash() {
		t.Fatalf("the chain did not return to the first block but to another one:\n%+v\n%+v", first, back)
	}
	var appended int
	for _, record := range r.verify() {
		if b := record.GetBlock(); b != nil && record.GetRetracts() == 0 && common.Hash(b.GetHash()) == first.Hash() {
			appended++
		}
	}
	if appended != 2 {
		t.Errorf("block %s was appended %d times, want 2", first.Hash(), appended)
	}
}

// depositor makes deposits that are fully deterministic (see devchain.Depositor).
type depositor struct {
	r *rig
	*devchain.Depositor
}

func (r *rig) depositor() *depositor {
	r.t.Helper()
	d, err := devchain.NewDepositor(r.ctx, r.url, r.contracts.Vaults[0])
	r.must(err)
	r.t.Cleanup(d.Close)
	r.must(r.chain.Client().CallContext(r.ctx, nil, "evm_setNextBlockTimestamp", hexutil.Uint64(4_000_000_000)))
	r.mine(1)
	return &depositor{r, d}
}

func (d *depositor) deposit(amount int64, partner uint32) {
	d.r.t.Helper()
	d.r.must(d.Deposit(d.r.ctx, amount, partner))
}

// While another endpoint still has the log's block at the head's height, and is not behind, nothing is retracted; an
// endpoint that is behind or fails has no vote.
func TestReorganisationNeedsAgreement(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(20)
	first, second := r.newProxy(honest), r.newProxy(honest)
	r.config.RPC = rpc.Endpoints(first.URL, second.URL)
	p := r.follow()
	seq, height := p.Status().Seq, fmt.Sprintf(`"%#x"`, r.height())
	first.use(forkedAt(height))
	p.until("disagreement", func(status.Status) bool { return p.disagreements(second) > 0 })
	second.polled(p) // the second endpoint is in use now
	if now := r.cursor(); now.GetSeq() != seq || p.Status().State != status.Following {
		t.Fatalf("a fork of one of two endpoints changed the log from seq %d to %d, state %s", seq, now.GetSeq(),
			p.Status().State)
	}

	// The second one is behind and does not know the log's head, so it has no vote.
	first.use(honest)
	p.until("agreement", func(st status.Status) bool { return st.Reason == "" })
	second.use(headIs(r.blockAt("0x5"), ""))
	r.reorg(2)
	p.caughtUp()
	r.verify()
	second.use(away)
	r.reorg(3)
	p.caughtUp()
	if depth := reorgOf(r.verify()); depth != 3 {
		t.Errorf("the last reorganisation retracted %d blocks, want 3", depth)
	}
}

// forkedAt is a node that has another block at the height of the head.
func forkedAt(height string) override {
	return func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		switch {
		case method == "eth_getLogs":
			return []any{}, nil, true
		case method == "eth_getBlockByNumber" && (string(params[0]) == `"latest"` || string(params[0]) == height):
			var h map[string]any
			_ = json.Unmarshal(truth(), &h)
			h["logsBloom"] = "0x" + strings.Repeat("0", 512)
			reseal(h, "fork")
			return h, nil, true
		}
		return nil, nil, false
	}
}

// disagreements returns how many times this endpoint had the log's block while another one did not.
func (p *process) disagreements(keeper *proxy) float64 {
	return counterValue(p.rig.t, p.status.Disagreements.WithLabelValues(keeper.URL))
}

// Every endpoint is checked for the log's head, even if the first one is behind.
func TestAnyEndpointKeepsOurBlock(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(20)
	first, second, third := r.newProxy(honest), r.newProxy(honest), r.newProxy(honest)
	r.config.RPC = rpc.Endpoints(first.URL, second.URL, third.URL)
	p := r.follow()
	seq := p.Status().Seq
	second.use(headIs(r.blockAt(hexutil.EncodeUint64(r.height()-2)), ""))
	first.use(forkedAt(fmt.Sprintf(`"%#x"`, r.height())))
	p.until("disagreement, or a change of the log",
		func(st status.Status) bool { return p.disagreements(third) > 0 || st.Seq != seq })
	third.polled(p)
	if now := r.cursor().GetSeq(); now != seq {
		t.Errorf("the fork of one of three endpoints changed the log from seq %d to %d", seq, now)
	}
}

// The endpoint in use is the only one on a fork that grows: it is left, and the chain of the others is followed.
func TestOnlyEndpointOnAForkIsLeft(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(20)
	first, second, third := r.newProxy(honest), r.newProxy(honest), r.newProxy(honest)
	r.config.RPC = rpc.Endpoints(first.URL, second.URL, third.URL)
	p := r.follow()
	fork := r.height()
	another := func(hash any) string { return "0xdd" + hash.(string)[4:] }
	first.use(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		var h map[string]any
		if method != "eth_getBlockByNumber" || json.Unmarshal(truth(), &h) != nil || h == nil {
			return nil, nil, false
		}
		number, _ := hexutil.DecodeUint64(h["number"].(string))
		if number < fork {
			return nil, nil, false
		}
		if h["hash"] = another(h["hash"]); number > fork {
			h["parentHash"] = another(h["parentHash"])
		}
		return h, nil, true
	})
	for range 4 {
		r.steps(2)
		p.caughtUp()
	}
	r.verify()
}

// An endpoint that has stopped at the log's head, a block that left the chain of the others, cannot block a
// reorganisation forever.
func TestStoppedEndpointBlocksNoReorganisation(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(20)
	first, second := r.newProxy(honest), r.newProxy(honest)
	r.config.RPC = rpc.Endpoints(first.URL, second.URL)
	r.index()
	second.use(headIs(r.blockAt("latest"), fmt.Sprintf(`"%#x"`, r.height())))
	r.reorg(2)
	r.must(r.chain.Client().CallContext(r.ctx, nil, "evm_increaseTime", hexutil.Uint64(60)))
	r.mine(3) // enough for the second endpoint to lag
	r.follow()
	if depth := reorgOf(r.verify()); depth != 2 {
		t.Errorf("the last reorganisation retracted %d blocks, want 2", depth)
	}
}
