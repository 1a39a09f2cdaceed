package faultproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// Unusual formats: responses that are formatted differently from those of most nodes but mean the same.
const (
	Integers     Fault = "integers"      // quantities are JSON integers
	LeadingZeros Fault = "leading-zeros" // quantities have leading zeros
	UpperHex     Fault = "upper-hex"     // 0X and upper-case digits
	NoPrefix     Fault = "no-prefix"     // bytes have no 0x
	NullLists    Fault = "null-lists"    // an empty list is null
	NullOptional Fault = "null-optional" // optional members of a log are null or missing
	MoreMembers  Fault = "more-members"  // unknown members
	DoubledLogs  Fault = "doubled-logs"  // a log is there twice
	ShuffledLogs Fault = "shuffled-logs" // logs are in another order
	RemovedLogs  Fault = "removed-logs"  // logs of orphaned blocks are included
	PendingLogs  Fault = "pending-logs"  // logs that are not in a block yet are included
	NoBloom      Fault = "no-bloom"      // headers have no bloom
	StringIDs    Fault = "string-ids"    // the id comes back as a string
	NullError    Fault = "null-error"    // an error member that is null, empty or false in addition to the result
	Packed       Fault = "packed"        // gzip although it was not requested
	Marked       Fault = "marked"        // a byte order mark and white space
	PlainText    Fault = "plain-text"    // in chunks, as text/plain, with HTTP 203
	OddBatch     Fault = "odd-batch"     // the responses of a batch are in another order, and some occur twice
	NoBatches    Fault = "no-batches"    // batches are rejected
)

// Failures in unusual forms.
const (
	OddError  Fault = "odd-error"  // an error with a quoted code, unusual data and unprintable characters
	HTML      Fault = "html"       // an HTML page with HTTP 200, containing a NUL
	NoContent Fault = "no-content" // HTTP 204
)

var (
	blocks   = []string{"eth_getBlockByNumber", "eth_getBlockByHash"}
	withLogs = []string{"eth_getLogs", "eth_getBlockReceipts"}
	written  = slices.Concat(blocks, getLogs, []string{"eth_chainId"})
)

// unusualFormats are drawn separately from the other faults, so those stay the same for a seed. Draws depend on their
// order.
var unusualFormats = []kind{
	{fault: Integers, methods: written,
		alter: rewritten(quantities, func(_ *rand.Rand, text string) any { return json.Number(decimal(text)) })},
	{fault: LeadingZeros, methods: written, alter: rewritten(quantities, func(rng *rand.Rand, text string) any {
		return "0x" + strings.Repeat("0", 1+rng.IntN(20)) + text[2:]
	})},
	{fault: UpperHex, methods: written,
		alter: rewritten(slices.Concat(quantities, octets), func(_ *rand.Rand, text string) any {
			return "0X" + strings.ToUpper(text[2:])
		})},
	{fault: NoPrefix, methods: slices.Concat(blocks, getLogs),
		alter: rewritten(octets, func(_ *rand.Rand, text string) any { return text[2:] })},
	{fault: NullLists, methods: getLogs, alter: nullLists},
	{fault: NullOptional, methods: getLogs, alter: nullOptional},
	{fault: MoreMembers, methods: slices.Concat(blocks, getLogs), alter: moreMembers},
	{fault: DoubledLogs, methods: withLogs, alter: ofLogs(doubled)},
	{fault: ShuffledLogs, methods: withLogs, alter: ofLogs(shuffled)},
	{fault: RemovedLogs, methods: getLogs, alter: ofLogs(withRemoved)},
	{fault: PendingLogs, methods: getLogs, alter: ofLogs(withPending)},
	{fault: NoBloom, methods: blocks, alter: noBloom},
	{fault: StringIDs, alter: stringIDs},
	{fault: NullError, deliver: rebuilt(nullError)},
	{fault: Packed, deliver: resendAs(packed)},
	{fault: Marked, deliver: resendAs(marked)},
	{fault: PlainText, deliver: resendAs(plainText)},
	{fault: OddBatch, methods: []string{batch}, deliver: rebuilt(oddBatch)},
	{fault: NoBatches, methods: []string{batch}, deliver: noBatches},
	{fault: OddError, alter: oddError},
	{fault: HTML, deliver: status(http.StatusOK, "", "<html>\x00<body>down for maintenance</body></html>")},
	{fault: NoContent, deliver: noContent},
}

