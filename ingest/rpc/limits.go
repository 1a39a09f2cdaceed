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

// There is no standard for how a node says that a range is too long: each
// provider has its own limits (blocks, results, bytes, seconds), codes and
// sentences, and they change. What a sentence tells is used; where it tells
// nothing, half is asked for.

// refusal is what the error of a range teaches.
type refusal struct {
	kind    refusalKind
	blocks  uint64 // the most blocks that the endpoint gives, 0 where it does not say
	results int    // the most logs that the endpoint gives, 0 where it does not say
	upTo    uint64 // the last block of the range that it suggests, 0 for none
}

type refusalKind int

const (
	notRefused refusalKind = iota // less would not help: a failure, or too many requests
	tooMuch                       // the sentence, the code or the status says that less would do
	unclear                       // an error of the node that may mean anything
	unanswered                    // no answer in time: less may do, or the endpoint hangs
	absent                        // the node does not have the blocks, not yet or not any more: less would not help
)

// splits reports whether a shorter range may be answered where this one was not.
func (k refusalKind) splits() bool { return k == tooMuch || k == unclear || k == unanswered }

// What the numbers in the sentences look like: 10000, 10,000, 10k.
const figure = `([0-9][0-9,_']*(?:\.[0-9]+)? ?(?:k|m|thousand|million)?)\b`

var (
	// A sentence about how often one may ask is not about how much.
	ofRate = regexp.MustCompile(`rate|too many requests|throttl|per (?:second|minute|day)|capacity|quota|credit|compute unit|slow down`)
	// A number of results or of blocks, in the sentences that name one.
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
	// A range that is said to work.
	ofRange = regexp.MustCompile(`\[ ?"?(0x[0-9a-f]+|[0-9]+)"? ?, ?"?(0x[0-9a-f]+|[0-9]+)"? ?\]|range (0x[0-9a-f]+|[0-9]+) ?(?:-|to|\.\.) ?(0x[0-9a-f]+|[0-9]+)|"from" ?: ?"(0x[0-9a-f]+)" ?,.{0,60}"to" ?: ?"(0x[0-9a-f]+)"`)
	// ofHead are the sentences of a node that is behind: go-ethereum, reth and Erigon ("block range extends
	// beyond current head block", "request beyond head block"), Nethermind and OpenEthereum ("One of the blocks
	// specified in filter ... cannot be found"), Avalanche ("requested to block 8 after last accepted block 7"),
	// Tendermint chains ("height 8 must be less than or equal to the current blockchain height 7"), and load
	// balancers ("block 8 is beyond the latest block 7 of this node", "upstream does not have the requested block
	// yet"). A bound that is not the head ("beyond the limit of 1000 blocks") is none of them.
	ofHead = regexp.MustCompile(`(?:beyond|past|after|above|ahead of|(?:greater|higher|larger|newer|more) than|exceeds?|(?:less|lower|smaller) than or equal to) ` +
		`(?:the |its |our |this )*(?:(?:node|chain|network)(?:'s)? )?(?:(?:current|latest|last|newest|highest|best|known|accepted|blockchain|chain) ?)+(?:head|tip|block|height)\b` +
		`|(?:beyond|past|above|ahead of|exceeds?|(?:greater|higher) than) (?:the )?(?:head|tip)\b` +
		`|blocks? specified in (?:the )?filter.{0,60}cannot be found` +
		`|(?:does not|doesn't|do not|don't) have (?:the |this |these )?(?:requested )?(?:block|header)s?\b` +
		`|(?:block|header|height)s?\b[^.]{0,40}(?:not (?:been )?yet\b|(?:is|are|lies?) in the future|not (?:found|available)|do(?:es)? ?n[o']t exist)` +
		`|future block|unknown block|(?:could not|cannot|can't) find (?:the )?(?:block|header)`)
	// ofHistory are the sentences of a node that has dropped the blocks.
	ofHistory = regexp.MustCompile(`\bpruned\b|histor(?:y|ical)[^.]{0,30}(?:unavailable|not available|expired)|missing trie node`)
	// Any other sentence about too much.
	ofLimit = regexp.MustCompile(`range|too (?:large|big|wide|long|many)|larger than|exceed|limit|time(?:d)? ?-?out|deadline|more than|smaller|narrow|reduce`)
)

// Codes that need no further words.
const (
	limitExceeded = -32005
	prunedHistory = 4444 // of EIP-4444, as go-ethereum and others answer
)

