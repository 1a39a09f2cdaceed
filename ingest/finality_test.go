package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
)

// finalized is a node that responds to calls for the finalized block with result and err.
func finalized(result any, err error) override {
	return func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return result, err, method == "eth_getBlockByNumber" && string(params[0]) == `"finalized"`
	}
}

// With a node without the finalized tag nothing becomes final, and the status reports this and what to do.
func TestNoFinalizedTag(t *testing.T) {
	sequential(t)
	for name, answer := range map[string]override{
		"null":                    finalized(nil, nil),
		"an error":                finalized(nil, errors.New("finalized block not found")),
		"an error of an old node": finalized(nil, errors.New("invalid argument 0: hex string without 0x prefix")),
		"a tag not served":        finalized(nil, errors.New("block tag is unsupported")),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(10)
			r.config.RPC = rpc.Endpoints(r.newProxy(answer).URL)
			p := r.start()
			p.atHead()
			r.verify()
			st := p.Status()
			if st.FinalBlock != 0 || st.ReferralBlock != 0 {
				t.Errorf("final block %d and referral block %d without a finalized tag", st.FinalBlock, st.ReferralBlock)
			}
			if !strings.Contains(st.Warning, "names no finalized block") ||
				!strings.Contains(st.Warning, "set chain.finality to a depth") {
				t.Errorf("the warning is %q", st.Warning)
			}
		})
	}
}

// If no block is final, the log begins no more than a window below the first vault, and not at the beginning of a long
// chain.
func TestNothingIsFinalFarFromTheStart(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.mine(60)
	r.config.RPC = rpc.Endpoints(r.newProxy(finalized(nil, nil)).URL)
	for i := range r.config.Vaults {
		r.config.Vaults[i].StartBlock = r.height()
	}
	r.config.Window = 16
	begin := r.height() - 1 - r.config.Window
	r.steps(5)
	p := r.start()
	p.atHead()
	for _, record := range r.verify() {
		if b := record.GetBlock(); b != nil && b.GetNumber() < begin {
			t.Errorf("block %d is recorded, %d blocks below the first vault's start", b.GetNumber(),
				r.config.Vaults[0].StartBlock-b.GetNumber())
		}
	}
}

// A node that fails to name the final block is called again: a new log does not begin at block 0 because of it.
func TestFinalizedFailsForAWhile(t *testing.T) {
	sequential(t)
	for name, fault := range map[string]error{"an error of the node": errors.New("request rate exceeded"),
		"no response": errHangUp} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(25)
			failing := r.throughProxy(finalized(nil, fault))
			p := r.start()
			p.until("reason", func(st status.Status) bool { return strings.Contains(st.Reason, "eth_getBlockByNumber") })
			asked := failing.count("eth_getBlockByNumber")
			p.until("another try", func(status.Status) bool { return failing.count("eth_getBlockByNumber") >= asked+2 })
			if cursor := r.cursor(); cursor != nil {
				t.Fatalf("records were written without a final block: %v", cursor)
			}
			failing.use(honest)
			p.caughtUp()
			for _, record := range r.verify() {
				if b := record.GetBlock(); b != nil && b.GetNumber() == 0 {
					t.Error("block 0 is in the log")
				}
			}
			if st := p.Status(); st.Warning != "" {
				t.Errorf("warning although the node names the final block: %s", st.Warning)
			}
		})
	}
}

// At the head, a node that fails to name the final block delays only finality, and not even that if another endpoint
// names it.
func TestFinalizedFailsAtTheHead(t *testing.T) {
	sequential(t)
	for name, another := range map[string]bool{"the only endpoint": false, "another endpoint names it": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(15)
			failing := r.throughProxy(honest)
			if another {
				r.config.RPC = append(r.config.RPC, rpc.Endpoint{URL: r.url})
			}
			p := r.follow()
			final := r.finalIn(p)
			failing.use(finalized(nil, errHangUp))
			r.steps(12)
			if another {
				p.caughtUp()
			} else {
				p.until("head", func(st status.Status) bool {
					return st.IndexedBlock == r.height() && strings.Contains(st.Warning, "the final block is not known") &&
						strings.Contains(st.Warning, "EOF")
				})
				if st := p.Status(); st.FinalBlock != final || st.State != status.Following {
					t.Errorf("block %d is final, before it was %d; state %s", st.FinalBlock, final, st.State)
				}
			}
			r.verify()
			failing.use(honest)
			p.caughtUp()
		})
	}
}

