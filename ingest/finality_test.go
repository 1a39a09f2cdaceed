package ingest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/navlog/navlog/ingest/rpc"
)

// finalized is a node that answers the question for the finalized block itself.
func finalized(result any, err error) lie {
	return func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return result, err, method == "eth_getBlockByNumber" && string(params[0]) == `"finalized"`
	}
}

// A node without the finalized tag leaves everything unfinal, and the status
// says so and what to do.
func TestNoFinalizedTag(t *testing.T) {
	for name, answer := range map[string]lie{
		"null":             finalized(nil, nil),
		"an error":         finalized(nil, errors.New("finalized block not found")),
		"an error of old":  finalized(nil, errors.New("invalid argument 0: hex string without 0x prefix")),
		"a tag not served": finalized(nil, errors.New("block tag is unsupported")),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(10)
			r.config.RPC = rpc.Endpoints(r.liar(answer).URL)
			p := r.start()
			p.until("head", func(st Status) bool { return st.IndexedBlock == r.height() })
			r.verify()
			st := p.Status()
			if st.FinalBlock != 0 || st.ReferralBlock != 0 {
				t.Errorf("final block %d and referral block %d without a finalized tag", st.FinalBlock, st.ReferralBlock)
			}
			if !strings.Contains(st.Warning, "names no finalized block") || !strings.Contains(st.Warning, "set chain.finality to a depth") {
				t.Errorf("the warning is %q", st.Warning)
			}
		})
	}
}

// Where no block is final, the head begins no more than a window below the
// first vault, and not at the beginning of a long chain.
func TestNothingIsFinalFarFromTheStart(t *testing.T) {
	r := newRig(t, kfake)
	r.mine(60)
	r.config.RPC = rpc.Endpoints(r.liar(finalized(nil, nil)).URL)
	for i := range r.config.Vaults {
		r.config.Vaults[i].StartBlock = r.height()
	}
	r.config.Window = 16
	begin := r.height() - 1 - r.config.Window
	r.steps(5)
	p := r.start()
	p.until("head", func(st Status) bool { return st.IndexedBlock == r.height() })
	for _, record := range r.verify() {
		if b := record.GetBlock(); b != nil && b.GetNumber() < begin {
			t.Errorf("block %d is recorded, %d blocks below the first vault's start", b.GetNumber(), r.config.Vaults[0].StartBlock-b.GetNumber())
		}
	}
}

// A node that fails to name the final block is asked again: a new log does not
// begin at block 0 for that.
func TestFinalizedFailsForAWhile(t *testing.T) {
	for name, fault := range map[string]error{"an error of the node": errors.New("request rate exceeded"), "no answer": errHangUp} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(25)
			failing := r.liar(finalized(nil, fault))
			r.config.RPC = rpc.Endpoints(failing.URL)
			p := r.start()
			p.until("complaint", func(st Status) bool { return strings.Contains(st.Reason, "eth_getBlockByNumber") })
			asked := failing.count("eth_getBlockByNumber")
			p.until("another try", func(Status) bool { return failing.count("eth_getBlockByNumber") >= asked+2 })
			if cursor := r.cursor(); cursor != nil {
				t.Fatalf("something was written without a final block: %v", cursor)
			}
			failing.tell(honest)
			p.caughtUp()
			for _, record := range r.verify() {
				if b := record.GetBlock(); b != nil && b.GetNumber() == 0 {
					t.Error("block 0 is in the log")
				}
			}
			if st := p.Status(); st.Warning != "" {
				t.Errorf("a node that names the final block is warned about: %s", st.Warning)
			}
		})
	}
}

// A development chain may call block 0 the final one for long.
func TestFinalizedIsGenesis(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(10)
	var genesis json.RawMessage
	r.must(r.chain.Client().CallContext(r.ctx, &genesis, "eth_getBlockByNumber", "0x0", false))
	r.config.RPC = rpc.Endpoints(r.liar(finalized(genesis, nil)).URL)
	p := r.start()
	p.until("head", func(st Status) bool { return st.IndexedBlock == r.height() })
	r.verify()
	if st := p.Status(); st.FinalBlock != 0 || st.Warning != "" {
		t.Errorf("final block %d, warning %q", st.FinalBlock, st.Warning)
	}
}
