package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
)

func (r *rig) proveReceipts(o operate.ReceiptsOptions) *operate.ReceiptsReport {
	r.t.Helper()
	report, err := New(r.config, r.kafka, nil, newRegistry(), slog.New(slog.DiscardHandler)).ProveReceipts(r.ctx, o)
	r.must(err)
	return report
}

// lastProgress holds the last progress of each step.
type lastProgress struct {
	mu   sync.Mutex
	last map[string][2]uint64
}

func (h *lastProgress) note(what string, done, of uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		h.last = map[string][2]uint64{}
	}
	h.last[what] = [2]uint64{done, of}
}

// withFinalLogs is a rig with a chain that is mostly final.
func withFinalLogs(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, kfake)
	r.steps(80)
	r.mine(10)
	return r
}

// victim returns a final log of the vaults with data, from the middle of the chain.
func (r *rig) victim() *event.Log {
	r.t.Helper()
	_, live := r.log()
	var all []*event.Log
	for _, rec := range live {
		if l := rec.GetLog(); l != nil && len(l.GetData()) >= 32 && l.GetBlockNumber() < r.final() {
			all = append(all, l)
		}
	}
	if len(all) < 10 {
		r.t.Fatalf("there are only %d logs", len(all))
	}
	return all[len(all)/2]
}

// changing is a node that returns another amount in one log, consistently: in logs by range, by hash and, with
// receipts, in receipts.
func changing(l *event.Log, receipts bool) override {
	was := fmt.Appendf(nil, `"data":"0x%x"`, l.GetData())
	data := slices.Clone(l.GetData())
	data[len(data)-1] ^= 1
	is := fmt.Appendf(nil, `"data":"0x%x"`, data)
	return func(method string, _ []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		if method != "eth_getLogs" && (method != "eth_getBlockReceipts" || !receipts) {
			return nil, nil, false
		}
		return json.RawMessage(bytes.ReplaceAll(truth(), was, is)), nil, true
	}
}

// A log that matches the chain is proven, block by block, by receipts and headers.
func TestReceiptsAreProven(t *testing.T) {
	sequential(t)
	r := withFinalLogs(t)
	r.index()
	_, live := r.log()
	final, logs, blocks := r.cursor().GetFinalBlock(), 0, map[uint64]bool{}
	for _, rec := range live {
		if l := rec.GetLog(); l != nil && l.GetBlockNumber() <= final {
			logs++
			blocks[l.GetBlockNumber()] = true
		}
	}
	single := r.proveReceipts(operate.ReceiptsOptions{})
	if single.Err() != nil || single.Blocks != len(blocks) || single.Proven != len(blocks) || single.Logs != logs ||
		single.Confirmed != 0 {
		t.Errorf("of %d blocks with %d logs: %+v", len(blocks), logs, single)
	}
	if !strings.Contains(single.String(), "add a second endpoint") {
		t.Errorf("the report does not state that the hashes come from one node:\n%s", single)
	}
	var progress lastProgress
	followed := r.proveReceipts(operate.ReceiptsOptions{Headers: true, Progress: progress.note})
	if followed.Err() != nil || followed.Confirmed != len(blocks) || followed.Anchor == nil ||
		followed.Anchor.Number < final {
		t.Errorf("with headers: %+v", followed)
	}
	seq, n := r.cursor().GetSeq(), uint64(len(blocks))
	if l := progress.last; l["log: records"] != [2]uint64{seq, seq} || l["receipts: blocks"] != [2]uint64{n, n} ||
		l["headers: blocks below the final one"][1] < n-1 {
		t.Errorf("the progress of %d records and %d blocks was %v", seq, n, l)
	}
	some := r.proveReceipts(operate.ReceiptsOptions{Sample: 1 << 40})
	if some.Err() != nil || some.Chosen != 1 || some.Proven != 1 || some.Blocks != len(blocks) {
		t.Errorf("sample: %+v", some)
	}
	r.config.RPC = rpc.Endpoints(r.url, r.newProxy(honest).URL)
	if two := r.proveReceipts(operate.ReceiptsOptions{}); two.Err() != nil || two.Confirmed != len(blocks) {
		t.Errorf("with two endpoints: %+v", two)
	}
}