// A development chain may call block 0 final for a long time.
func TestFinalizedIsGenesis(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(10)
	genesis := r.blockAt("0x0")
	r.config.RPC = rpc.Endpoints(r.newProxy(finalized(genesis, nil)).URL)
	p := r.start()
	p.atHead()
	r.verify()
	if st := p.Status(); st.FinalBlock != 0 || st.Warning != "" {
		t.Errorf("final block %d, warning %q", st.FinalBlock, st.Warning)
	}
}

// namesFinal is a node that names the block this far below its head as final.
func (r *rig) namesFinal(below uint64) override {
	return func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		if method != "eth_getBlockByNumber" || string(params[0]) != `"finalized"` {
			return nil, nil, false
		}
		var head struct{ Number hexutil.Uint64 }
		var block json.RawMessage
		if err := r.chain.Client().CallContext(r.ctx, &head, "eth_getBlockByNumber", "latest", false); err != nil {
			return nil, err, true
		}
		err := r.chain.Client().CallContext(r.ctx, &block, "eth_getBlockByNumber",
			head.Number-min(head.Number, hexutil.Uint64(below)), false)
		return block, err, true
	}
}

// A node that names its head as final counts as naming none: an ordinary reorganisation is followed, and no referral of
// an orphaned block was published. A backend of it that is a block behind does not change this.
func TestHeadNamedAsFinal(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(20)
	naming := r.throughProxy(r.namesFinal(0))
	p := r.start()
	p.atHead()
	naming.use(r.namesFinal(1)) // the response of a backend that is one block behind
	naming.polled(p)
	st := p.Status()
	if st.FinalBlock != 0 || st.ReferralBlock != 0 || len(r.published()) != 0 {
		t.Errorf("block %d is final and %d referrals are published although the head is named as final", st.FinalBlock,
			len(r.published()))
	}
	if !strings.Contains(st.Warning, "names its head as final") ||
		!strings.Contains(st.Warning, "set chain.finality to a depth, or to instant") {
		t.Errorf("the warning is %q", st.Warning)
	}
	r.reorg(3)
	r.steps(2)
	p.until("reorganisation",
		func(st status.Status) bool { return p.metric("reorgs_total") == 1 && st.IndexedBlock == r.height() })
	if st := p.Status(); st.State != status.Following {
		t.Errorf("the state is %s: %s", st.State, st.Reason)
	}
	r.verify()
	p.halt()

	// If blocks are final at once, this is correct, and the configuration sets it.
	r.config.Finality = Finality{Instant: true}
	naming.use(r.namesFinal(0))
	p = r.start()
	p.until("final head", func(st status.Status) bool {
		return st.FinalBlock == r.height() &&
			st.ReferralBlock == r.height()
	})
	r.steps(3)
	p.until("final head", func(st status.Status) bool {
		return st.FinalBlock == r.height() &&
			st.IndexedBlock == r.height()
	})
	r.verify()
	if st := p.Status(); st.Warning != "" {
		t.Errorf("the warning is %q", st.Warning)
	}
}

// With chain.agreement 2 the final block is the lower one of two, whichever endpoint is in use: a block just below the
// head that only one of them names is not final.
func TestFinalityNeedsAgreement(t *testing.T) {
	sequential(t)
	for _, liarFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("wrong endpoint in use: %v", liarFirst), func(t *testing.T) {
			r := newRig(t, kfake)
			r.config.Agreement = 2
			r.steps(25)
			hasty := r.newProxy(r.namesFinal(1))
			if r.config.RPC = rpc.Endpoints(r.url, hasty.URL); liarFirst {
				slices.Reverse(r.config.RPC)
			}
			p := r.follow()
			for range 3 {
				r.steps(3)
				p.caughtUp()
				if got, want := r.cursor().GetFinalBlock(), r.final(); got != want {
					t.Errorf("block %d is final, and the other endpoint names block %d", got, want)
				}
			}
			r.reorg(5)
			r.steps(1)
			p.caughtUp()
			if depth := reorgOf(r.verify()); depth != 5 {
				t.Errorf("the reorganisation retracted %d blocks, want 5", depth)
			}
		})
	}
}

