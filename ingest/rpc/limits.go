package rpc

import (
	"context"
	"errors"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	ethrpc "github.com/ethereum/go-ethereum/rpc"
)

// There is no standard for how a node reports that a range is too long: each provider has its own limits (blocks,
// results, bytes, seconds), codes and messages, and they change. A limit named in the message is used; otherwise the
// range is halved.

// refusal is what the error of a range reveals about the endpoint's limits.
type refusal struct {
	kind    refusalKind
	blocks  uint64 // maximum blocks of a range, 0 if not named
	results int    // maximum logs of a response, 0 if not named
	upTo    uint64 // the last block of the range that it suggests, 0 for none
}

type refusalKind int

const (
	notRefused refusalKind = iota // a shorter range would not help: a failure, or too many calls
	tooMuch                       // message, code or status say that a shorter range would succeed
	unclear                       // an error of the node that may mean anything
	unanswered                    // no response in time: a shorter range may succeed, or the endpoint hangs
	absent                        // the node does not have the blocks, not yet or no longer: a shorter range would not help
)

// splits reports whether a shorter range may succeed.
func (k refusalKind) splits() bool { return k == tooMuch || k == unclear || k == unanswered }

// figure matches the numbers in the messages: 10000, 10,000, 10k.
const figure = `([0-9][0-9,_']*(?:\.[0-9]+)? ?(?:k|m|thousand|million)?)\b`

var (
	// A message about the rate of calls is not about the size of one.
	ofRate = regexp.MustCompile(`rate|too many requests|throttl|per (?:second|minute|day)|capacity|quota|credit|compute unit|slow down`)
	// A number of results or of blocks, in messages that name one.
	ofResults = regexp.MustCompile(`(?:more than|max\w*|limit\w*|cap|exceed\w*|up to|over)\D{0,40}` + figure + `\s*(?:results|logs|log entries|events|records|entries|items)` +
		`|max(?:imum)? (?:number of )?(?:results|logs)\D{0,25}` + figure)
	ofBlocks = []*regexp.Regexp{
		regexp.MustCompile(`\( ?[0-9]+ ?> ?` + figure + ` ?\)`),
		regexp.MustCompile(`(?:limited to|up to|at most|max\w*|limit\w*|over|than|within|exceed\w*)\b[^0-9\[]{0,30}(?:0 ?- ?)?` + figure + `[- ]*(?:blocks?\b|range)`),
		regexp.MustCompile(`(?:block )?range\w*(?: is| of|[^0-9\[]{0,40}\b(?:max\w*|limit\w*|than|to|exceeds?|allowed|size))[^0-9\[]{0,20}` + figure),
		regexp.MustCompile(`max(?:imum)?[^0-9\[.]{0,25}(?:range|blocks?)[^0-9\[]{0,20}` + figure),
		regexp.MustCompile(`(?:maximum|limit) is (?:set to )?` + figure),
		regexp.MustCompile(`smaller than size ` + figure),
	}
	// A range that the message says would work.
	ofRange = regexp.MustCompile(`\[ ?"?(0x[0-9a-f]+|[0-9]+)"? ?, ?"?(0x[0-9a-f]+|[0-9]+)"? ?\]|range (0x[0-9a-f]+|[0-9]+) ?(?:-|to|\.\.) ?(0x[0-9a-f]+|[0-9]+)|"from" ?: ?"(0x[0-9a-f]+)" ?,.{0,60}"to" ?: ?"(0x[0-9a-f]+)"`)
	// ofHead matches the messages of a node that is behind: go-ethereum, reth and Erigon ("block range extends beyond
	// current head block", "request beyond head block"), Nethermind and OpenEthereum ("One of the blocks specified in
	// filter ... cannot be found"), Avalanche ("requested to block 8 after last accepted block 7"), Tendermint chains
	// ("height 8 must be less than or equal to the current blockchain height 7"), and load balancers ("block 8 is
	// beyond the latest block 7 of this node", "upstream does not have the requested block yet"). A bound that is not
	// the head ("beyond the limit of 1000 blocks") does not match.
	ofHead = regexp.MustCompile(`(?:beyond|past|after|above|ahead of|(?:greater|higher|larger|newer|more) than|exceeds?|(?:less|lower|smaller) than or equal to) ` +
		`(?:the |its |our |this )*(?:(?:node|chain|network)(?:'s)? )?(?:(?:current|latest|last|newest|highest|best|known|accepted|blockchain|chain) ?)+(?:head|tip|block|height)\b` +
		`|(?:beyond|past|above|ahead of|exceeds?|(?:greater|higher) than) (?:the )?(?:head|tip)\b` +
		`|blocks? specified in (?:the )?filter.{0,60}cannot be found` +
		`|(?:does not|doesn't|do not|don't) have (?:the |this |these )?(?:requested )?(?:block|header)s?\b` +
		`|(?:block|header|height)s?\b[^.]{0,40}(?:not (?:been )?yet\b|(?:is|are|lies?) in the future|not (?:found|available)|do(?:es)? ?n[o']t exist)` +
		`|future block|unknown block|(?:could not|cannot|can't) find (?:the )?(?:block|header)`)
	// ofHistory matches the messages of a node that has dropped the blocks.
	ofHistory = regexp.MustCompile(`\bpruned\b|histor(?:y|ical)[^.]{0,30}(?:unavailable|not available|expired)|missing trie node`)
	// Any other message about too much data.
	ofLimit = regexp.MustCompile(`range|too (?:large|big|wide|long|many)|larger than|exceed|limit|time(?:d)? ?-?out|deadline|more than|smaller|narrow|reduce`)
)