// lacks reports whether a node says that it does not have the blocks of a range. Such a
// sentence is about where the range is and not about how long it is.
func lacks(code int, text string) bool {
	return code == prunedHistory || ofHead.MatchString(text) || ofHistory.MatchString(text)
}

// refusalOf reads the error of a question for the logs of blocks from `from`.
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
	case http.StatusRequestEntityTooLarge, http.StatusRequestTimeout, http.StatusGatewayTimeout, 524: // 524: a proxy gave up waiting
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

// mostWords is how much of a node's error is read: a sentence, and not the megabytes that
// an answer may have, which a dozen expressions would look through.
const mostWords = 4 << 10

func beginning[T ~string | ~[]byte](text T) string { return string(text[:min(len(text), mostWords)]) }

// read takes a node's own error apart.
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

// figureOf reads 10000, 10,000 and 10k.
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

// limits is what is known of one endpoint. It is shared by the ranges that are
// in flight.
type limits struct {
	mu    sync.Mutex
	width uint64 // blocks to ask for at once
	// named is the limit that the endpoint has put into words, and above what it
	// refused without one; 0 where there is none. Both are relaxed slowly, since
	// limits depend on the load, the plan and what the blocks hold.
	named, above uint64
	results      int          // the most logs of an answer, as the endpoint says; 0 where it does not
	full         int          // ranges as wide as allowed since the last refusal or relaxation
	counts       map[int]bool // numbers of logs at which answers may be cut
	uncut        int          // the most logs of an answer that was not cut
	known        bool         // something holds the width: what is asked for, a limit, or how much the blocks hold
	batch        int          // headers to ask for at once
	batches      int          // of headers, as long as allowed, since the last refusal or relaxation
	singles      time.Time    // until when no batch is sent, since the endpoint takes none

	vouching sync.Mutex // held while the node is asked whether it has old logs
	vouches  int        // how often it may still be asked, 0 when that is known
}

const (
	// The first range is short. While the answers have next to nothing the next is up
	// to leap times as long: of a sparse history two calls are enough to learn that.
	firstWidth = 8
	leap       = 64
	// relaxAfter ranges in a row that were as wide as allowed, a little more is tried.
	relaxAfter = 64
	// slow is how long an answer may take before shorter ranges are asked for.
	slow = 5 * time.Second
)

func newLimits() *limits {
	return &limits{width: firstWidth, counts: map[int]bool{}, batch: HeadersAtOnce, vouches: vouchTries}
}

// next is how many blocks to ask for, most at most.
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

// settled says that it is known how wide a range may be, most at most. Until then
// one range is asked for after the other, so that what it teaches is used.
func (l *limits) settled(most uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known || l.width >= most
}

// gave learns from an answer with so many logs and bytes: the width moves, at
// most twofold in a step once something has held it, towards the one whose answers have as many bytes as
// wanted and stay below what the endpoint refuses.
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

// refused learns from a refusal of so many blocks from `from`, 2 or more, and
// gives how many to ask for instead: fewer.
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
		// A number of results says nothing about the next blocks; the width does.
		if r.results == 0 && (l.above == 0 || blocks < l.above) {
			l.above = blocks
		}
	}
	l.width = max(1, min(l.width, fewer))
	return max(1, fewer)
}

// cut says that an answer with so many logs may have been cut there: after a
// number that the endpoint names as its limit, or a round one that it has never
// gone beyond.
func (l *limits) cut(logs int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[logs] || logs > l.uncut && logs%1000 == 0
}

// whole remembers that an answer with so many logs was not cut.
func (l *limits) whole(logs int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uncut = max(l.uncut, logs)
}

// cuts remembers that an answer was cut after so many logs.
func (l *limits) cuts(logs int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if logs > 0 {
		l.counts[logs] = true
	}
}

// batchless reports whether no batch is sent now.
func (l *limits) batchless(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.singles)
}

// noBatches remembers that no batch is sent until then.
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

// gaveHeaders learns from a batch of headers that was given: after many that
// were as long as allowed, a little more is tried, since what made them shorter
// may have been an error of a moment.
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

// fewerHeaders halves the batches of headers, and says false where they cannot
// be shorter.
func (l *limits) fewerHeaders(asked int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked <= 1 {
		return false
	}
	l.batch, l.batches = min(l.batch, asked/2), 0
	return true
}
