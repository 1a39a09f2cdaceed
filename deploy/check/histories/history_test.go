package histories_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Each history is asked only a few questions: more histories, which ask about other endpoints, find more faults.
const (
	units   = 30 // per history
	briefly = 6  // questions after a stage, except the last
	whole   = 18 // questions after the last stage, about the newest state and again about a past block
	why     = 4  // for one in that many answers, the events behind its numbers are requested
)

// A history is the life of one log: the log grows in stages, unit by unit, followed by a projector that sometimes
// crashes, while readers query continuously. Between the stages the log rests, and answers must be about its end.
type history struct {
	*lane
	chainID    uint64
	rng        *rand.Rand
	script     *histories.Script
	units      []unit
	late       map[uint64]bool // seqs of the records of old blocks
	clickhouse readmodel.Config
	follower   *follower
	server     *program[*query.Query]
	client     *oracle.Client // of the current stage
	said       *tail

	mu          sync.Mutex
	written     uint64 // the log may have records up to here
	settled     uint64 // every answer is at this seq or later
	reading     bool
	questions   int // that readers may still ask
	known       map[moment][]oracle.Question
	generations map[string][]knowledge // what each may have of the log
	tally
	lines []string
}

// A tally counts what happened in a history, or in all of them.
type tally struct {
	asked       int // while units were written
	answers     int // that were compared
	content     int // of those, with status 200
	explained   int // numbers whose logs were added up
	differing   int
	unavailable int // 503 with Retry-After
	refused     int // about a block that the server may not know yet
	unjudged    int // about things that the state does not have
	behind      int // about the ancestor of a reorganisation that was being written
	crashes     int // of projectors
	inside      int // of those, during a reorganisation
	joined      int // generations that took over with an additional vault
}

func (t *tally) add(of tally) {
	t.asked += of.asked
	t.answers += of.answers
	t.content += of.content
	t.explained += of.explained
	t.differing += of.differing
	t.unavailable += of.unavailable
	t.refused += of.refused
	t.unjudged += of.unjudged
	t.behind += of.behind
	t.crashes += of.crashes
	t.inside += of.inside
	t.joined += of.joined
}

func (t tally) String() string {
	return fmt.Sprintf("answers=%d of-status-200=%d numbers-explained=%d differing=%d asked-while-written=%d "+
		"of-an-ancestor=%d unavailable=%d refused=%d unjudged=%d crashes=%d at-reorganisations=%d generations-taken-over=%d",
		t.answers, t.content, t.explained, t.differing, t.asked, t.behind, t.unavailable, t.refused, t.unjudged, t.crashes,
		t.inside, t.joined)
}

func newHistory(l *lane, number uint64) *history {
	h := &history{lane: l, chainID: 1 + number%1_000_000_000, rng: rand.New(rand.NewPCG(number, 2)),
		clickhouse: readmodel.DefaultConfig(), known: map[moment][]oracle.Question{}, generations: map[string][]knowledge{},
		said: &tail{}}
	h.script = histories.Random(rand.New(rand.NewPCG(number, 1)), h.chainID, units, "erc4626", "erc7540")
	h.units, h.late = unitsOf(h.script)
	h.clickhouse.Addr, h.clickhouse.QueryUser = l.clickHouse, "navlog_query"
	// the reader has rights on databases that begin with navlog_g
	h.clickhouse.Prefix = fmt.Sprintf("navlog_gh%d", h.chainID)
	return h
}

// play lets the log grow stage by stage.
func (h *history) play(ctx context.Context, number uint64) (err error) {
	if err := h.topics(ctx, h.chainID); err != nil {
		return err
	}
	following, end := context.WithCancel(ctx)
	defer func() {
		end()
		<-h.follower.over
		h.crashes, h.inside = h.follower.crashes, h.follower.inside
		h.joined = max(0, len(h.generations)-1)
		err = errors.Join(err, h.follower.err, h.stopServer(), h.forget(context.WithoutCancel(ctx), h.chainID, h.clickhouse))
	}()
	h.follower = h.follow(following, rand.New(rand.NewPCG(number, 3)))
	from := 0
	for i, to := range h.stages() {
		if err := h.stage(ctx, from, to, rand.New(rand.NewPCG(number, uint64(100+i)))); err != nil {
			return fmt.Errorf("up to seq %d: %w", h.units[to-1].last, err)
		}
		from = to
	}
	if from == 0 {
		return nil // the history ends without a block
	}
	last := h.units[from-1]
	past, list, err := h.resting(last.last, last.oldest+h.rng.Uint64N(last.head+1-last.oldest))
	if err != nil {
		return err
	}
	return h.ask(ctx, past, sample(h.rng, list, whole))
}

// stages returns the numbers of units at which the log rests: random ends of units at which the log has all of every
// vault, and the end.
func (h *history) stages() (out []int) {
	for range h.rng.IntN(3) {
		out = append(out, 1+h.rng.IntN(len(h.units)))
	}
	out = append(out, len(h.units))
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(n int) bool { return !h.script.Covered(h.units[n-1].last) })
}