// The node that returned the logs changed the amount in one of them. Blooms do not reveal this; receipts do.
func TestChangedAmountIsFound(t *testing.T) {
	sequential(t)
	r := withFinalLogs(t)
	honestly := r.follow()
	honestly.halt()
	victim := r.victim()
	good := r.kafka
	r.kafka.Brokers = kfake(t) // another log, of the same chain
	wrongNode := r.newProxy(changing(victim, true))
	truth := r.config.RPC
	r.config.RPC = rpc.Endpoints(wrongNode.URL)
	r.index()

	r.config.RPC = truth
	report := r.proveReceipts(operate.ReceiptsOptions{})
	if report.Wrong != 1 || report.Proven != report.Blocks-1 || report.Err() == nil {
		t.Fatalf("one amount was changed: %+v", report)
	}
	if f := report.Findings[0]; f.Block != victim.GetBlockNumber() || !f.Wrong ||
		!strings.Contains(f.Why, fmt.Sprintf("log %d, of vault %s", victim.GetLogIndex(),
			common.Address(victim.GetAddress()))) {
		t.Errorf("the finding is %+v, want log %d of block %d", f, victim.GetLogIndex(), victim.GetBlockNumber())
	}
	// An endpoint without receipts proves nothing, wherever it is in chain.rpc, and is not listed as misleading.
	pruned := r.newProxy(func(method string, _ []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return nil, errNoMethod, method == "eth_getBlockReceipts"
	})
	for _, order := range [][]rpc.Endpoint{rpc.Endpoints(r.url, pruned.URL), rpc.Endpoints(pruned.URL, r.url)} {
		r.config.RPC = order
		if report := r.proveReceipts(operate.ReceiptsOptions{}); report.Wrong != 1 || report.Unprovable != 0 ||
			len(report.Misled) > 0 {
			t.Errorf("with an endpoint without receipts: %+v", report)
		}
	}
	// The wrong node also returns receipts that match its logs: their root is not the header's.
	r.config.RPC = rpc.Endpoints(wrongNode.URL)
	if report := r.proveReceipts(operate.ReceiptsOptions{}); report.Wrong != 1 ||
		!strings.Contains(report.Findings[0].Why, "the root of its") {
		t.Errorf("with the receipts of the wrong node: %+v", report)
	}
	// A correct log is not reported as wrong because of a wrong endpoint's receipts, if another endpoint returns the
	// chain's.
	r.kafka, r.config.RPC = good, rpc.Endpoints(wrongNode.URL, r.url)
	if report := r.proveReceipts(operate.ReceiptsOptions{}); report.Err() != nil || report.Proven != report.Blocks ||
		len(report.Misled) != 1 || report.Misled[0] != wrongNode.URL {
		t.Errorf("with a wrong and an honest node: %+v", report)
	}
	// Nor if the honest endpoint fails once. One that always fails does not hide what the other one found.
	for fails, wrong := range map[int64]int{1: 0, math.MaxInt64: 1} {
		var left atomic.Int64
		left.Store(fails)
		failing := r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
			ours := method == "eth_getBlockReceipts" && string(params[0]) == fmt.Sprintf(`"0x%x"`, victim.GetBlockHash())
			return nil, errors.New("busy"), ours && left.Add(-1) >= 0
		})
		r.config.RPC = rpc.Endpoints(wrongNode.URL, failing.URL)
		report := r.proveReceipts(operate.ReceiptsOptions{})
		if report.Wrong != wrong || report.Proven != report.Blocks-wrong || left.Load() >= fails {
			t.Errorf("with a wrong node and an honest one that fails %d times: %+v", fails, report)
		}
	}
	// What an endpoint found also counts if it fails from then on, as the other one always does.
	var found atomic.Bool
	block := fmt.Sprintf(`"0x%x"`, victim.GetBlockHash())
	busy := func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		return nil, errors.New("busy"), method == "eth_getBlockReceipts" && string(params[0]) == block
	}
	once := func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		_, err, concerned := busy(method, params, truth)
		if concerned && found.Swap(true) {
			return nil, err, true
		}
		return changing(victim, true)(method, params, truth)
	}
	r.config.RPC = rpc.Endpoints(r.newProxy(once).URL, r.newProxy(busy).URL)
	if report := r.proveReceipts(operate.ReceiptsOptions{}); report.Wrong != 1 || report.Proven != report.Blocks-1 {
		t.Errorf("with a node that returns wrong receipts and then fails: %+v", report)
	}
}

