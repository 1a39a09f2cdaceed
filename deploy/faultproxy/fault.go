package faultproxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A Fault names one way of failing.
type Fault string

// None is the absence of a fault, for scripts (see Proxy.Next).
const None Fault = ""

// Faults that alter a response and leave it well-formed: a client that trusts it loses data.
const (
	Stale         Fault = "stale"          // the response of a backend that lags some blocks behind
	OldHead       Fault = "old-head"       // the head is an old block, as at a node that is syncing
	EmptyLogs     Fault = "empty-logs"     // no logs although there are some
	PartialLogs   Fault = "partial-logs"   // some logs are missing
	TruncatedLogs Fault = "truncated-logs" // silently truncated after Config.ResultLimit logs
	WrongHash     Fault = "wrong-hash"     // the logs of a block carry another block's hash
	ShortLogs     Fault = "short-logs"     // a backend that lags some blocks behind returns only the logs that it has
	// such a backend reports an error for what it does not have, in the words of some node
	BeyondHead Fault = "beyond-head"
	ErrorBody  Fault = "error-body" // a JSON-RPC error in an HTTP 200
)

// Faults that reject a range of eth_getLogs, each in the wording of one family of providers.
const (
	RangeResults   Fault = "range-results"    // more than Config.ResultLimit results
	ResponseSize   Fault = "response-size"    // the same limit, as a size
	RangeWide      Fault = "range-wide"       // more than Config.RangeLimit blocks
	RangeLimited   Fault = "range-limited"    // the same limit, stated in the message
	RangeMaximum   Fault = "range-maximum"    // the same limit, as a maximum
	LimitExceeded  Fault = "limit-exceeded"   // the same limit, as the bare code -32005
	QueryTimeout   Fault = "query-timeout"    // the same limit, as a timeout
	Range413       Fault = "range-413"        // the same limit, as HTTP 413
	BlockOverLimit Fault = "block-over-limit" // a single block has too many results, so no smaller range helps
)

// Faults in the delivery of a whole HTTP response.
const (
	TooManyRequests Fault = "429"             // without Retry-After
	RetryAfter      Fault = "429-retry-after" // with Retry-After: 1
	BadGateway      Fault = "502"             // with an HTML page
	ForeignBody     Fault = "foreign-body"    // HTTP 200 with JSON that is not JSON-RPC
	BrokenBody      Fault = "broken-body"     // truncated JSON
	SlowBody        Fault = "slow-body"       // pieces with Config.Pause between them
	Reset           Fault = "reset"           // the connection is reset
)

// kind is the implementation of a fault. It has either alter or deliver; both return an empty detail if there is
// nothing to corrupt.
type kind struct {
	fault   Fault
	methods []string // to which it can apply; nil: all
	alter   alteration
	deliver delivery
}

type (
	alteration = func(c *call, original reply) (answer reply, detail string, err error)
	delivery   = func(x *exchange) (detail string, send sender, err error)
	sender     = func(http.ResponseWriter)
)

// A refusal is an error of a node.
type refusal struct {
	code    int
	message string
}

var (
	getLogs = []string{"eth_getLogs"}
	heads   = []string{"eth_blockNumber", "eth_getBlockByNumber"}
	chain   = []string{"eth_blockNumber", "eth_getBlockByNumber", "eth_getBlockByHash", "eth_getLogs"}
)

const tooManyResults = "query returned more than %d results"

