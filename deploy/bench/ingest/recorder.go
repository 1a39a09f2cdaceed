package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// traffic is what a program requested from its node.
type traffic struct {
	calls  map[string]int // by method; each call of a batch counts
	ranges []askedRange
	blocks []uint64      // requested by number, one entry per call
	hashes []common.Hash // of blocks or transactions requested by hash
}

// askedRange is one call of eth_getLogs for a block range.
type askedRange struct {
	from, to uint64
	params   json.RawMessage
}

// A recorder is a proxy in front of a node that records the requests. It costs time, so it is never part of a timed
// run.
type recorder struct {
	*httptest.Server

	mu   sync.Mutex
	seen traffic
}

func startRecorder(node string) (*recorder, error) {
	proxy, err := proxyTo(node)
	if err != nil {
		return nil, err
	}
	r := &recorder{seen: traffic{calls: map[string]int{}}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var body bytes.Buffer
		defer func() { r.note(body.Bytes()) }() // even if the client has gone
		q.Body = io.NopCloser(io.TeeReader(q.Body, &body))
		proxy.ServeHTTP(w, q)
	}))
	return r, nil
}

// proxyTo returns a proxy in front of a node, whose responses are not compressed.
func proxyTo(node string) (*httputil.ReverseProxy, error) {
	to, err := url.Parse(node)
	return &httputil.ReverseProxy{Rewrite: func(q *httputil.ProxyRequest) {
		q.SetURL(to)
		q.Out.Header.Set("Accept-Encoding", "identity")
	}}, err
}

func (r *recorder) note(body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range calls(body) {
		r.seen.calls[c.Method]++
		if asked, ok := c.logRange(); ok {
			r.seen.ranges = append(r.seen.ranges, asked)
		}
		if number, ok := c.number(); ok {
			r.seen.blocks = append(r.seen.blocks, number)
		}
		if hash, ok := c.hash(); ok {
			r.seen.hashes = append(r.seen.hashes, hash)
		}
	}
}

type call struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// calls returns the calls in a request body, which is a single call or a batch.
func calls(body []byte) []call {
	var many []call
	if json.Unmarshal(body, &many) == nil {
		return many
	}
	var one call
	_ = json.Unmarshal(body, &one) // not a call: the method stays empty
	return []call{one}
}

// logRange returns the block range of an eth_getLogs call by numbers.
func (c call) logRange() (asked askedRange, ok bool) {
	if c.Method != "eth_getLogs" {
		return asked, false
	}
	var filters []struct {
		From *hexutil.Uint64 `json:"fromBlock"`
		To   *hexutil.Uint64 `json:"toBlock"`
	}
	if err := json.Unmarshal(c.Params, &filters); err != nil || len(filters) != 1 || filters[0].From == nil ||
		filters[0].To == nil {
		return asked, false
	}
	return askedRange{uint64(*filters[0].From), uint64(*filters[0].To), c.Params}, true
}

// number returns the block number of a call that requests a header or receipts by number.
func (c call) number() (number uint64, ok bool) {
	var asked hexutil.Uint64
	ok = json.Unmarshal(c.first(), &asked) == nil // a number, not a tag such as latest
	return uint64(asked), ok
}

// hash returns the block or transaction hash of a call that requests a header, receipts or logs by hash.
func (c call) hash() (hash common.Hash, ok bool) {
	if json.Unmarshal(c.first(), &hash) == nil {
		return hash, true
	}
	var filter struct {
		BlockHash *common.Hash `json:"blockHash"`
	}
	if json.Unmarshal(c.first(), &filter) != nil || filter.BlockHash == nil {
		return hash, false
	}
	return *filter.BlockHash, true
}

// first returns the first parameter.
func (c call) first() json.RawMessage {
	var params []json.RawMessage
	if json.Unmarshal(c.Params, &params) != nil || len(params) == 0 {
		return nil
	}
	return params[0]
}

// once returns ranges that together cover each block once. Of ranges that begin at the same block it takes the
// shortest, because a longer one was requested again in parts. So failed requests do not add to the time that navlog is
// compared with.
func (t traffic) once(from, last uint64) (chosen []askedRange, err error) {
	shortest := map[uint64]askedRange{}
	for _, r := range t.ranges {
		if known, ok := shortest[r.from]; !ok || r.to < known.to {
			shortest[r.from] = r
		}
	}
	for from <= last {
		r, ok := shortest[from]
		if !ok {
			return nil, fmt.Errorf("no recorded range begins at block %d: the ranges do not follow each other, so plain HTTP "+
				"cannot be measured", from)
		}
		chosen, from = append(chosen, r), r.to+1
	}
	return chosen, nil
}

// stop ends the proxy and returns what it recorded.
func (r *recorder) stop() traffic {
	r.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// fetch requests the ranges from the node, one request in flight, and discards the responses.
func fetch(ctx context.Context, url string, ranges []askedRange) (took time.Duration, err error) {
	client := &http.Client{}
	began := time.Now()
	for _, r := range ranges {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":%s}`, r.params)
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		q.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(q)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		if err != nil {
			return 0, fmt.Errorf("fetch blocks %d to %d: %w", r.from, r.to, err)
		}
	}
	return time.Since(began), nil
}
