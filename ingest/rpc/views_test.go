package rpc

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// stateful is a node whose responses to calls of contracts, single ones and batches, the test controls.
type stateful struct {
	url   string
	calls atomic.Int64
}

// newStateful returns such a node. answer returns the result for the second parameter of a call, or an error code and
// message.
func newStateful(t *testing.T, answer func(at string) (result string, code int, message string),
	hashes ...common.Hash) *stateful {
	t.Helper()
	s := &stateful{}
	one := func(q question) map[string]any {
		out := map[string]any{"jsonrpc": "2.0", "id": q.ID}
		switch q.Method {
		case "eth_getBlockByNumber":
			text, _ := q.Params[0].(string)
			n, _ := hexutil.DecodeUint64(text)
			out["result"] = map[string]any{"number": hexutil.Uint64(n), "hash": hashes[n], "parentHash": common.Hash{},
				"timestamp": "0x1", "logsBloom": hexutil.Bytes(make([]byte, 256))}
		case "eth_call":
			s.calls.Add(1)
			at, _ := json.Marshal(q.Params[1])
			result, code, message := answer(string(at))
			if out["result"] = result; message != "" {
				delete(out, "result")
				out["error"] = map[string]any{"code": code, "message": message}
			}
		}
		return out
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var raw json.RawMessage
		_ = json.NewDecoder(r.Body).Decode(&raw)
		var many []question
		var single question
		if json.Unmarshal(raw, &many) != nil {
			_ = json.Unmarshal(raw, &single)
			_ = json.NewEncoder(w).Encode(one(single))
			return
		}
		var answers []map[string]any
		for _, q := range many {
			answers = append(answers, one(q))
		}
		_ = json.NewEncoder(w).Encode(answers)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// viewsOf returns calls at blocks 3, 2 and 1.
func viewsOf(hashes []common.Hash) (views []Sample) {
	for n := 3; n > 0; n-- {
		views = append(views, Sample{SampleCall: SampleCall{To: common.Address{1}, Input: []byte{1}},
			At: &Header{Number: uint64(n), Hash: hashes[n]}})
	}
	return views
}

var stateHashes = []common.Hash{{9}, {1}, {2}, {3}}

// statePool returns a pool with one node, whose chain is not checked.
func statePool(t *testing.T, s *stateful) (*Pool, *Node) {
	t.Helper()
	p := NewPool(1, Endpoints(s.url), 1, nil, newRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	return p, p.all[0]
}

// TestViewErrors: errors distinguish a contract that reverts from a node without the state of the block, and both from
// a node that fails.
func TestViewErrors(t *testing.T) {
	t.Parallel()
	const word = "0x0000000000000000000000000000000000000000000000000000000000000007"
	for _, c := range []struct {
		code    int
		message string
		want    string
	}{
		{-32000, "missing trie node 12ab (path ) state 0x12ab is not available, not found", "no state"},
		{-32000, "historical state 12ab is not available", "no state"},
		{-32000, "state at block #2 is pruned", "no state"},
		{-32000, "No state available for block 2", "no state"},
		{-32000, "World state unavailable", "no state"},
		{-32000, "This request is not supported because your node is running with state pruning. Run with --pruning=archive.",
			"no state"},
		{-32600, "Archive requests require a paid plan", "no state"},
		{-32000, "old data not available due to pruning: requested block 2", "no state"},
		{-32000, "state recreation l2 gas depth limit exceeded", "no state"},
		{-32801, "no historical RPC is available for this historical (pre-bedrock) execution request", "no state"},
		{-32602, "Block with such an ID is pruned; the first retained block is 3", "no state"},
		{-32603, "Api called for an unknown Block: State already discarded for 0x02", "no state"},
		{-32000, "height 2 is not available, lowest height is 3", "no state"},
		{-32000, "requested height has been pruned", "no state"},
		{-32002, "Access to archival, debug, or trace data is not included in your current plan", "no state"},
		{4444, "pruned history unavailable", "no state"},
		{3, "execution reverted: paused", "reverts"},
		{-32000, "execution reverted", "reverts"},
		{-32015, "VM execution error: invalid opcode", "reverts"},
		{-32000, "out of gas", "reverts"},
		{-32000, "invalid jump destination", "reverts"},
		{-32000, "stack underflow (0 <=> 1)", "reverts"},
		{-32000, "stack limit reached 1024 (1023)", "reverts"},
		{-32000, "execution aborted (timeout = 5s)", "error"},
		{-32015, "VM execution error.", "reverts"},
		{-32603, "evm error: OutOfGas", "reverts"},
		// The contract chooses the reason of a revert.
		{3, "execution reverted: Oracle: rate limit exceeded", "reverts"},
		{3, "too many requests", "reverts"},
		{-32000, "execution reverted: daily quota is used up", "reverts"},
		{-32000, "VM Exception while processing transaction: revert too many requests", "reverts"},
		{-32603, "VM Exception while processing transaction: reverted with reason string 'throughput'", "reverts"},
		{3, "execution reverted: batch is not open", "reverts"},
		{3, "execution reverted: query returned more than 10 results", "reverts"},
		{3, "execution reverted: state of the pool is not available", "reverts"},
		{-32602, "execution reverted: historical state is pruned", "reverts"},
		{-32005, "rate limit exceeded", "error"},
		{-32000, "header for hash not found", "error"},
		{-32000, "hash is not currently canonical", "error"},
		{-32000, "Version has either been pruned, or is for a future block", "error"},
		{-32000, "block 2 is not available yet", "error"},
		{-32000, "height 2 must be less than or equal to the current blockchain height 1", "error"},
		{-32001, "resource not found", "error"},
		{-32603, "internal error", "error"},
	} {
		node := newStateful(t, func(at string) (string, int, string) {
			if strings.Contains(at, stateHashes[2].Hex()) {
				return "", c.code, c.message
			}
			return word, 0, ""
		})
		_, n := statePool(t, node)
		seen := viewsOf(stateHashes)
		err := n.views(t.Context(), seen)
		got := "error"
		switch {
		case err != nil:
		case len(seen) != 3 || len(seen[0].Output) != 32:
			got = fmt.Sprintf("%+v", seen)
		case seen[1].noState && seen[2].noState: // older blocks have none either
			got = "no state"
		case !seen[1].noState && seen[1].Output == nil && len(seen[2].Output) == 32:
			got = "reverts"
		}
		if got != c.want {
			t.Errorf("%d %s: %s (%v), want %s", c.code, c.message, got, err, c.want)
		}
		if c.want == "reverts" &&
			(!n.health.is(usable) || n.health.pauseLeft() > 0 || n.limits.callsAtOnce() != MaxBatchHeaders || n.numbers.Load()) {
			t.Errorf("%d %s: the error text of a contract affects the endpoint: %+v", c.code, c.message, n.health.snapshot())
		}
	}
}

// TestStateOrBlock: words that a node also has for a block that it does not have yet mean that the state is gone only
// if its head is far above the block, or if the words name a newer block.
func TestStateOrBlock(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"no state found for block 0x02", "no state found for block number 2",
		"State not found for block",
		"failed to load state at height 2; version does not exist (latest height: 1): invalid request",
		"failed to load state at height 2; version does not exist (latest height: 9): invalid request"} {
		node := newStateful(t, func(string) (string, int, string) { return "", -32603, message })
		_, n := statePool(t, node)
		for head, want := range map[uint64]bool{2: strings.Contains(message, "height: 9"),
			129: strings.Contains(message, "height: 9"), 130: true} {
			n.health.set(func(h *health) { h.head = &Header{Number: head} })
			v := Sample{SampleCall: SampleCall{To: common.Address{1}, Input: []byte{1}},
				At: &Header{Number: 2, Hash: stateHashes[2]}}
			if err := n.oneView(t.Context(), &v); v.noState != want || (err == nil) != want {
				t.Errorf("%s, at head %d: %v, %v", message, head, v.noState, err)
			}
		}
	}
}

// TestViewsByNumber: a node that does not accept a block hash in a call is called by number, and its results are
// accepted only if it still has the intended block afterwards.
func TestViewsByNumber(t *testing.T) {
	t.Parallel()
	other := append([]common.Hash{}, stateHashes...)
	other[2] = common.Hash{8}
	for name, c := range map[string]struct {
		hashes []common.Hash
		want   string
	}{"the same chain": {stateHashes, ""}, "another chain": {other, "it was reorganised while contracts were called"}} {
		node := newStateful(t, func(at string) (string, int, string) {
			if strings.Contains(at, "blockHash") {
				return "", -32602, "invalid argument 1: hex string without 0x prefix"
			}
			return "0x07", 0, ""
		}, c.hashes...)
		_, n := statePool(t, node)
		seen := viewsOf(stateHashes)
		err := n.views(t.Context(), seen)
		if c.want == "" && (err != nil || len(seen) != 3 || len(seen[2].Output) != 1) || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %+v, %v", name, seen, err)
		}
		calls := node.calls.Load()
		if again := n.views(t.Context(), viewsOf(stateHashes)); (again == nil) != (err == nil) ||
			node.calls.Load() != calls+3 {
			t.Errorf("%s: the second time there were %d calls, %v", name, node.calls.Load()-calls, again)
		}
	}
}
