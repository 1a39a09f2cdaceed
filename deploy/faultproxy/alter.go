package faultproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// number parses a quantity; it returns false for a tag.
func number(text string) (uint64, bool) {
	n, err := hexutil.DecodeUint64(text)
	return n, err == nil
}

// numberOf returns the number of the block in a result, or false for null.
func numberOf(result json.RawMessage) (uint64, bool) {
	var block struct{ Number string }
	if json.Unmarshal(result, &block) != nil {
		return 0, false
	}
	return number(block.Number)
}

func (p *Proxy) head(ctx context.Context, backend string) (uint64, error) {
	result, err := p.ask(ctx, backend, "eth_blockNumber")
	if err != nil {
		return 0, err
	}
	var text string
	_ = json.Unmarshal(result, &text)
	head, ok := number(text)
	if !ok {
		return 0, fmt.Errorf("the upstream's block number is %s", result)
	}
	return head, nil
}

// at answers a call for a block by tag with the block of another number.
func (p *Proxy) at(ctx context.Context, c *call, truth reply, n uint64) (reply, error) {
	full := json.RawMessage("false")
	if len(c.Params) > 1 {
		full = c.Params[1]
	}
	result, err := p.ask(ctx, c.backend, "eth_getBlockByNumber", hexutil.Uint64(n), full)
	return truth.with(result), err
}

// stale responds like a backend that lags: its head and final block are older, and it has neither the newer blocks nor
// their logs.
func stale(ctx context.Context, p *Proxy, c *call, truth reply) (answer reply, detail string, err error) {
	cut, head, err := p.behind(ctx, c)
	if err != nil {
		return truth, "", err
	}
	behind := head - cut
	switch c.Method {
	case "eth_blockNumber":
		return truth.with(hexutil.Uint64(cut)), fmt.Sprintf("block %d of %d", cut, head), nil
	case "eth_getLogs":
		return logsUpTo(truth, cut, head)
	}
	n, exists := numberOf(truth.Result)
	switch tag := c.text(); {
	case !exists:
		return truth, "", nil
	case tag == "latest", tag == "pending":
		answer, err = p.at(ctx, c, truth, cut)
		return answer, fmt.Sprintf("block %d of %d as %s", cut, head, tag), err
	case tag == "finalized", tag == "safe":
		older := n - min(n, behind)
		answer, err = p.at(ctx, c, truth, older)
		return answer, fmt.Sprintf("block %d instead of %d as %s", older, n, tag), err
	case n > cut && tag != "earliest":
		return truth.with(nil), fmt.Sprintf("null for block %d, the head is %d", n, cut), nil
	}
	return truth, "", nil
}

// behind draws the head of a backend that lags some blocks behind.
func (p *Proxy) behind(ctx context.Context, c *call) (cut, head uint64, err error) {
	behind := 1 + c.rng.Uint64N(p.config.Behind)
	head, err = p.head(ctx, c.backend)
	return head - min(head, behind), head, err
}

// logsUpTo leaves out the logs above a block.
func logsUpTo(truth reply, cut, head uint64) (reply, string, error) {
	logs, err := logsOf(truth)
	kept := []any{}
	for _, l := range logs {
		if blockOfLog(l) <= cut {
			kept = append(kept, l)
		}
	}
	if err != nil || len(kept) == len(logs) {
		return truth, "", err
	}
	return truth.with(kept), fmt.Sprintf("%d of %d logs, those up to block %d of %d", len(kept), len(logs), cut, head), nil
}

// shortLogs returns the logs of a backend that lags, without an error about the blocks that it does not have.
func shortLogs(ctx context.Context, p *Proxy, c *call, truth reply) (reply, string, error) {
	cut, head, err := p.behind(ctx, c)
	if err != nil {
		return truth, "", err
	}
	return logsUpTo(truth, cut, head)
}

// Error messages of nodes that do not have the end of a range, or a block. %[1]d is that block, %[2]d the node's head.
var (
	beyondRange = []refusal{
		{-32602, "block range extends beyond current head block"}, // go-ethereum, reth
		{-32000, "request beyond head block: requested %[1]d, head %[2]d"},
		// OpenEthereum, Nethermind
		{-32000, "One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found."},
		{-32000, "requested to block %[1]d after last accepted block %[2]d"},                       // Avalanche
		{-32000, "height %[1]d must be less than or equal to the current blockchain height %[2]d"}, // Tendermint chains
		{-32603, "block %[1]d is beyond the latest block %[2]d of this node"},
		{-32005, "upstream does not have the requested block yet"},
	}
	beyondBlock = []refusal{{-32000, "unknown block"}, {-32001, "block %[1]d not found"}, {-32000, "header not found"}}
)

