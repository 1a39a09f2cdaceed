package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

func containsWords(s, words string) bool { return strings.Contains(s, words) }

// Real error messages of providers, and what they reveal about limits.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		code    int
		message string
		data    string
		want    refusal
	}{
		{-32005, "query returned more than 10000 results", "", refusal{kind: tooMuch, results: 10_000}},
		{-32005, "query returned more than 10000 results. Try with this block range [0x64, 0x7F].", "",
			refusal{kind: tooMuch, results: 10_000}},
		{-32005, "query returned more than 10000 results", `{"from":"0x64","limit":10000,"to":"0x70"}`,
			refusal{kind: tooMuch, results: 10_000}},
		{-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit " +
			"on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your " +
			"parameters and the response size limit, this block range should work: [0x64, 0x65]", "",
			refusal{kind: tooMuch, blocks: 2000, results: 10_000}},
		{-32602, "query exceeds max results 20000, retry with the range 100-150", "",
			refusal{kind: tooMuch, results: 20_000}},
		{-32000, "this block range should work: [0x1, 0x2]", "", refusal{kind: tooMuch}},
		{-32600, "block range is too wide", "", refusal{kind: tooMuch}},
		{-32614, "eth_getLogs is limited to a 10,000 range", "", refusal{kind: tooMuch, blocks: 10_000}},
		{-32600, "eth_getLogs and eth_newFilter are limited to a 10,000 blocks range", "",
			refusal{kind: tooMuch, blocks: 10_000}},
		{-32600, "eth_getLogs is limited to 0 - 50000 blocks range", "", refusal{kind: tooMuch, blocks: 50_000}},
		{-32000, "exceed maximum block range: 5000", "", refusal{kind: tooMuch, blocks: 5000}},
		{-32000, "Block range is too large", "", refusal{kind: tooMuch}},
		{-32000, "block range exceeds limit of 500", "", refusal{kind: tooMuch, blocks: 500}},
		{-32000, "requested too many blocks from 1 to 5000, maximum is set to 2048", "",
			refusal{kind: tooMuch, blocks: 2048}},
		{-32000, "GetLogs query must be smaller than size 1024", "", refusal{kind: tooMuch, blocks: 1024}},
		{-32602, "query exceeds max block range 100000", "", refusal{kind: tooMuch, blocks: 100_000}},
		{-32047, "Invalid block range params, max range: 800", "", refusal{kind: tooMuch, blocks: 800}},
		{-32000, "exceeds the range allowed for your plan (5001 > 2000)", "", refusal{kind: tooMuch, blocks: 2000}},
		{-32001, "ranges over 10000 blocks are not supported on freetier", "", refusal{kind: tooMuch, blocks: 10_000}},
		{-32000, "range is too large, max is 1k blocks", "", refusal{kind: tooMuch, blocks: 1000}},
		{-32000, "Too many logs requested. Max logs per request is 2000", "", refusal{kind: tooMuch, results: 2000}},
		{-32008, "response size exceeded", "", refusal{kind: tooMuch}},
		{-32000, "Response size is larger than 150MB limit.", "", refusal{kind: tooMuch}},
		{-32000, "backend response too large", "", refusal{kind: tooMuch}},
		{-32000, "query timeout exceeded", "", refusal{kind: tooMuch}},
		{-32000, "Query timed out. Try using a smaller block range", "", refusal{kind: tooMuch}},
		{-32005, "limit exceeded", "", refusal{kind: tooMuch}},
		{-32005, "request rate exceeded", "", refusal{kind: tooOften}},
		{-32005, "daily request count exceeded, request rate limited", "", refusal{kind: tooOften}},
		{-32029, "Too many requests", "", refusal{kind: tooOften}},
		{-32005, "You've exceeded the RPS limit available on the current plan.", "", refusal{kind: tooOften}},
		{429, "Your app has exceeded its compute units per second capacity", "", refusal{kind: tooOften}},
		{-32012, "credits limited to 6000/sec", "", refusal{kind: tooOften}},
		{-32000, "range exceeds the request limit of 500 blocks", "", refusal{kind: tooMuch, blocks: 500}},
		{-32000, "failed to generate a response", "", refusal{kind: unclear}},
		{-32603, "internal error", "", refusal{kind: unclear}},
		{-32000, "the method is not available", "", refusal{kind: unclear}},
		{-32602, "block range extends beyond current head block", "", refusal{kind: blocksMissing}},
		{-32602, "block range extends beyond current head block: requested 21000100, head 21000000", "",
			refusal{kind: blocksMissing}},
		{-32000, "block 50162452 is beyond the latest block 50162448 of this node, retry later", "", refusal{kind: blocksMissing}},
		{-32000, "requested to block 23734227 after last accepted block 23734226", "", refusal{kind: blocksMissing}},
		{-32603, "internal error: height 10004 must be less than or equal to the current blockchain height 9542", "",
			refusal{kind: blocksMissing}},
		{-32001, "One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found.", "",
			refusal{kind: blocksMissing}},
		{-32603, "upstream does not have the requested block yet", "", refusal{kind: blocksMissing}},
		{-32000, "request beyond head block: requested 21000100, head 21000000", "", refusal{kind: blocksMissing}},
		{-32000, "toBlock is greater than latest block", "", refusal{kind: blocksMissing}},
		{-32000, "block number 0x10 exceeds the current block number", "", refusal{kind: blocksMissing}},
		{-32000, "Version has either been pruned, or is for a future block", "", refusal{kind: blocksMissing}},
		{-32000, "block has not yet been mined", "", refusal{kind: blocksMissing}},
		{-32000, "header not found", "", refusal{kind: blocksMissing}},
		{-32000, "Unknown block", "", refusal{kind: blocksMissing}},
		{-32000, "could not find block", "", refusal{kind: blocksMissing}},
		{4444, "pruned history unavailable", "", refusal{kind: blocksMissing}},
		{-32000, "missing trie node 12ab (path )", "", refusal{kind: blocksMissing}},
		{-32000, "old data not available due to pruning: requested block 100", "", refusal{kind: blocksMissing}},
		{-32002, "Archive, Debug and Trace requests are not available on your current plan.", "", refusal{kind: blocksMissing}},
		{-32602, "Archive requests require a personal token", "", refusal{kind: blocksMissing}},
		// These name a head or a bound, but are about the length of the range.
		{-32000, "block range exceeds the maximum of 1000 blocks", "", refusal{kind: tooMuch, blocks: 1000}},
		{-32000, "block range exceeds the limit of 500 blocks for archive requests", "", refusal{kind: tooMuch, blocks: 500}},
		{-32000, "archive requests are limited to 500 blocks: longer ranges require a paid plan", "",
			refusal{kind: tooMuch, blocks: 500}},
		{-32000, "range beyond the limit of 1000 blocks", "", refusal{kind: tooMuch, blocks: 1000}},
		{-32602, "block range is greater than 2000 blocks, try a smaller one up to the latest block", "",
			refusal{kind: tooMuch, blocks: 2000}},
		{-32005, "the query exceeds the limit of 500 results", "", refusal{kind: tooMuch, results: 500}},
		// These name the length of the range before the bound.
		{-32602, "range 1000000 exceeds limit of 10000", "", refusal{kind: tooMuch, blocks: 10_000}},
		{-32000, "range 4097 > limit 4096", "", refusal{kind: tooMuch, blocks: 4096}},
		{-32000, "eth_getLogs block range too large, range: 10001, max: 10000", "", refusal{kind: tooMuch, blocks: 10_000}},
		{-32000, "requested block range 20000 is higher than allowed 10000", "", refusal{kind: tooMuch, blocks: 10_000}},
		{-32000, "the range 1000000-1010000 is too large, max 1000 blocks", "", refusal{kind: tooMuch, blocks: 1000}},
		{-32000, "Archive node required to access this block", "", refusal{kind: blocksMissing}},
		{-32000, "This request requires an archive node. Upgrade your plan", "", refusal{kind: blocksMissing}},
		{-32000, "archive node required", "", refusal{kind: blocksMissing}},
		{-32000, "blocks older than 128 blocks require an archive node", "", refusal{kind: blocksMissing}},
		// These are about the length of the range, although they name an archive.
		{-32000, "ranges over 2000 blocks require an archive plan", "", refusal{kind: tooMuch, blocks: 2000}},
		{-32000, "eth_getLogs is limited to a 10,000 block range on this plan. An archive plan is required for more", "",
			refusal{kind: tooMuch, blocks: 10_000}},
		{-32000, "block range 20000 exceeds your plan's limit; archive access required", "", refusal{kind: tooMuch}},
		{-32000, "more than 10000 results require an archive plan", "", refusal{kind: tooMuch, results: 10_000}},
		// These too, although they say that something is not available.
		{-32000, "block range greater than 10000 is not available on the free tier", "",
			refusal{kind: tooMuch, blocks: 10_000}},
		{-32000, "Block range over 500 is not available on your plan", "", refusal{kind: tooMuch, blocks: 500}},
		{-32000, "The requested block range (5000) is not available. Maximum block range is 1000", "",
			refusal{kind: tooMuch, blocks: 1000}},
		{-32000, "historical logs for more than 1000 blocks are not available on this plan", "",
			refusal{kind: tooMuch, blocks: 1000}},
		{-32000, "eth_getLogs is limited to 2000 results. Older history is not available", "",
			refusal{kind: tooMuch, results: 2000}},
		{-32000, "blocks before 1000 are not available", "", refusal{kind: blocksMissing}},
		{-32000, "logs more than 90,000 blocks old are pruned", "", refusal{kind: blocksMissing}},
		{-32000, "toBlock is more than 3 blocks ahead of the head", "", refusal{kind: blocksMissing}},
		{-32000, "historical data not available: this plan is limited to the last 128 blocks", "", refusal{kind: blocksMissing}},
		{-32000, "history unavailable: only blocks within the last 90000 blocks are kept", "", refusal{kind: blocksMissing}},
		{-32000, "missing trie node: state is limited to the most recent 128 blocks", "", refusal{kind: blocksMissing}},
		{-32000, "old data not available due to pruning: node keeps at most 100000 blocks", "", refusal{kind: blocksMissing}},
		{-32000, "logs pruned: retention is limited to 90000 blocks", "", refusal{kind: blocksMissing}},
		{-32000, "Pruned: block range must be within 90000 blocks of head", "", refusal{kind: blocksMissing}},
		{-32000, "block 120 not found, max block height 100", "", refusal{kind: blocksMissing}},
		{-32000, "requested block 1000 is not available: maximum block is 900", "", refusal{kind: blocksMissing}},
		{-32000, "toBlock may be at most 2000 blocks above fromBlock", "", refusal{kind: tooMuch, blocks: 2000}},
		{-32000, "cannot query over 500 blocks before toBlock", "", refusal{kind: tooMuch, blocks: 500}},
		{-32000, "range is limited to 1000 blocks past fromBlock", "", refusal{kind: tooMuch, blocks: 1000}},
		{-32000, "requested block range exceeds the current head block 21000000", "", refusal{kind: blocksMissing}},
		{-32000, "block range is greater than the latest block 120", "", refusal{kind: blocksMissing}},
		{-32000, "block range lies above the head 120", "", refusal{kind: blocksMissing}},
		{-32000, "height 120 is not available, lowest height is 130", "", refusal{kind: blocksMissing}},
		{-32000, "block range extends beyond current head block: requested 120, head 100", "", refusal{kind: blocksMissing}},
		// These name figures that are neither blocks nor results.
		{-32000, "range 5000 exceeds max response size of 100 mb", "", refusal{kind: tooMuch}},
		{-32000, "query range 500 exceeds 30 seconds", "", refusal{kind: tooMuch}},
		{-32000, "block range exceeds 30 seconds", "", refusal{kind: tooMuch}},
		{-32000, "response too large, the maximum is 150,000 bytes", "", refusal{kind: tooMuch}},
		{-32000, "max logs response size of 150 MB exceeded", "", refusal{kind: tooMuch}},
		{-32000, "range 5000 exceeds the maximum of 1000 blocks in 30 seconds", "", refusal{kind: tooMuch, blocks: 1000}},
	} {
		fault := &rpcError{Code: c.code, Message: c.message}
		if c.data != "" {
			fault.Data = json.RawMessage(c.data)
		}
		if got := refusalOf(t.Context(), fmt.Errorf("eth_getLogs at x: %w", fault)); got != c.want {
			t.Errorf("%q is read as %+v, want %+v", c.message, got, c.want)
		}
	}
	for _, c := range []struct {
		err  error
		want refusalKind
	}{
		{&httpError{Status: 413}, tooMuch}, {&httpError{Status: 504}, tooMuch}, {&httpError{Status: 408}, tooMuch},
		{errAnswerTooLong, tooMuch},
		{context.DeadlineExceeded, unanswered}, {&httpError{Status: 400, Body: "block range too large"}, tooMuch},
		{&httpError{Status: 429, Body: "limit exceeded"}, notRefused}, {&httpError{Status: 502}, notRefused},
		{errTruncated, notRefused}, {errors.New("connection reset"), notRefused},
		{&httpError{Status: 400, Body: `{"message":"block range extends beyond current head block"}`}, blocksMissing},
		{&httpError{Status: 403, Body: "archive node required"}, blocksMissing},
		{&httpError{Status: 403, Body: "ranges over 2000 blocks require an archive plan"}, tooMuch},
		{&httpError{Status: 400, Body: "block range over 2000 is not available"}, tooMuch},
		{&httpError{Status: 400, Body: "request rate: limited to 2000 blocks a second"}, notRefused},
		{&httpError{Status: 502, Body: "upstream does not have the requested block yet"}, blocksMissing}, {nil, notRefused},
	} {
		if got := refusalOf(t.Context(), c.err).kind; got != c.want {
			t.Errorf("%v is read as %d, want %d", c.err, got, c.want)
		}
	}
	ended, cancel := contextDone(t)
	defer cancel()
	if got := refusalOf(ended, context.DeadlineExceeded); got.kind != notRefused {
		t.Error("the end of ingest counts as a limit")
	}
}

