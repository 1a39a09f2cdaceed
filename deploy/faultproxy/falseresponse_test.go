package faultproxy_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/faultproxy"
)

// block requests a block that must exist.
func (p *proxied) block(method string, which any) (block map[string]any) {
	p.t.Helper()
	result, err := p.call(method, which, false)
	if err != nil || json.Unmarshal(result, &block) != nil || block == nil {
		p.t.Fatalf("%s %v: %s, %v", method, which, result, err)
	}
	return block
}

func TestFalseFinality(t *testing.T) {
	p := newProxied(t, func(c *faultproxy.Config) { c.Ahead, c.Behind = 7, 5 })
	for f, most := range map[faultproxy.Fault][2]uint64{
		faultproxy.FinalHead: {head, head}, faultproxy.FinalFuture: {head + 1, head + 7},
		faultproxy.FinalBack: {final - 5, final - 1},
	} {
		for range 20 {
			p.next("eth_getBlockByNumber", f, f)
			if n, _ := p.number("eth_getBlockByNumber", "finalized", false); n < most[0] || n > most[1] {
				t.Errorf("%s: block %d is final, want %d to %d", f, n, most[0], most[1])
			}
			if n, _ := p.number("eth_getBlockByNumber", "latest", false); n != head {
				t.Errorf("%s: block %d is the head", f, n)
			}
		}
		if got := p.Counts()[f]; got != 20 {
			t.Errorf("%s was counted %d times", f, got)
		}
	}
}

func TestFutureHead(t *testing.T) {
	p := newProxied(t, func(c *faultproxy.Config) { c.Ahead = 7 })
	p.next("eth_blockNumber", faultproxy.FutureHead)
	if n, _ := p.number("eth_blockNumber"); n <= head || n > head+7 {
		t.Errorf("the block number is %d", n)
	}
	p.next("eth_getBlockByNumber", faultproxy.FutureHead, faultproxy.FutureHead)
	b := p.block("eth_getBlockByNumber", "latest")
	n, err := hexutil.DecodeUint64(b["number"].(string))
	if err != nil || n <= head || b["hash"] == hash(head) || b["parentHash"] == hash(n-1) ||
		b["timestamp"] != hexutil.EncodeUint64(1000+12*n) {
		t.Errorf("the head is %v, %v", b, err)
	}
	if b := p.block("eth_getBlockByNumber", "0x5"); b["hash"] != hash(5) {
		t.Errorf("a block by its number is %v", b)
	}
}

func TestChangedHeaders(t *testing.T) {
	p := newProxied(t, nil)
	original := blockJSON(5)
	changed := map[string]bool{}
	for range 60 {
		p.next("eth_getBlockByHash", faultproxy.ChangedHeader)
		b := p.block("eth_getBlockByHash", hash(5))
		var fields []string
		for name, value := range b {
			if original[name] != value {
				fields = append(fields, name)
			}
		}
		if len(fields) != 1 || fields[0] == "hash" || fields[0] == "number" {
			t.Fatalf("changed are %v", fields)
		}
		changed[fields[0]] = true
	}
	if len(changed) != 6 {
		t.Errorf("changed were %v", changed)
	}
	p.next("eth_getBlockByHash", faultproxy.ZeroBloom)
	if b := p.block("eth_getBlockByHash", hash(5)); strings.Trim(b["logsBloom"].(string), "0x") != "" ||
		b["hash"] != hash(5) {
		t.Errorf("without a bloom the header is %v", b)
	}
	p.next("eth_getLogs", faultproxy.ZeroBloom)
	if logs := p.logs(rangeOf(1, 3)); len(logs) != 0 {
		t.Errorf("the logs are %v", logs)
	}
}

// A backend that lags has no logs above its head: it reports that, in several wordings, or does not.
func TestLogsBeyondTheHead(t *testing.T) {
	p := newProxied(t, func(c *faultproxy.Config) { c.Behind = 5 })
	words := map[string]bool{}
	for range 100 {
		p.next("eth_getLogs", faultproxy.BeyondHead)
		_, err := p.call("eth_getLogs", rangeOf(90, head))
		var refusal ethrpc.Error
		if !errors.As(err, &refusal) || strings.Contains(err.Error(), "%") {
			t.Fatalf("logs up to the head: %v", err)
		}
		words[strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, err.Error())] = true
		p.next("eth_getLogs", faultproxy.ShortLogs)
		if logs := p.logs(rangeOf(90, head)); len(logs) == 0 || logs[len(logs)-1].BlockNumber >= head ||
			logs[len(logs)-1].BlockNumber < head-5 {
			t.Fatalf("%d logs", len(logs))
		}
	}
	if len(words) != 7 {
		t.Errorf("said was %v", words)
	}
	p.next("eth_getLogs", faultproxy.BeyondHead, faultproxy.BeyondHead)
	if _, err := p.call("eth_getLogs", map[string]any{"blockHash": hash(head)}); err == nil {
		t.Error("the newest block is known by its hash")
	}
	if got := len(p.logs(rangeOf(90, head-6))); got != 5*logsPerBlock {
		t.Errorf("%d logs of blocks that the backend has", got)
	}
}

// A block that does not exist cannot be detected by its hash.
func TestFutureHeadIsSealed(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a chain with real headers")
	}
	p := newProxied(t, func(c *faultproxy.Config) {
		c.Upstreams = []string{enginetest.Anvil(t,
			engines.AnvilOptions{}).URL}
	})
	p.next("eth_getBlockByNumber", faultproxy.FutureHead)
	raw, err := p.call("eth_getBlockByNumber", "latest", false)
	var header types.Header
	var named struct{ Hash string }
	if err != nil || json.Unmarshal(raw, &header) != nil || json.Unmarshal(raw, &named) != nil ||
		header.Hash().Hex() != named.Hash {
		t.Errorf("the head is %s", raw)
	}
}