// stage writes units while readers query, and compares the answers when the log rests.
func (h *history) stage(ctx context.Context, from, to int, rng *rand.Rand) error {
	h.follower.expect(h.rng.IntN(3), h.rng.IntN(3) == 0)
	if err := h.serve(ctx); err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	begun := false
	err := func() error {
		for _, u := range h.units[from:to] {
			if err := h.write(ctx, u); err != nil {
				return err
			}
			if begun || !h.begin(u) {
				continue
			}
			begun = true
			for range readers {
				own := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
				group.Go(func() error { return h.read(reading, own) })
			}
		}
		h.follower.cancelKill()
		return h.rest(ctx, h.units[to-1])
	}()
	h.end()
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	last := h.units[to-1].last
	h.mu.Lock()
	h.settled = last
	h.mu.Unlock()
	m, list, err := h.resting(last, 0)
	if err != nil {
		return err
	}
	many := whole
	if to < len(h.units) {
		many = briefly
	}
	return h.ask(ctx, m, sample(h.rng, list, many))
}

// begin reports whether readers have something to ask about, and lets them start if so.
func (h *history) begin(u unit) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = u.head > 0
	return h.reading
}

func (h *history) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading = false
}

// untilAsked waits until readers have asked that many more questions, or have stopped.
func (h *history) untilAsked(ctx context.Context, more int) {
	enough := -1
	for ctx.Err() == nil {
		h.mu.Lock()
		if enough < 0 {
			enough = h.asked + more
			h.questions += more
		}
		done := !h.reading || h.asked >= enough
		h.mu.Unlock()
		if done {
			return
		}
		pause(ctx, 5*time.Millisecond)
	}
}

// write appends a unit. At random, the projector dies during a reorganisation, or the next unit waits until this one is
// in the tables; otherwise units are written together.
func (h *history) write(ctx context.Context, u unit) error {
	if u.rewrites && h.rng.IntN(3) == 0 {
		h.follower.killAfter(h.rng.Int64N(1 << (8 + h.rng.IntN(9))))
	}
	h.mu.Lock()
	h.written = u.last // from now on an answer may include it
	h.questions += perUnit
	h.mu.Unlock()
	if err := h.append(ctx, h.script.Records[u.first-1:u.last], h.script.Cursor(u.last)); err != nil {
		return err
	}
	if h.rng.IntN(2) == 0 {
		return h.follower.reaches(ctx, u.last)
	}
	return nil
}

// rest waits until the API has read the whole log and knows every vault: if a vault has joined, a new generation must
// have taken over.
func (h *history) rest(ctx context.Context, u unit) error {
	_, list, err := h.resting(u.last, 0)
	if err != nil {
		return err
	}
	vaults := list[0]
	var missing []string
	err = h.follower.until(ctx, func() (bool, error) {
		select {
		case <-h.server.done:
			return false, fmt.Errorf("the server ended: %w", h.server.err)
		default:
		}
		if h.follower.seq() < u.last {
			return false, nil
		}
		got, err := h.client.Get(ctx, vaults)
		if err != nil {
			return false, err
		}
		if missing = vaults.Compare(got); len(missing) > 0 {
			pause(ctx, 100*time.Millisecond) // a question costs as much as the projector needs for a table
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the API: %w; it says %q", err, missing)
	}
	return nil
}

// serve ensures that a server listens: usually the existing one, sometimes a new one.
func (h *history) serve(ctx context.Context) error {
	if h.rng.IntN(3) == 0 {
		if err := h.stopServer(); err != nil {
			return err
		}
	}
	if h.server != nil {
		return nil
	}
	h.startServer()
	return h.follower.until(ctx, func() (bool, error) {
		select {
		case <-h.server.done:
			return false, fmt.Errorf("the server ended: %w", h.server.err)
		default:
		}
		addr := h.server.it.Addr()
		if addr != "" {
			h.client = &oracle.Client{Base: "http://" + addr,
				HTTP: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: readers}}}
		}
		return addr != "", nil
	})
}

// startServer starts a server with or without a cache.
func (h *history) startServer() {
	config := query.DefaultConfig()
	config.Listen, config.Router, config.PublicRateLimit, config.PartnerRateLimit = "127.0.0.1:0", router.Hex(), 0,
		1_000_000
	config.PublicEngineTime = 0 // a busy machine uses it up
	if h.rng.IntN(2) == 0 {
		config.CacheBytes = 0
	}
	refuse := func(context.Context, string) (string, error) { return "", errors.New("no webhooks here") }
	h.server = start(query.New(config, h.chainID, h.clickhouse, h.pool, refuse, prometheus.NewRegistry(), h.said.log()))
}

func (h *history) stopServer() error {
	if h.server == nil {
		return nil
	}
	err := h.server.stop()
	h.server, h.client = nil, nil
	return err
}
