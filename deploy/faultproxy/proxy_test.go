package faultproxy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/deploy/faultproxy"
)

// call calls the proxy through go-ethereum's client, with a new connection each time.
func (p *proxied) call(method string, params ...any) (json.RawMessage, error) {
	p.t.Helper()
	client, err := rpc.DialContext(p.t.Context(), p.url)
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	var result json.RawMessage
	err = client.CallContext(p.t.Context(), &result, method, params...)
	return result, err
}

type logAnswer struct {
	BlockNumber hexutil.Uint64
	BlockHash   string
	LogIndex    hexutil.Uint64
}

func (p *proxied) logs(filter map[string]any) []logAnswer {
	p.t.Helper()
	result, err := p.call("eth_getLogs", filter)
	if err != nil {
		p.t.Fatal(err)
	}
	var logs []logAnswer
	if err := json.Unmarshal(result, &logs); err != nil || logs == nil {
		p.t.Fatalf("logs %s: %v", result, err)
	}
	return logs
}

func (p *proxied) number(method string, params ...any) (n uint64, null bool) {
	p.t.Helper()
	result, err := p.call(method, params...)
	if err != nil {
		p.t.Fatal(err)
	}
	if string(result) == "null" {
		return 0, true
	}
	var block struct{ Number hexutil.Uint64 }
	if json.Unmarshal(result, &block) == nil {
		return uint64(block.Number), false
	}
	var plain hexutil.Uint64
	if err := json.Unmarshal(result, &plain); err != nil {
		p.t.Fatalf("%s answers %s", method, result)
	}
	return uint64(plain), false
}

func rangeOf(from, to uint64) map[string]any {
	return map[string]any{"fromBlock": hexutil.Uint64(from), "toBlock": hexutil.Uint64(to)}
}

func TestHonestProxyChangesNothing(t *testing.T) {
	p := newProxied(t, nil)
	if n, _ := p.number("eth_blockNumber"); n != head {
		t.Errorf("the head is %d", n)
	}
	if got := len(p.logs(rangeOf(1, 50))); got != 50*logsPerBlock {
		t.Errorf("%d logs", got)
	}
	if len(p.lines) != 0 {
		t.Errorf("injected %v", p.lines)
	}
}

func TestStaleBackend(t *testing.T) {
	p := newProxied(t, func(c *faultproxy.Config) { c.Behind, c.Faults = 5, []faultproxy.Fault{faultproxy.Stale} })
	if err := p.SetRate(1); err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for range 20 {
		latest, _ := p.number("eth_getBlockByNumber", "latest", false)
		plain, _ := p.number("eth_blockNumber")
		finalized, _ := p.number("eth_getBlockByNumber", "finalized", false)
		for what, n := range map[string]uint64{"latest": latest, "the block number": plain,
			"finalized": finalized + head - final} {
			if n < head-5 || n >= head {
				t.Errorf("%s is %d blocks behind, want 1 to 5", what, head-n)
			}
		}
		seen[latest] = true
		if logs := p.logs(rangeOf(90, head)); logs[len(logs)-1].BlockNumber >= head || logs[0].BlockNumber != 90 {
			t.Errorf("logs of blocks %d to %d", logs[0].BlockNumber, logs[len(logs)-1].BlockNumber)
		}
	}
	if len(seen) < 3 {
		t.Errorf("only the heads %v were seen", seen)
	}
	if _, null := p.number("eth_getBlockByNumber", hexutil.Uint64(head), false); !null {
		t.Error("a stale backend has the newest block by its number")
	}
	if _, null := p.number("eth_getBlockByHash", hash(head), false); !null {
		t.Error("a stale backend has the newest block by its hash")
	}
	if got := p.logs(map[string]any{"blockHash": hash(head)}); len(got) != 0 {
		t.Errorf("a stale backend has %d logs of the newest block", len(got))
	}
	before := len(p.lines)
	if n, _ := p.number("eth_getBlockByNumber", "0x5", false); n != 5 {
		t.Errorf("block 5 is %d", n)
	}
	if len(p.logs(rangeOf(1, 10))) != 30 || len(p.lines) != before {
		t.Errorf("old blocks were spoiled: %v", p.lines[before:])
	}
}

