package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// sampledEvery is the distance between two sampled blocks of the rig's vaults.
const sampledEvery = 3

// sampled makes the rig sample the NAV of all vaults; otherwise their mapping is that of the reference contracts.
func (r *rig) sampled() {
	r.t.Helper()
	text, err := mapping.PresetText("reference")
	r.must(err)
	changed := strings.Replace(string(text), "nav: {from: valuation}",
		fmt.Sprintf("nav: {sample: convertToAssets, every: %d}", sampledEvery), 1)
	file := filepath.Join(r.t.TempDir(), "sampled.yaml")
	r.must(os.WriteFile(file, []byte(changed), 0o600))
	for i := range r.config.Vaults {
		r.config.Vaults[i].Mapping = file
	}
}

// verifySamples compares the live samples with what the contracts return at the hashes of the blocks: every multiple of
// sampledEvery has one for each vault, after its logs, except those that are missing.
func (r *rig) verifySamples(missing func(vault common.Address, number uint64) bool) (samples []*event.Sample) {
	r.t.Helper()
	_, live := r.log()
	type place struct {
		vault  common.Address
		number uint64
	}
	seen, blocks := map[place]bool{}, map[uint64]bool{}
	for _, record := range live {
		if l := record.GetLog(); l != nil && seen[place{common.Address(l.GetAddress()), l.GetBlockNumber()}] {
			r.t.Errorf("record %d, a log of block %d, comes after the sample of the block", record.GetSeq(), l.GetBlockNumber())
		}
		s := record.GetSample()
		if s == nil {
			continue
		}
		at := place{common.Address(s.GetVault()), s.GetBlockNumber()}
		h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(at.number))
		r.must(err)
		input := append(crypto.Keccak256([]byte("convertToAssets(uint256)"))[:4],
			common.BigToHash(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(s.GetNavDigits())), nil)).Bytes()...)
		want, err := r.chain.CallContractAtHash(r.ctx, ethereum.CallMsg{To: &at.vault, Data: input}, h.Hash())
		r.must(err)
		if common.Hash(s.GetBlockHash()) != h.Hash() || s.GetBlockTime() != h.Time ||
			fmt.Sprintf("%x", s.GetAssets()) != fmt.Sprintf("%x", want) {
			r.t.Errorf("record %d is %v, the chain has block %s at %d and %x", record.GetSeq(), s, h.Hash(), h.Time, want)
		}
		if seen[at] || s.GetNavDigits() != 18 {
			r.t.Errorf("record %d is sample %v: %t", record.GetSeq(), s, seen[at])
		}
		seen[at], blocks[at.number] = true, true
		samples = append(samples, s)
	}
	for _, v := range r.cursor().GetVaults() {
		for n := v.GetStartBlock(); n <= v.GetCoveredTo(); n++ {
			at := place{common.Address(v.GetAddress()), n}
			if due := n%sampledEvery == 0 && !missing(at.vault, n); due != seen[at] {
				r.t.Errorf("block %d of vault %s is sampled: %t", n, at.vault, seen[at])
			}
		}
	}
	return samples
}

// always is for verifySamples: no sample is missing.
func always(common.Address, uint64) bool { return false }

// followsSteps makes the vaults take steps while the process follows through a proxy. Calls at a block wait for the end
// of a step: while anvil mines, it answers a call at its newest block from the state of the next one.
func (p *process) followsSteps(n int) {
	p.rig.t.Helper()
	for range n {
		p.rig.stepping.Lock()
		p.rig.steps(1)
		p.rig.stepping.Unlock()
		p.caughtUp()
	}
}

// TestSamples: NAV is sampled in a history, at the head, for a late vault, and through reorganisations.
func TestSamples(t *testing.T) {
	r := newRig(t, kfake)
	r.sampled()
	r.config.RPC = rpc.Endpoints(r.newProxy(honest).URL)
	r.followWithoutFirst(40)
	p := r.follow()
	r.verify()
	r.verifySamples(always)
	p.followsSteps(7)
	taken := p.metric("samples_total")
	r.reorg(5)
	p.caughtUp()
	p.followsSteps(4)
	all := r.verify()
	if samples := r.verifySamples(always); len(samples) < 20 || taken == 0 {
		t.Errorf("%d samples, %v counted: the test shows little", len(samples), taken)
	}
	retracted := 0
	for _, record := range all {
		if record.GetSample() != nil && record.GetRetracts() != 0 {
			retracted++
		}
	}
	if retracted == 0 {
		t.Error("the reorganisation retracts no sample")
	}
	for _, w := range p.Status().VaultWarnings {
		t.Errorf("vault %s: %s", w.Address, w.Warning)
	}
}

