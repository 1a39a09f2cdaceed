package rpc

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// fakeChain is a node whose chain is generated from a seed: blocks 1 to n with logs of two vaults and of other
// contracts. The test decides which calls it rejects and which logs it omits.
type fakeChain struct {
	t      *testing.T
	blocks []*fakeBlock // block i at index i
	url    string

	encoded sync.Map // logs as a node writes them, by *types.Log

	mu    sync.Mutex
	calls map[string]int
	// refuse, if set, returns the error of a call for logs. The call has its number of blocks (0: by hash) and the
	// number of logs and bytes in its response.
	refuse func(q fakeQuestion) *fakeRefusal
	// changeLogs, if set, changes the logs of a response.
	changeLogs func(q fakeQuestion, logs []*types.Log) []*types.Log
	// null, if set, reports whether a response is null instead.
	null func(q fakeQuestion) bool
	// meter, if set, reports whether a request with this number of calls is rate-limited, and the seconds in
	// Retry-After; 0 leaves it out.
	meter     func(questions int) (putOff bool, after int)
	noBatches bool
	headless  atomic.Bool // it returns null for blocks by number
	// pruned is the first block whose receipts are available.
	pruned uint64
	// emptyReceipts makes all receipts empty lists.
	emptyReceipts bool
}

type fakeBlock struct {
	header map[string]any
	hash   common.Hash
	logs   []*types.Log
}

type fakeQuestion struct {
	from, to    uint64
	byHash, all bool           // all: no address filter
	vault       common.Address // first one of the address filter
	logs, bytes int
}

func (q fakeQuestion) blocks() uint64 { return q.to - q.from + 1 }

// fakeRefusal is an HTTP status, or a JSON-RPC error with status 200.
type fakeRefusal struct {
	status  int
	code    int
	message string
	data    any
}

var (
	fakeVaults  = []common.Address{common.HexToAddress("0xa1"), common.HexToAddress("0xa2")}
	fakeStarter = common.HexToAddress("0xbb")
)

// newFakeChain makes a chain whose block i has perBlock(i) logs, about half of them from the vaults.
func newFakeChain(t *testing.T, seed uint64, n int, perBlock func(rng *rand.Rand, i int) int) *fakeChain {
	t.Helper()
	c := &fakeChain{t: t, calls: map[string]int{}}
	rng := rand.New(rand.NewPCG(seed, 9))
	parent := common.Hash{}
	for i := range n + 1 {
		b := &fakeBlock{hash: crypto.Keccak256Hash(fmt.Append(nil, seed, i))}
		logs := 0
		if i > 0 {
			logs = perBlock(rng, i)
		}
		for index := range logs {
			b.logs = append(b.logs, fakeLog(rng, uint64(i), b.hash, uint(index)))
		}
		b.header = map[string]any{
			"number": hexutil.Uint64(i), "hash": b.hash, "parentHash": parent, "timestamp": hexutil.Uint64(1_700_000_000 + 12*i),
			"logsBloom": types.CreateBloom(&types.Receipt{Logs: b.logs}), "transactions": []any{},
		}
		parent = b.hash
		c.blocks = append(c.blocks, b)
	}
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func fakeLog(rng *rand.Rand, number uint64, hash common.Hash, index uint) *types.Log {
	l := &types.Log{
		Address: fakeStarter, BlockNumber: number, BlockHash: hash, BlockTimestamp: 1_700_000_000 + 12*number,
		TxHash: crypto.Keccak256Hash(fmt.Append(nil, number, index/2)), TxIndex: index / 2, Index: index,
		Data:   make([]byte, 32*rng.IntN(4)),
		Topics: []common.Hash{crypto.Keccak256Hash([]byte("Other()"))},
	}
	if rng.IntN(2) == 0 {
		l.Address = fakeVaults[rng.IntN(2)]
		if rng.IntN(4) > 0 {
			kinds := contracts.Kinds()
			l.Topics[0] = kinds[rng.IntN(len(kinds))].Topic()
		}
	}
	l.Topics = append(l.Topics, crypto.Keccak256Hash(fmt.Append(nil, "id", number, index)))
	return l
}

func (c *fakeChain) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	type question struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	answer := func(q question) (map[string]any, int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[q.Method]++
		result, refusal := c.answer(q.Method, q.Params)
		a := map[string]any{"jsonrpc": "2.0", "id": q.ID}
		switch {
		case refusal == nil:
			a["result"] = result
		case refusal.status != 0:
			return nil, refusal.status
		default:
			a["error"] = map[string]any{"code": refusal.code, "message": refusal.message, "data": refusal.data}
		}
		return a, http.StatusOK
	}
	var one question
	var many []question
	single := json.Unmarshal(body, &one) == nil
	if !single {
		_ = json.Unmarshal(body, &many)
	}
	if c.noBatches && !single {
		fmt.Fprint(w, "[]")
		return
	}
	c.mu.Lock()
	putOff, after := false, 0
	if c.meter != nil {
		putOff, after = c.meter(max(1, len(many)))
	}
	c.mu.Unlock()
	if putOff {
		if after > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(after))
		}
		http.Error(w, "Your app has exceeded its compute units per second capacity", http.StatusTooManyRequests)
		return
	}
	if single {
		a, status := answer(one)
		w.WriteHeader(status)
		if a == nil {
			fmt.Fprint(w, http.StatusText(status))
			return
		}
		_ = json.NewEncoder(w).Encode(a)
		return
	}
	answers := []any{}
	for _, q := range many {
		a, _ := answer(q)
		answers = append(answers, a)
	}
	_ = json.NewEncoder(w).Encode(answers)
}

