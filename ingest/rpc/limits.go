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
)

// There is no standard for how a node reports that a range is too long: each provider has its own limits, codes and
// messages. A limit named in the message is used; otherwise the range is halved.

// refusal is what the error of a range reveals about the endpoint's limits.
type refusal struct {
	kind     refusalKind
	blocks   uint64 // maximum blocks of a range, 0 if not named
	results  int    // maximum logs of a response, 0 if not named
	ownLimit bool   // the response was longer than this program accepts
}

type refusalKind int

const (
	notRefused refusalKind = iota // a failure: a shorter range would not help
	tooOften                      // too many calls
	tooMuch                       // message, code or status say that a shorter range would succeed
	unclear                       // an error of the node that may mean anything
	unanswered                    // no response in time: a shorter range may succeed, or the endpoint hangs
	// the node does not have the blocks, not yet or no longer: a shorter range would not help
	blocksMissing
)

func (k refusalKind) splits() bool { return k == tooMuch || k == unclear || k == unanswered }

// figure matches the numbers in the messages: 10000, 10,000, 10k.
const figure = `([0-9][0-9,_']*(?:\.[0-9]+)? ?(?:k|m|thousand|million)?)\b`

var (
	// Messages about the number of calls: always with the words of callLimitText, and with those of rateText if they name
	// no number of blocks or results.
	callLimitText = regexp.MustCompile(`too many requests|request rate|rate.?limit|requests? (?:per|/) ?(?:second|minute|day)` +
		`|per second (?:capacity|limit)|throughput|daily request|request count exceeded|quota`)
	rateText = regexp.MustCompile(`\brates?\b|\brps\b|throttl|per (?:second|minute|day)|[0-9] ?/ ?(?:s|sec|second|minute|day)\b` +
		`|request limit|concurrent requests|capacity|credit|compute unit|slow down`)
	// Messages that name a number of results or of blocks.
	resultLimitText = regexp.MustCompile(`(?:more than|max\w*|limit\w*|cap|exceed\w*|up to|over)\D{0,40}` + figure +
		`\s*(?:results|logs|log entries|events|records|entries|items)` +
		`|max(?:imum)? (?:number of )?(?:results|logs)\D{0,25}` + figure)
	// Figures that are neither: those with another unit, the age of blocks, their distance from the head, how many a node
	// keeps, and the head itself.
	otherFigures = regexp.MustCompile(figure + `\s*(?:[kmgt]i?b|(?:kilo|mega|giga|kibi|mebi|gibi)?bytes?|ms|milliseconds?` +
		`|s|secs?|seconds?|mins?|minutes?|hours?|days?|requests?|calls?|queries|addresses|topics|credits?` +
		`|(?:compute )?units?|gas)\b` +
		`|\b(?:older|earlier) than [^0-9]{0,20}` + figure + `[- ]*(?:blocks?\b)?` +
		`|` + figure + `[- ]*blocks? (?:old|ago|(?:of|(?:behind|below|before|ahead(?: of)?|above|beyond|past)) (?:the )?(?:chain )?(?:head|tip|latest|current))\b` +
		`|\b(?:(?:last|latest|most recent|newest)|(?:retention|keeps|retains|stores)\b[^0-9]{0,30}) ?` + figure + `[- ]*blocks?\b` +
		`|\bmax(?:imum)? (?:(?:block )?height(?: is)?|block is) ` + figure)
	blockLimitTexts = []*regexp.Regexp{
		regexp.MustCompile(`\( ?[0-9]+ ?> ?` + figure + ` ?\)`),
		regexp.MustCompile(`range\w*:? [0-9]+,? (?:>|exceeds?|max|is (?:higher|larger|greater) than)[^0-9\[]{0,30}` + figure),
		regexp.MustCompile(`(?:limited to|up to|at most|max\w*|limit\w*|over|than|within|exceed\w*)\b[^0-9\[]{0,30}(?:0 ?- ?)?` + figure + `[- ]*(?:blocks?\b|range)`),
		regexp.MustCompile(`(?:block )?range\w*(?: is| of|[^0-9\[]{0,40}\b(?:max\w*|limit\w*|than|to|over|above|exceeds?|allowed|size))[^0-9\[]{0,20}` + figure),
		regexp.MustCompile(`max(?:imum)?[^0-9\[.]{0,25}(?:range|blocks?)[^0-9\[]{0,20}` + figure),
		regexp.MustCompile(`(?:maximum|limit) is (?:set to )?` + figure),
		regexp.MustCompile(`smaller than size ` + figure),
	}
	// aboveHeadText matches the messages of a node that is behind: go-ethereum, reth and Erigon ("block range extends
	// beyond current head block", "request beyond head block"), Nethermind and OpenEthereum ("One of the blocks specified
	// in filter ... cannot be found"), Avalanche ("requested to block 8 after last accepted block 7"), Tendermint chains
	// ("height 8 must be less than or equal to the current blockchain height 7"), and load balancers ("block 8 is beyond
	// the latest block 7 of this node", "upstream does not have the requested block yet"). A bound that is not the head
	// ("beyond the limit of 1000 blocks") does not match.
	aboveHeadText = regexp.MustCompile(`(?:beyond|past|after|above|ahead of|(?:greater|higher|larger|newer|more) than|exceeds?|(?:less|lower|smaller) than or equal to) ` +
		`(?:the |its |our |this )*(?:(?:node|chain|network)(?:'s)? )?(?:(?:current|latest|last|newest|highest|best|known|accepted|blockchain|chain) ?)+(?:head|tip|block|height)\b` +
		`|(?:beyond|past|above|ahead of|exceeds?|(?:greater|higher) than) (?:the )?(?:head|tip)\b` +
		`|blocks? specified in (?:the )?filter.{0,60}cannot be found` +
		`|(?:does not|doesn't|do not|don't) have (?:the |this |these )?(?:requested )?(?:block|header)s?\b` +
		`|future block|unknown block|(?:could not|cannot|can't) find (?:the )?(?:block|header)`)
	// missingBlocksText matches the messages of a node that does not have the blocks or has dropped them ("old data not
	// available due to pruning" of Erigon), and archiveText those of a provider that sells old blocks ("Archive, Debug
	// and Trace requests are not available on your current plan"). One that names a limit is about the length of the
	// range ("block range over 500 is not available"), and one that matches archiveText may be about it without a number.
	missingBlocksText = regexp.MustCompile(`(?:block|header|height)s?\b[^.]{0,40}(?:not (?:been )?yet\b|(?:is|are|lies?) in the future|not (?:found|available)|do(?:es)? ?n[o']t exist)` +
		`|\bprun(?:ed|ing)\b|histor(?:y|ical)[^.]{0,30}(?:unavailable|not available|expired)|missing trie node`)
	archiveText = regexp.MustCompile(`\barchiv(?:e|al)\b[^.0-9]{0,60}\b(?:not (?:available|included|supported|allowed)|require[sd]?|restricted)\b` +
		`|\brequires? an? archiv(?:e|al)\b`)
	lengthText = regexp.MustCompile(`range|limit`)
	limitText  = regexp.MustCompile(`range|too (?:large|big|wide|long|many)|larger than|exceed|limit|time(?:d)? ?-?out|deadline|more than|smaller|narrow|reduce`)
)