// With --headers, the parent hashes prove something only if the fields of each header hash to its hash, and each is the
// parent of the one above it, up to the anchor.
func TestHeadersThatProveNothing(t *testing.T) {
	sequential(t)
	r := withFinalLogs(t)
	r.index()
	victim, final := r.victim().GetBlockNumber()+1, r.cursor().GetFinalBlock()
	edit := func(number uint64, was string, is string, times int) override {
		return func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
			if method != "eth_getBlockByNumber" || string(params[0]) != fmt.Sprintf(`"%#x"`, number) || times == 0 {
				return nil, nil, false
			}
			times--
			return json.RawMessage(bytes.Replace(truth(), []byte(was), []byte(is), 1)), nil, true
		}
	}
	rejecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "[]")
	}))
	t.Cleanup(rejecting.Close)
	for name, c := range map[string]struct {
		override override
		words    string
	}{
		"a changed field":  {edit(victim, `"gasLimit":"0x`, `"gasLimit":"0x1`, -1), "do not hash to its hash"},
		"another parent":   {edit(victim, `"parentHash":"0x`+r.hashOf(victim - 1)[2:6], `"parentHash":"0x0000`, -1), "do not"},
		"another block":    {edit(victim, `"hash":"0x`+r.hashOf(victim)[2:6], `"hash":"0x0000`, -1), "do not form a chain"},
		"another top hash": {edit(final, `"hash":"0x`+r.hashOf(final)[2:6], `"hash":"0x0000`, 1), "names 0x0000"},
	} {
		wrong := r.throughProxy(c.override)
		wrong.batches = func([]byte) string { return rejecting.URL } // so that it gets single calls
		_, err := New(r.config, r.kafka, nil, newRegistry(), slog.New(slog.DiscardHandler)).ProveReceipts(r.ctx,
			operate.ReceiptsOptions{Headers: true})
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// hashOf returns the hash of a block of the chain.
func (r *rig) hashOf(number uint64) string {
	r.t.Helper()
	h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(number))
	r.must(err)
	return h.Hash().Hex()
}

// A run that is interrupted while an endpoint may still refute what another one found has no result.
func TestInterruptedProofOfReceipts(t *testing.T) {
	sequential(t)
	r := withFinalLogs(t)
	r.index()
	_, live := r.log()
	live = slices.DeleteFunc(live, func(rec *event.Record) bool { return rec.GetLog() == nil })
	last := fmt.Sprintf(`"0x%x"`, live[0].GetLog().GetBlockHash()) // the lowest block is proven last
	ctx, interrupt := context.WithCancel(r.ctx)
	defer interrupt()
	forked := r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return nil, nil, method == "eth_getBlockByHash" && string(params[0]) == last
	})
	hanging := r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		if method != "eth_getBlockReceipts" || string(params[0]) != last {
			return nil, nil, false
		}
		interrupt()
		return nil, errHangUp, true
	})
	r.config.RPC, r.config.RangesInFlight = rpc.Endpoints(forked.URL, hanging.URL), 1
	report, err := New(r.config, r.kafka, nil, newRegistry(), slog.New(slog.DiscardHandler)).
		ProveReceipts(ctx, operate.ReceiptsOptions{})
	if report != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted run reports %+v, error %v", report, err)
	}
}

