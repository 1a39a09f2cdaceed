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

// How much a history is asked: little, for what finds a mistake is one history more, and the next asks other endpoints.
const (
	units   = 30 // of a history
	briefly = 6  // questions after a stage that is not the last
	whole   = 18 // questions about the newest state of all, and about a past block of it
	why     = 4  // of so many answers, one is asked why its numbers are what they are
)

// A history is one life of a log: it grows in stages, unit by unit, a projector that crashes now and then follows it, and
// readers ask all the time. Between the stages the log rests, and the answers are those about its end.
type history struct {
	*lane
	chainID    uint64
	rng        *rand.Rand
	script     *histories.Script
	units      []unit
	clickhouse readmodel.Config
	follower   *follower
	server     *program[*query.Query]
	client     *oracle.Client // a stage's
	said       *tail

	mu          sync.Mutex
	written     uint64 // the log may have records up to here
	settled     uint64 // every answer is about the log up to here or further
	reading     bool
	questions   int // that readers may ask
	known       map[moment][]oracle.Question
	generations map[string][]int // how many vaults each may know
	tally
	lines []string
}

// A tally is what has happened in a history, or in all of them.
type tally struct {
	asked       int // while units were written
	answers     int // that were compared
	explained   int // numbers, whose logs were added up
	differing   int
	unavailable int // 503 with Retry-After
	refused     int // about a block that the server may not know
	unjudged    int // that ask for what the state has not
	behind      int // about the ancestor of a reorganisation that was being written
	crashes     int // of projectors
	inside      int // of them at a reorganisation
	joined      int // generations that took over with a vault more
}

func (t *tally) add(of tally) {
	t.asked += of.asked
	t.answers += of.answers
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
	return fmt.Sprintf("answers=%d numbers-explained=%d differing=%d asked-while-written=%d of-an-ancestor=%d unavailable=%d refused=%d unjudged=%d crashes=%d at-reorganisations=%d generations-taken-over=%d",
		t.answers, t.explained, t.differing, t.asked, t.behind, t.unavailable, t.refused, t.unjudged, t.crashes, t.inside, t.joined)
}

func newHistory(l *lane, number uint64) *history {
	h := &history{lane: l, chainID: 1 + number%1_000_000_000, rng: rand.New(rand.NewPCG(number, 2)),
		clickhouse: readmodel.DefaultConfig(), known: map[moment][]oracle.Question{}, generations: map[string][]int{}, said: &tail{}}
	h.script = histories.Random(rand.New(rand.NewPCG(number, 1)), h.chainID, units)
	h.units = unitsOf(h.script)
	h.clickhouse.Addr, h.clickhouse.QueryUser = l.clickHouse, "navlog_query"
	h.clickhouse.Prefix = fmt.Sprintf("navlog_gh%d", h.chainID) // the reader may read what begins with navlog_g
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
		return nil // a history without a block in the end
	}
	last := h.units[from-1]
	list, err := h.resting(last.last, h.script.First+h.rng.Uint64N(last.head+1-h.script.First))
	if err != nil {
		return err
	}
	return h.ask(ctx, sample(h.rng, list, whole))
}

// stages are how many units the log has when it rests: at random ends of units at which all of every vault is in the log,
// and in the end.
func (h *history) stages() (out []int) {
	for range h.rng.IntN(3) {
		out = append(out, 1+h.rng.IntN(len(h.units)))
	}
	out = append(out, len(h.units))
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(n int) bool { return !h.script.Covered(h.units[n-1].last) })
}

// stage writes units while readers ask, and compares what is said when the log rests.
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
		h.follower.spare()
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
	list, err := h.resting(last, 0)
	if err != nil {
		return err
	}
	many := whole
	if to < len(h.units) {
		many = briefly
	}
	return h.ask(ctx, sample(h.rng, list, many))
}

// begin tells whether readers have something to ask about, and that they do.
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

// untilAsked waits until readers have asked so many questions more, or nobody reads.
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

// write appends a unit. Now and then the projector is to die of a reorganisation; now and then the next unit waits until
// this one is in the tables, and otherwise they are written together.
func (h *history) write(ctx context.Context, u unit) error {
	if u.rewrites && h.rng.IntN(3) == 0 {
		h.follower.strike(h.rng.Int64N(1 << (8 + h.rng.IntN(9))))
	}
	h.mu.Lock()
	h.written = u.last // from now on an answer may know it
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

// rest waits until the API has read the whole log and knows every vault: where one has joined, a new generation has taken
// over.
func (h *history) rest(ctx context.Context, u unit) error {
	list, err := h.resting(u.last, 0)
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

// serve makes sure that a server listens: the one that is there, or, now and then, a new one.
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
			h.client = &oracle.Client{Base: "http://" + addr, HTTP: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: readers}}}
		}
		return addr != "", nil
	})
}

// startServer starts one with a cache or without.
func (h *history) startServer() {
	config := query.DefaultConfig()
	config.Listen, config.Router, config.PublicRateLimit, config.PartnerRateLimit = "127.0.0.1:0", router.Hex(), 0, 1_000_000
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