func TestAlteredLogs(t *testing.T) {
	p := newProxied(t, nil)
	all := p.logs(rangeOf(1, 10))

	p.next("eth_getLogs", faultproxy.EmptyLogs)
	if got := p.logs(rangeOf(1, 10)); len(got) != 0 {
		t.Errorf("empty: %d logs", len(got))
	}
	p.next("eth_getLogs", faultproxy.TruncatedLogs)
	if got := p.logs(rangeOf(1, 10)); !slices.Equal(got, all[:20]) {
		t.Errorf("truncated: %d logs", len(got))
	}
	for range 20 {
		p.next("eth_getLogs", faultproxy.PartialLogs)
		got := p.logs(rangeOf(1, 10))
		rest := slices.DeleteFunc(slices.Clone(all), func(l logAnswer) bool { return !slices.Contains(got, l) })
		if len(got) == 0 || len(got) >= len(all) || !slices.Equal(got, rest) {
			t.Errorf("partial: %d of %d logs, in order %v", len(got), len(all), slices.Equal(got, rest))
		}
	}
	p.next("eth_getLogs", faultproxy.WrongHash)
	wrong := map[hexutil.Uint64]int{}
	for i, l := range p.logs(rangeOf(1, 10)) {
		if l != all[i] {
			wrong[l.BlockNumber]++
		}
	}
	if len(wrong) != 1 {
		t.Errorf("wrong hashes in the blocks %v, want all logs of one block", wrong)
	}
	for block, n := range wrong {
		if n != logsPerBlock {
			t.Errorf("%d wrong hashes in block %d", n, block)
		}
	}
	p.next("eth_getLogs", faultproxy.TruncatedLogs, faultproxy.None, faultproxy.EmptyLogs)
	if a, b, c := p.logs(rangeOf(1, 2)), p.logs(rangeOf(1, 2)), p.logs(rangeOf(1, 2)); len(a) != 6 || len(b) != 6 ||
		len(c) != 0 {
		t.Errorf("a script gave %d, %d and %d logs", len(a), len(b), len(c))
	}
	if counts := p.Counts(); counts[faultproxy.TruncatedLogs] != 1 || counts[faultproxy.EmptyLogs] != 2 ||
		counts[faultproxy.PartialLogs] != 20 {
		t.Errorf("counted %v; a truncation that cuts nothing must not count", counts)
	}
}

func TestRefusals(t *testing.T) {
	p := newProxied(t, nil)
	for _, c := range []struct {
		fault faultproxy.Fault
		code  int
		want  string
	}{
		{faultproxy.RangeResults, -32005, "query returned more than 20 results"},
		{faultproxy.ResponseSize, -32008, "response size exceeded"},
		{faultproxy.RangeWide, -32600, "block range is too wide"},
		{faultproxy.RangeLimited, -32600, "eth_getLogs is limited to a 10 block range"},
		{faultproxy.RangeMaximum, -32000, "exceed maximum block range: 10"},
		{faultproxy.LimitExceeded, -32005, "limit exceeded"},
		{faultproxy.QueryTimeout, -32000, "query timeout exceeded"},
	} {
		p.next("eth_getLogs", c.fault, c.fault)
		_, err := p.call("eth_getLogs", rangeOf(1, 11))
		var refused rpc.Error
		if !errors.As(err, &refused) || refused.ErrorCode() != c.code || err.Error() != c.want {
			t.Errorf("%s: %v", c.fault, err)
		}
		if got := len(p.logs(rangeOf(1, 6))); got != 18 {
			t.Errorf("%s: a range within the limits gives %d logs", c.fault, got)
		}
	}
	p.next("eth_getLogs", faultproxy.Range413, faultproxy.Range413)
	var status rpc.HTTPError
	if _, err := p.call("eth_getLogs", map[string]any{"fromBlock": "0x50"}); !errors.As(err, &status) ||
		status.StatusCode != 413 {
		t.Errorf("a range up to the head: %v", err)
	}
	if got := len(p.logs(rangeOf(1, 10))); got != 30 {
		t.Errorf("a range of 10 blocks gives %d logs", got)
	}
	for _, one := range []map[string]any{rangeOf(7, 7), {"blockHash": hash(7)}} {
		p.next("eth_getLogs", faultproxy.BlockOverLimit)
		if _, err := p.call("eth_getLogs", one); err == nil || !strings.Contains(err.Error(), "more than 20 results") {
			t.Errorf("one block: %v", err)
		}
	}
	p.next("eth_chainId", faultproxy.ErrorBody)
	var refused rpc.Error
	if _, err := p.call("eth_chainId"); !errors.As(err, &refused) {
		t.Errorf("an error body: %v", err)
	}
}

