package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// traffic is what a program asked its node for.
type traffic struct {
	Calls  map[string]int `json:"calls"`  // by method, those of a batch one by one
	Bodies int            `json:"bodies"` // HTTP requests
	Sent   int64          `json:"sentBytes"`
	Got    int64          `json:"gotBytes"`

	ranges []askedRange
	blocks []uint64      // that were asked about by number, once for each call
	hashes []common.Hash // of blocks, or transactions, that were asked about by it
}

// askedRange is one call of eth_getLogs for a range of blocks.
type askedRange struct {
	from, to uint64
	params   json.RawMessage
}

// A recorder is a proxy in front of a node that notes what is asked. It costs time, so it is never part of a timed run.
type recorder struct {
	*httptest.Server

	mu   sync.Mutex
	seen traffic
}

func startRecorder(upstream string) *recorder {
	r := &recorder{seen: traffic{Calls: map[string]int{}}}
	r.Server = httptest.NewServer(r.handler(upstream))
	return r
}

func (r *recorder) handler(upstream string) http.Handler {
	client := &http.Client{}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		forward, err := http.NewRequestWithContext(q.Context(), http.MethodPost, upstream, bytes.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		forward.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(forward)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		n, _ := io.Copy(w, answer.Body) // a client that has gone is counted up to there
		r.note(body, n)
	})
}

func (r *recorder) note(body []byte, answered int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Bodies++
	r.seen.Sent += int64(len(body))
	r.seen.Got += answered
	for _, c := range calls(body) {
		r.seen.Calls[c.Method]++
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

// calls are those in the body of a request, which is one or a batch.
func calls(body []byte) []call {
	var many []call
	if json.Unmarshal(body, &many) == nil {
		return many
	}
	var one call
	_ = json.Unmarshal(body, &one) // no call at all: a method without a name
	return []call{one}
}

// logRange is what a call of eth_getLogs by numbers asks for.
func (c call) logRange() (asked askedRange, ok bool) {
	if c.Method != "eth_getLogs" {
		return asked, false
	}
	var filters []struct {
		From *hexutil.Uint64 `json:"fromBlock"`
		To   *hexutil.Uint64 `json:"toBlock"`
	}
	if err := json.Unmarshal(c.Params, &filters); err != nil || len(filters) != 1 || filters[0].From == nil || filters[0].To == nil {
		return asked, false
	}
	return askedRange{uint64(*filters[0].From), uint64(*filters[0].To), c.Params}, true
}

// number is that of the block that a call asks about by it: its header, or its receipts.
func (c call) number() (number uint64, ok bool) {
	var asked hexutil.Uint64
	ok = json.Unmarshal(c.first(), &asked) == nil // and not a name, as latest
	return uint64(asked), ok
}

// hash is that of the block, or of the transaction, that a call asks about by it: its header, its receipts, or its logs.
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

// first is the first parameter.
func (c call) first() json.RawMessage {
	var params []json.RawMessage
	if json.Unmarshal(c.Params, &params) != nil || len(params) == 0 {
		return nil
	}
	return params[0]
}

// once are the ranges that together give each block once: of those that begin at the same block, the shortest, for a
// longer one was asked for again in parts. So what a program asks for in vain does not lengthen the time that it is
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
			return nil, fmt.Errorf("no recorded range begins at block %d: the ranges do not follow each other, so plain HTTP cannot be measured", from)
		}
		chosen, from = append(chosen, r), r.to+1
	}
	return chosen, nil
}

// stop ends the proxy and says what it saw.
func (r *recorder) stop() traffic {
	r.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// fetch asks the node for ranges, one request in flight, and throws the answers away.
func fetch(ctx context.Context, url string, ranges []askedRange) (took time.Duration, got int64, err error) {
	client := &http.Client{}
	began := time.Now()
	for _, r := range ranges {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":%s}`, r.params)
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return 0, 0, err
		}
		q.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(q)
		if err != nil {
			return 0, 0, fmt.Errorf("fetch blocks %d to %d: %w", r.from, r.to, err)
		}
		n, err := io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if err != nil {
			return 0, 0, fmt.Errorf("fetch blocks %d to %d: %w", r.from, r.to, err)
		}
		got += n
	}
	return time.Since(began), got, nil
}