// refusalOf interprets the error of a call for logs.
func refusalOf(ctx context.Context, err error) refusal {
	var answer *rpcError
	var status *httpError
	switch {
	case err == nil, ctx.Err() != nil:
		return refusal{}
	case errors.Is(err, errAnswerTooLong):
		return refusal{kind: tooMuch, ownLimit: true}
	case errors.Is(err, context.DeadlineExceeded):
		return refusal{kind: unanswered}
	case errors.As(err, &status) &&
		(status.Status == http.StatusTooManyRequests || status.Status == http.StatusServiceUnavailable):
		return refusal{}
	case errors.As(err, &answer):
		return read(answer)
	case status == nil:
		return refusal{}
	}
	switch status.Status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestTimeout, http.StatusGatewayTimeout, 524:
		// 524: a proxy timed out
		return refusal{kind: tooMuch}
	}
	if r := read(&rpcError{Message: status.Body}); r.kind == blocksMissing || r.kind == tooMuch && status.Status < 500 {
		return r
	}
	return refusal{}
}

// maxErrorText is how much of a node's error message is read: a dozen regular expressions would scan megabytes.
const maxErrorText = 4 << 10

func truncated[T ~string | ~[]byte](text T) string {
	return string(text[:min(len(text), maxErrorText)])
}

