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

// Lies: well-formed but untrue responses, as of a node that was broken into. A client with only one endpoint cannot
// detect most of them, so a test of a client gives it honest endpoints too.
const (
	FinalHead     Fault = "final-head"     // the head is presented as final
	FinalFuture   Fault = "final-future"   // a block above the head is presented as final
	FinalBack     Fault = "final-back"     // the final block is older than before
	FutureHead    Fault = "future-head"    // a block that does not exist is presented as the head
	ZeroBloom     Fault = "zero-bloom"     // headers have an empty bloom, and blocks have no logs
	ChangedHeader Fault = "changed-header" // a header field is changed, so the header does not match its hash
)

var byNumber = []string{"eth_getBlockByNumber"}

// lies are drawn separately from all other faults. Draws depend on their order.
var lies = []kind{
	{fault: FinalHead, methods: byNumber,
		alter: instead(func(_ *call, _, head uint64) uint64 { return head }, "finalized", "safe")},
	{fault: FinalFuture, methods: byNumber, alter: instead(aboveHead, "finalized", "safe")},
	{fault: FinalBack, methods: byNumber, alter: instead(earlier, "finalized", "safe")},
	{fault: FutureHead, methods: heads, alter: instead(aboveHead, "latest")},
	{fault: ZeroBloom, methods: slices.Concat(blocks, withLogs), alter: zeroBloom},
	{fault: ChangedHeader, methods: blocks, alter: changedHeader},
}

// Lies returns the names of all lies.
func Lies() []Fault { return namesOf(lies) }

func aboveHead(c *call, _, head uint64) uint64 { return head + 1 + c.rng.Uint64N(c.proxy.config.Ahead) }

func earlier(c *call, is, _ uint64) uint64 {
	return is - min(is, 1+c.rng.Uint64N(c.proxy.config.Behind))
}

// slot is the number of seconds between two blocks that do not exist.
const slot = 12

// future turns a block into a higher one: it has an unknown parent, and a hash that matches its fields.
func future(rng *rand.Rand, truth reply, number uint64) (reply, error) {
	block, _ := decoded(truth.Result).(map[string]any)
	was, ok := quantity(block["number"])
	if !ok {
		return truth, fmt.Errorf("the upstream's block has no number: %.100s", truth.Result)
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
	return truth.with(block), nil
}

func random(rng *rand.Rand, length int) hexutil.Bytes {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// zeroBloom hides logs together with the evidence that they are missing. The hash of the block stays.
func zeroBloom(_ *call, truth reply) (reply, string, error) {
	switch result := decoded(truth.Result).(type) {
	case map[string]any:
		bloom, _ := result["logsBloom"].(string)
		if strings.Trim(bloom, "0x") == "" {
			return truth, "", nil
		}
		result["logsBloom"] = hexutil.Bytes(make([]byte, types.BloomByteLength))
		return truth.with(result), fmt.Sprintf("the header of block %v", result["number"]), nil
	case []any:
		if len(result) > 0 {
			return truth.with([]any{}), fmt.Sprintf("none of %d logs or receipts", len(result)), nil
		}
	}
	return truth, "", nil
}

// fields are the header fields that changedHeader may change.
var fields = []string{"timestamp", "parentHash", "stateRoot", "receiptsRoot", "extraData", "gasUsed"}

// changedHeader changes one field of a header and keeps the hash.
func changedHeader(c *call, truth reply) (reply, string, error) {
	block, ok := decoded(truth.Result).(map[string]any)
	if n, known := quantity(block["number"]); !ok || !known || n == 0 { // the genesis block is identified by its hash
		return truth, "", nil
	}
	field := fields[c.rng.IntN(len(fields))]
	was, ok := block[field].(string)
	if !ok {
		return truth, "", nil
	}
	if n, isNumber := number(was); isNumber && (field == "timestamp" || field == "gasUsed") {
		block[field] = hexutil.Uint64(n + 1 + c.rng.Uint64N(1000))
	} else {
		block[field] = random(c.rng, 32)
	}
	return truth.with(block), fmt.Sprintf("%s of block %v is %v and not %s", field, block["number"], block[field], was),
		nil
}