func TestFalseOldHead(t *testing.T) {
	p := newProxied(t, nil)
	p.next("eth_getBlockByNumber", faultproxy.OldHead, faultproxy.OldHead)
	if n, null := p.number("eth_getBlockByNumber", "latest", false); null || n > head/2 {
		t.Errorf("the head is %d", n)
	}
	if n, _ := p.number("eth_getBlockByNumber", "finalized", false); n != final {
		t.Errorf("the final block is %d", n)
	}
	p.next("eth_blockNumber", faultproxy.OldHead)
	if n, _ := p.number("eth_blockNumber"); n > head/2 {
		t.Errorf("the block number is %d", n)
	}
}

func (p *proxied) post(body string) (*http.Response, []byte, error) {
	p.t.Helper()
	response, err := http.Post(p.url, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response, answer, err
}

const askVersion = `{"jsonrpc":"2.0","id":7,"method":"web3_clientVersion"}`

func TestDeliveries(t *testing.T) {
	p := newProxied(t, nil)
	ask := func(f faultproxy.Fault) (*http.Response, []byte, error) {
		t.Helper()
		p.next("web3_clientVersion", f)
		return p.post(askVersion)
	}
	for f, want := range map[faultproxy.Fault]int{faultproxy.TooManyRequests: 429, faultproxy.RetryAfter: 429,
		faultproxy.BadGateway: 502} {
		response, _, err := ask(f)
		if err != nil || response.StatusCode != want ||
			(response.Header.Get("Retry-After") != "") != (f == faultproxy.RetryAfter) {
			t.Errorf("%s: %+v, %v", f, response, err)
		}
	}
	if response, body, err := ask(faultproxy.ForeignBody); err != nil || response.StatusCode != 200 || !json.Valid(body) ||
		strings.Contains(string(body), "jsonrpc") {
		t.Errorf("foreign body: %q, %v", body, err)
	}
	for range 50 {
		if response, body, err := ask(faultproxy.BrokenBody); err != nil || response.StatusCode != 200 || json.Valid(body) ||
			len(body) == 0 {
			t.Fatalf("broken body: %q, %v", body, err)
		}
	}
	if _, body, err := ask(faultproxy.SlowBody); err != nil || !strings.Contains(string(body), `"first"`) {
		t.Errorf("slow body: %q, %v", body, err)
	}
	if _, _, err := ask(faultproxy.Reset); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("reset: %v", err)
	}
	if p.Counts()[faultproxy.Reset] != 1 {
		t.Errorf("counted %v", p.Counts())
	}
}

func TestBatches(t *testing.T) {
	p := newProxied(t, nil)
	const body = `[{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"},{"jsonrpc":"2.0","id":2,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x2"}]}]`
	p.next("eth_getLogs", faultproxy.EmptyLogs)
	_, answer, err := p.post(body)
	if err != nil || !strings.Contains(string(answer), `"0x64"`) || !strings.Contains(string(answer), `"result":[]`) {
		t.Errorf("a batch with an empty answer: %s, %v", answer, err)
	}
	p.next("batch", faultproxy.TooManyRequests)
	if response, _, err := p.post(body); err != nil || response.StatusCode != 429 {
		t.Errorf("a refused batch: %+v, %v", response, err)
	}
	if err := p.Next("batch", faultproxy.EmptyLogs); err == nil {
		t.Error("a batch as a whole can have empty logs")
	}
}

// Each call of a batch counts towards the calls per second, and a batch that is too long is never answered.
func TestCallsPerSecond(t *testing.T) {
	p := newProxied(t, func(c *faultproxy.Config) { c.CallsPerSecond = 2 })
	const one = `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}`
	for body, want := range map[string]int{"[" + one + "," + one + "," + one + "]": 429,
		"[" + one + "," + one + "]": 200} {
		answered := false
		for range 3 { // the second may have begun with other calls
			response, _, err := p.post(body)
			if err != nil {
				t.Fatal(err)
			}
			answered = answered || response.StatusCode == 200
		}
		if answered != (want == 200) {
			t.Errorf("a batch %s is answered: %t", body, answered)
		}
	}
	if p.Counts()[faultproxy.TooManyRequests] < 3 {
		t.Errorf("injected %v", p.Counts())
	}
}