// Only the beginning of an error of many megabytes is read, where its message is.
func TestLongErrors(t *testing.T) {
	padding := strings.Repeat("x ", 1<<20)
	for name, c := range map[string]struct {
		err    *rpcError
		blocks uint64
		often  bool
	}{
		"limit at the beginning of the message": {&rpcError{Code: -32000,
			Message: "query exceeds max block range 500 " + padding}, 500, false},
		"limit at the beginning of the data": {&rpcError{Code: -32000, Message: "no",
			Data: json.RawMessage(`"query exceeds max block range 500 ` + padding + `"`)}, 500, false},
		"limit after a long message": {&rpcError{Code: -32000, Message: padding + "query exceeds max block range 500"},
			0, false},
		"limit at the end of the data": {&rpcError{Code: -32000, Message: "no",
			Data: json.RawMessage(`"` + padding + `query exceeds max block range 500"`)}, 0, false},
		"rate limit at the beginning":     {&rpcError{Code: -32000, Message: "too many requests " + padding}, 0, true},
		"rate limit after a long message": {&rpcError{Code: -32000, Message: padding + "too many requests"}, 0, false},
	} {
		if got := refusalOf(t.Context(), c.err); got.blocks != c.blocks {
			t.Errorf("%s: %d blocks are read, want %d", name, got.blocks, c.blocks)
		}
		if _, often := limitOf(c.err); often != c.often {
			t.Errorf("%s: rate limited %t", name, often)
		}
	}
}