// TestSamplesSurviveCrashes: after a crash of ingest at any step, each block has its samples once, in one unit with its
// logs.
func TestSamplesSurviveCrashes(t *testing.T) {
	for _, at := range few(writer.Steps) {
		t.Run(string(at), func(t *testing.T) {
			r := newRig(t, kfake)
			r.sampled()
			r.steps(25)
			for n := 1; n <= 3; n++ {
				r.killed(killAt(at, n))
			}
			r.index()
			r.reorg(4)
			r.steps(2)
			r.killed(killAt(at, 2))
			r.follow()
			r.verify()
			r.verifySamples(always)
		})
	}
}

// callLimitText responds to calls of convertToAssets, and to nothing else. block is the number of the block in the
// call.
func (r *rig) ofCalls(answer func(block uint64) (result any, err error, handled bool)) override {
	converts := selectors("convertToAssets(uint256)")
	return func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		var at struct{ BlockHash common.Hash }
		if method != "eth_call" || !converts(string(params[0])) || json.Unmarshal(params[1], &at) != nil {
			return nil, nil, false
		}
		h, err := r.chain.HeaderByHash(r.ctx, at.BlockHash)
		if err != nil {
			return nil, nil, false
		}
		return answer(h.Number.Uint64())
	}
}

// caller is a proxy that receives single calls only: it rejects batches.
func (r *rig) caller(l override) *proxy {
	r.t.Helper()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch requests are not supported"}}`))
	}))
	r.t.Cleanup(refuses.Close)
	n := r.newProxy(l)
	n.batches = func(body []byte) string {
		if strings.Contains(string(body), "eth_call") {
			return refuses.URL
		}
		return r.url
	}
	return n
}

var errNoState = errors.New("missing trie node 0123abcd (path ) state 0x0123abcd is not available")

// pruned is a node that has the state of blocks from a number.
func (r *rig) pruned(from uint64) *proxy {
	return r.caller(r.ofCalls(func(block uint64) (any, error, bool) { return nil, errNoState, block < from }))
}

// TestSamplesOfAPrunedNode: a node without the state of old blocks does not stop the log. NAV is sampled from the first
// block whose state it has, and the status reports this, even after a restart.
func TestSamplesOfAPrunedNode(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.sampled()
	r.steps(40)
	from := r.height() - 4
	r.config.RPC = rpc.Endpoints(r.pruned(from).URL)
	p := r.follow()
	r.verify()
	r.verifySamples(func(_ common.Address, n uint64) bool { return n < from })
	warned := func(p *process) {
		t.Helper()
		warnings := p.Status().VaultWarnings
		if len(warnings) != len(r.config.Vaults) {
			t.Fatalf("the warnings are %v", warnings)
		}
		first := from - 1 - (from-1)%sampledEvery + 1 // the first sampled block with state
		if want := fmt.Sprintf("sampled from block %d on", first); !strings.Contains(warnings[0].Warning, want) {
			t.Errorf("the warning is %q, want %q", warnings[0].Warning, want)
		}
	}
	warned(p)
	p.halt()
	r.steps(4)
	p = r.follow()
	r.verifySamples(func(_ common.Address, n uint64) bool { return n < from })
	warned(p)
}

// TestMappingBeginsToSample: a vault whose mapping begins to sample NAV is sampled from then on, and the status reports
// this.
func TestMappingBeginsToSample(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.RPC = rpc.Endpoints(r.newProxy(honest).URL)
	r.steps(20)
	r.index()
	before := r.height()
	r.sampled()
	p := r.follow()
	p.followsSteps(8)
	r.verify()
	r.verifySamples(func(_ common.Address, n uint64) bool { return n <= before })
	want := fmt.Sprintf("sampled from block %d on", before+1)
	if warnings := p.Status().VaultWarnings; len(warnings) != len(r.config.Vaults) ||
		!strings.Contains(warnings[0].Warning, want) {
		t.Errorf("the warnings are %v, want %q", warnings, want)
	}
}