// Codes that are clear without a message.
const (
	limitExceeded = -32005
	prunedHistory = 4444 // of EIP-4444, returned by go-ethereum and others
)

// lacks reports whether an error says that the node does not have the blocks of a range. Such a message is about the
// position of the range, not about its length.
func lacks(code int, text string) bool {
	return code == prunedHistory || ofHead.MatchString(text) || ofHistory.MatchString(text)
}

// refusalOf interprets the error of a call for the logs of blocks from `from`.
func refusalOf(ctx context.Context, err error, from uint64) refusal {
	var answer ethrpc.Error
	var status *httpError
	switch {
	case err == nil, ctx.Err() != nil:
		return refusal{}
	case errors.Is(err, errAnswerTooLong):
		return refusal{kind: tooMuch}
	case errors.Is(err, context.DeadlineExceeded):
		return refusal{kind: unanswered}
	case errors.As(err, &status) && (status.Status == http.StatusTooManyRequests || status.Status == http.StatusServiceUnavailable):
		return refusal{}
	case errors.As(err, &answer):
		return read(answer, from)
	case status == nil:
		return refusal{}
	}
	switch status.Status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestTimeout, http.StatusGatewayTimeout, 524: // 524: a proxy timed out
		return refusal{kind: tooMuch}
	}
	switch text := strings.ToLower(beginning(status.Body)); {
	case lacks(0, text):
		return refusal{kind: absent}
	case status.Status < 500 && ofLimit.MatchString(text) && !ofRate.MatchString(text):
		return refusal{kind: tooMuch}
	}
	return refusal{}
}

// mostWords is how much of a node's error message is read. A message may have megabytes, which a dozen regular
// expressions would scan.
const mostWords = 4 << 10

func beginning[T ~string | ~[]byte](text T) string { return string(text[:min(len(text), mostWords)]) }

// read interprets an error that the node itself returned.
func read(answer ethrpc.Error, from uint64) refusal {
	var text string
	if more := (*rpcError)(nil); errors.As(answer, &more) {
		text = beginning(more.Message) + " " + beginning(more.Data)
	} else {
		text = beginning(answer.Error())
	}
	text = strings.ToLower(text)
	if lacks(answer.ErrorCode(), text) {
		return refusal{kind: absent}
	}
	r := refusal{kind: unclear}
	if m := ofRange.FindStringSubmatch(text); m != nil {
		first, _ := strconv.ParseUint(m[1]+m[3]+m[5], 0, 64)
		last, _ := strconv.ParseUint(m[2]+m[4]+m[6], 0, 64)
		if first == from && last >= from {
			r.upTo = last
		}
	}
	if m := ofResults.FindStringSubmatch(text); m != nil {
		r.results = int(min(figureOf(m[1]+m[2]), math.MaxInt32))
	}
	withoutResults := ofResults.ReplaceAllString(text, " ")
	for _, wording := range ofBlocks {
		if m := wording.FindStringSubmatch(withoutResults); m != nil {
			r.blocks = figureOf(m[1])
			break
		}
	}
	switch named := r.upTo > 0 || r.results > 0 || r.blocks > 0; {
	case named:
		r.kind = tooMuch
	case ofRate.MatchString(text):
		r.kind = notRefused
	case answer.ErrorCode() == limitExceeded, ofLimit.MatchString(text):
		r.kind = tooMuch
	}
	return r
}