func TestFigures(t *testing.T) {
	for text, want := range map[string]uint64{"10000": 10_000, "10,000": 10_000, "2k": 2000, "1.5k": 1500,
		"1 million": 1_000_000, "1_000": 1000, "": 0, "k": 0, "99999999999999999999": 0} {
		if got := figureOf(text); got != want {
			t.Errorf("%q is read as %d, want %d", text, got, want)
		}
	}
}

// meter counts calls as providers do: each call of a batch, in time windows.
type meter struct {
	f       *fakeTime
	window  time.Duration
	most    int  // calls in a window
	says    bool // how long to wait, in Retry-After
	began   time.Time
	asked   int // calls in this window
	longest int // longest batch that succeeded
	given   int
	putOff  int // requests that were limited
}

func (m *meter) count(questions int) (bool, int) {
	m.f.pass(time.Millisecond)
	now := m.f.now()
	if now.Sub(m.began) >= m.window {
		m.began, m.asked = now, 0
	}
	if m.asked+questions > m.most {
		m.putOff++
		if m.says {
			return true, int((m.window - now.Sub(m.began) + time.Second - 1) / time.Second)
		}
		return true, 0
	}
	m.asked, m.given, m.longest = m.asked+questions, m.given+questions, max(m.longest, questions)
	return false, 0
}

