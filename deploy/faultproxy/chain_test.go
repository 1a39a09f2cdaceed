package faultproxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/faultproxy"
)

// The upstream of these tests is a chain of 100 blocks with three logs each; block 80 is final.
const head, final, logsPerBlock = 100, 80, 3

func hash(n uint64) string { return fmt.Sprintf("0x%064x", n+1) }

func blockJSON(n uint64) map[string]any {
	return map[string]any{
		"number": fmt.Sprintf("%#x", n), "hash": hash(n), "parentHash": hash(n - 1),
		"timestamp": fmt.Sprintf("%#x", 1000+12*n),
		"stateRoot": hash(1), "receiptsRoot": hash(2), "gasUsed": "0x5208", "extraData": "0x",
		"logsBloom": "0x" + strings.Repeat("01", 256),
	}
}

// upstream starts an honest node. Its name is its client version.
func upstream(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		type call struct {
			ID     json.RawMessage
			Method string
			Params []json.RawMessage
		}
		answer := func(c call) any {
			return map[string]any{"jsonrpc": "2.0", "id": c.ID, "result": original(name, c.Method, c.Params)}
		}
		var one call
		if json.Unmarshal(body, &one) == nil {
			_ = json.NewEncoder(w).Encode(answer(one))
			return
		}
		var many []call
		var answers []any
		_ = json.Unmarshal(body, &many)
		for _, c := range many {
			answers = append(answers, answer(c))
		}
		_ = json.NewEncoder(w).Encode(answers)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func original(name, method string, params []json.RawMessage) any {
	number := func(text string) (n uint64) {
		switch text {
		case "latest", "":
			return head
		case "finalized":
			return final
		}
		fmt.Sscanf(text, "0x%x", &n)
		return n
	}
	var first string
	if len(params) > 0 {
		_ = json.Unmarshal(params[0], &first)
	}
	switch method {
	case "web3_clientVersion":
		return name
	case "eth_blockNumber":
		return fmt.Sprintf("%#x", head)
	case "eth_getBlockByNumber":
		if n := number(first); n <= head {
			return blockJSON(n)
		}
	case "eth_getBlockByHash":
		if n := number(first) - 1; n <= head {
			return blockJSON(n)
		}
	case "eth_getLogs":
		var filter struct{ FromBlock, ToBlock, BlockHash string }
		_ = json.Unmarshal(params[0], &filter)
		from, to := number(filter.FromBlock), number(filter.ToBlock)
		if filter.BlockHash != "" {
			from = number(filter.BlockHash) - 1
			to = from
		}
		logs := []any{}
		for n := from; n <= to; n++ {
			for i := range logsPerBlock {
				logs = append(logs, map[string]any{"blockNumber": fmt.Sprintf("%#x", n), "blockHash": hash(n),
					"logIndex": fmt.Sprintf("%#x", i)})
			}
		}
		return logs
	}
	return nil
}

// proxied is a proxy in front of honest upstreams.
type proxied struct {
	*faultproxy.Proxy
	t     *testing.T
	url   string
	lines []string // reports of the injections, in order
}

func newProxied(t *testing.T, change func(*faultproxy.Config)) *proxied {
	t.Helper()
	p := &proxied{t: t}
	config := faultproxy.DefaultConfig()
	config.Upstreams, config.Faults, config.Pause = []string{upstream(t, "first")}, nil, 0
	config.RangeLimit, config.ResultLimit = 10, 20
	if change != nil {
		change(&config)
	}
	var err error
	if p.Proxy, err = faultproxy.New(config,
		func(i faultproxy.Injection) { p.lines = append(p.lines, i.String()) }); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p.Proxy)
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func (p *proxied) next(method string, faults ...faultproxy.Fault) {
	p.t.Helper()
	if err := p.Next(method, faults...); err != nil {
		p.t.Fatal(err)
	}
}