// kinds are all faults except unusual formats, false responses and samples. Draws depend on their order.
var kinds = []kind{
	{fault: Stale, methods: chain, alter: stale},
	{fault: OldHead, methods: heads, alter: replaceBlock(oldHead, "latest")},
	{fault: EmptyLogs, methods: getLogs, alter: ofLogs(empty)},
	{fault: PartialLogs, methods: getLogs, alter: ofLogs(partial)},
	{fault: TruncatedLogs, methods: getLogs, alter: ofLogs(truncated)},
	{fault: WrongHash, methods: getLogs, alter: ofLogs(wrongHash)},
	{fault: ShortLogs, methods: getLogs, alter: stale},
	{fault: BeyondHead, methods: getLogs, alter: beyondHead},
	{fault: ErrorBody, alter: errorBody},
	{fault: RangeResults, methods: getLogs, alter: overLimit(results, -32005, tooManyResults)},
	{fault: ResponseSize, methods: getLogs, alter: overLimit(results, -32008, "response size exceeded")},
	{fault: RangeWide, methods: getLogs, alter: overLimit(width, -32600, "block range is too wide")},
	{fault: RangeLimited, methods: getLogs, alter: overLimit(width, -32600, "eth_getLogs is limited to a %d block range")},
	{fault: RangeMaximum, methods: getLogs, alter: overLimit(width, -32000, "exceed maximum block range: %d")},
	{fault: LimitExceeded, methods: getLogs, alter: overLimit(width, -32005, "limit exceeded")},
	{fault: QueryTimeout, methods: getLogs, alter: overLimit(width, -32000, "query timeout exceeded")},
	{fault: Range413, methods: getLogs, deliver: range413},
	{fault: BlockOverLimit, methods: getLogs, alter: overLimit(blockResults, -32005, tooManyResults)},
	{fault: TooManyRequests, deliver: status(http.StatusTooManyRequests, "", `{"message":"too many requests"}`)},
	{fault: RetryAfter, deliver: status(http.StatusTooManyRequests, "1", `{"message":"too many requests"}`)},
	{fault: BadGateway, deliver: status(http.StatusBadGateway, "", "<html><body>502 Bad Gateway</body></html>")},
	{fault: ForeignBody, deliver: status(http.StatusOK, "", `{"message":"no healthy upstream"}`)},
	{fault: BrokenBody, deliver: resendAs(truncateBody)},
	{fault: SlowBody, deliver: resendAs(slow)},
	{fault: Reset, deliver: reset},
}

// All returns the names of all faults, including unusual formats but neither false responses nor those of samples.
func All() []Fault { return slices.Concat(namesOf(kinds), UnusualFormats()) }

func namesOf(kinds []kind) []Fault {
	names := make([]Fault, len(kinds))
	for i, k := range kinds {
		names[i] = k.fault
	}
	return names
}

// Except returns all faults except the given ones, and no false responses.
func Except(some ...Fault) []Fault {
	return slices.DeleteFunc(All(), func(f Fault) bool { return slices.Contains(some, f) })
}

// batch is the name under which whole batches are counted and faults for them drawn.
const batch = "batch"

func (k *kind) appliesTo(method string) bool {
	if method == batch && k.methods == nil {
		return k.deliver != nil
	}
	return k.methods == nil || slices.Contains(k.methods, method)
}

func kindOf(f Fault) (*kind, error) {
	for _, kinds := range [][]kind{kinds, unusualFormats, falseResponses, samples} {
		for i := range kinds {
			if kinds[i].fault == f {
				return &kinds[i], nil
			}
		}
	}
	var names []string
	for _, known := range slices.Concat(All(), FalseResponses(), Samples()) {
		names = append(names, string(known))
	}
	return nil, fmt.Errorf("there is no fault %q; there are %s", f, strings.Join(names, ", "))
}

// groups are the enabled kinds, grouped and ordered as in the lists of kinds. Each list has its own draws.
type groups [4][]*kind

// groupsOf returns the kinds of some faults.
func groupsOf(faults []Fault) (some groups, err error) {
	for _, f := range faults {
		if _, err := kindOf(f); err != nil {
			return some, err
		}
	}
	for i, kinds := range [len(some)][]kind{kinds, unusualFormats, falseResponses, samples} {
		for j := range kinds {
			if slices.Contains(faults, kinds[j].fault) {
				some[i] = append(some[i], &kinds[j])
			}
		}
	}
	return some, nil
}
