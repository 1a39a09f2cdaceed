package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
)

// A proxy is a node in front of the real one that responds to some calls itself.
type proxy struct {
	*httptest.Server
	mu       sync.Mutex
	calls    map[string]int
	override override
	// batches, if set, returns the URL of the node that serves a batch.
	batches func(body []byte) string
}

// An override returns the result of a call or an error; if handled is false, the real node responds instead.
type override func(method string, params []json.RawMessage, truth func() json.RawMessage) (result any, err error,
	handled bool)

func (r *rig) newProxy(l override) *proxy {
	n := &proxy{calls: map[string]int{}, override: l}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { n.serve(r, w, req) }))
	r.t.Cleanup(n.Close)
	return n
}

// throughProxy puts a proxy between ingest and the real node, as its only endpoint.
func (r *rig) throughProxy(l override) *proxy {
	n := r.newProxy(l)
	r.config.RPC = rpc.Endpoints(n.URL)
	return n
}

func (n *proxy) count(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls[method]
}

// polled waits until the chain was polled several more times.
func (n *proxy) polled(p *process) {
	p.rig.t.Helper()
	before := n.count("eth_getBlockByNumber")
	p.until("more polls of the chain", func(status.Status) bool { return n.count("eth_getBlockByNumber") > before+10 })
}

func (n *proxy) use(l override) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.override = l
}

func (n *proxy) serve(r *rig, w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	if bytes.Contains(body, []byte(`"eth_call"`)) {
		r.stepping.RLock()
		defer r.stepping.RUnlock()
	}
	var call struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	if json.Unmarshal(body, &call) != nil { // a batch is passed on to a real node
		n.mu.Lock()
		batches := n.batches
		n.mu.Unlock()
		url := r.url
		if batches != nil {
			url = batches(body)
		}
		w.Write(askedAt(url, body))
		return
	}
	n.mu.Lock()
	n.calls[call.Method]++
	override := n.override
	n.mu.Unlock()
	result, err, handled := override(call.Method, call.Params, func() json.RawMessage {
		var answer struct{ Result json.RawMessage }
		_ = json.Unmarshal(realAnswer(r, body), &answer)
		return answer.Result
	})
	answer := map[string]any{"jsonrpc": "2.0", "id": call.ID}
	switch {
	case !handled:
		w.Write(realAnswer(r, body))
		return
	case err == errHangUp:
		panic(http.ErrAbortHandler)
	case err == errNoMethod:
		answer["error"] = map[string]any{"code": -32601, "message": err.Error()}
	case err != nil:
		answer["error"] = map[string]any{"code": -32005, "message": err.Error()}
	default:
		answer["result"] = result
	}
	_ = json.NewEncoder(w).Encode(answer)
}

var errNoMethod = fmt.Errorf("the method does not exist")

var errHangUp = fmt.Errorf("the connection is closed")

func realAnswer(r *rig, body []byte) []byte { return askedAt(r.url, body) }

func askedAt(url string, body []byte) []byte {
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	return answer
}

func honest(string, []json.RawMessage, func() json.RawMessage) (any, error, bool) {
	return nil, nil, false
}

// away is a node that does not respond.
func away(string, []json.RawMessage, func() json.RawMessage) (any, error, bool) {
	return nil, errHangUp, true
}

// headIs is a node whose newest block, and the block with this number if it is not empty, is this one.
func headIs(block json.RawMessage, number string) override {
	return func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return block, nil, method == "eth_getBlockByNumber" &&
			slices.Contains([]string{`"latest"`, number}, string(params[0]))
	}
}

// withLogs is a node that changes each log of its responses.
func withLogs(change func(l map[string]any)) override {
	return func(method string, _ []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		if method != "eth_getLogs" {
			return nil, nil, false
		}
		var logs []map[string]any
		_ = json.Unmarshal(truth(), &logs)
		for _, l := range logs {
			change(l)
		}
		return logs, nil, true
	}
}

