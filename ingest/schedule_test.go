package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/schemas/event"
)

// shortHistory has a few thousand blocks below the window.
func shortHistory(t *testing.T) *history {
	h := newHistory(t, true)
	h.tip, h.final, h.every, h.sealed = 6_000, 5_990, 50, true
	return h
}

// Without a schedule of proofs, the blocks below the window stay unproven, and the status reports this.
func TestBlocksBelowTheWindowAreUnproven(t *testing.T) {
	h := shortHistory(t)
	r := h.rig()
	r.config.Vaults[0].StartBlock = 10
	p := r.start()
	h.caughtUp(p)
	if got := p.Status().ProvenTo; got != 9 {
		t.Errorf("the status shows blocks up to %d as proven", got)
	}
	unproven := r.cursor().GetVaults()[0].GetBelievedTo()
	if want := h.tip - r.config.Window; unproven != want {
		t.Errorf("blocks up to %d were accepted unproven, want %d", unproven, want)
	}
	p.halt()
}

// The schedule reads every header once, even across crashes, and then the log is proven up to the final block.
func TestFinalBlocksAreProvenLater(t *testing.T) {
	h := shortHistory(t)
	r := h.rig()
	r.config.ReceiptsEvery, r.config.ReceiptsPerSecond = time.Second, 10_000
	r.config.PollInterval = 10 * time.Millisecond
	p := r.start()
	h.caughtUp(p)
	p.until("proof", func(st status.Status) bool { return st.ProvenTo == h.final })
	p.until("cursor with the proof",
		func(status.Status) bool { return r.cursor().GetVaults()[0].GetProvenTo() == h.final })
	p.halt()
	if old := h.oldHeaders(); old < int(h.tip-r.config.Window) {
		t.Errorf("%d headers of old blocks were read", old)
	}
	if read, with := h.asked("eth_getBlockReceipts"), int(h.final/h.every); read < with || read > 2*with {
		t.Errorf("the receipts of %d blocks were read, and %d have a log", read, with)
	}
	before := h.oldHeaders()
	p = r.start()
	h.caughtUp(p)
	if st := p.Status(); st.ProvenTo != h.final || st.Disproven != "" {
		t.Errorf("after a restart blocks up to %d are proven, %s", st.ProvenTo, st.Disproven)
	}
	h.mine(20)
	p.until("proof of new blocks", func(st status.Status) bool { return st.ProvenTo == h.at().final })
	p.halt()
	if again := h.oldHeaders() - before; again > 50 { // more blocks are below the window now
		t.Errorf("after a restart %d headers of old blocks were read again", again)
	}

	// A late vault is proven separately.
	r.config.Vaults = append(r.config.Vaults, vaults.Config{Address: historyVaults[1].Hex(), StartBlock: 3_000})
	p = r.start()
	p.until("proof of the late vault", func(st status.Status) bool {
		return st.State == status.Following && len(st.LateVaults) == 0 && len(r.cursor().GetVaults()) == 2 &&
			st.ProvenTo == h.at().final
	})
}

// A node that omits or changes a log when the history is read is detected by the schedule, which names the block and
// proves nothing beyond it.
func TestDisprovenBlocksAreNamed(t *testing.T) {
	sequential(t)
	leftOut := func(logs []map[string]any) []map[string]any {
		return slices.DeleteFunc(logs, func(l map[string]any) bool {
			return l["blockNumber"] == "0x7d0" && l["address"] == hexutil.Encode(historyVaults[0][:])
		})
	}
	byRange := func(filter string) bool { return !strings.Contains(filter, "blockHash") }
	for name, c := range map[string]struct {
		spoils  func(filter string) bool
		spoil   func(logs []map[string]any) []map[string]any
		prepare func(*history, *rig)
		says    string
	}{
		"a log is left out": {byRange, leftOut, func(*history, *rig) {}, "the log lacks log "},
		"a log is left out of a block with a full bloom": {byRange, leftOut, func(h *history, _ *rig) {
			h.crowded = 2000
			if b := types.CreateBloom(&types.Receipt{Logs: h.logsOf(2000)}); proof.Sparse(&b) {
				t.Fatal("the bloom of the crowded block is sparse: the test shows nothing")
			}
		}, "the log lacks log "},
		"a log is of another block": {byRange, func(logs []map[string]any) []map[string]any {
			for _, l := range logs {
				if l["blockNumber"] == "0x7d0" {
					l["blockHash"] = common.HexToHash("0xdead")
				}
			}
			return logs
		}, func(*history, *rig) {},
			"the log has it with the hash 0x000000000000000000000000000000000000000000000000000000000000dead"},
		"a log is invented": {byRange, func(logs []map[string]any) []map[string]any {
			for i, l := range logs {
				if l["blockNumber"] == "0x7d0" {
					more := maps.Clone(l)
					more["logIndex"] = "0x1"
					return slices.Insert(logs, i+1, more)
				}
			}
			return logs
		}, func(*history, *rig) {}, "the log has a log 1, of vault "},
		"an amount is wrong, which no bloom shows": {func(string) bool { return true },
			func(logs []map[string]any) []map[string]any {
				for _, l := range logs {
					if l["blockNumber"] == "0x7d0" {
						l["data"] = "0x01"
					}
				}
				return logs
			}, func(*history, *rig) {}, ": a field differs"},
	} {
		t.Run(name, func(t *testing.T) {
			h := shortHistory(t)
			h.spoil = func(method string, params []json.RawMessage, result any) any {
				logs, ok := result.([]map[string]any)
				if !ok || method != "eth_getLogs" || !c.spoils(string(params[0])) {
					return result
				}
				return c.spoil(logs)
			}
			r := h.rig()
			c.prepare(h, r)
			r.config.ReceiptsEvery, r.config.ReceiptsPerSecond = time.Second, 10_000
			p := r.start()
			p.until("finding", func(st status.Status) bool { return st.Disproven != "" })
			st := p.Status()
			if !strings.Contains(st.Disproven, fmt.Sprintf("block 2000 (%s)", h.hash(2000))) ||
				!strings.Contains(st.Disproven, c.says) || st.ProvenTo != 1999 {
				t.Errorf("the finding is %q, and blocks up to %d are proven", st.Disproven, st.ProvenTo)
			}
			if p.metric("disproven") != 1 || p.metric("proven_block") != 1999 {
				t.Error("the metrics do not show the finding")
			}
			h.caughtUp(p) // the head is followed all the same
		})
	}
}