// The same seed and the same requests get the same faults, whatever happens between requests of other methods; another
// seed gets different ones.
func TestSeedDecides(t *testing.T) {
	run := func(seed uint64, turns ...string) *proxied {
		p := newProxied(t, func(c *faultproxy.Config) {
			c.Seed, c.Faults, c.Rate = seed, slices.Concat(faultproxy.All(), faultproxy.FalseResponses()), 0.5
			c.Upstreams = append(c.Upstreams, upstream(t, "second"))
		})
		for range 200 {
			for _, turn := range turns {
				_, _, _ = p.post(turn)
			}
		}
		return p
	}
	const logs = `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x45","toBlock":"0x64"}]}`
	const latest = `{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",false]}`
	const final = `{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["finalized",false]}`
	const many = `[{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"},{"jsonrpc":"2.0","id":2,"method":"eth_blockNumber"}]`
	a, b, other, turned := run(1, logs, latest, final, many), run(1, logs, latest, final, many),
		run(2, logs, latest, final, many), run(1, many, latest, final, logs)
	if !slices.Equal(a.lines, b.lines) || len(a.lines) < 50 {
		t.Errorf("the same seed and requests gave %d and %d different lines", len(a.lines), len(b.lines))
	}
	if slices.Equal(a.lines, other.lines) {
		t.Error("another seed gave the same faults")
	}
	slices.Sort(a.lines)
	slices.Sort(turned.lines)
	if !slices.Equal(a.lines, turned.lines) {
		t.Error("another order of the methods gave other faults")
	}
	for _, f := range slices.Concat(faultproxy.Except(faultproxy.BlockOverLimit, faultproxy.NullLists),
		faultproxy.FalseResponses()) {
		// the test makes no requests of the kind that they need
		if a.Counts()[f] == 0 {
			t.Errorf("%s was never drawn in %d lines", f, len(a.lines))
		}
	}
}

func TestBackendsTakeTurns(t *testing.T) {
	p := newProxied(t, func(c *faultproxy.Config) { c.Upstreams = append(c.Upstreams, upstream(t, "second")) })
	answers := map[string]int{}
	for range 40 {
		_, body, err := p.post(askVersion)
		if err != nil {
			t.Fatal(err)
		}
		answers[string(body)]++
	}
	if len(answers) != 2 {
		t.Errorf("answers %v, want some of both backends", answers)
	}
}

func TestOffIsHonest(t *testing.T) {
	p := newProxied(t, func(c *faultproxy.Config) { c.Faults, c.Rate = faultproxy.All(), 1 })
	p.next("eth_blockNumber", faultproxy.Reset)
	p.Off()
	if n, _ := p.number("eth_blockNumber"); n != head || len(p.lines) != 0 {
		t.Errorf("head %d, injected %v", n, p.lines)
	}
}

func TestMistakes(t *testing.T) {
	_, err := faultproxy.New(faultproxy.Config{Upstreams: []string{"ws://user:secret@host"},
		Faults: []faultproxy.Fault{"gremlins"}, Rate: 2, Pause: -1, CallsPerSecond: -1}, nil)
	for _, want := range []string{"only http and https", `no fault "gremlins"`, "rate is 2", "stale backend",
		"does not exist", "range limit", "result limit", "pause", "calls a second"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("the error holds a secret: %v", err)
	}
	if _, err := faultproxy.New(faultproxy.Config{}, nil); err == nil || !strings.Contains(err.Error(), "no upstream") {
		t.Errorf("no upstream: %v", err)
	}
	p := newProxied(t, nil)
	for what, err := range map[string]error{
		"Next":           p.Next("eth_getLogs", "gremlins"),
		"Next of a head": p.Next("eth_chainId", faultproxy.OldHead), "SetRate": p.SetRate(-1),
	} {
		if err == nil {
			t.Errorf("%s accepts invalid input", what)
		}
	}
	for _, body := range []string{"", "{", "[1]", "[null]", `"x"`} {
		if _, answer, err := p.post(body); err != nil || !strings.Contains(string(answer), "-32700") {
			t.Errorf("request %q: %s, %v", body, answer, err)
		}
	}
	response, err := http.Get(p.url)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", response.Status)
	}
}

func TestUpstreamThatIsGone(t *testing.T) {
	p := newProxied(t, func(c *faultproxy.Config) {
		// no program listens at port 1; a port that was closed may be used again
		c.Upstreams = []string{"http://user:secret@127.0.0.1:1/secretkey"}
	})
	for _, f := range []faultproxy.Fault{faultproxy.None, faultproxy.BrokenBody, faultproxy.SlowBody} {
		p.next("web3_clientVersion", f)
		response, body, err := p.post(askVersion)
		if err != nil || response.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "does not answer") ||
			strings.Contains(string(body), "secret") {
			t.Errorf("%q: %s, %v", f, body, err)
		}
	}
	if len(p.lines) != 0 {
		t.Errorf("injected %v", p.lines)
	}
}

func ExampleInjection() {
	fmt.Println(faultproxy.Injection{Fault: faultproxy.EmptyLogs, Method: "eth_getLogs", Call: 17,
		Detail: "none of 3 logs"})
	// Output: empty-logs eth_getLogs#17: none of 3 logs
}