// An endpoint may count each call of a batch: then batches are no longer than its burst, if one is set, and become
// shorter when it limits them. Results that it returned are not requested again, even if its limit per minute is below
// what is needed.
func TestBatchesThatAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint Endpoint
		meter    meter
		headers  uint64
		putOff   int  // at most
		single   bool // batches are rejected
	}{
		"by the second, with a burst": {Endpoint{RequestsPerSecond: 20, Burst: 10}, meter{window: time.Second, most: 40}, 400,
			0, false},
		"by the second, unknown": {Endpoint{}, meter{window: time.Second, most: 30}, 400, 40, false},
		"fewer than a batch":     {Endpoint{}, meter{window: time.Second, most: 3}, 50, 60, false},
		"by the minute":          {Endpoint{}, meter{window: time.Minute, most: 100, says: true}, 450, 30, false},
		"by the minute, unknown": {Endpoint{}, meter{window: time.Minute, most: 100}, 450, 80, false},
		"single calls":           {Endpoint{}, meter{window: time.Second, most: 2}, 30, 120, true},
		"one single call":        {Endpoint{}, meter{window: time.Second, most: 1}, 10, 60, true},
		"single calls of a burst": {Endpoint{RequestsPerSecond: 4, Burst: 2}, meter{window: time.Second, most: 8}, 30, 0,
			true},
	} {
		t.Run(name, func(t *testing.T) {
			chain := newFakeChain(t, 43, 500, sparse)
			f, m := newFakeTime(), c.meter
			m.f = f
			chain.meter, chain.noBatches = m.count, c.single
			c.endpoint.URL = chain.url
			n := noPool(f.clock()).newNode(c.endpoint, "fake")
			t.Cleanup(n.close)
			headers, err := n.Headers(t.Context(), 1, c.headers)
			if err != nil || uint64(len(headers)) != c.headers {
				t.Fatalf("%d of %d headers, %v; %+v", len(headers), c.headers, err, m)
			}
			want := int(c.headers)
			if c.single {
				want++ // the call that shows that batches are rejected
			}
			if m.given != want {
				t.Errorf("%d headers were given, want %d", m.given, want)
			}
			if m.putOff > c.putOff {
				t.Errorf("%d calls were rate-limited", m.putOff)
			}
			if b := c.endpoint.Burst; b > 0 && m.longest > b {
				t.Errorf("a batch has %d calls, with a burst of %d", m.longest, b)
			}
		})
	}
}