// oldHeaders returns how many headers below the window were read.
func (h *history) oldHeaders() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.old
}

// Blocks that a reorganisation or a resumption retracts and replaces are not reported as errors.
func TestProofDuringReorganisations(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Finality, r.config.Window, r.config.BatchBlocks = Finality{Depth: 4}, 8, 7
	r.config.ReceiptsEvery, r.config.ReceiptsPerSecond = time.Second, 10_000
	r.steps(60)
	p := r.follow()
	proven := func() {
		t.Helper()
		p.until("proof", func(st status.Status) bool { return st.ProvenTo == st.FinalBlock || st.Disproven != "" })
		if st := p.Status(); st.Disproven != "" {
			t.Fatalf("the log counts as disproven: %s", st.Disproven)
		}
	}
	proven()
	for depth := range uint64(3) {
		r.steps(5)
		p.caughtUp()
		r.reorg(depth + 1)
		p.caughtUp()
		proven()
	}
	r.verify()
	r.reorg(r.height() / 2)
	p.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })
	_, err := r.resume(true)
	r.must(err)
	r.steps(40)
	p.caughtUp()
	proven()
}

// A run meets a branch that ingest does not follow yet: it does not disprove the log.
func TestReorganisationAheadOfTheLog(t *testing.T) {
	r := newRig(t, kfake)
	r.config.ReceiptsEvery, r.config.ReceiptsPerSecond = time.Hour, 10_000
	r.steps(5)
	r.index()
	r.steps(20)
	s := r.session()
	r.eventually("head", func() bool {
		_, err := s.advance(r.ctx)
		r.must(err)
		return s.writer.State.Head != nil && s.writer.State.Head.Number == r.height() && s.writer.State.Final == r.final() &&
			len(s.writer.State.Covered) == len(r.config.Vaults)
	})
	schedule := s.newSchedule(s.writer.State)
	r.reorg(5)
	r.must(schedule.RunOnce(r.ctx))
	for _, c := range s.writer.State.Covered {
		c.Prove(schedule.Proven(c.Address))
		if c.Unproven <= s.writer.State.Final || c.Proven != s.writer.State.Final {
			t.Errorf("vault %s is unproven up to block %d and proven up to %d, and block %d is final", c.Address, c.Unproven,
				c.Proven, s.writer.State.Final)
		}
	}
}