// A vault's log in the receipt of Polygon's state sync is covered by no receipts root. The report lists it as
// unprovable, the other logs of its block are compared all the same, and neither the log nor the node is reported as
// wrong.
func TestStateSyncIsUnprovable(t *testing.T) {
	sequential(t)
	r := withFinalLogs(t)
	honestly := r.follow()
	honestly.halt()
	victim := r.victim()
	hash := common.Hash(victim.GetBlockHash())
	number := binary.BigEndian.AppendUint64(nil, victim.GetBlockNumber())
	var receipts []struct{ Logs []json.RawMessage }
	r.must(r.chain.Client().CallContext(r.ctx, &receipts, "eth_getBlockReceipts", hash))
	all := 0
	for _, receipt := range receipts {
		all += len(receipt.Logs)
	}
	synced := map[string]any{
		"address": common.Address(victim.GetAddress()), "topics": []common.Hash{}, "data": hexutil.Bytes(victim.GetData()),
		"blockHash": hash, "blockNumber": hexutil.Uint64(victim.GetBlockNumber()),
		"blockTimestamp":   hexutil.Uint64(victim.GetBlockTime()),
		"transactionHash":  crypto.Keccak256Hash([]byte("matic-bor-receipt-"), number, hash[:]),
		"transactionIndex": hexutil.Uint64(len(receipts)), "logIndex": hexutil.Uint64(all), "removed": false,
	}
	for _, topic := range victim.GetTopics() {
		synced["topics"] = append(synced["topics"].([]common.Hash), common.Hash(topic))
	}
	receipt := map[string]any{
		"type": "0x0", "status": "0x1", "cumulativeGasUsed": "0x0", "gasUsed": "0x0", "logsBloom": types.Bloom{},
		"logs":            []any{synced},
		"transactionHash": synced["transactionHash"], "transactionIndex": synced["transactionIndex"], "blockHash": hash,
		"blockNumber": synced["blockNumber"],
	}
	polygon := r.newProxy(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		switch {
		case method == "eth_getBlockReceipts" && string(params[0]) == fmt.Sprintf("%q", hash):
			var answer []any
			_ = json.Unmarshal(truth(), &answer)
			return append(answer, receipt), nil, true
		case method == "eth_getLogs":
			var answer []map[string]any
			_ = json.Unmarshal(truth(), &answer)
			last := -1
			for i, l := range answer {
				if l["blockHash"] == hash.Hex() {
					last = i
				}
			}
			if last >= 0 {
				answer = slices.Insert(answer, last+1, synced)
			}
			return answer, nil, true
		}
		return nil, nil, false
	})
	r.kafka.Brokers = kfake(t) // another log, of the same chain
	r.config.RPC = rpc.Endpoints(polygon.URL)
	r.index()

	report := r.proveReceipts(operate.ReceiptsOptions{})
	if report.Unprovable != 1 || report.Wrong != 0 || report.Proven != report.Blocks-1 || report.Err() != nil {
		t.Fatalf("with a state sync: %+v", report)
	}
	if f := report.Findings[0]; f.Block != victim.GetBlockNumber() ||
		!strings.Contains(f.Why, fmt.Sprintf("log %d is of the state sync", all)) {
		t.Errorf("the finding is %+v", f)
	}
	// A changed log of that block that a receipts root covers is reported as wrong, even next to one that no root
	// covers.
	override := changing(victim, true)
	beside := polygon.override
	polygon.use(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		if method == "eth_getLogs" {
			return beside(method, params,
				func() json.RawMessage {
					changed, _, _ := override(method, params, truth)
					return changed.(json.RawMessage)
				})
		}
		return beside(method, params, truth)
	})
	r.kafka.Brokers = kfake(t)
	p := r.follow()
	p.halt()
	if report := r.proveReceipts(operate.ReceiptsOptions{}); report.Wrong != 1 || report.Unprovable != 0 {
		t.Errorf("with a state sync and another amount: %+v", report)
	}
}

// The report names what a chain or a node cannot return, and reports nothing as wrong because of it.
func TestUnprovableBlocks(t *testing.T) {
	sequential(t)
	r := withFinalLogs(t)
	r.index()
	block := fmt.Sprintf(`"0x%x"`, r.victim().GetBlockHash())
	edit := func(of string, was, is string) override {
		return func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
			if method != of || string(params[0]) != block {
				return nil, nil, false
			}
			if was == "" {
				return json.RawMessage(is), nil, true
			}
			return json.RawMessage(bytes.Replace(truth(), []byte(was), []byte(is), 1)), nil, true
		}
	}
	for name, c := range map[string]struct {
		override override
		words    string
		wrong    bool
	}{
		"receipt type of another chain": {edit("eth_getBlockReceipts", `"type":"0x2"`, `"type":"0x7b"`), "is of type 0x7b",
			false},
		"pruned receipts": {edit("eth_getBlockReceipts", "", "null"), "does not give the receipts", false},
		"no such method": {func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
			return nil, errNoMethod, method == "eth_getBlockReceipts" && string(params[0]) == block
		}, "does not give the receipts", false},
		"no receipts root": {edit("eth_getBlockByHash", `"receiptsRoot"`, `"noRoot"`), "has no receipts root", false},
		"no full header": {edit("eth_getBlockByHash", `"difficulty"`, `"simplicity"`),
			"does not have the fields of a header", false},
		"a header's field": {edit("eth_getBlockByHash", `"gasLimit":"0x`, `"gasLimit":"0x1`),
			"fields of its header hash to", true},
		"block not in the chain": {edit("eth_getBlockByHash", "", "null"), "is not in the chain", true},
	} {
		r.config.RPC = rpc.Endpoints(r.newProxy(c.override).URL)
		report := r.proveReceipts(operate.ReceiptsOptions{})
		if len(report.Findings) != 1 || !strings.Contains(report.Findings[0].Why, c.words) ||
			report.Findings[0].Wrong != c.wrong || report.Proven != report.Blocks-1 || (report.Err() != nil) != c.wrong {
			t.Errorf("%s: %+v", name, report)
		}
	}
}