// UnusualFormats returns the names of all unusual formats, including failures in unusual forms.
func UnusualFormats() []Fault { return namesOf(unusualFormats) }

// Members of blocks and logs.
var (
	quantities = []string{"number", "timestamp", "blockNumber", "logIndex", "transactionIndex", "blockTimestamp"}
	octets     = []string{"hash", "parentHash", "logsBloom", "address", "data", "blockHash", "transactionHash"}
)

func decimal(text string) string {
	n, ok := number(text)
	if !ok {
		return "0"
	}
	return fmt.Sprint(n)
}

// rewritten changes how some members of a block, or of each log, are written; if the result is a quantity, how it is
// written.
func rewritten(members []string, write func(rng *rand.Rand, text string) any) alteration {
	return func(c *call, original reply) (reply, string, error) {
		if result, ok := decoded(original.Result).(string); ok {
			if _, ok := number(result); ok && slices.Contains(members, "number") {
				return original.withResult(write(c.rng, result)), result, nil
			}
		}
		return ofEach(original, func(object map[string]any) {
			for _, name := range members {
				if text, ok := object[name].(string); ok && strings.HasPrefix(text, "0x") {
					object[name] = write(c.rng, text)
				}
			}
		})
	}
}

// ofEach changes a block, or each log of a list.
func ofEach(original reply, change func(map[string]any)) (reply, string, error) {
	switch result := decoded(original.Result).(type) {
	case map[string]any:
		change(result)
		return original.withResult(result), "a block", nil
	case []any:
		for _, l := range result {
			if l, ok := l.(map[string]any); ok {
				change(l)
			}
		}
		if len(result) > 0 {
			return original.withResult(result), fmt.Sprintf("%d logs", len(result)), nil
		}
	}
	return original, "", nil
}

// decoded parses JSON with encoding/json, keeping numbers as they are written.
func decoded(raw json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&v)
	return v
}

func nullLists(_ *call, original reply) (reply, string, error) {
	if list, ok := decoded(original.Result).([]any); !ok || len(list) > 0 {
		return original, "", nil
	}
	return original.withResult(nil), "null instead of []", nil
}

func nullOptional(c *call, original reply) (reply, string, error) {
	return ofEach(original, func(l map[string]any) {
		for _, name := range []string{"removed", "blockTimestamp"} {
			if l[name] = nil; c.rng.IntN(2) == 0 {
				delete(l, name)
			}
		}
	})
}

func moreMembers(_ *call, original reply) (reply, string, error) {
	return ofEach(original, func(object map[string]any) {
		object["l1Fee"] = map[string]any{"logs": []any{nil, "]}\"",
			1.5e3}}
	})
}

func noBloom(c *call, original reply) (reply, string, error) {
	block, ok := decoded(original.Result).(map[string]any)
	if !ok {
		return original, "", nil
	}
	way := []any{nil, "0x", "", "missing"}[c.rng.IntN(4)]
	if block["logsBloom"] = way; way == "missing" {
		delete(block, "logsBloom")
	}
	return original.withResult(block), fmt.Sprintf("logsBloom is %v", way), nil
}

func stringIDs(c *call, original reply) (reply, string, error) {
	original.ID = mustJSON(string(c.ID))
	return original, string(original.ID), nil
}

func oddError(_ *call, original reply) (reply, string, error) {
	original.Result = nil
	original.Error = mustJSON(map[string]any{"code": "-32000", "message": "internal\x00error \u202e",
		"data": []any{nil, map[string]any{"cause": 7}}})
	return original, "an error with a NUL", nil
}