// beyondHead rejects requests for logs of blocks that a lagging backend does not have.
func beyondHead(ctx context.Context, p *Proxy, c *call, truth reply) (reply, string, error) {
	cut, head, err := p.behind(ctx, c)
	if err != nil {
		return truth, "", err
	}
	last, single, err := p.lastOf(ctx, c)
	if err != nil || last <= cut {
		return truth, "", err
	}
	words := beyondRange
	if single {
		words = beyondBlock
	}
	e := words[c.rng.IntN(len(words))]
	message := e.message
	if strings.Contains(message, "%") {
		message = fmt.Sprintf(message, last, cut)
	}
	return truth.refuse(e.code, message), fmt.Sprintf("blocks up to %d of %d: %d %s", cut, head, e.code, message), nil
}

// oldHead responds like a node that is syncing: its head is in the older half of the chain.
func oldHead(ctx context.Context, p *Proxy, c *call, truth reply) (answer reply, detail string, err error) {
	if c.Method == "eth_getBlockByNumber" && c.text() != "latest" {
		return truth, "", nil
	}
	head, err := p.head(ctx, c.backend)
	if err != nil || head == 0 {
		return truth, "", err
	}
	old := c.rng.Uint64N((head + 1) / 2)
	detail = fmt.Sprintf("block %d of %d", old, head)
	if c.Method == "eth_blockNumber" {
		return truth.with(hexutil.Uint64(old)), detail, nil
	}
	answer, err = p.at(ctx, c, truth, old)
	return answer, detail, err
}

// Errors of providers that have nothing to do with the request.
var passing = []refusal{{-32603, "internal error"}, {-32000, "header not found"}, {-32005, "request rate exceeded"},
	{-32001, "resource not found"}}

func errorBody(_ context.Context, _ *Proxy, c *call, truth reply) (reply, string, error) {
	e := passing[c.rng.IntN(len(passing))]
	return truth.refuse(e.code, e.message), fmt.Sprintf("%d %s", e.code, e.message), nil
}

// overRange rejects ranges of more blocks than the limit. A %d in the wording is the limit.
func overRange(code int, wording string) alteration {
	return func(ctx context.Context, p *Proxy, c *call, truth reply) (reply, string, error) {
		blocks, err := p.width(ctx, c)
		if err != nil || blocks <= p.config.RangeLimit {
			return truth, "", err
		}
		message := worded(wording, p.config.RangeLimit)
		return truth.refuse(code, message), fmt.Sprintf("%d blocks: %d %s", blocks, code, message), nil
	}
}

// overResults rejects ranges that contain more logs than the limit.
func overResults(code int, wording string) alteration {
	return func(ctx context.Context, p *Proxy, c *call, truth reply) (reply, string, error) {
		blocks, err := p.width(ctx, c)
		if err != nil || blocks <= 1 {
			return truth, "", err
		}
		logs, err := logsOf(truth)
		if err != nil || len(logs) <= p.config.ResultLimit {
			return truth, "", err
		}
		message := worded(wording, p.config.ResultLimit)
		return truth.refuse(code, message), fmt.Sprintf("%d logs: %d %s", len(logs), code, message), nil
	}
}

// blockOverLimit rejects a single block that has logs, as if it had too many.
func blockOverLimit(ctx context.Context, p *Proxy, c *call, truth reply) (reply, string, error) {
	blocks, err := p.width(ctx, c)
	if err != nil || blocks != 1 {
		return truth, "", err
	}
	logs, err := logsOf(truth)
	if err != nil || len(logs) == 0 {
		return truth, "", err
	}
	message := worded("query returned more than %d results", p.config.ResultLimit)
	return truth.refuse(-32005, message), "one block: -32005 " + message, nil
}

func worded[N uint64 | int](wording string, limit N) string {
	return strings.Replace(wording, "%d", fmt.Sprint(limit), 1)
}
