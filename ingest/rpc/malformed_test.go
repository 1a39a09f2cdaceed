package rpc

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/schemas/event"
)

// scriptedNode is a node whose responses the test controls.
type scriptedNode struct {
	*Node
	t *testing.T

	mu     sync.Mutex
	result func(method string, params []json.RawMessage) any // result of each call
	send   func(w http.ResponseWriter, questions []scriptedCall, batch bool)
	calls  int // HTTP requests
}

type scriptedCall struct {
	ID     json.RawMessage
	Method string
	Params []json.RawMessage
}

func newScriptedNode(t *testing.T) *scriptedNode {
	t.Helper()
	o := &scriptedNode{t: t}
	o.send = func(w http.ResponseWriter, questions []scriptedCall, batch bool) {
		_, _ = w.Write(o.body(questions, batch))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var questions []scriptedCall
		batch := bytes.HasPrefix(body, []byte("["))
		if !batch {
			body = slices.Concat([]byte("["), body, []byte("]"))
		}
		if err := json.Unmarshal(body, &questions); err != nil {
			t.Errorf("asked %s: %v", body, err)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.calls++
		o.send(w, questions, batch)
	}))
	t.Cleanup(server.Close)
	o.Node = noPool(wallClock).newNode(Endpoint{URL: server.URL}, "scripted")
	t.Cleanup(o.close)
	return o
}

// answers returns regular responses to calls.
func (o *scriptedNode) answers(questions []scriptedCall) (all []map[string]any) {
	for _, q := range questions {
		all = append(all, map[string]any{"jsonrpc": "2.0", "id": q.ID, "result": o.result(q.Method, q.Params)})
	}
	return all
}

func (o *scriptedNode) body(questions []scriptedCall, batch bool) []byte {
	answers := o.answers(questions)
	if batch {
		return mustJSON(o.t, answers)
	}
	return mustJSON(o.t, answers[0])
}

// scriptedBlock is a block as a node returns it, and scriptedLogs are its logs.
var (
	scriptedHash  = common.HexToHash("0x0a0b")
	scriptedBlock = map[string]any{
		"number": "0x1f", "hash": scriptedHash, "parentHash": common.HexToHash("0x0c0d"), "timestamp": "0x6553f11f",
		"logsBloom": "0x" + strings.Repeat("ff", 256), "transactions": []any{}, "extraData": "0x", "gasUsed": "0x0",
	}
)

func scriptedLogs() (logs []map[string]any) {
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range 3 {
		l := someLog(rng, 0x1f, i, 32)
		l["blockHash"], l["blockTimestamp"], l["address"] = scriptedHash, scriptedBlock["timestamp"], common.HexToAddress("0xa1")
		l["topics"] = []any{common.HexToHash("0xE1")}
		logs = append(logs, mustCopy(l))
	}
	return logs
}