// figureOf parses 10000, 10,000 and 10k.
func figureOf(text string) uint64 {
	text = strings.NewReplacer(",", "", "_", "", "'", "", " ", "").Replace(text)
	times := 1.0
	for suffix, value := range map[string]float64{"thousand": 1e3, "million": 1e6, "k": 1e3, "m": 1e6} {
		if cut, found := strings.CutSuffix(text, suffix); found {
			text, times = cut, value
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n*times > 1e12 {
		return 0
	}
	return uint64(n * times)
}

// limits is what is known about the limits of one endpoint. The ranges in flight share it.
type limits struct {
	mu    sync.Mutex
	width uint64 // blocks of the next range
	// named is the limit that the endpoint named, and above is a width that it rejected without naming one; 0 for none.
	// Both are relaxed slowly, since limits depend on the load, the plan and the contents of the blocks.
	named, above uint64
	results      int          // maximum logs of a response that the endpoint named; 0 if none
	full         int          // ranges of the allowed width since the last refusal or relaxation
	counts       map[int]bool // numbers of logs at which responses may be truncated
	uncut        int          // the most logs of a response that was not truncated
	known        bool         // something bounds the width: the caller, a limit, or the contents of the blocks
	batch        int          // headers of the next batch
	batches      int          // batches of headers of the allowed length since the last refusal or relaxation
	singles      time.Time    // until when no batch is sent, since the endpoint rejects batches

	vouching sync.Mutex // held while it is checked whether the node has old logs
	vouches  int        // how many more checks may be made, 0 when the outcome is known
}

const (
	// The first range is short. While the responses are nearly empty, the next one is up to leap times as long, so that
	// two calls are enough to recognise a sparse history.
	firstWidth = 8
	leap       = 64
	// relaxAfter is the number of consecutive ranges of the allowed width after which a little more is tried.
	relaxAfter = 64
	// slow is the response time above which ranges become shorter.
	slow = 5 * time.Second
)

func newLimits() *limits {
	return &limits{width: firstWidth, counts: map[int]bool{}, batch: HeadersAtOnce, vouches: vouchTries}
}

// next returns the number of blocks for the next range, at most most.
func (l *limits) next(most uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(1, l.bound(min(l.width, most)))
}

func (l *limits) bound(blocks uint64) uint64 {
	if l.named > 0 {
		blocks = min(blocks, l.named)
	}
	if l.above > 0 {
		blocks = min(blocks, l.above-1)
	}
	return blocks
}

// settled reports whether it is known how wide a range of up to most blocks may be. Until then ranges are read one
// after the other, so that each can use what the one before it revealed.
func (l *limits) settled(most uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known || l.width >= most
}

// gave updates the width after a response with this number of logs and bytes. The width moves towards the one whose
// responses have the wanted number of bytes and stay below what the endpoint rejects; once something has bounded it, it
// at most doubles in a step.
func (l *limits) gave(blocks uint64, logs, bytes, wanted int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if took > slow {
		l.known = true
		l.width = max(1, min(l.width, blocks/2))
		return
	}
	ideal := float64(wanted) / float64(bytes+1)
	if l.results > 0 && logs > 0 {
		ideal = min(ideal, 0.9*float64(l.results)/float64(logs))
	}
	grown, held := 2*blocks, l.named > 0 && blocks >= l.named
	if l.known = l.known || ideal < 4; !l.known {
		grown = blocks * uint64(min(leap, ideal/2))
	}
	if l.above > 0 {
		grown = min(grown, (blocks+l.above)/2)
		held = held || l.above-min(blocks, l.above) <= max(1, l.above/8)
	}
	if held {
		grown = blocks
	}
	l.width = max(1, min(max(l.width, grown), uint64(min(ideal*float64(blocks), 1e9))))
	if !held {
		return
	}
	if l.full++; l.full < relaxAfter {
		return
	}
	l.full = 0
	if l.named > 0 {
		l.named += l.named/8 + 1
	}
	if l.above > 0 {
		l.above += l.above/4 + 1
	}
}

// refused updates the limits after a refusal of a range of 2 or more blocks from `from`, and returns how many blocks to
// request instead: fewer.
func (l *limits) refused(blocks, from uint64, r refusal) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.full, l.known = 0, true
	if r.results > 0 {
		l.results, l.counts[r.results] = r.results, true
	}
	fewer := blocks / 2
	switch {
	case r.upTo >= from && r.upTo-from+1 < blocks:
		fewer = r.upTo - from + 1
	case r.blocks > 0 && r.blocks < blocks:
		l.named, fewer = r.blocks, r.blocks
	default:
		// A limit on results does not bound later ranges, but a limit on the width does.
		if r.results == 0 && (l.above == 0 || blocks < l.above) {
			l.above = blocks
		}
	}
	l.width = max(1, min(l.width, fewer))
	return max(1, fewer)
}

// cut reports whether a response with this number of logs may have been truncated: the number is a limit that the
// endpoint named, or a round one that no complete response has exceeded.
func (l *limits) cut(logs int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[logs] || logs > l.uncut && logs%1000 == 0
}

// whole remembers that a response with this number of logs was complete.
func (l *limits) whole(logs int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uncut = max(l.uncut, logs)
}

// cuts remembers that a response was truncated after this number of logs.
func (l *limits) cuts(logs int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if logs > 0 {
		l.counts[logs] = true
	}
}

// batchless reports whether the endpoint gets no batches at present.
func (l *limits) batchless(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.singles)
}

// noBatches stops batches to the endpoint until the given time.
func (l *limits) noBatches(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.singles = until
}

func (l *limits) headers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.batch
}

// gaveHeaders updates the limits after a successful batch of headers: after many batches of the allowed length a little
// more is tried, since the error that shortened them may have been temporary.
func (l *limits) gaveHeaders(asked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked < l.batch || l.batch >= HeadersAtOnce {
		return
	}
	if l.batches++; l.batches == relaxAfter {
		l.batch, l.batches = min(HeadersAtOnce, l.batch+l.batch/4+1), 0
	}
}

// fewerHeaders halves the batches of headers, and returns false if they cannot be shorter.
func (l *limits) fewerHeaders(asked int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked <= 1 {
		return false
	}
	l.batch, l.batches = min(l.batch, asked/2), 0
	return true
}
