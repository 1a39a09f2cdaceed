package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// history is a node with a long chain whose blocks are generated on request: one block in every `every` has a log of
// the vault, and a few of the blocks in between have a log of another contract.
type history struct {
	t       *testing.T
	url     string
	chainID uint64
	tip     uint64
	final   uint64
	every   uint64 // blocks between two logs of the vault
	crowded uint64 // a block with so many logs of other contracts that its bloom proves little; 0 for none
	dated   bool   // the node returns blockTimestamp
	most    uint64 // maximum blocks of a range, 0 for any

	mu    sync.Mutex
	calls map[string]int
	near  int // calls for blocks in the window
	old   int // calls for headers of blocks below it
	start int // calls about the node, the chain and the vault
	// interval is the time between two blocks; blocks within one second have the same time.
	interval time.Duration
	kind     chainKind
	// sealed: the headers have all fields of Ethereum's, and hash to their hashes.
	sealed  bool
	sealing sync.Mutex // guards headers and byHash, which grow with the chain
	headers []*types.Header
	byHash  map[common.Hash]uint64
	// spoil, if set, changes the result of a call. It is never called concurrently, so its state needs no lock.
	spoiling sync.Mutex
	spoil    func(method string, params []json.RawMessage, result any) any
}

func newHistory(t *testing.T, dated bool) *history {
	t.Parallel()
	h := &history{t: t, chainID: 31_337 + chainIDs.Add(1), tip: 1_001_024, final: 1_000_960, every: 1000, dated: dated,
		interval: 12 * time.Second, calls: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// config returns the configuration of an ingest with ranges of 10,000 blocks.
func (h *history) config() Config {
	c := DefaultConfig().Complete()
	c.ID, c.RPC, c.BatchBlocks, c.PollInterval = h.chainID, rpc.Endpoints(h.url), 10_000, time.Minute
	c.Vaults = []vaults.Config{{Address: historyVaults[0].Hex(), StartBlock: 1}}
	return c
}

// The hash of a block contains its number, so that a block can be found by its hash; if headers are sealed it is the
// hash of its fields.
func (h *history) hash(number uint64) common.Hash {
	if header := h.sealedHeader(number); header != nil {
		return header.Hash()
	}
	return common.BigToHash(new(big.Int).SetUint64(1<<63 + number))
}

// sealedHeader returns the header of a block of the chain; nil if headers are not sealed.
func (h *history) sealedHeader(number uint64) *types.Header {
	if tip := h.at().tip; !h.sealed || number > tip {
		return nil
	}
	h.sealing.Lock()
	defer h.sealing.Unlock()
	for next := uint64(len(h.headers)); next <= number; next++ {
		header := &types.Header{
			UncleHash: types.EmptyUncleHash, Number: new(big.Int).SetUint64(next), Time: h.time(next), Difficulty: new(big.Int),
			Bloom: h.bloom(next), ReceiptHash: types.DeriveSha(types.Receipts{h.receipt(next)}, trie.NewStackTrie(nil)),
		}
		if next > 0 {
			header.ParentHash = h.headers[next-1].Hash()
		} else {
			h.byHash = map[common.Hash]uint64{}
		}
		if h.kind.fork != nil {
			h.kind.fork(header)
		}
		h.headers, h.byHash[header.Hash()] = append(h.headers, header), next
	}
	return h.headers[number]
}

// bloom returns the bloom of a block's logs, as far as the chain includes them in blooms.
func (h *history) bloom(number uint64) types.Bloom {
	return types.CreateBloom(&types.Receipt{Logs: slices.DeleteFunc(h.emitted(number, common.Hash{}),
		func(l *types.Log) bool {
			return h.kind.zeroBlooms || l.Address == historyBridge
		})})
}

// receipt returns the receipt of a block's only transaction.
func (h *history) receipt(number uint64) *types.Receipt {
	r := &types.Receipt{Status: types.ReceiptStatusSuccessful, Logs: h.emitted(number, common.Hash{})}
	r.Bloom = types.CreateBloom(r)
	return r
}

// number returns the number of the block with a hash.
func (h *history) number(hash common.Hash) uint64 {
	if h.sealed {
		h.sealedHeader(h.at().tip)
		h.sealing.Lock()
		defer h.sealing.Unlock()
		return h.byHash[hash]
	}
	return hash.Big().Uint64() - 1<<63
}

func (h *history) time(number uint64) uint64 {
	return 1_700_000_000 + uint64(time.Duration(number)*h.interval/time.Second)
}

func (h *history) logsOf(number uint64) (logs []*types.Log) { return h.emitted(number, h.hash(number)) }

func (h *history) emitted(number uint64, hash common.Hash) (logs []*types.Log) {
	log := func(address common.Address) {
		logs = append(logs, &types.Log{
			Address: address, Topics: []common.Hash{crypto32("Other()")}, Data: []byte{}, BlockNumber: number, BlockHash: hash,
			BlockTimestamp: h.time(number), TxHash: crypto32(fmt.Sprint(number)), Index: uint(len(logs)),
		})
	}
	if number%7 == 1 {
		log(historyAsset)
	}
	if number == h.crowded && number > 0 {
		for i := range 600 {
			log(historyAsset)
			logs[len(logs)-1].Topics[0] = crypto32(fmt.Sprint(i))
		}
	}
	if number%h.every == 0 && number > 0 {
		log(historyVaults[0])
	}
	if h.kind.bridge && number > 0 && number%5 == 0 { // the last log, which is in no bloom
		log(historyBridge)
	}
	return logs
}

func crypto32(text string) common.Hash { return common.BytesToHash(fmt.Appendf(nil, "%32s", text)) }

func (h *history) header(number uint64) any {
	if number > h.at().tip {
		return nil
	}
	header := map[string]any{}
	if sealed := h.sealedHeader(number); sealed != nil {
		raw, _ := json.Marshal(sealed)
		_ = json.Unmarshal(raw, &header)
	} else {
		header = map[string]any{
			"number": hexutil.Uint64(number), "hash": h.hash(number), "parentHash": common.Hash{},
			"timestamp": hexutil.Uint64(h.time(number)),
			"logsBloom": h.bloom(number), "receiptsRoot": types.EmptyReceiptsHash,
		}
		if number > 0 {
			header["parentHash"] = h.hash(number - 1)
		}
	}
	header["transactions"] = []string{crypto32("tx").Hex()}
	if h.kind.nullRoot {
		header["receiptsRoot"] = nil
	}
	for field, value := range h.kind.fields {
		header[field] = value
	}
	return header
}

var (
	historyVaults = []common.Address{common.HexToAddress("0xa1"), common.HexToAddress("0xa2")}
	historyAsset  = common.HexToAddress("0xbb")
	historyBridge = common.HexToAddress("0xcc")
)

type historyQuestion struct {
	ID     json.RawMessage
	Method string
	Params []json.RawMessage
}

func (h *history) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	var many []historyQuestion
	if json.Unmarshal(body, &many) == nil {
		answers := make([]any, len(many))
		for i, q := range many {
			answers[i] = h.answer(q)
		}
		_ = json.NewEncoder(w).Encode(answers)
		return
	}
	var one historyQuestion
	_ = json.Unmarshal(body, &one)
	_ = json.NewEncoder(w).Encode(h.answer(one))
}

// count counts a call, and its block if it has one.
func (h *history) count(method string, number uint64, known bool) {
	h.mu.Lock()
	h.calls[method]++
	switch {
	case known && number+DefaultConfig().Complete().Window > h.tip:
		h.near++
	case known && number == 0, strings.HasPrefix(method, "eth_c"), method == "eth_getCode":
		h.start++
	case known && method != "eth_getLogs":
		h.old++
	}
	h.mu.Unlock()
}

func (h *history) answer(q historyQuestion) any {
	text := ""
	if len(q.Params) > 0 {
		_ = json.Unmarshal(q.Params[0], &text)
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": q.ID}
	switch q.Method {
	case "eth_chainId":
		h.count(q.Method, 0, false)
		answer["result"] = hexutil.Uint64(h.chainID)
	case "eth_getCode":
		h.count(q.Method, 0, false)
		answer["result"] = "0x01"
	case "eth_call":
		h.count(q.Method, 0, false)
		answer["result"] = h.call(q.Params[0])
	case "eth_getBlockByNumber":
		number, err := hexutil.DecodeUint64(text)
		switch text {
		case "latest":
			number = h.at().tip
		case "finalized":
			number = h.at().final
		}
		h.count(q.Method, number, err == nil)
		answer["result"] = h.header(number)
		if text == "finalized" && h.kind.noFinal {
			answer["result"] = nil
		}
	case "eth_getBlockReceipts":
		number := h.number(common.HexToHash(text))
		h.count(q.Method, number, true)
		answer["result"] = []any{map[string]any{
			"type": h.kind.txType, "status": "0x1", "depositNonce": "0x1", "logs": h.logsOf(number), "cumulativeGasUsed": "0x0",
			"gasUsed":   "0x0",
			"logsBloom": h.receipt(number).Bloom, "transactionHash": crypto32(fmt.Sprint(number)),
		}}
	case "eth_getBlockByHash":
		number := h.number(common.HexToHash(text))
		h.count(q.Method, number, true)
		answer["result"] = h.header(number)
	case "eth_getLogs":
		result, refusal := h.logs(q.Params[0])
		if answer["result"] = result; refusal != "" {
			delete(answer, "result")
			answer["error"] = map[string]any{"code": -32000, "message": refusal}
		}
	}
	h.mu.Lock()
	spoil := h.spoil
	h.mu.Unlock()
	if result, ok := answer["result"]; ok && spoil != nil {
		h.spoiling.Lock()
		defer h.spoiling.Unlock()
		answer["result"] = spoil(q.Method, q.Params, result)
	}
	return answer
}

func (h *history) logs(raw json.RawMessage) (any, string) {
	var filter struct {
		FromBlock, ToBlock hexutil.Uint64
		BlockHash          *common.Hash
		Address            []common.Address
	}
	_ = json.Unmarshal(raw, &filter)
	from, to := uint64(filter.FromBlock), uint64(filter.ToBlock)
	if filter.BlockHash != nil {
		from = h.number(*filter.BlockHash)
		to = from
	}
	h.count("eth_getLogs", from, true)
	if h.most > 0 && to-from+1 > h.most {
		return nil, fmt.Sprintf("eth_getLogs is limited to a %d block range", h.most)
	}
	logs := []map[string]any{}
	for number := from; number <= to; number++ {
		for _, l := range h.logsOf(number) {
			if len(filter.Address) > 0 && l.Address != filter.Address[0] {
				continue
			}
			one := map[string]any{}
			encoded, _ := json.Marshal(l)
			_ = json.Unmarshal(encoded, &one)
			if !h.dated {
				delete(one, "blockTimestamp")
			}
			logs = append(logs, one)
		}
	}
	return logs, ""
}

// call responds as the vault, and as its asset.
func (h *history) call(raw json.RawMessage) any {
	var call struct{ Data hexutil.Bytes }
	_ = json.Unmarshal(raw, &call)
	parsed := contracts.VaultABI()
	method, err := parsed.MethodById(call.Data)
	if err != nil {
		h.t.Error(err)
		return nil
	}
	value := any("A vault")
	switch method.Name {
	case "decimals":
		value = uint8(18)
	case "asset":
		value = historyAsset
	}
	packed, err := method.Outputs.Pack(value)
	if err != nil {
		h.t.Error(err)
	}
	return hexutil.Bytes(packed)
}

// rig returns a rig without a development chain.
func (h *history) rig() *rig {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*wait.Patience)
	h.t.Cleanup(cancel)
	r := &rig{t: h.t, ctx: ctx, url: h.url, kafka: chainlog.DefaultConfig(), config: h.config(),
		stepping: new(sync.RWMutex)}
	r.kafka.Brokers = enginetest.Kafka(h.t)
	return r
}

// whole checks that the log has each log of the vault up to the head once, with its time, and at most most records of
// old blocks.
func (h *history) whole(r *rig, most int) {
	h.t.Helper()
	r.settle()
	_, live := r.log()
	h.hasLogs(live)
	blocks, old := 0, 0
	for _, record := range live {
		if b := record.GetBlock(); b != nil {
			if blocks++; b.GetNumber()+r.config.Window <= h.tip {
				old++
			}
			if common.Hash(b.GetHash()) != h.hash(b.GetNumber()) || b.GetTime() != h.time(b.GetNumber()) {
				h.t.Fatalf("a block is recorded as %v", b)
			}
		}
	}
	if uint64(blocks-old) != r.config.Window {
		h.t.Errorf("%d blocks of the window are recorded", blocks-old)
	}
	if old > most {
		h.t.Errorf("%d blocks are recorded that are below the window, want at most %d", old, most)
	}
}

// hasLogs checks that records have each log of the vault up to the head once, with its time.
func (h *history) hasLogs(live []*event.Record) {
	h.t.Helper()
	logs := uint64(0)
	for _, record := range live {
		if l := record.GetLog(); l != nil {
			if logs++; l.GetBlockNumber() != logs*h.every || l.GetBlockTime() != h.time(l.GetBlockNumber()) {
				h.t.Fatalf("log %d is of block %d at %d", logs, l.GetBlockNumber(), l.GetBlockTime())
			}
		}
	}
	if want := h.tip / h.every; logs != want {
		h.t.Errorf("there are %d logs, the chain has %d", logs, want)
	}
}

func (h *history) caughtUp(p *process) {
	h.t.Helper()
	p.until("log that reaches the head",
		func(st status.Status) bool { return st.State == status.Following && st.IndexedBlock == h.at().tip })
}

// A sparse history of a million blocks costs little more than one call for each range of ten thousand and, if the node
// does not return the time of logs, one more for each block that has a log.
func TestCallsOfASparseHistory(t *testing.T) {
	sequential(t)
	for name, dated := range map[string]bool{"logs with times": true, "logs without times": false} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, dated)
			r := h.rig()
			p := r.start()
			h.caughtUp(p)
			p.halt()
			h.whole(r, 10)
			total := 0
			for _, n := range h.calls {
				total += n
			}
			most := 120
			if !dated {
				most += int(h.tip / h.every)
			}
			history := total - h.near - h.start
			if history > most {
				t.Errorf("a million blocks cost %d calls, want at most %d: %v", history, most, h.calls)
			}
			if h.near > int(r.config.Window+h.tip-h.final)+5 { // each header, and the logs of each block that is not final
				t.Errorf("the window of %d blocks costs %d calls", r.config.Window, h.near)
			}
			t.Logf("%d calls of the history, %d of the window, %d of the start: %v", history, h.near, h.start, h.calls)
			for _, m := range p.Status().Calls {
				if int(m.Calls) != h.calls[m.Method] {
					t.Errorf("the status reports %[2]d calls of %[1]s, the node counted %[3]d", m.Method, m.Calls, h.calls[m.Method])
				}
			}
		})
	}
}