// mustCopy returns an object as encoding/json decodes it, which the test may change.
func mustCopy(v any) (out map[string]any) {
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

func with(object map[string]any, name string, value any) map[string]any {
	changed := maps.Clone(object)
	changed[name] = value
	return changed
}

func without(object map[string]any, name string) map[string]any {
	changed := maps.Clone(object)
	delete(changed, name)
	return changed
}

// asking is one method that ingest calls, in one of the ways in which it calls it.
type asking struct {
	name, method string
	truth        any
	ask          func(*scriptedNode, context.Context) (any, error)
}

func askings() []asking {
	h := &Header{Number: 0x1f, Hash: scriptedHash, Parent: common.HexToHash("0x0c0d"), Time: 0x6553f11f}
	vault := []common.Address{common.HexToAddress("0xa1")}
	block := mustCopy(scriptedBlock)
	return []asking{
		{"chain id", "eth_chainId", "0x1f", func(n *scriptedNode, ctx context.Context) (any, error) { return n.chainID(ctx) }},
		{"code", "eth_getCode", "0x6001",
			func(n *scriptedNode, ctx context.Context) (any, error) { return n.HasCode(ctx, vault[0], h) }},
		{"call", "eth_call", "0x00ff", func(n *scriptedNode, ctx context.Context) (any, error) {
			views := []Sample{{At: h}}
			err := n.views(ctx, views)
			return views[0].Output, err
		}},
		{"latest", "eth_getBlockByNumber", block,
			func(n *scriptedNode, ctx context.Context) (any, error) { return n.Latest(ctx) }},
		{"finalized", "eth_getBlockByNumber", block,
			func(n *scriptedNode, ctx context.Context) (any, error) { return n.finalized(ctx) }},
		{"by number", "eth_getBlockByNumber", block,
			func(n *scriptedNode, ctx context.Context) (any, error) { return n.ByNumber(ctx, 0x1f) }},
		{"by hash", "eth_getBlockByHash", block,
			func(n *scriptedNode, ctx context.Context) (any, error) { return n.ByHash(ctx, scriptedHash, 0x1f) }},
		{"one header", "eth_getBlockByNumber", block,
			func(n *scriptedNode, ctx context.Context) (any, error) { return n.Headers(ctx, 0x1f, 0x1f) }},
		{"headers", "eth_getBlockByHash", block, func(n *scriptedNode, ctx context.Context) (any, error) {
			return n.headers(ctx, "eth_getBlockByHash", []any{scriptedHash, scriptedHash})
		}},
		{"logs of a range", "eth_getLogs", scriptedLogs(), func(n *scriptedNode, ctx context.Context) (any, error) {
			a, err := n.logsOfRange(ctx, maxAnswer, 0x1f, 0x1f, vault)
			if err != nil {
				return nil, err
			}
			return a.logs, n.checkBlock(a.logs, h)
		}},
		{"logs of a block", "eth_getLogs", scriptedLogs(),
			func(n *scriptedNode, ctx context.Context) (any, error) { return n.logsByHash(ctx, h, vault) }},
		{"receipts of a block", "eth_getBlockReceipts", []any{map[string]any{"status": "0x1", "logs": scriptedLogs()}},
			func(n *scriptedNode, ctx context.Context) (any, error) { return n.receipts(ctx, h, nil) }},
		{"a receipt", "eth_getTransactionReceipt", map[string]any{"status": "0x1", "logs": scriptedLogs()},
			func(n *scriptedNode, ctx context.Context) (any, error) { return n.LogsOf(ctx, common.Hash{1}) }},
		{"an announcement", "eth_subscription", block, func(n *scriptedNode, _ context.Context) (any, error) {
			var a announcement
			err := json.Unmarshal(mustJSON(n.t, n.result("", nil)), &a)
			return a.number, err
		}},
	}
}

func sameAnswer(a, b any) bool {
	some, isLogs := a.([]*event.Log)
	if !isLogs {
		return reflect.DeepEqual(a, b)
	}
	return slices.EqualFunc(some, b.([]*event.Log), func(a, b *event.Log) bool { return proto.Equal(a, b) })
}

// malformedLog is a malformed form of the second of three logs.
type malformedLog struct {
	name   string
	change func(l map[string]any) []map[string]any
	// refused is what the error must name; empty if the response is still accepted. The receipt of a single transaction
	// needs neither positions nor order.
	refused string
}

func malformedLogs() []malformedLog {
	one := func(l map[string]any) []map[string]any { return []map[string]any{l} }
	set := func(name string, value any) func(map[string]any) []map[string]any {
		return func(l map[string]any) []map[string]any { return one(with(l, name, value)) }
	}
	drop := func(name string) func(map[string]any) []map[string]any {
		return func(l map[string]any) []map[string]any { return one(without(l, name)) }
	}
	text := func(name string, change func(string) string) func(map[string]any) []map[string]any {
		return func(l map[string]any) []map[string]any { return one(with(l, name, change(l[name].(string)))) }
	}
	upper := func(s string) string { return "0X" + strings.ToUpper(s[2:]) }
	bare := func(s string) string { return s[2:] }
	return []malformedLog{
		{"integers", func(l map[string]any) []map[string]any {
			return one(with(with(with(with(l, "blockNumber", 0x1f), "logIndex", 1), "transactionIndex", 1), "blockTimestamp",
				0x6553f11f))
		}, ""},
		{"leading zeros", func(l map[string]any) []map[string]any {
			return one(with(with(with(l, "blockNumber", "0x000000000000000000001f"), "logIndex", "0x01"), "blockTimestamp",
				"0x006553f11f"))
		}, ""},
		{"upper-case address", text("address", upper), ""},
		{"upper-case data", text("data", upper), ""},
		{"upper-case block hash", text("blockHash", upper), ""},
		{"no 0x in address", text("address", bare), ""},
		{"no 0x in data", text("data", bare), ""},
		{"no 0x in transaction hash", text("transactionHash", bare), ""},
		{"unknown members", func(l map[string]any) []map[string]any {
			return one(with(with(l, "type", "mined"), "l1Fee", map[string]any{"a": []any{nil, "]}"}}))
		}, ""},
		{"no removed", drop("removed"), ""},
		{"null removed", set("removed", nil), ""},
		{"no blockTimestamp", drop("blockTimestamp"), ""},
		{"null blockTimestamp", set("blockTimestamp", nil), ""},
		{"blockTimestamp 0", set("blockTimestamp", "0x0"), ""},
		{"blockTimestamp in words", set("blockTimestamp", "2023-11-14T22:13:20Z"), ""},
		{"blockTimestamp in milliseconds", set("blockTimestamp", 0x6553f11f*1000), ""},
		{"another blockTimestamp", set("blockTimestamp", "0x6553f120"), "time"},
		{"a null topic", set("topics", []any{nil}), "topics"},
		{"null logIndex", set("logIndex", nil), "logIndex"},
		{"duplicate log", func(l map[string]any) []map[string]any { return []map[string]any{l, l} }, ""},
		{"two different logs at one position", func(l map[string]any) []map[string]any {
			return []map[string]any{l, with(l, "data", "0x00")}
		}, "logIndex"},
		{"a pending log", func(l map[string]any) []map[string]any {
			p := maps.Clone(l)
			for _, name := range []string{"blockNumber", "blockHash", "transactionHash", "transactionIndex", "logIndex",
				"blockTimestamp"} {
				p[name] = nil
			}
			return []map[string]any{p, l}
		}, ""},
		{"a removed log of another block", func(l map[string]any) []map[string]any {
			return []map[string]any{with(with(l, "removed", true), "blockHash", common.HexToHash("0x0e0f")), l}
		}, ""},
	}
}

// Every method is tested with every malformed result: a result with a single possible meaning is accepted, and any
// other is rejected with the name of the field.
func TestMalformedResults(t *testing.T) {
	type malformed struct {
		name    string
		result  any
		refused string
	}
	for _, a := range askings() {
		var cases []malformed
		add := func(name string, result any, refused string) { cases = append(cases, malformed{name, result, refused}) }
		switch truth := a.truth.(type) {
		case string: // a quantity or bytes
			add("upper case", "0X"+strings.ToUpper(truth[2:]), "")
			add("an object", map[string]any{}, a.method)
			add("null", nil, a.method)
			if a.method == "eth_chainId" {
				add("an integer", 0x1f, "")
				add("leading zeros", "0x001f", "")
				add("no 0x", "31", a.method)
				add("65 bits", "0x10000000000000000", a.method)
			} else {
				add("no 0x", truth[2:], "")
				add("an extra digit", truth+"0", a.method)
				add("an integer", 12, a.method)
			}
		case map[string]any: // a block or a receipt
			if a.method == "eth_getTransactionReceipt" {
				break
			}
			add("integers", with(with(truth, "number", 0x1f), "timestamp", 0x6553f11f), "")
			add("leading zeros", with(with(truth, "number", "0x001f"), "timestamp", "0x00006553f11f"), "")
			add("unknown members", with(truth, "withdrawals", []any{map[string]any{"number": "0x1"}}), "")
			add("no 0x in the number", with(truth, "number", "31"), "number")
			add("no number", without(truth, "number"), "number")
			if a.method == "eth_subscription" {
				break
			}
			add("upper case", with(truth, "hash", "0X"+strings.ToUpper(scriptedHash.Hex()[2:])), "")
			add("no 0x", with(with(truth, "hash", scriptedHash.Hex()[2:]), "logsBloom", strings.Repeat("ff", 256)), "")
			add("null number", with(truth, "number", nil), "number")
			if strings.HasPrefix(a.name, "by ") {
				add("another number", with(truth, "number", "0x10000000000"), "when asked for block 31")
			}
			add("no hash", without(truth, "hash"), "hash")
			add("short hash", with(truth, "hash", "0x12"), "hash")
			add("no parent", without(truth, "parentHash"), "parentHash")
			add("null parent", with(truth, "parentHash", nil), "parentHash")
			add("no time", without(truth, "timestamp"), "timestamp")
			add("short bloom", with(truth, "logsBloom", "0x00"), "logsBloom")
			add("bloom as a list", with(truth, "logsBloom", []any{}), "logsBloom")
			add("null", nil, ErrNoBlock.Error())
			add("a list", []any{}, "a list and not a block")
			cases[len(cases)-1].refused = "not a block"
		}
		for _, o := range cases {
			t.Run(a.name+", "+o.name, func(t *testing.T) { checkMalformed(t, a, o.result, o.refused) })
		}
		logs := func(change func([]map[string]any) []map[string]any) any {
			changed := change(scriptedLogs())
			switch a.method {
			case "eth_getBlockReceipts":
				return []any{map[string]any{"logs": changed[:1]}, map[string]any{"logs": changed[1:]}}
			case "eth_getTransactionReceipt":
				return map[string]any{"logs": changed}
			}
			return changed
		}
		switch a.method {
		case "eth_getLogs", "eth_getBlockReceipts":
		default:
			continue
		}
		for _, o := range malformedLogs() {
			t.Run(a.name+", "+o.name, func(t *testing.T) {
				checkMalformed(t, a, logs(func(l []map[string]any) []map[string]any {
					return slices.Concat(l[:1], o.change(l[1]),
						l[2:])
				}), o.refused)
			})
		}
		t.Run(a.name+", out of order", func(t *testing.T) {
			checkMalformed(t, a, logs(func(l []map[string]any) []map[string]any { slices.Reverse(l); return l }), "")
		})
		t.Run(a.name+", removed", func(t *testing.T) {
			result := logs(func(l []map[string]any) []map[string]any { l[1]["removed"] = true; return l })
			if a.name == "logs of a range" {
				n := newScriptedNode(t)
				n.result = func(string, []json.RawMessage) any { return result }
				if a, err := n.logsOfRange(t.Context(), maxAnswer, 0x1f, 0x1f, nil); err != nil || len(a.logs) != 2 ||
					len(a.removed) != 1 {
					t.Errorf("%+v, %v", a, err)
				}
				return
			}
			checkMalformed(t, a, result, "removed")
		})
	}
}

// checkMalformed compares the outcome of a malformed result with that of the regular one.
func checkMalformed(t *testing.T, a asking, result any, refused string) {
	t.Helper()
	n := newScriptedNode(t)
	n.result = func(string, []json.RawMessage) any { return a.truth }
	want, err := a.ask(n, t.Context())
	if err != nil {
		t.Fatalf("the regular result is rejected: %v", err)
	}
	n.result = func(string, []json.RawMessage) any { return result }
	got, err := a.ask(n, t.Context())
	switch {
	case refused == "" && err != nil:
		t.Errorf("the malformed result is rejected: %v", err)
	case refused == "" && !sameAnswer(got, want):
		t.Errorf("the malformed result is read as %v instead of %v", got, want)
	case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
		t.Errorf("the error must name %s and is %v (%v)", refused, err, got)
	}
}

// Results that are empty in several ways.
func TestMalformedEmptyResults(t *testing.T) {
	for _, a := range askings() {
		if a.method != "eth_getLogs" && a.method != "eth_getTransactionReceipt" && a.method != "eth_getBlockReceipts" {
			continue
		}
		results := map[string]any{"null": nil, "no logs": []any{}}
		switch a.method {
		case "eth_getTransactionReceipt":
			results = map[string]any{"null": nil, "no logs": map[string]any{"logs": []any{}},
				"null logs": map[string]any{"logs": nil}}
		case "eth_getBlockReceipts":
			results = map[string]any{"no receipts": []any{}, "null logs": []any{map[string]any{"logs": nil}}}
		}
		for name, result := range results {
			n := newScriptedNode(t)
			n.result = func(string, []json.RawMessage) any { return result }
			if got, err := a.ask(n, t.Context()); err != nil || len(got.([]*event.Log)) > 0 {
				t.Errorf("%s, %s: %v, %v", a.name, name, got, err)
			}
		}
	}
	n := newScriptedNode(t)
	n.result = func(string, []json.RawMessage) any { return nil }
	if _, err := n.receipts(t.Context(), &Header{}, nil); err == nil || !strings.Contains(err.Error(), ErrNoReceipts.Error()) {
		t.Errorf("null receipts: %v", err)
	}
	// Logs with empty parts.
	for name, value := range map[string][]any{"topics": {nil, []any{}}, "data": {nil, "", "0x"}} {
		for _, empty := range value {
			logs := scriptedLogs()
			logs[0][name] = empty
			a, err := decodeLogs(mustJSON(t, logs))
			if err != nil || name == "topics" && len(a.logs[0].Topics) > 0 || name == "data" && len(a.logs[0].Data) > 0 {
				t.Errorf("%s %v: %v", name, empty, err)
			}
		}
	}
}

// malformedResponse is a malformed form of a whole response; refused is part of the error if the response must be
// rejected.
type malformedResponse struct {
	name    string
	send    func(o *scriptedNode, w http.ResponseWriter, questions []scriptedCall, batch bool)
	refused string
}

func malformedResponses() []malformedResponse {
	answers := func(change func(map[string]any)) func(o *scriptedNode, w http.ResponseWriter, questions []scriptedCall,
		batch bool) {
		return func(o *scriptedNode, w http.ResponseWriter, questions []scriptedCall, batch bool) {
			all := o.answers(questions)
			for _, a := range all {
				change(a)
			}
			var out any = all
			if !batch {
				out = all[0]
			}
			_, _ = w.Write(mustJSON(o.t, out))
		}
	}
	body := func(change func(w http.ResponseWriter, body []byte)) func(o *scriptedNode, w http.ResponseWriter,
		questions []scriptedCall, batch bool) {
		return func(o *scriptedNode, w http.ResponseWriter, questions []scriptedCall, batch bool) {
			change(w, o.body(questions, batch))
		}
	}
	quoted := func(a map[string]any) { a["id"] = string(a["id"].(json.RawMessage)) }
	squeeze := func(body []byte, to func(io.Writer) io.WriteCloser) []byte {
		var packed bytes.Buffer
		w := to(&packed)
		_, _ = w.Write(body)
		_ = w.Close()
		return packed.Bytes()
	}
	zip := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	return []malformedResponse{
		{"id as a string", answers(quoted), ""},
		{"id with a fraction", answers(func(a map[string]any) {
			a["id"] = json.RawMessage(string(a["id"].(json.RawMessage)) +
				".0")
		}), ""},
		{"unknown members", answers(func(a map[string]any) {
			a["node"], a["took"] = map[string]any{"id": 1, "result": nil},
				0.5
		}), ""},
		{"error null", answers(func(a map[string]any) { a["error"] = nil }), ""},
		{"error empty", answers(func(a map[string]any) { a["error"] = "" }), ""},
		{"no jsonrpc", answers(func(a map[string]any) { delete(a, "jsonrpc") }), ""},
		{"another id", answers(func(a map[string]any) { a["id"] = 1_000_000 }), errWrongCall.Error()},
		{"no result", answers(func(a map[string]any) { delete(a, "result") }), errForeign.Error()},
		{"byte order mark", body(func(w http.ResponseWriter, body []byte) {
			_,
				_ = w.Write(slices.Concat([]byte("\xef\xbb\xbf"), body))
		}), ""},
		{"white space", body(func(w http.ResponseWriter, body []byte) {
			_, _ = w.Write(slices.Concat([]byte(" \r\n\t"), body, []byte("\r\n\n")))
		}), ""},
		{"gzip", body(func(w http.ResponseWriter, body []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(squeeze(body, zip))
		}), ""},
		{"gzip without a header", body(func(w http.ResponseWriter, body []byte) { _, _ = w.Write(squeeze(body, zip)) }), ""},
		{"a header of gzip without gzip", body(func(w http.ResponseWriter, body []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(body)
		}), ""},
		{"deflate", body(func(w http.ResponseWriter, body []byte) {
			w.Header().Set("Content-Encoding", "deflate")
			_, _ = w.Write(squeeze(body, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }))
		}), ""},
		{"half of a gzip", body(func(w http.ResponseWriter, body []byte) {
			packed := squeeze(body, zip)
			_, _ = w.Write(packed[:len(packed)/2])
		}), errTruncated.Error()},
		{"brotli", body(func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write([]byte{0x8b, 0x02, 0x80})
		}), "Content-Encoding"},
		{"plain text in chunks", body(func(w http.ResponseWriter, body []byte) {
			w.Header().Set("Content-Type", "text/plain")
			for _, piece := range [][]byte{body[:len(body)/2], body[len(body)/2:]} {
				_, _ = w.Write(piece)
				_ = http.NewResponseController(w).Flush()
			}
		}), ""},
		{"HTTP 203", body(func(w http.ResponseWriter, body []byte) {
			w.WriteHeader(http.StatusNonAuthoritativeInfo)
			_, _ = w.Write(body)
		}), ""},
		{"HTTP 204", body(func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusNoContent) }), "HTTP 204"},
		{"nothing", body(func(http.ResponseWriter, []byte) {}), errTruncated.Error()},
		{"HTML", body(func(w http.ResponseWriter, _ []byte) {
			_, _ = io.WriteString(w, "<html>\x00<body>down for\n maintenance\u202e</body></html>")
		}), "<html>\ufffd<body>down for maintenance\ufffd</body></html>"},
		{"an error without words", answers(func(a map[string]any) { a["result"], a["error"] = nil, map[string]any{} }),
			"code 0"},
		{"an error with a code in quotes", answers(func(a map[string]any) {
			delete(a, "result")
			a["error"] = map[string]any{"code": "-32000", "message": "no\x00thing", "data": []any{1}}
		}), "no\ufffdthing (code -32000)"},
	}
}