// While two endpoints do not name the same final block, or only one names any, nothing more becomes final. Everything
// else continues, and the status says why.
func TestFinalityIsNotAgreedOn(t *testing.T) {
	sequential(t)
	for name, c := range map[string]struct {
		override func(r *rig) override
		want     string
	}{
		"another block": {func(r *rig) override {
			// Always the same one: a higher block on top of the chain's would confirm those below it.
			var h map[string]any
			r.must(json.Unmarshal(r.blockAt(hexutil.EncodeUint64(r.final()+1)), &h))
			reseal(h, "another block")
			return finalized(h, nil)
		}, "as final with the hash"},
		"null": {func(*rig) override { return finalized(nil, nil) }, "does not have this block"},
		"an error": {func(*rig) override { return finalized(nil, errors.New("finalized block not found")) },
			"finalized block not found"},
		"no response":   {func(*rig) override { return finalized(nil, errHangUp) }, "EOF"},
		"no header":     {func(*rig) override { return finalized("0x1", nil) }, "and not a block"},
		"its head":      {func(r *rig) override { return r.namesFinal(0) }, "names its head as final"},
		"an older head": {func(r *rig) override { return finalized(r.blockAt("0x5"), nil) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.config.Agreement = 2
			r.steps(15)
			other := r.newProxy(honest)
			r.config.RPC = rpc.Endpoints(r.url, other.URL)
			p := r.follow()
			final := r.finalIn(p)
			other.use(c.override(r))
			r.steps(12)
			p.until("head", func(st status.Status) bool {
				return st.IndexedBlock == r.height() && strings.Contains(st.Warning, c.want)
			})
			other.polled(p)
			if st := p.Status(); st.FinalBlock != final || st.State != status.Following {
				t.Errorf("block %d is final, before it was %d; state %s", st.FinalBlock, final, st.State)
			}
			r.verify()

			// A third one agrees with the first.
			p.halt()
			r.config.RPC = append(r.config.RPC, rpc.Endpoint{URL: r.newProxy(honest).URL})
			r.follow()
			r.verify()
		})
	}
}

func (r *rig) blockAt(which string) (block json.RawMessage) {
	r.t.Helper()
	r.must(r.chain.Client().CallContext(r.ctx, &block, "eth_getBlockByNumber", which, false))
	return block
}

// finalIn waits until ingest knows the chain's final block, which it may read after the head.
func (r *rig) finalIn(p *process) uint64 {
	r.t.Helper()
	final := r.final()
	p.until("final", func(st status.Status) bool { return st.FinalBlock == final })
	return final
}

// An endpoint that takes over and names an older final block does not move the final block back.
func TestFinalityDoesNotMoveBack(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(25)
	first, second := r.newProxy(honest), r.newProxy(finalized(r.blockAt("0x5"), nil))
	r.config.RPC = rpc.Endpoints(first.URL, second.URL)
	p := r.follow()
	final := r.finalIn(p)
	first.use(away)
	r.steps(3)
	p.until("failover", func(st status.Status) bool { return st.IndexedBlock == r.height() })
	second.polled(p)
	if now := p.Status().FinalBlock; now != final || r.cursor().GetFinalBlock() != final {
		t.Errorf("block %d is final after block %d was", now, final)
	}
	r.verify()
}

// A depth counts from blocks that are in the log: a head that an endpoint only names makes nothing final.
func TestDepthCountsFromTheLog(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Finality = Finality{Depth: 6}
	r.steps(20)
	claiming := r.throughProxy(honest)
	p := r.follow()
	for _, by := range []uint64{4, 1_000_000} { // within the depth, and far beyond it
		claiming.use(claims(by))
		r.steps(2)
		claiming.polled(p)
		if got, most := r.cursor().GetFinalBlock(), r.final(); got > most {
			t.Errorf("block %d is final, want block %d", got, most)
		}
	}
	claiming.use(honest)
	p.caughtUp()
	r.reorg(5)
	r.steps(1)
	p.caughtUp()
	r.verify()
}

// claims is a node that adds by to the number of its head.
func claims(by uint64) override {
	return func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		var h map[string]any
		if method != "eth_getBlockByNumber" || string(params[0]) != `"latest"` || json.Unmarshal(truth(), &h) != nil {
			return nil, nil, false
		}
		number, _ := hexutil.DecodeUint64(h["number"].(string))
		h["number"], h["parentHash"] = hexutil.Uint64(number+by), otherHash
		reseal(h, "boast")
		return h, nil, true
	}
}