// An endpoint that returns false receipts, or none, neither disproves the log nor stops the proof while another one
// returns those of the chain. If there is no other one, the status reports it and nothing is proven.
func TestReceiptsOfAWrongEndpoint(t *testing.T) {
	sequential(t)
	r := withFinalLogs(t)
	r.index()
	victim := r.victim()
	r.config.ReceiptsEvery, r.config.ReceiptsPerSecond = time.Second, 10_000
	amount := changing(victim, true)
	wrong := r.newProxy(honest)
	for name, c := range map[string]struct {
		override override
		says     string
	}{
		"a false amount": {func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
			if method != "eth_getBlockReceipts" {
				return nil, nil, false
			}
			return amount(method, params, truth)
		}, ""},
		"no receipts": {func(method string, _ []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
			return nil, errNoMethod, method == "eth_getBlockReceipts"
		}, "the node does not give the receipts"},
		"a failure each time": {func(method string, _ []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
			return nil, errors.New("internal error"), method == "eth_getBlockReceipts"
		}, "internal error"},
	} {
		wrong.use(c.override)
		r.kafka.Brokers, r.config.RPC = kfake(t), rpc.Endpoints(wrong.URL)
		p := r.follow()
		before := wrong.count("eth_getBlockReceipts")
		p.until("proofs that failed", func(st status.Status) bool {
			return wrong.count("eth_getBlockReceipts") > before+3 && strings.Contains(st.Warning, c.says) &&
				(c.says == "" || p.metric("receipts_failing") == 1)
		})
		if st := p.Status(); st.Disproven != "" || st.ProvenTo >= victim.GetBlockNumber() {
			t.Errorf("%s: blocks up to %d are proven, disproven %q", name, st.ProvenTo, st.Disproven)
		}
		p.halt()
		r.config.RPC = rpc.Endpoints(wrong.URL, r.url)
		p = r.start()
		p.until("proof by the other endpoint", func(st status.Status) bool { return st.ProvenTo == r.final() })
		if st := p.Status(); st.Disproven != "" || st.Warning != "" || p.metric("receipts_failing") != 0 {
			t.Errorf("%s: disproven %q, warning %q", name, st.Disproven, st.Warning)
		}
		p.halt()
	}
}

// The log is disproven only if every endpoint contradicts it. An endpoint on a fork disproves nothing while the other
// one only failed, whichever of them is in use. One that fails for long does not hide what the other one finds, and
// once it proves the block, the status no longer reports it.
func TestEndpointOnAForkDisprovesNothing(t *testing.T) {
	sequential(t)
	r := withFinalLogs(t)
	r.index()
	victim := r.victim()
	number, block := fmt.Sprintf("%#x", victim.GetBlockNumber()), fmt.Sprintf("%x", victim.GetBlockHash())
	var failing, disproves atomic.Bool
	var failed atomic.Int64
	good := r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		if method != "eth_getBlockReceipts" || !strings.Contains(string(params[0]), block) || !failing.Load() {
			return nil, nil, false
		}
		failed.Add(1)
		return nil, errHangUp, true
	})
	fork := func(header json.RawMessage) any {
		var h map[string]any
		r.must(json.Unmarshal(header, &h))
		if h["number"] == number {
			disproves.Store(true)
			reseal(h, "fork")
		}
		return h
	}
	forked := r.newProxy(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		if method != "eth_getBlockByNumber" || string(params[0]) != fmt.Sprintf("%q", number) {
			return nil, nil, false
		}
		return fork(truth()), nil, true
	})
	batches := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var answers []map[string]json.RawMessage
		if json.Unmarshal(askedAt(r.url, body), &answers) == nil {
			for _, a := range answers {
				a["result"], _ = json.Marshal(fork(a["result"]))
			}
		}
		_ = json.NewEncoder(w).Encode(answers)
	}))
	t.Cleanup(batches.Close)
	unproven := r.newProxy(func(method string, _ []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return nil, errNoMethod, method == "eth_getBlockReceipts"
	})
	r.config.ReceiptsEvery, r.config.ReceiptsPerSecond = time.Second, 10_000
	for name, c := range map[string]struct {
		endpoints []rpc.Endpoint
		forever   bool
	}{
		"the honest endpoint is in use":    {rpc.Endpoints(good.URL, forked.URL), false},
		"the endpoint on a fork is in use": {rpc.Endpoints(forked.URL, good.URL), false},
		"the honest endpoint always fails": {rpc.Endpoints(good.URL, forked.URL), true},
	} {
		r.kafka.Brokers, r.config.RPC = kfake(t), rpc.Endpoints(unproven.URL)
		r.index()
		r.config.RPC = c.endpoints
		forked.mu.Lock()
		forked.batches = func(body []byte) string {
			if strings.Contains(string(body), "eth_getBlockByNumber") {
				return batches.URL
			}
			return r.url
		}
		forked.mu.Unlock()
		failing.Store(true)
		disproves.Store(false)
		failed.Store(0)
		p := r.start()
		p.until(name+": verdict of the fork after a failure", func(st status.Status) bool {
			if st.Disproven != "" && !c.forever {
				t.Fatalf("%s: disproven is %q", name, st.Disproven)
			}
			return disproves.Load() && failed.Load() > 0 && (st.Disproven != "" || !c.forever)
		})
		if c.forever && p.metric("disproven") != 1 {
			t.Errorf("%s: the metric does not show the finding", name)
		}
		failing.Store(false)
		p.until(name+": proof", func(st status.Status) bool { return st.ProvenTo == r.final() })
		if st := p.Status(); st.Disproven != "" || p.metric("disproven") != 0 {
			t.Errorf("%s: the status says %q although the block is proven", name, st.Disproven)
		}
		p.halt()
	}
}