// An ingest that dies in the middle of a history, at any step of a commit, continues where the log ends.
func TestCrashesInASparseHistory(t *testing.T) {
	sequential(t)
	h := newHistory(t, true)
	h.most = 2_000
	r := h.rig()
	for i, at := range writer.Steps {
		commits := 0
		r.killed(func(ingest *Ingest) {
			ingest.hook = func(s writer.Step) error {
				if s == writer.BeforeProduce {
					commits++
				}
				if commits == 2+i && s == at {
					panic(errKilled)
				}
				return nil
			}
		})
	}
	p := r.start()
	h.caughtUp(p)
	p.halt()
	h.whole(r, 50)
}

// The block at the end of a commit is compared with the records of the commit: if it belongs to another chain, or has a
// log that the range lacked, everything that was read ahead is read again, or the log is added.
func TestEndsOfCommits(t *testing.T) {
	sequential(t)
	type spoil = func(method string, params []json.RawMessage, result any) any
	for name, c := range map[string]struct {
		spoil func() spoil
		says  string
	}{
		"a block of another chain": {func() spoil {
			reading := false // before that, the chain must have the block that is named as final
			return func(method string, params []json.RawMessage, result any) any {
				reading = reading || method == "eth_getLogs"
				if b, ok := result.(map[string]any); ok && reading && method == "eth_getBlockByNumber" &&
					string(params[0]) == `"0xf4240"` {
					b["hash"] = common.HexToHash("0xdead")
				}
				return result
			}
		}, "when asked for block 1000000"},
		"log of the last block missing": {func() spoil {
			return func(method string, params []json.RawMessage, result any) any {
				logs, ok := result.([]map[string]any)
				if !ok || method != "eth_getLogs" || strings.Contains(string(params[0]), "blockHash") {
					return result
				}
				return slices.DeleteFunc(logs, func(l map[string]any) bool { return l["blockNumber"] == "0xf4240" })
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, true)
			h.final = 1_000_000 // so that the last commit of the history ends with it
			r := h.rig()
			r.config.Window = 512
			h.spoil = c.spoil()
			p := r.start()
			if c.says != "" {
				p.until("reason", func(st status.Status) bool { return strings.Contains(st.Reason, c.says) })
				h.mu.Lock()
				h.spoil = nil
				h.mu.Unlock()
			}
			h.caughtUp(p)
			p.halt()
			h.whole(r, 530)
		})
	}
}

// A late vault reads its history while others follow the head, at the same price.
func TestCallsOfALateVault(t *testing.T) {
	sequential(t)
	h := newHistory(t, true)
	r := h.rig()
	late := r.config.Vaults[0]
	r.config.Vaults = []vaults.Config{{Address: historyVaults[1].Hex(), StartBlock: h.tip}}
	r.config.PollInterval = 10 * time.Millisecond
	p := r.start()
	h.caughtUp(p)
	p.halt()
	before := h.asked("eth_getLogs")
	r.config.Vaults = append(r.config.Vaults, late)
	p = r.start()
	p.until("history of the late vault", func(st status.Status) bool {
		return len(st.LateVaults) == 0 && st.Backfill == nil && st.State == status.Following && st.Logs == h.tip/h.every
	})
	p.halt()
	if calls := h.asked("eth_getLogs") - before; calls > 200 { // its unfinalised blocks are read by hash
		t.Errorf("the history of a late vault costs %d calls of eth_getLogs", calls)
	}
	r.settle()
	_, live := r.log()
	h.hasLogs(live)
}

func (h *history) asked(method string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[method]
}
