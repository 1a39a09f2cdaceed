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

// traffic is what a program requested from its node; each call of a batch counts.
type traffic []call

type call struct {
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// methods counts the calls by method.
func (t traffic) methods() map[string]int {
	counts := map[string]int{}
	for _, c := range t {
		counts[c.Method]++
	}
	return counts
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
	r := new(recorder)
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
	r.seen = append(r.seen, calls(body)...)
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

// filter is the first parameter of eth_getLogs.
type filter struct {
	From      *hexutil.Uint64 `json:"fromBlock"`
	To        *hexutil.Uint64 `json:"toBlock"`
	BlockHash *common.Hash    `json:"blockHash"`
}

// about returns the blocks that a call names, by numbers or by the hash of a block or transaction. It names none if it
// names a tag, such as latest. numberOf returns the number of a block by its hash.
func (c call) about(numberOf func(common.Hash) (uint64, error)) (from, to uint64, ok bool, err error) {
	var number hexutil.Uint64
	var hash common.Hash
	var f filter
	switch {
	case len(c.Params) == 0:
		return 0, 0, false, nil
	case json.Unmarshal(c.Params[0], &number) == nil:
		return uint64(number), uint64(number), true, nil
	case json.Unmarshal(c.Params[0], &hash) == nil:
	case json.Unmarshal(c.Params[0], &f) == nil && f.BlockHash != nil:
		hash = *f.BlockHash
	case f.From != nil && f.To != nil:
		return uint64(*f.From), uint64(*f.To), true, nil
	default:
		return 0, 0, false, nil
	}
	from, err = numberOf(hash)
	return from, from, true, err
}

// once returns ranges of eth_getLogs, as parameters, that together cover each block once. Of ranges that begin at the
// same block it takes the shortest, because a longer one was requested again in parts. So failed requests do not add to
// the time that navlog is compared with.
func (t traffic) once(from, last uint64) (chosen []json.RawMessage, err error) {
	type asked struct {
		to     uint64
		filter json.RawMessage
	}
	shortest := map[uint64]asked{}
	for _, c := range t {
		var f filter
		if c.Method != "eth_getLogs" || len(c.Params) != 1 || json.Unmarshal(c.Params[0], &f) != nil || f.From == nil ||
			f.To == nil {
			continue
		}
		if known, ok := shortest[uint64(*f.From)]; !ok || uint64(*f.To) < known.to {
			shortest[uint64(*f.From)] = asked{uint64(*f.To), c.Params[0]}
		}
	}
	for from <= last {
		r, ok := shortest[from]
		if !ok {
			return nil, fmt.Errorf("no recorded range begins at block %d: the ranges do not follow each other, so plain HTTP "+
				"cannot be measured", from)
		}
		chosen, from = append(chosen, r.filter), r.to+1
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
func fetch(ctx context.Context, url string, ranges []json.RawMessage) (took time.Duration, err error) {
	client := &http.Client{}
	began := time.Now()
	for _, r := range ranges {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[%s]}`, r)
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
			return 0, fmt.Errorf("fetch the logs of %s: %w", r, err)
		}
	}
	return time.Since(began), nil
}
