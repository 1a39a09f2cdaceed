package faultproxy

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Faults of the call that measures NAV, convertToAssets; calls of other functions are not altered. A client with only
// one endpoint cannot detect the first of them.
const (
	SampleWrong    Fault = "sample-wrong"    // another value
	SampleNoState  Fault = "sample-no-state" // the state of the block is pruned
	SampleReverted Fault = "sample-reverted" // the contract reverts
	SampleEmpty    Fault = "sample-empty"    // the contract returns nothing
	SampleNull     Fault = "sample-null"     // null instead of bytes
	SampleTimeout  Fault = "sample-timeout"  // the node reports a timeout
)

var ofCalls = []string{"eth_call"}

// samples are drawn separately from all other faults. Draws depend on their order.
var samples = []kind{
	{fault: SampleWrong, methods: ofCalls,
		alter: ofSample(func(c *call, original reply) reply { return original.withResult(random(c.rng, 32)) })},
	{fault: SampleNoState, methods: ofCalls,
		alter: ofSample(refused(-32000, "missing trie node 7f3a (path ) state 0x7f3a is not available"))},
	{fault: SampleReverted, methods: ofCalls, alter: ofSample(refused(3, "execution reverted"))},
	{fault: SampleEmpty, methods: ofCalls,
		alter: ofSample(func(_ *call, original reply) reply { return original.withResult("0x") })},
	{fault: SampleNull, methods: ofCalls,
		alter: ofSample(func(_ *call, original reply) reply { return original.withResult(nil) })},
	{fault: SampleTimeout, methods: ofCalls, alter: ofSample(refused(-32000, "execution aborted (timeout = 5s)"))},
}

// Samples returns the names of all faults of samples.
func Samples() []Fault { return namesOf(samples) }

// convertToAssets is the function selector with which the call's input begins.
const convertToAssets = "0x07a2d13a"

// ofSample changes the response to the call that measures NAV.
func ofSample(change func(*call, reply) reply) alteration {
	return func(c *call, original reply) (reply, string, error) {
		var asked struct{ Data, Input string }
		if len(c.Params) == 0 || json.Unmarshal(c.Params[0], &asked) != nil ||
			!strings.HasPrefix(asked.Data+asked.Input, convertToAssets) {
			return original, "", nil
		}
		answer := change(c, original)
		what := answer.Result
		if answer.Error != nil {
			what = answer.Error
		}
		return answer, fmt.Sprintf("%.80s", what), nil
	}
}

func refused(code int, message string) func(*call, reply) reply {
	return func(_ *call, original reply) reply { return original.withError(code, message) }
}