// A lagging node returns [] for logs that exist: at the head the bloom reveals this, and the other endpoint is called.
func TestEmptyAnswerAgainstBloom(t *testing.T) {
	for _, c := range []struct {
		name    string
		another bool
		wrong   int // endpoints that omit logs
	}{{"one endpoint omits the logs of each block once", false, 1}, {"the other endpoint has the logs", true, 1},
		{"the third endpoint has the logs", true, 2}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.config.Finality = Finality{Depth: 500} // everything is read by hash
			r.steps(15)
			var asked sync.Map // blocks are read concurrently
			omit := func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
				if method != "eth_getLogs" {
					return nil, nil, false
				}
				_, again := asked.Swap(string(params[0]), true)
				return []any{}, nil, c.another || !again
			}
			r.throughProxy(omit)
			for range c.wrong - 1 {
				r.config.RPC = append(r.config.RPC, rpc.Endpoint{URL: r.newProxy(omit).URL})
			}
			if c.another {
				r.config.RPC = append(r.config.RPC, rpc.Endpoint{URL: r.url})
			}
			r.follow()
			r.verify()
			wrongAnswers := 0
			asked.Range(func(any, any) bool { wrongAnswers++; return false })
			if wrongAnswers == 0 {
				t.Error("no response was changed")
			}
		})
	}
}

// Responses that contradict the request are not accepted, and ingest recovers when the node does.
func TestImplausibleLogs(t *testing.T) {
	sequential(t)
	for name, fault := range map[string]struct {
		field string
		value any
		want  string
	}{
		"another block's hash":   {"blockHash", otherHash, "when asked for block"},
		"another block's number": {"blockNumber", "0x1", "when asked for block"},
		"another address": {"address", "0x00000000000000000000000000000000000000ff",
			"the header's logsBloom contains more"},
		"a removed log":     {"removed", true, "is removed, so the block has left its chain"},
		"logs at one place": {"logIndex", "0x0", "logIndex: two different logs"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.config.Finality = Finality{Depth: 500}
			r.steps(12)
			change := withLogs(func(l map[string]any) { l[fault.field] = fault.value })
			wrongNode := r.throughProxy(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
				if method == "eth_getBlockReceipts" { // receipts would repair the response
					return nil, errors.New("the method does not exist"), true
				}
				return change(method, params, truth)
			})
			p := r.start()
			p.until("reason", func(st status.Status) bool { return strings.Contains(st.Reason, fault.want) })
			wrongNode.use(honest)
			p.caughtUp()
			r.verify()
		})
	}
}

// A node that rejects long ranges gets shorter ones, down to a single block.
func TestRangesShrinkAndGrow(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(40)
	var mu sync.Mutex // several ranges are read at once
	widest := uint64(0)
	r.throughProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		var filter struct{ FromBlock, ToBlock string }
		if method != "eth_getLogs" || json.Unmarshal(params[0], &filter) != nil || filter.FromBlock == "" {
			return nil, nil, false
		}
		var from, to uint64
		fmt.Sscanf(filter.FromBlock+" "+filter.ToBlock, "0x%x 0x%x", &from, &to)
		if to-from+1 > 3 {
			return nil, fmt.Errorf("query exceeds max block range 3"), true
		}
		mu.Lock()
		defer mu.Unlock()
		widest = max(widest, to-from+1)
		return nil, nil, false
	})
	r.follow()
	r.verify()
	mu.Lock()
	defer mu.Unlock()
	if widest < 2 {
		t.Errorf("the widest range that was returned has %d blocks, want growth up to 3", widest)
	}
}

// Logs without blockTimestamp get their time from the headers.
func TestBlockTimesFromHeaders(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(30)
	r.throughProxy(withLogs(func(l map[string]any) { delete(l, "blockTimestamp") }))
	r.index()
	r.verify()
}

// After an endpoint hangs up, the next one is used.
func TestFailover(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(10)
	first := r.newProxy(honest)
	r.config.RPC = rpc.Endpoints(first.URL, r.url)
	p := r.follow()
	first.use(away)
	r.steps(5)
	p.caughtUp()
	r.verify()
	if n := p.metric("rpc_errors_total"); n == 0 {
		t.Error("navlog_ingest_rpc_errors_total counted nothing")
	}
}

