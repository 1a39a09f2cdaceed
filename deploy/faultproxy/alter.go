package faultproxy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// number parses a quantity; it returns false for a tag.
func number(text string) (uint64, bool) {
	n, err := hexutil.DecodeUint64(text)
	return n, err == nil
}

func quantity(v any) (uint64, bool) {
	text, _ := v.(string)
	return number(text)
}

// numberOf returns the number of the block in a result, or the number that the result is; false for null.
func numberOf(result json.RawMessage) (uint64, bool) {
	switch v := decoded(result).(type) {
	case string:
		return number(v)
	case map[string]any:
		return quantity(v["number"])
	}
	return 0, false
}

// head returns the number of the backend's newest block.
func (f *drawnFault) head() (uint64, error) {
	result, err := f.ask("eth_blockNumber")
	head, ok := numberOf(result)
	if err == nil && !ok {
		err = fmt.Errorf("the upstream's block number is %s", result)
	}
	return head, err
}

// behind draws the head of a backend that lags some blocks behind.
func (f *drawnFault) behind() (cut, head uint64, err error) {
	behind := 1 + f.rng.Uint64N(f.proxy.config.Behind)
	head, err = f.head()
	return head - min(head, behind), head, err
}

// present returns the reply with the block of another number. One above the head does not exist: it is made from the
// head.
func (c *call) present(original reply, n, head uint64) (reply, error) {
	if c.Method == "eth_blockNumber" {
		return original.withResult(hexutil.Uint64(n)), nil
	}
	full := json.RawMessage("false")
	if len(c.Params) > 1 {
		full = c.Params[1]
	}
	result, err := c.ask("eth_getBlockByNumber", hexutil.Uint64(min(n, head)), full)
	if err != nil || n <= head {
		return original.withResult(result), err
	}
	return futureBlock(c.rng, original.withResult(result), n)
}

// replaceBlock presents another block as the one with one of the tags. choose is given that block and the head; if it
// returns the same block, there is nothing to change.
func replaceBlock(choose func(c *call, is, head uint64) uint64, tags ...string) alteration {
	return func(c *call, original reply) (reply, string, error) {
		is, exists := numberOf(original.Result)
		if !exists || !slices.Contains(tags, c.block()) {
			return original, "", nil
		}
		head, err := c.head()
		if err != nil {
			return original, "", err
		}
		n := choose(c, is, head)
		if n == is {
			return original, "", nil
		}
		answer, err := c.present(original, n, head)
		return answer, fmt.Sprintf("block %d instead of %d as %s, the head is %d", n, is, c.block(), head), err
	}
}

// oldHead is a block in the older half of the chain.
func oldHead(c *call, _, head uint64) uint64 { return c.rng.Uint64N(max(1, (head+1)/2)) }

// stale responds like a backend that lags: its head and final block are older, and it has neither the newer blocks nor
// their logs.
func stale(c *call, original reply) (reply, string, error) {
	cut, head, err := c.behind()
	if err != nil {
		return original, "", err
	}
	n, exists := numberOf(original.Result)
	switch which := c.block(); {
	case c.Method == "eth_getLogs":
		return logsUpTo(original, cut, head)
	case exists && slices.Contains([]string{"latest", "pending", "finalized", "safe"}, which):
		older := n - min(n, head-cut)
		answer, err := c.present(original, older, head)
		return answer, fmt.Sprintf("block %d instead of %d as %s", older, n, which), err
	case exists && n > cut:
		return original.withResult(nil), fmt.Sprintf("null for block %d, the head is %d", n, cut), nil
	}
	return original, "", nil
}

// Errors of nodes that do not have the end of a range, or a block.
var (
	beyondRange = []refusal{
		{-32602, "block range extends beyond current head block"}, // go-ethereum, reth
		{-32000, "request beyond head block: requested {block}, head {head}"},
		// OpenEthereum, Nethermind
		{-32000, "One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found."},
		{-32000, "requested to block {block} after last accepted block {head}"}, // Avalanche
		// Tendermint chains
		{-32000, "height {block} must be less than or equal to the current blockchain height {head}"},
		{-32603, "block {block} is beyond the latest block {head} of this node"},
		{-32005, "upstream does not have the requested block yet"},
	}
	beyondBlock = []refusal{{-32000, "unknown block"}, {-32001, "block {block} not found"}, {-32000, "header not found"}}
)

// beyondHead rejects requests for logs of blocks that a lagging backend does not have.
func beyondHead(c *call, original reply) (reply, string, error) {
	cut, head, err := c.behind()
	if err != nil {
		return original, "", err
	}
	_, last, byHash, err := c.covers()
	if err != nil || last <= cut {
		return original, "", err
	}
	words := beyondRange
	if byHash {
		words = beyondBlock
	}
	e := words[c.rng.IntN(len(words))]
	message := strings.NewReplacer("{block}", fmt.Sprint(last), "{head}", fmt.Sprint(cut)).Replace(e.message)
	return original.withError(e.code, message),
		fmt.Sprintf("blocks up to %d of %d: %d %s", cut, head, e.code, message), nil
}

// Errors of providers that have nothing to do with the request.
var passing = []refusal{{-32603, "internal error"}, {-32000, "header not found"}, {-32005, "request rate exceeded"},
	{-32001, "resource not found"}}

func errorBody(c *call, original reply) (reply, string, error) {
	e := passing[c.rng.IntN(len(passing))]
	return original.withError(e.code, e.message), fmt.Sprintf("%d %s", e.code, e.message), nil
}

// overLimit rejects a call of eth_getLogs if what is measured exceeds a limit. A %d in the wording is the limit.
func overLimit(measure func(*call, reply) (n, limit uint64, err error), code int, wording string) alteration {
	return func(c *call, original reply) (reply, string, error) {
		n, limit, err := measure(c, original)
		if err != nil || n <= limit {
			return original, "", err
		}
		message := strings.Replace(wording, "%d", fmt.Sprint(limit), 1)
		return original.withError(code, message), fmt.Sprintf("%d over %d: %d %s", n, limit, code, message), nil
	}
}

// width measures the blocks of a range.
func width(c *call, _ reply) (blocks, limit uint64, err error) {
	if c.filter().BlockHash != "" {
		return 1, c.proxy.config.RangeLimit, nil
	}
	from, to, _, err := c.covers()
	return to + 1 - min(from, to+1), c.proxy.config.RangeLimit, err
}

// results measures the logs of a range of several blocks.
func results(c *call, original reply) (n, limit uint64, err error) {
	limit = uint64(c.proxy.config.ResultLimit)
	blocks, _, err := width(c, original)
	if err != nil || blocks < 2 {
		return 0, limit, err
	}
	logs, err := logsOf(original)
	return uint64(len(logs)), limit, err
}

// blockResults measures a single block that has logs as if it had too many.
func blockResults(c *call, original reply) (n, limit uint64, err error) {
	limit = uint64(c.proxy.config.ResultLimit)
	blocks, _, err := width(c, original)
	if err != nil || blocks != 1 {
		return 0, limit, err
	}
	logs, err := logsOf(original)
	if len(logs) > 0 {
		n = limit + uint64(len(logs))
	}
	return n, limit, err
}