// Every method is tested with every malformed form of a response.
func TestMalformedResponses(t *testing.T) {
	for _, a := range askings() {
		if a.method == "eth_subscription" {
			continue
		}
		for _, d := range malformedResponses() {
			t.Run(a.name+", "+d.name, func(t *testing.T) {
				n := newScriptedNode(t)
				n.result = func(string, []json.RawMessage) any { return a.truth }
				want, err := a.ask(n, t.Context())
				if err != nil {
					t.Fatal(err)
				}
				n.send = func(w http.ResponseWriter, questions []scriptedCall, batch bool) { d.send(n, w, questions, batch) }
				got, err := a.ask(n, t.Context())
				switch {
				case d.refused == "" && (err != nil || !sameAnswer(got, want)):
					t.Errorf("%v, %v", got, err)
				case d.refused != "" && (err == nil || !strings.Contains(err.Error(), d.refused)):
					t.Errorf("the error must contain %q and is %v", d.refused, err)
				}
			})
		}
	}
}

// scriptedHeaders returns a node that has blocks 0 to 40.
func scriptedHeaders(t *testing.T) *scriptedNode {
	n := newScriptedNode(t)
	n.result = func(_ string, params []json.RawMessage) any {
		var number hexutil.Uint64
		if err := json.Unmarshal(params[0], &number); err != nil {
			t.Error(err)
		}
		hash := func(number uint64) common.Hash { return common.BigToHash(new(big.Int).SetUint64(number + 1)) }
		return map[string]any{"number": number, "hash": hash(uint64(number)), "parentHash": hash(uint64(number) - 1),
			"timestamp": "0x1", "logsBloom": "0x"}
	}
	return n
}

