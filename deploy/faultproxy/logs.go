package faultproxy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
)

// logsOf returns the logs of a response to eth_getLogs; null is an empty list.
func logsOf(r reply) ([]any, error) {
	result := decoded(r.Result) // null is an empty list
	logs, ok := result.([]any)
	if !ok && result != nil {
		return nil, fmt.Errorf("the upstream's response is not a list: %.100s", r.Result)
	}
	return logs, nil
}

// blockOfLog returns the number of a log's block.
func blockOfLog(log any) uint64 {
	fields, _ := log.(map[string]any)
	number, _ := quantity(fields["blockNumber"])
	return number
}

// filter returns what an eth_getLogs call asks for.
func (c *call) filter() (f struct{ FromBlock, ToBlock, BlockHash string }) {
	if len(c.Params) > 0 {
		_ = json.Unmarshal(c.Params[0], &f)
	}
	return f
}

// covers returns the blocks that an eth_getLogs call covers, and whether it names a single block by its hash.
func (c *call) covers() (from, to uint64, byHash bool, err error) {
	filter := c.filter()
	if filter.BlockHash != "" {
		result, err := c.ask("eth_getBlockByHash", filter.BlockHash, false)
		n, _ := numberOf(result) // 0 if the upstream does not have the block
		return n, n, true, err
	}
	if from, err = c.resolve(filter.FromBlock); err == nil {
		to, err = c.resolve(filter.ToBlock)
	}
	return from, to, false, err
}

// resolve returns the number of a block given by number or tag; an empty tag is the latest block.
func (c *call) resolve(which string) (uint64, error) {
	if n, ok := number(which); ok {
		return n, nil
	}
	if which == "" {
		which = "latest"
	}
	result, err := c.ask("eth_getBlockByNumber", which, false)
	n, ok := numberOf(result)
	if err == nil && !ok {
		err = fmt.Errorf("the upstream has no block %q", which)
	}
	return n, err
}

// logsUpTo leaves out the logs above a block.
func logsUpTo(original reply, cut, head uint64) (reply, string, error) {
	logs, err := logsOf(original)
	kept := slices.DeleteFunc(slices.Clone(logs), func(l any) bool { return blockOfLog(l) > cut })
	if err != nil || len(kept) == len(logs) {
		return original, "", err
	}
	return original.withResult(kept),
		fmt.Sprintf("%d of %d logs, those up to block %d of %d", len(kept), len(logs), cut, head), nil
}

// ofLogs changes the logs in a response; in receipts, those of each receipt. change is not called without logs, and
// returns nil if there is nothing to change.
func ofLogs(change func(c *call, logs []any) []any) alteration {
	return func(c *call, original reply) (reply, string, error) {
		list, err := logsOf(original)
		if err != nil || len(list) == 0 {
			return original, "", err
		}
		if c.Method != "eth_getBlockReceipts" {
			changed := change(c, list)
			if changed == nil {
				return original, "", nil
			}
			return original.withResult(changed), fmt.Sprintf("%d logs instead of %d", len(changed), len(list)), nil
		}
		for _, r := range list {
			receipt, _ := r.(map[string]any)
			if logs, _ := receipt["logs"].([]any); len(logs) > 0 {
				if changed := change(c, logs); changed != nil {
					receipt["logs"] = changed
				}
			}
		}
		return original.withResult(list), fmt.Sprintf("the logs of %d receipts", len(list)), nil
	}
}

func empty(*call, []any) []any { return []any{} }

// partial drops some logs and keeps some.
func partial(c *call, logs []any) (kept []any) {
	if len(logs) < 2 {
		return nil
	}
	order := c.rng.Perm(len(logs))[1+c.rng.IntN(len(logs)-1):]
	slices.Sort(order)
	for _, i := range order {
		kept = append(kept, logs[i])
	}
	return kept
}

func truncated(c *call, logs []any) []any {
	if limit := c.proxy.config.ResultLimit; len(logs) > limit {
		return logs[:limit]
	}
	return nil
}

// wrongHash gives the logs of one block the hash of a block that does not exist.
func wrongHash(c *call, logs []any) []any {
	block, hash := blockOfLog(logs[c.rng.IntN(len(logs))]), random(c.rng, 32)
	for _, l := range logs {
		if fields, ok := l.(map[string]any); ok && blockOfLog(l) == block {
			fields["blockHash"] = hash
		}
	}
	return logs
}

func doubled(c *call, logs []any) []any { return append(logs, logs[c.rng.IntN(len(logs))]) }

func shuffled(c *call, logs []any) []any {
	shuffle(c.rng, logs)
	return logs
}

func shuffle[T any](rng *rand.Rand, list []T) {
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// copyWith returns a copy of a log with some members changed.
func copyWith(l any, change func(map[string]any)) any {
	copied, _ := decoded(mustJSON(l)).(map[string]any)
	if copied != nil {
		change(copied)
	}
	return copied
}

func withRemoved(c *call, logs []any) []any {
	hash := random(c.rng, 32)
	return append([]any{copyWith(logs[0], func(l map[string]any) { l["removed"], l["blockHash"] = true, hash })}, logs...)
}

func withPending(_ *call, logs []any) []any {
	return append(logs, copyWith(logs[0], func(l map[string]any) {
		for _, name := range []string{"blockNumber", "blockHash", "transactionHash", "transactionIndex", "logIndex",
			"blockTimestamp"} {
			l[name] = nil
		}
	}))
}
