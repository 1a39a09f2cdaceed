package faultproxy

import (
	"context"
	"encoding/json"
	"fmt"
)

// logsOf returns the logs of a response to eth_getLogs.
func logsOf(r reply) ([]any, error) {
	result := decoded(r.Result) // null is an empty list
	logs, ok := result.([]any)
	if !ok && result != nil {
		return nil, fmt.Errorf("the upstream's answer to eth_getLogs is not a list: %.100s", r.Result)
	}
	return logs, nil
}

// blockOfLog returns the number of a log's block.
func blockOfLog(log any) uint64 {
	fields, _ := log.(map[string]any)
	number, _ := quantity(fields["blockNumber"])
	return number
}

// width returns the number of blocks that an eth_getLogs call covers.
func (p *Proxy) width(ctx context.Context, c *call) (uint64, error) {
	var filter struct{ FromBlock, ToBlock, BlockHash string }
	if len(c.Params) == 0 || json.Unmarshal(c.Params[0], &filter) != nil || filter.BlockHash != "" {
		return 1, nil
	}
	from, err := p.resolve(ctx, c.backend, filter.FromBlock)
	if err != nil {
		return 0, err
	}
	to, err := p.resolve(ctx, c.backend, filter.ToBlock)
	if err != nil || to < from {
		return 0, err
	}
	return to - from + 1, nil
}

// lastOf returns the highest block that an eth_getLogs call covers, and whether it names a single block by its hash.
func (p *Proxy) lastOf(ctx context.Context, c *call) (last uint64, single bool, err error) {
	var filter struct{ ToBlock, BlockHash string }
	if len(c.Params) > 0 {
		_ = json.Unmarshal(c.Params[0], &filter)
	}
	if filter.BlockHash == "" {
		last, err = p.resolve(ctx, c.backend, filter.ToBlock)
		return last, false, err
	}
	result, err := p.ask(ctx, c.backend, "eth_getBlockByHash", filter.BlockHash, false)
	last, _ = numberOf(result) // 0 if the upstream does not have the block
	return last, true, err
}

// resolve returns the number of a block given by number or tag; an empty tag is the latest block.
func (p *Proxy) resolve(ctx context.Context, backend, which string) (uint64, error) {
	if n, ok := number(which); ok {
		return n, nil
	}
	if which == "" {
		which = "latest"
	}
	result, err := p.ask(ctx, backend, "eth_getBlockByNumber", which, false)
	if err != nil {
		return 0, err
	}
	n, ok := numberOf(result)
	if !ok {
		return 0, fmt.Errorf("the upstream has no block %q", which)
	}
	return n, nil
}

func emptyLogs(_ context.Context, _ *Proxy, _ *call, truth reply) (reply, string, error) {
	logs, err := logsOf(truth)
	if err != nil || len(logs) == 0 {
		return truth, "", err
	}
	return truth.with([]any{}), fmt.Sprintf("none of %d logs", len(logs)), nil
}

// partialLogs drops some logs and keeps some.
func partialLogs(_ context.Context, _ *Proxy, c *call, truth reply) (reply, string, error) {
	logs, err := logsOf(truth)
	if err != nil || len(logs) < 2 {
		return truth, "", err
	}
	order := c.rng.Perm(len(logs))
	lost := map[int]bool{}
	for _, i := range order[:1+c.rng.IntN(len(logs)-1)] {
		lost[i] = true
	}
	var kept []any
	for i, l := range logs {
		if !lost[i] {
			kept = append(kept, l)
		}
	}
	return truth.with(kept), fmt.Sprintf("%d of %d logs", len(kept), len(logs)), nil
}

func truncatedLogs(_ context.Context, p *Proxy, _ *call, truth reply) (reply, string, error) {
	logs, err := logsOf(truth)
	limit := p.config.ResultLimit
	if err != nil || len(logs) <= limit {
		return truth, "", err
	}
	return truth.with(logs[:limit]), fmt.Sprintf("the first %d of %d logs", limit, len(logs)), nil
}

// wrongHash gives the logs of one block the hash of a block that does not exist.
func wrongHash(_ context.Context, _ *Proxy, c *call, truth reply) (reply, string, error) {
	logs, err := logsOf(truth)
	if err != nil || len(logs) == 0 {
		return truth, "", err
	}
	block, hash := blockOfLog(logs[c.rng.IntN(len(logs))]), random(c.rng, 32)
	for _, l := range logs {
		if fields, ok := l.(map[string]any); ok && blockOfLog(l) == block {
			fields["blockHash"] = hash
		}
	}
	return truth.with(logs), fmt.Sprintf("the logs of block %d carry the hash %s", block, hash), nil
}