// read interprets an error that the node itself returned.
func read(answer *rpcError) refusal {
	text := answer.text()
	switch {
	case callLimitText.MatchString(answer.message()):
		return refusal{kind: tooOften}
	case answer.Code == prunedHistory, aboveHeadText.MatchString(text):
		return refusal{kind: blocksMissing} // the message is about the position of the range, not about its length
	}
	r := refusal{kind: unclear}
	figures := otherFigures.ReplaceAllString(text, " ")
	if m := resultLimitText.FindStringSubmatch(figures); m != nil {
		r.results = int(min(figureOf(m[1]+m[2]), math.MaxInt32))
	}
	figures = resultLimitText.ReplaceAllString(figures, " ")
	for _, wording := range blockLimitTexts {
		if m := wording.FindStringSubmatch(figures); m != nil {
			r.blocks = figureOf(m[1])
			break
		}
	}
	switch {
	case r.results > 0, r.blocks > 0:
		r.kind = tooMuch
	case missingBlocksText.MatchString(text), archiveText.MatchString(text) && !lengthText.MatchString(text):
		r.kind = blocksMissing
	case rateText.MatchString(text):
		r.kind = tooOften
	case answer.Code == limitExceeded, limitText.MatchString(text):
		r.kind = tooMuch
	}
	return r
}

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

// adaptiveLimit is a bound that is found by trying. It falls when the endpoint refuses more, and rises slowly with
// success, because limits depend on the load, the plan and the contents of the blocks.
type adaptiveLimit struct {
	bound, max uint64 // the bound, and the highest that it may become
	// before is the bound before it was raised last, until a success shows that the endpoint accepts the raised one.
	before      uint64
	streak      int // successes at the bound since it changed
	patience    int // successes after which it is raised; twice as many after a raise that was refused
	minPatience int // the patience after a raise that was accepted
}

const (
	// rangesAfter and batchesAfter are the least patience. A refused range costs one call, and a single timeout may have
	// been the reason for the bound; each call of a refused batch may be billed.
	rangesAfter  = 4
	batchesAfter = 64
	maxPatience  = 1024
)

func newAdaptiveLimit(most uint64, least int) adaptiveLimit {
	return adaptiveLimit{bound: most, max: most, patience: least, minPatience: least}
}

// succeeded notes that the endpoint accepted n.
func (l *adaptiveLimit) succeeded(n uint64) {
	if n < l.bound || l.bound == l.max {
		return
	}
	if l.before > 0 {
		l.before, l.patience = 0, l.minPatience
	}
	if l.streak++; l.streak >= l.patience {
		l.before, l.bound, l.streak = l.bound, min(l.max, l.bound+l.bound/4+1), 0
	}
}

// refused notes that the endpoint refused n, which is 2 or more, and the bound that it named, 0 for none. It returns
// the new bound, which is below n.
func (l *adaptiveLimit) refused(n, named uint64) uint64 {
	raised := l.before > 0 && n > l.before
	switch {
	case named > 0 && named < n:
		l.bound = named
	case raised:
		l.bound = l.before
	case n > l.bound:
		return l.bound // the call was made before the bound fell
	default:
		l.bound = n / 2
	}
	if raised {
		l.patience = min(2*l.patience, maxPatience)
	}
	l.before, l.streak = 0, 0
	return l.bound
}

// limits is what is known about the limits of one endpoint. The ranges in flight share it.
type limits struct {
	mu      sync.Mutex
	width   uint64        // blocks of the next range, as far as the contents of the last one say
	known   bool          // something bounds the width: the caller, a limit, or the contents of the blocks
	ranges  adaptiveLimit // blocks of a range that the endpoint accepts
	batch   adaptiveLimit // calls of a batch that the endpoint accepts; 1 if it rejects batches
	results int           // maximum logs of a response that the endpoint named; 0 for none

	hung    uint64 // blocks of the shortest range that timed out since one was answered; 0 for none
	longest uint64 // blocks of the longest range that was answered lately; 0 for none
	shorter int    // shorter ranges that were answered since
}