// TestSamplesOfAnArchiveNode: if the endpoint in use has no state of old blocks, another one is called.
func TestSamplesOfAnArchiveNode(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.sampled()
	r.steps(40)
	r.config.RPC = rpc.Endpoints(r.pruned(r.height()).URL, r.caller(honest).URL)
	p := r.follow()
	r.verify()
	r.verifySamples(always)
	if warnings := p.Status().VaultWarnings; len(warnings) > 0 {
		t.Errorf("the warnings are %v", warnings)
	}
}

// TestSamplesNeedAgreement: with chain.agreement 2 a value that one of two endpoints makes up is never in the log,
// neither for old blocks nor at the head.
func TestSamplesNeedAgreement(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.sampled()
	r.steps(30)
	override := r.ofCalls(func(uint64) (any, error, bool) {
		return hexutil.Bytes(common.BigToHash(big.NewInt(7)).Bytes()), nil, true
	})
	wrongNode := r.caller(override)
	r.config.RPC, r.config.Agreement = rpc.Endpoints(wrongNode.URL, r.caller(honest).URL), 2
	p := r.start()
	disagree := func(st status.Status) bool { return strings.Contains(st.Reason, "disagree about what") }
	p.until("report of old blocks", disagree)
	wrongNode.use(honest)
	p.caughtUp()
	r.verifySamples(always)
	wrongNode.use(override)
	r.steps(sampledEvery)
	p.until("report of the head", disagree)
	r.verifySamples(always)
	wrongNode.use(honest)
	p.caughtUp()
	r.verify()
	r.verifySamples(always)
}

// TestSamplesAreRetried: errors of a node that are not about the contract cost no sample.
func TestSamplesAreRetried(t *testing.T) {
	sequential(t)
	for name, fault := range map[string]struct {
		result any
		err    error
	}{
		"null":               {nil, nil},
		"a malformed number": {"0xzz", nil},
		"hangs up":           {nil, errHangUp},
		"lags":               {nil, errors.New("header for hash not found")},
		"is not canonical":   {nil, errors.New("hash is not currently canonical")},
		"a rate limit":       {nil, errors.New("request rate exceeded")},
		"fails in some way":  {nil, errors.New("internal error")},
		"has no such method": {nil, errNoMethod},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.sampled()
			r.steps(15)
			var failed atomic.Int32
			node := r.caller(r.ofCalls(func(block uint64) (any, error, bool) {
				if failed.Add(1) > 3 {
					return nil, nil, false
				}
				return fault.result, fault.err, true
			}))
			r.config.RPC = rpc.Endpoints(node.URL)
			r.follow()
			r.verify()
			r.verifySamples(always)
			if n := failed.Load(); n < 3 {
				t.Errorf("the node failed %d times", n)
			}
		})
	}
}

// TestUnansweredSamples: a contract that reverts, or returns no word, has no sample at that block. That is counted, and
// the log continues.
func TestUnansweredSamples(t *testing.T) {
	sequential(t)
	for name, fault := range map[string]struct {
		result any
		err    error
	}{
		"reverts":   {nil, errors.New("execution reverted: paused")},
		"nothing":   {"0x", nil},
		"two words": {hexutil.Bytes(make([]byte, 64)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.sampled()
			r.steps(20)
			none := func(number uint64) bool { return number%(2*sampledEvery) == 0 }
			node := r.caller(r.ofCalls(func(block uint64) (any, error, bool) { return fault.result, fault.err, none(block) }))
			r.config.RPC = rpc.Endpoints(node.URL)
			p := r.follow()
			p.followsSteps(8)
			r.verify()
			r.verifySamples(func(_ common.Address, n uint64) bool { return none(n) })
			if n := p.metric("samples_total", "unanswered"); n == 0 {
				t.Error("navlog_ingest_samples_total counted no call without a result")
			}
			if warnings := p.Status().VaultWarnings; len(warnings) > 0 {
				t.Errorf("the warnings are %v", warnings)
			}
		})
	}
}