// If a batch gets a malformed response, or the relay rejects batches, the headers are read all the same, and the
// endpoint's behaviour is remembered.
func TestMalformedBatches(t *testing.T) {
	whole := func(answer string) func(o *scriptedNode, w http.ResponseWriter, q []scriptedCall) {
		return func(_ *scriptedNode, w http.ResponseWriter, _ []scriptedCall) { _, _ = io.WriteString(w, answer) }
	}
	status := func(code int, text string) func(o *scriptedNode, w http.ResponseWriter, q []scriptedCall) {
		return func(_ *scriptedNode, w http.ResponseWriter, _ []scriptedCall) { http.Error(w, text, code) }
	}
	changed := func(change func([]map[string]any) []map[string]any) func(o *scriptedNode, w http.ResponseWriter,
		q []scriptedCall) {
		return func(o *scriptedNode, w http.ResponseWriter, q []scriptedCall) {
			_, _ = w.Write(mustJSON(o.t, change(o.answers(q))))
		}
	}
	for _, c := range []struct {
		name  string
		batch func(o *scriptedNode, w http.ResponseWriter, q []scriptedCall)
		takes bool // the endpoint accepts batches
	}{
		{"out of order", changed(func(a []map[string]any) []map[string]any { slices.Reverse(a); return a }), true},
		{"each twice", changed(func(a []map[string]any) []map[string]any { return slices.Concat(a, a) }), true},
		{"ids as strings", changed(func(a []map[string]any) []map[string]any {
			for _, one := range a {
				one["id"] = string(one["id"].(json.RawMessage))
			}
			return a
		}), true},
		{"one is missing", changed(func(a []map[string]any) []map[string]any { return a[1:] }), false},
		{"no ids", changed(func(a []map[string]any) []map[string]any {
			for _, one := range a {
				delete(one, "id")
			}
			return a
		}), false},
		{"a response to an unknown call",
			changed(func(a []map[string]any) []map[string]any { a[0]["id"] = 77_777; return a }), false},
		{"ids of other calls", changed(func(a []map[string]any) []map[string]any {
			a[0]["id"], a[1]["id"] = a[1]["id"], a[0]["id"]
			return a
		}), false},
		{"two different responses to one call", changed(func(a []map[string]any) []map[string]any {
			return append(a, map[string]any{"id": a[0]["id"], "result": nil})
		}), false},
		{"one error for all", whole(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}`),
			false},
		{"one error for all, with id 0", whole(`{"jsonrpc":"2.0","id":0,"error":{"code":"-32600","message":"no arrays"}}`),
			false},
		{"one error in a list", whole(`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}]`),
			false},
		{"an error for each call", changed(func(a []map[string]any) []map[string]any {
			for _, one := range a {
				delete(one, "result")
				one["error"] = map[string]any{"code": -32601, "message": "Batch requests are not supported"}
			}
			return a
		}), false},
		{"an empty list", whole(`[]`), false},
		{"null", whole(`null`), false},
		{"nothing", whole(``), false},
		{"one response", func(o *scriptedNode, w http.ResponseWriter, q []scriptedCall) { _, _ = w.Write(o.body(q[:1], false)) },
			false},
		{"HTML", whole(`<html>what?</html>`), false},
		{"HTTP 204", func(_ *scriptedNode, w http.ResponseWriter, _ []scriptedCall) { w.WriteHeader(http.StatusNoContent) }, false},
		{"HTTP 400", status(http.StatusBadRequest, "cannot unmarshal array"), false},
		{"HTTP 403", status(http.StatusForbidden, "blocked"), false},
		{"HTTP 405", status(http.StatusMethodNotAllowed, ""), false},
		{"HTTP 415", status(http.StatusUnsupportedMediaType, ""), false},
		{"HTTP 500", status(http.StatusInternalServerError, "panic"), false},
		{"HTTP 500 with a body", status(http.StatusInternalServerError,
			`{"id":null,"error":{"code":-32700,"message":"parse error"}}`), false},
		{"the connection is closed", func(o *scriptedNode, w http.ResponseWriter, _ []scriptedCall) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				o.t.Error(err)
				return
			}
			conn.Close()
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := scriptedHeaders(t)
			batches, answered := 0, n.send
			n.send = func(w http.ResponseWriter, questions []scriptedCall, batch bool) {
				switch {
				case batch && len(questions) == 1:
					t.Error("a batch of one call")
				case batch:
					batches++
					c.batch(n, w, questions)
				default:
					answered(w, questions, false)
				}
			}
			for round := range 2 {
				batches = 0
				headers, err := n.Headers(t.Context(), 1, 20)
				if err != nil || len(headers) != 20 || headers[19].Number != 20 {
					t.Fatalf("%d headers, %v", len(headers), err)
				}
				// One that rejects batches with an error gets shorter ones, down to single calls.
				least := toFloat(c.takes || round == 0)
				if float64(batches) < least || float64(batches) > max(least, 5*toFloat(!c.takes && round == 0)) {
					t.Errorf("%d batches were sent in round %d", batches, round)
				}
			}
			if headers, err := n.Headers(t.Context(), 7, 7); err != nil || len(headers) != 1 {
				t.Errorf("one header: %v, %v", headers, err)
			}
		})
	}
}

// An endpoint that rejects batches gets one now and then, because another endpoint may serve the URL later, each time
// after twice as many single calls. Once it accepted one, that starts over.
func TestBatchesAreTriedAgain(t *testing.T) {
	n := scriptedHeaders(t)
	rejects, batches, answered := true, 0, n.send
	n.send = func(w http.ResponseWriter, questions []scriptedCall, batch bool) {
		if batch {
			batches++
		}
		if batch && rejects {
			_, _ = io.WriteString(w, `[]`)
			return
		}
		answered(w, questions, batch)
	}
	next := func(when string, want int) {
		t.Helper()
		batches = 0
		for reads := 1; ; reads++ {
			if _, err := n.Headers(t.Context(), 1, 2); err != nil || reads > want {
				t.Fatalf("%s: no batch in %d reads, %v", when, reads, err)
			}
			if batches > 0 {
				if reads != want {
					t.Errorf("%s: the next batch was sent in read %d, want %d", when, reads, want)
				}
				return
			}
		}
	}
	next("at the start", 1)
	next("after it was rejected", batchesAfter)
	rejects = false
	next("after it was rejected again", 2*batchesAfter)
	next("after it was accepted", 1)
	rejects = true
	next("while they are accepted", 1)
	next("after it was rejected again", batchesAfter)
}

// A batch that the endpoint rejects because of its length becomes shorter, down to single calls. An endpoint that fails
// at everything does not get single calls.
func TestBatchesThatAreRefusedForOtherReasons(t *testing.T) {
	n := scriptedHeaders(t)
	answered, longest := n.send, 0
	n.send = func(w http.ResponseWriter, questions []scriptedCall, batch bool) {
		if batch && len(questions) > 3 {
			_, _ = io.WriteString(w, `{"id":null,"error":{"code":-32600,"message":"batch too large"}}`)
			return
		}
		if batch {
			longest = max(longest, len(questions))
		}
		answered(w, questions, batch)
	}
	if headers, err := n.Headers(t.Context(), 1, 20); err != nil || len(headers) != 20 || longest < 2 {
		t.Errorf("%d headers in batches of %d, %v", len(headers), longest, err)
	}
	n = scriptedHeaders(t)
	n.send = func(w http.ResponseWriter, _ []scriptedCall, _ bool) {
		http.Error(w, "down", http.StatusInternalServerError)
	}
	if _, err := n.Headers(t.Context(), 1, 20); err == nil || n.calls != 2 || n.limits.callsAtOnce() != MaxBatchHeaders {
		t.Errorf("%d requests to an endpoint that is down, %v", n.calls, err)
	}
}

// The response with one header is bounded more tightly than that with logs, because many of them are in flight at once.
func TestLongHeader(t *testing.T) {
	n := newScriptedNode(t)
	padding := ""
	n.result = func(string, []json.RawMessage) any { return with(scriptedBlock, "transactions", padding) }
	for size, want := range map[int]error{maxHeader / 2: nil, maxHeader: errAnswerTooLong} {
		padding = strings.Repeat("a", size)
		_, latest := n.Latest(t.Context())
		_, one := n.headers(t.Context(), "eth_getBlockByHash", []any{common.HexToHash(fmt.Sprint(scriptedBlock["hash"]))})
		if !errors.Is(latest, want) || !errors.Is(one, want) {
			t.Errorf("headers of %d bytes give %v and %v, want %v", size, latest, one, want)
		}
	}
}

// Without proof a chain may have no blooms; with it, the error names the missing field and what to do.
func TestHeadersWithoutBloom(t *testing.T) {
	for name, block := range map[string]map[string]any{
		"null": with(scriptedBlock, "logsBloom", nil), "0x": with(scriptedBlock, "logsBloom", "0x"),
		"empty": with(scriptedBlock, "logsBloom", ""), "missing": without(scriptedBlock, "logsBloom"),
	} {
		n := newScriptedNode(t)
		n.result = func(method string, _ []json.RawMessage) any {
			if strings.HasPrefix(method, "eth_getBlockBy") {
				return block
			}
			return scriptedLogs()
		}
		h, err := n.Latest(t.Context())
		if err != nil || !h.NoBloom {
			t.Fatalf("%s: %+v, %v", name, h, err)
		}
		vaults := []common.Address{common.HexToAddress("0xa1")}
		if _, _, err := n.OneBlock(t.Context(), h, vaults, proof.Headers); err == nil ||
			!strings.Contains(err.Error(), "logsBloom") || !strings.Contains(err.Error(), "chain.proof") {
			t.Errorf("%s: %v", name, err)
		}
		if logs, _, err := n.OneBlock(t.Context(), h, vaults, proof.None); err != nil || len(logs) != 3 {
			t.Errorf("%s, without proof: %d logs, %v", name, len(logs), err)
		}
	}
}