// Calls of contracts that an endpoint limits by the second are made one at a time, and none is repeated that succeeded.
// During a longer pause the caller may use another endpoint.
func TestViewsThatAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		meter meter
		all   bool
	}{
		"one a second":                    {meter{window: time.Second, most: 1}, true},
		"two a second":                    {meter{window: time.Second, most: 2}, true},
		"by the second, with Retry-After": {meter{window: time.Second, most: 3, says: true}, true},
		"by the minute":                   {meter{window: time.Minute, most: 3, says: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			chain := newFakeChain(t, 43, 20, sparse)
			f, m := newFakeTime(), c.meter
			m.f, chain.meter = f, m.count
			n := noPool(f.clock()).newNode(Endpoint{URL: chain.url}, "fake")
			t.Cleanup(n.close)
			var views []Sample
			for number := uint64(20); number > 0; number-- {
				at := &Header{Number: number, Hash: chain.blocks[number].hash}
				views = append(views, Sample{SampleCall: SampleCall{To: common.Address{1}, Number: number}, At: at})
			}
			began := f.now()
			err := n.views(t.Context(), views)
			var put *limitedError
			if c.all && (err != nil || m.given != len(views)) || !c.all &&
				(!errors.As(err, &put) || f.now().Sub(began) > viewsPatience) {
				t.Errorf("%d of %d calls succeeded after %s, %v", m.given, len(views), f.now().Sub(began), err)
			}
		})
	}
}

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Results are kept if an endpoint fails at later calls, such as a batch that it does not answer, or at one call in a
// hundred. An endpoint that fails at a call each time, or at all of them, is no longer called.
func TestCallsThroughFailures(t *testing.T) {
	const headers = batchesAfter*maxConcurrentCalls + 100
	for name, c := range map[string]struct {
		fails func(batch bool, call int64) error
		calls int64 // at most, batches and failed ones included
		given bool
	}{
		"batches are not answered": {func(batch bool, call int64) error {
			if batch && call > 1 {
				return context.DeadlineExceeded
			}
			return map[bool]error{true: errors.New("connection reset by peer")}[batch]
		}, headers + 3, true},
		"one call in fifty": {func(batch bool, call int64) error {
			return map[bool]error{true: errors.New("connection reset by peer")}[batch || call%50 == 0]
		}, headers + headers/40 + 10, true},
		"everything after a while": {func(batch bool, call int64) error {
			return map[bool]error{true: errors.New("connection reset by peer")}[batch || call > 100]
		}, 130, false},
	} {
		t.Run(name, func(t *testing.T) {
			chain, f := newFakeChain(t, 43, headers, sparse), newFakeTime()
			n := noPool(f.clock()).newNode(Endpoint{URL: chain.url}, "fake")
			t.Cleanup(n.close)
			real, calls := n.http.client.Transport, atomic.Int64{}
			n.http.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				f.pass(time.Millisecond)
				body, err := r.GetBody()
				first := make([]byte, 1)
				if err == nil {
					_, err = body.Read(first)
				}
				if err == nil {
					err = c.fails(first[0] == '[', calls.Add(1))
				}
				if err != nil {
					return nil, err
				}
				return real.RoundTrip(r)
			})
			all, err := n.Headers(t.Context(), 1, headers)
			if (err == nil && len(all) == headers) != c.given || calls.Load() > c.calls {
				t.Errorf("%d headers after %d calls, want at most %d; %v", len(all), calls.Load(), c.calls, err)
			}
		})
	}
}

// Waiting for an endpoint whose limit does not end stops after a while.
func TestLimitWithoutEnd(t *testing.T) {
	chain := newFakeChain(t, 43, 500, sparse)
	f := newFakeTime()
	m := &meter{f: f, window: 1000 * time.Hour, most: 120}
	chain.meter = m.count
	n := noPool(f.clock()).newNode(Endpoint{URL: chain.url}, "fake")
	t.Cleanup(n.close)
	began := f.now()
	var put *limitedError
	if _, err := n.Headers(t.Context(), 1, 400); !errors.As(err, &put) {
		t.Errorf("the error is %v", err)
	}
	if took := f.now().Sub(began); took < time.Minute || took > 2*longestPause {
		t.Errorf("the wait took %s", took)
	}
}