// A chain with its own hashing rule for headers is followed, and nothing of it counts as proven: neither at the head
// nor by the schedule.
func TestHeadersThatAreNotSealedProveNothing(t *testing.T) {
	h := shortHistory(t)
	h.sealed = false
	r := h.rig()
	r.config.ReceiptsEvery, r.config.ReceiptsPerSecond = time.Second, 5_000
	p := r.start()
	h.caughtUp(p)
	st := p.Status()
	if st.ProvenTo != 0 || !strings.Contains(st.Warning, "do not hash to its hash") {
		t.Errorf("blocks up to %d are proven, warning %q", st.ProvenTo, st.Warning)
	}
}

// A block whose logs a node returns only for one vault after the other is appended, and does not count as proven:
// neither above the head nor in another branch.
func TestBlocksReadVaultByVaultAreNotProven(t *testing.T) {
	for name, grow := range map[string]func(r *rig, p *process) (proven uint64){
		"above the head": func(r *rig, p *process) uint64 {
			before := r.height()
			for i := 0; i < 50 && !strings.Contains(p.Status().Warning, "one vault after the other"); i++ {
				before = r.height()
				r.steps(1)
				p.caughtUp()
			}
			return before
		},
		"in another branch": func(r *rig, p *process) uint64 {
			_, live := r.log()
			live = slices.DeleteFunc(live, func(record *event.Record) bool { return record.GetLog() == nil })
			kept := live[len(live)-1].GetLog()
			r.reorg(r.height()-kept.GetBlockNumber()+1, devchain.Kept{Hash: common.Hash(kept.GetTxHash())})
			p.caughtUp()
			return kept.GetBlockNumber() - 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(25)
			limited := r.throughProxy(honest)
			p := r.follow()
			if st := p.Status(); st.ProvenTo != st.IndexedBlock {
				t.Fatalf("blocks up to %d of %d are proven of an endpoint that returns all logs of a block", st.ProvenTo,
					st.IndexedBlock)
			}
			limited.use(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
				switch method {
				case "eth_getBlockReceipts":
					return nil, errNoMethod, true
				case "eth_getLogs":
					var filter struct{ Address []common.Address }
					var logs []any
					_, _ = json.Unmarshal(params[0], &filter), json.Unmarshal(truth(), &logs)
					return nil, errors.New("query returned more than 0 results"), len(filter.Address) != 1 && len(logs) > 0
				}
				return nil, nil, false
			})
			want := grow(r, p)
			if got := p.Status().ProvenTo; got != want {
				t.Errorf("blocks up to %d are proven, want %d of %d", got, want, r.height())
			}
			r.verify()
		})
	}
}

// An endpoint that clears the blooms of headers and omits their logs is not trusted if other headers of the chain are
// sealed: no log is lost, and everything that counts as proven is correct.
func TestZeroedBloomsWithDroppedLogs(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(20)
	wrongNode := r.throughProxy(honest)
	p := r.follow()
	if st := p.Status(); st.ProvenTo != st.IndexedBlock {
		t.Fatalf("blocks up to %d of %d are proven of an honest endpoint", st.ProvenTo, st.IndexedBlock)
	}
	seq := p.Status().Seq
	wrongNode.use(func(method string, _ []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		switch method {
		case "eth_getLogs":
			return []any{}, nil, true
		case "eth_getBlockByNumber", "eth_getBlockByHash":
			var h map[string]any
			if json.Unmarshal(truth(), &h) != nil || h == nil {
				return nil, nil, false
			}
			h["logsBloom"] = "0x" + strings.Repeat("0", 512)
			return h, nil, true
		}
		return nil, nil, false
	})
	r.steps(8)
	p.until("reason", func(st status.Status) bool { return strings.Contains(st.Reason, "a field was changed") })
	all, _ := r.log()
	for _, record := range all[seq:] { // a block without logs has an empty bloom, so its header was not changed
		b := record.GetBlock()
		if b == nil {
			t.Fatalf("a record with a changed header was appended: %v", record)
		}
		header, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(b.GetNumber()))
		r.must(err)
		if header.Bloom != (types.Bloom{}) {
			t.Errorf("block %d was appended with a changed header", b.GetNumber())
		}
	}
	wrongNode.use(honest)
	p.caughtUp()
	r.verify()
	if st := p.Status(); st.ProvenTo != st.IndexedBlock {
		t.Errorf("blocks up to %d of %d are proven", st.ProvenTo, st.IndexedBlock)
	}
}