// A node that fails at every tenth call, for a vault's record as well as between two blocks, slows ingest down but does
// not stop it.
func TestProgressThroughErrors(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Finality = Finality{Depth: 500} // everything is read block by block
	r.steps(40)
	var calls atomic.Int64
	first := r.throughProxy(honest)
	flaky := func(string, []json.RawMessage, func() json.RawMessage) (any, error, bool) {
		return nil, errors.New("request rate exceeded"), calls.Add(1)%10 == 0
	}
	p := r.start(func(*Ingest) { first.use(flaky) })
	p.caughtUp()
	r.verify()
	if calls.Load() < 50 {
		t.Errorf("the node was called %d times", calls.Load())
	}
}

// A node that returns another hash at the head's height only every other time, or a head that is far below, changes
// nothing.
func TestFalseReorganisation(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(20)
	watched := r.throughProxy(honest)
	p := r.follow()
	seq, height := p.Status().Seq, fmt.Sprintf(`"%#x"`, r.height())
	unchanged := func(why string) {
		t.Helper()
		watched.polled(p)
		if now := r.cursor().GetSeq(); now != seq || p.Status().State != status.Following {
			t.Errorf("%s: the log went from seq %d to %d, state %s", why, seq, now, p.Status().State)
		}
	}
	another := func(truth json.RawMessage) map[string]any {
		var h map[string]any
		_ = json.Unmarshal(truth, &h)
		h["logsBloom"] = "0x" + strings.Repeat("0", 512)
		reseal(h, "another block")
		return h
	}

	var reads atomic.Int64
	watched.use(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		switch {
		case method == "eth_getLogs":
			return []any{}, nil, true
		case method == "eth_getBlockByNumber" && string(params[0]) == `"latest"`, method == "eth_getBlockByNumber" &&
			string(params[0]) == height && reads.Add(1)%2 == 1:
			return another(truth()), nil, true
		}
		return nil, nil, false
	})
	unchanged("another hash, read once")

	old := r.blockAt("0x5")
	watched.use(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return another(old), nil, method == "eth_getBlockByNumber" && string(params[0]) == `"latest"`
	})
	unchanged("an old head")

	// A block that does not follow the log's head is not appended, whichever node returned it.
	watched.use(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		switch {
		case method == "eth_getLogs":
			return []any{}, nil, true
		case method == "eth_getBlockByNumber" && string(params[0]) == `"latest"`:
			h := another(truth())
			h["parentHash"] = otherHash
			reseal(h, "another block")
			return h, nil, true
		}
		return nil, nil, false
	})
	r.mine(1)
	unchanged("a block with another parent")
	watched.use(honest)
	p.caughtUp()
	r.verify()
}

// An endpoint whose next block does not follow its own block at the log's head, as when two backends on different
// branches serve one URL, loses its turn, and the status says why while there is no other.
func TestBlockThatDoesNotFollowItsOwnChain(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(10)
	torn := r.newProxy(honest)
	r.config.RPC = rpc.Endpoints(torn.URL, r.url)
	p := r.follow()
	var next atomic.Uint64 // the block that does not follow
	next.Store(r.height() + 1)
	torn.use(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		var h map[string]any
		if method != "eth_getBlockByNumber" || json.Unmarshal(truth(), &h) != nil || h == nil {
			return nil, nil, false
		}
		if number, err := hexutil.DecodeUint64(h["number"].(string)); err != nil || number != next.Load() {
			return nil, nil, false
		}
		h["parentHash"] = otherHash
		reseal(h, "another block")
		return h, nil, true
	})
	r.mine(3)
	p.caughtUp()
	r.verify()
	p.halt()

	next.Store(r.height() + 1)
	r.config.RPC = rpc.Endpoints(torn.URL)
	p = r.start()
	r.mine(1)
	p.until("reason", func(st status.Status) bool {
		return st.State == status.Following && strings.Contains(st.Reason, "has the parent "+otherHash)
	})
}

// reseal turns a header into one of another block: with this extra data, and the hash of the changed fields.
func reseal(h map[string]any, extra string) {
	h["extraData"] = hexutil.Encode([]byte(extra))
	raw, _ := json.Marshal(h)
	var header types.Header
	if err := json.Unmarshal(raw, &header); err != nil {
		panic(err)
	}
	h["hash"] = header.Hash().Hex()
}

const otherHash = "0x00000000000000000000000000000000000000000000000000000000000000aa"
