package faultproxy

import (
	"context"
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
	{fault: FinalHead, methods: byNumber, alter: ofFinal(finalHead)},
	{fault: FinalFuture, methods: byNumber, alter: ofFinal(finalFuture)},
	{fault: FinalBack, methods: byNumber, alter: ofFinal(finalBack)},
	{fault: FutureHead, methods: heads, alter: futureHead},
	{fault: ZeroBloom, methods: slices.Concat(blocks, withLogs), alter: zeroBloom},
	{fault: ChangedHeader, methods: blocks, alter: changedHeader},
}

// Lies returns the names of all lies.
func Lies() []Fault { return namesOf(lies) }

// ofFinal changes the block that is presented as final. change returns false if there is nothing to change.
func ofFinal(change func(p *Proxy, rng *rand.Rand, final, head uint64) (uint64, bool)) alteration {
	return func(ctx context.Context, p *Proxy, c *call, truth reply) (reply, string, error) {
		tag := c.text()
		final, exists := numberOf(truth.Result)
		if tag != "finalized" && tag != "safe" || !exists {
			return truth, "", nil
		}
		head, err := p.head(ctx, c.backend)
		if err != nil {
			return truth, "", err
		}
		n, ok := change(p, c.rng, final, head)
		if !ok {
			return truth, "", nil
		}
		answer, err := p.at(ctx, c, truth, min(n, head))
		if err == nil && n > head {
			answer, err = future(c.rng, answer, n)
		}
		return answer, fmt.Sprintf("block %d instead of %d as %s, the head is %d", n, final, tag, head), err
	}
}

func finalHead(_ *Proxy, _ *rand.Rand, final, head uint64) (uint64, bool) { return head, final < head }

func finalFuture(p *Proxy, rng *rand.Rand, _, head uint64) (uint64, bool) {
	return head + 1 + rng.Uint64N(p.config.Ahead), true
}

func finalBack(p *Proxy, rng *rand.Rand, final, _ uint64) (uint64, bool) {
	return final - min(final, 1+rng.Uint64N(p.config.Behind)), final > 0
}

// futureHead presents a head that is some blocks higher and later than the real one.
func futureHead(ctx context.Context, p *Proxy, c *call, truth reply) (answer reply, detail string, err error) {
	if c.Method == "eth_getBlockByNumber" && c.text() != "latest" {
		return truth, "", nil
	}
	head, err := p.head(ctx, c.backend)
	if err != nil {
		return truth, "", err
	}
	n := head + 1 + c.rng.Uint64N(p.config.Ahead)
	if answer = truth.with(hexutil.Uint64(n)); c.Method != "eth_blockNumber" {
		answer, err = future(c.rng, truth, n)
	}
	return answer, fmt.Sprintf("block %d, the head is %d", n, head), err
}

// slot is the number of seconds between two blocks that do not exist.
const slot = 12

// future turns a block into a higher one: it has an unknown parent, and a hash that matches its fields.
func future(rng *rand.Rand, truth reply, number uint64) (reply, error) {
	block, was, err := blockOf(truth)
	if err != nil {
		return truth, err
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

// blockOf parses the block in a reply.
func blockOf(r reply) (block map[string]any, number uint64, err error) {
	block, _ = decoded(r.Result).(map[string]any)
	number, ok := quantity(block["number"])
	if !ok {
		return nil, 0, fmt.Errorf("the upstream's block has no number: %.100s", r.Result)
	}
	return block, number, nil
}

func quantity(v any) (uint64, bool) {
	text, _ := v.(string)
	return number(text)
}

func random(rng *rand.Rand, length int) hexutil.Bytes {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// zeroBloom hides logs together with the evidence that they are missing. The hash of the block stays.
func zeroBloom(_ context.Context, _ *Proxy, _ *call, truth reply) (reply, string, error) {
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
func changedHeader(_ context.Context, _ *Proxy, c *call, truth reply) (reply, string, error) {
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