func (c *fakeChain) answer(method string, params []json.RawMessage) (any, *fakeRefusal) {
	var text string
	if len(params) > 0 {
		_ = json.Unmarshal(params[0], &text)
	}
	switch method {
	case "eth_getBlockByNumber":
		if n, err := hexutil.DecodeUint64(text); err == nil && n < uint64(len(c.blocks)) && !c.headless.Load() {
			return c.blocks[n].header, nil
		}
		return nil, nil
	case "eth_getBlockByHash":
		if b := c.byHash(text); b != nil {
			return b.header, nil
		}
		return nil, nil
	case "eth_getBlockReceipts":
		return c.receipts(text)
	case "eth_getLogs":
		return c.logs(params[0])
	case "eth_call":
		return "0x07", nil
	}
	return nil, &fakeRefusal{code: -32601, message: "the method does not exist"}
}

func (c *fakeChain) byHash(hash string) *fakeBlock {
	for _, b := range c.blocks {
		if b.hash.Hex() == hash {
			return b
		}
	}
	return nil
}

func (c *fakeChain) receipts(hash string) (any, *fakeRefusal) {
	b := c.byHash(hash)
	if b == nil || slices.Contains(c.blocks[:c.pruned], b) {
		return nil, nil
	}
	if c.refuse != nil {
		q := fakeQuestion{byHash: true, all: true, logs: -1}
		if refusal := c.refuse(q); refusal != nil {
			return nil, refusal
		}
	}
	if c.emptyReceipts {
		return []any{}, nil
	}
	return []any{map[string]any{"logs": fakeJSON(b.logs)}}, nil
}

func (c *fakeChain) logs(raw json.RawMessage) (any, *fakeRefusal) {
	var filter struct {
		FromBlock, ToBlock hexutil.Uint64
		BlockHash          string
		Address            []common.Address
	}
	if err := json.Unmarshal(raw, &filter); err != nil {
		return nil, &fakeRefusal{code: -32602, message: err.Error()}
	}
	q := fakeQuestion{from: uint64(filter.FromBlock), to: uint64(filter.ToBlock), byHash: filter.BlockHash != "",
		all: len(filter.Address) == 0}
	if q.byHash {
		b := c.byHash(filter.BlockHash)
		if b == nil {
			return nil, &fakeRefusal{code: -32000, message: "unknown block"}
		}
		q.from = uint64(slices.Index(c.blocks, b))
		q.to = q.from
	}
	if !q.all {
		q.vault = filter.Address[0]
	}
	var logs []*types.Log
	for _, b := range c.blocks[q.from : q.to+1] {
		for _, l := range b.logs {
			if q.all || slices.Contains(filter.Address, l.Address) {
				logs = append(logs, l)
			}
		}
	}
	answer := c.encode(logs)
	q.logs, q.bytes = len(logs), len(answer)
	if c.refuse != nil {
		if refusal := c.refuse(q); refusal != nil {
			return nil, refusal
		}
	}
	if c.changeLogs != nil {
		answer = c.encode(c.changeLogs(q, logs))
	}
	if c.null != nil && c.null(q) {
		return nil, nil
	}
	return answer, nil
}

// encode encodes logs like fakeJSON. It caches the encoding of each log, which is in many responses.
func (c *fakeChain) encode(logs []*types.Log) json.RawMessage {
	answer := []byte("[")
	for i, l := range logs {
		if i > 0 {
			answer = append(answer, ',')
		}
		encoded, ok := c.encoded.Load(l)
		if !ok {
			encoded, _ = c.encoded.LoadOrStore(l, mustJSON(c.t, l))
		}
		answer = append(answer, encoded.([]byte)...)
	}
	return append(answer, ']')
}

// fakeJSON returns logs in the form in which nodes write them, which is go-ethereum's encoding.
func fakeJSON(logs []*types.Log) []*types.Log {
	if logs == nil {
		return []*types.Log{}
	}
	return logs
}

func (c *fakeChain) asked(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[method]
}

// dial connects to the chain.
func (c *fakeChain) dial() *Node {
	c.t.Helper()
	n := noPool(wallClock).newNode(Endpoint{URL: c.url}, "fake")
	c.t.Cleanup(n.close)
	return n
}

// expectedLogs returns all logs of the vaults in the chain.
func (c *fakeChain) expectedLogs() (logs []*event.Log) {
	for i, b := range c.blocks {
		for _, l := range b.logs {
			if !slices.Contains(fakeVaults, l.Address) {
				continue
			}
			out := &event.Log{
				Address: l.Address.Bytes(), Data: l.Data, BlockNumber: l.BlockNumber, BlockHash: l.BlockHash.Bytes(),
				BlockTime: uint64(1_700_000_000 + 12*i),
				TxHash:    l.TxHash.Bytes(), TxIndex: uint32(l.TxIndex), LogIndex: uint32(l.Index),
			}
			for _, t := range l.Topics {
				out.Topics = append(out.Topics, t.Bytes())
			}
			logs = append(logs, out)
		}
	}
	return logs
}
