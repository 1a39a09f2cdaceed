package faultproxy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// False responses: well-formed but untrue responses, as of a node that was broken into. A client with only one endpoint
// cannot detect most of them, so a test of a client gives it honest endpoints too.
const (
	FinalHead     Fault = "final-head"     // the head is presented as final
	FinalFuture   Fault = "final-future"   // a block above the head is presented as final
	FinalBack     Fault = "final-back"     // the final block is older than before
	FutureHead    Fault = "future-head"    // a block that does not exist is presented as the head
	ZeroBloom     Fault = "zero-bloom"     // headers have an empty bloom, and blocks have no logs
	ChangedHeader Fault = "changed-header" // a header field is changed, so the header does not match its hash
)

var byNumber = []string{"eth_getBlockByNumber"}

// falseResponses are drawn separately from all other faults. Draws depend on their order.
var falseResponses = []kind{
	{fault: FinalHead, methods: byNumber,
		alter: replaceBlock(func(_ *call, _, head uint64) uint64 { return head }, "finalized", "safe")},
	{fault: FinalFuture, methods: byNumber, alter: replaceBlock(aboveHead, "finalized", "safe")},
	{fault: FinalBack, methods: byNumber, alter: replaceBlock(earlier, "finalized", "safe")},
	{fault: FutureHead, methods: heads, alter: replaceBlock(aboveHead, "latest")},
	{fault: ZeroBloom, methods: slices.Concat(blocks, withLogs), alter: zeroBloom},
	{fault: ChangedHeader, methods: blocks, alter: changedHeader},
}

// FalseResponses returns the names of all false responses.
func FalseResponses() []Fault { return namesOf(falseResponses) }

func aboveHead(c *call, _, head uint64) uint64 { return head + 1 + c.rng.Uint64N(c.proxy.config.Ahead) }

func earlier(c *call, is, _ uint64) uint64 {
	return is - min(is, 1+c.rng.Uint64N(c.proxy.config.Behind))
}

// slot is the number of seconds between two blocks that do not exist.
const slot = 12

// futureBlock turns a block into a higher one: it has an unknown parent, and a hash that matches its fields.
func futureBlock(rng *rand.Rand, original reply, number uint64) (reply, error) {
	block, _ := decoded(original.Result).(map[string]any)
	was, ok := quantity(block["number"])
	if !ok {
		return original, fmt.Errorf("the upstream's block has no number: %.100s", original.Result)
	}
	block["number"], block["parentHash"], block["extraData"] = hexutil.Uint64(number), random(rng, 32), random(rng, 8)
	if seconds, ok := quantity(block["timestamp"]); ok {
		block["timestamp"] = hexutil.Uint64(seconds + slot*(number-was))
	}
	block["hash"] = random(rng, 32)
	var header types.Header
	if json.Unmarshal(mustJSON(block), &header) == nil {
		block["hash"] = header.Hash()
	}
	return original.withResult(block), nil
}

func random(rng *rand.Rand, length int) hexutil.Bytes {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// zeroBloom hides logs together with the evidence that they are missing. The hash of the block stays.
func zeroBloom(_ *call, original reply) (reply, string, error) {
	switch result := decoded(original.Result).(type) {
	case map[string]any:
		bloom, _ := result["logsBloom"].(string)
		if strings.Trim(bloom, "0x") == "" {
			return original, "", nil
		}
		result["logsBloom"] = hexutil.Bytes(make([]byte, types.BloomByteLength))
		return original.withResult(result), fmt.Sprintf("the header of block %v", result["number"]), nil
	case []any:
		if len(result) > 0 {
			return original.withResult([]any{}), fmt.Sprintf("none of %d logs or receipts", len(result)), nil
		}
	}
	return original, "", nil
}

// fields are the header fields that changedHeader may change.
var fields = []string{"timestamp", "parentHash", "stateRoot", "receiptsRoot", "extraData", "gasUsed"}

// changedHeader changes one field of a header and keeps the hash.
func changedHeader(c *call, original reply) (reply, string, error) {
	block, ok := decoded(original.Result).(map[string]any)
	if n, known := quantity(block["number"]); !ok || !known || n == 0 { // the genesis block is identified by its hash
		return original, "", nil
	}
	field := fields[c.rng.IntN(len(fields))]
	was, ok := block[field].(string)
	if !ok {
		return original, "", nil
	}
	if n, isNumber := number(was); isNumber && (field == "timestamp" || field == "gasUsed") {
		block[field] = hexutil.Uint64(n + 1 + c.rng.Uint64N(1000))
	} else {
		block[field] = random(c.rng, 32)
	}
	return original.withResult(block),
		fmt.Sprintf("%s of block %v is %v and not %s", field, block["number"], block[field], was),
		nil
}
