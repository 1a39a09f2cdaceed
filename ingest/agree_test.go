package ingest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
)

// With chain.agreement 2, a block at the head is appended only if two endpoints return the same; until then ingest
// waits and reports this.
func TestAgreementAtTheHead(t *testing.T) {
	sequential(t)
	drop := func(what string) override {
		return func(method string, _ []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
			if what == "a log" && method == "eth_getBlockReceipts" {
				return []any{}, nil, true // otherwise the receipts would fill the gap
			}
			if method != "eth_getLogs" {
				return nil, nil, false
			}
			var logs []map[string]any
			_ = json.Unmarshal(truth(), &logs)
			for i, l := range logs {
				switch what {
				case "a log":
					return logs[:i], nil, true
				case "other data":
					l["data"] = "0x" + strings.Repeat("00", 64)
				}
			}
			return logs, nil, true
		}
	}
	for name, c := range map[string]struct {
		override override
		want     string
	}{
		"log missing": {drop("a log"), "the endpoints disagree"},
		"another log": {drop("other data"), "the endpoints disagree"},
		"another block": {func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
			var h map[string]any
			if method != "eth_getBlockByNumber" || string(params[0]) == `"0x0"` || json.Unmarshal(truth(), &h) != nil ||
				h == nil {
				return nil, nil, false
			}
			h["logsBloom"] = "0x" + strings.Repeat("0", 512)
			reseal(h, "another block")
			return h, nil, true
		}, "disagree"}, // seen as another head or, if the wrong node is in use, as another branch
		"block missing": {func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
			return nil, nil, method == "eth_getBlockByNumber" && string(params[0]) != `"0x0"`
		}, "waits for a second endpoint"},
		"endpoint down": {away, "waits for a second endpoint"},
	} {
		agree := func(t *testing.T, liarFirst bool) {
			r := newRig(t, kfake)
			r.config.Finality = Finality{Depth: 500} // everything is read at the head
			r.config.Agreement = 2
			r.steps(10)
			second := r.newProxy(honest)
			if r.config.RPC = rpc.Endpoints(r.url, second.URL); liarFirst {
				slices.Reverse(r.config.RPC)
			}
			p := r.follow()
			r.verify()
			before := p.Status().Seq

			second.use(c.override)
			r.steps(6)
			p.until("reason", func(st status.Status) bool { return strings.Contains(st.Reason, c.want) })
			all, _ := r.log()
			// While only logs differ, the endpoints may agree on a block without logs of the vaults.
			for _, record := range all[before:] {
				if record.GetLog() != nil {
					t.Errorf("a log was appended on which two endpoints do not agree: %v", record)
				}
			}
			if n := p.metric("disagreements_total"); (n > 0) != strings.Contains(c.want, "disagree") {
				t.Errorf("navlog_ingest_disagreements_total is %v", n)
			}

			second.use(honest)
			p.caughtUp()
			r.verify()
		}
		t.Run(name, func(t *testing.T) { agree(t, false) })
		t.Run(name+" at the endpoint in use", func(t *testing.T) { agree(t, true) })
	}
}

// Blocks on which two endpoints agreed are published as final when both name them final, even while one of them lacks
// the next blocks and nothing further is appended.
func TestFinalBlocksArePublishedWithoutAgreementAtTheHead(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Agreement = 2
	r.steps(30)
	second := r.newProxy(honest)
	r.config.RPC = rpc.Endpoints(r.url, second.URL)
	p := r.follow()
	r.verify()
	head, before := r.height(), len(r.published())
	second.use(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		number, err := hexutil.DecodeUint64(strings.Trim(string(params[0]), `"`))
		return nil, nil, method == "eth_getBlockByNumber" && err == nil && number > head
	})
	r.mine(6) // of the 8 blocks that are not final
	p.until("reason", func(st status.Status) bool { return strings.Contains(st.Reason, "waits for a second endpoint") })
	p.until("the final blocks are published", func(st status.Status) bool { return st.ReferralBlock == r.final() })
	if st := p.Status(); st.IndexedBlock != head || st.ReferralBlock >= head {
		t.Errorf("block %d is indexed and %d published, while two endpoints agreed on %d", st.IndexedBlock, st.ReferralBlock,
			head)
	}
	r.verify()
	if after := len(r.published()); after <= before {
		t.Errorf("%d referrals are published, %d before: the test proves nothing", after, before)
	}
}

// The unfinalised blocks of a late vault need agreement like the others.
func TestAgreementOnALateVault(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Finality, r.config.Proof, r.config.Agreement = Finality{Depth: 60}, proof.None, 2
	first, second := r.newProxy(honest), r.newProxy(honest)
	r.config.RPC = rpc.Endpoints(first.URL, second.URL)
	r.followWithoutFirst(60)

	late := strings.ToLower(strings.TrimPrefix(r.config.Vaults[0].Address, "0x"))
	first.use(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		ofLate := method == "eth_getLogs" && strings.Contains(string(params[0]), "blockHash") &&
			strings.Contains(strings.ToLower(string(params[0])), late)
		return []any{}, nil, ofLate
	})
	p := r.start()
	p.until("report of the late vault", func(st status.Status) bool {
		return len(st.LateVaults) == 1 && strings.Contains(st.LateVaults[0].Reason, "the endpoints disagree")
	})
	first.use(honest)
	p.caughtUp()
	r.verify()
}

// So does the block with which a new log begins.
func TestAgreementOnTheFirstBlock(t *testing.T) {
	r := newRig(t, kfake)
	r.mine(60)
	r.config.Window, r.config.Agreement = 16, 2
	for i := range r.config.Vaults {
		r.config.Vaults[i].StartBlock = r.height()
	}
	first := r.height() - 1 - r.config.Window
	second := r.newProxy(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		var h map[string]any
		if method != "eth_getBlockByNumber" || string(params[0]) != fmt.Sprintf(`"%#x"`, first) ||
			json.Unmarshal(truth(), &h) != nil {
			return finalized(nil, nil)(method, params, truth)
		}
		reseal(h, "another block")
		return h, nil, true
	})
	r.config.RPC = rpc.Endpoints(r.newProxy(finalized(nil, nil)).URL, second.URL) // names no final block
	r.steps(3)
	p := r.start()
	p.until("reason", func(st status.Status) bool { return strings.Contains(st.Reason, "waits for a second endpoint") })
	if cursor := r.cursor(); cursor.GetHead() != nil {
		t.Errorf("the log begins with block %d, on which two endpoints do not agree", cursor.GetHead().GetNumber())
	}
	second.use(finalized(nil, nil))
	p.atHead()
	r.verify()
}