const (
	// The first range is short. While the responses are nearly empty, the next one is up to maxGrowth times as long.
	firstWidth = 8
	maxGrowth  = 64
	// slowResponse is the response time above which ranges become shorter.
	slowResponse = 5 * time.Second
	// recentRanges is after how many shorter ranges that were answered a longer one no longer counts. If every third call
	// hangs, so many of one length do so in a row once in 6,561 times.
	recentRanges = 8
)

func newLimits() *limits {
	return &limits{
		width: firstWidth, ranges: newAdaptiveLimit(math.MaxInt64, rangesAfter),
		batch: newAdaptiveLimit(MaxBatchHeaders, batchesAfter),
	}
}

func (l *limits) next(most uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	width := min(l.width, l.ranges.bound, most)
	if l.hung > 0 {
		width = min(width, afterTimeout(l.hung)) // another endpoint may continue the range that timed out
	}
	return max(1, width)
}

func (l *limits) hasAnswered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.longest > 0
}

// widthKnown reports whether it is known how wide a range of up to most blocks may be. Until then ranges are read one
// after the other.
func (l *limits) widthKnown(most uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known || l.width >= most
}

// rangeSucceeded updates the width after a response with this number of logs and bytes: towards the one whose responses
// have the target number of bytes and fewer logs than the endpoint returns. Once something has bounded it, it at most
// doubles.
func (l *limits) rangeSucceeded(blocks uint64, logs, bytes, target int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hung = 0
	if l.shorter++; blocks >= l.longest || l.shorter > recentRanges {
		l.longest, l.shorter = blocks, 0
	}
	if took > slowResponse {
		l.known = true
		l.width = max(1, min(l.width, blocks/2))
		return
	}
	if logs > l.results {
		l.results = 0 // it returns more than that now
	}
	growth := l.targetGrowth(logs, bytes, target)
	grown := 2 * blocks
	if l.known = l.known || growth < 4; !l.known {
		grown = blocks * uint64(min(maxGrowth, growth/2))
	}
	l.width = max(1, min(max(l.width, grown), uint64(min(growth*float64(blocks), 1e9))))
	l.ranges.succeeded(blocks)
}

// targetGrowth returns how many times as wide as a range with this number of logs and bytes a range should be.
func (l *limits) targetGrowth(logs, bytes, target int) float64 {
	growth := float64(target) / float64(bytes+1)
	if l.results > 0 && logs > 0 {
		growth = min(growth, 0.9*float64(l.results)/float64(logs))
	}
	return growth
}

// refused updates the limits after a refusal or a timeout of a range of 2 or more blocks, and returns how many to
// request instead: fewer.
func (l *limits) refused(blocks uint64, r refusal) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.kind == unanswered {
		// An endpoint may hang at any call: a timeout counts as a refusal only if shorter ranges were answered lately, and
		// none of this length.
		if l.hung == 0 || blocks < l.hung {
			l.hung = blocks
		}
		if l.longest > 0 && l.longest < blocks {
			l.known = true
			l.ranges.refused(blocks, 0)
		}
		return afterTimeout(blocks)
	}
	l.known = true
	fewer := blocks / 2
	if r.results > 0 {
		l.results = r.results
	}
	// A limit on the length of a response does not bound later ranges. An unnamed limit may be one on the blocks.
	if r.results == 0 && !r.ownLimit || r.blocks > 0 && r.blocks < blocks {
		fewer = l.ranges.refused(blocks, r.blocks)
	}
	l.width = max(1, min(l.width, fewer))
	return max(1, fewer)
}

func afterTimeout(blocks uint64) uint64 { return max(1, blocks/16) }

// maybeTruncated reports whether a response with this number of logs may have been truncated: it is the maximum that
// the endpoint named, or a round number.
func (l *limits) maybeTruncated(logs int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return logs > 0 && (logs == l.results || logs%1000 == 0)
}

func (l *limits) callsAtOnce() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.batch.bound)
}

func (l *limits) batchSucceeded(calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batch.succeeded(uint64(calls))
}

// batchRefused shortens batches after a refusal of one, to so many calls or, with 0, to half. It returns false for a
// single call.
func (l *limits) batchRefused(calls int, named uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if calls > 1 {
		l.batch.refused(uint64(calls), named)
	}
	return calls > 1
}
