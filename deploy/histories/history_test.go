package histories_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/e2e"
	"github.com/navlog/navlog/deploy/histories"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/readmodel"
)

const (
	units   = 30 // of a history
	briefly = 6  // questions after a stage that is not the last
	moments = 2  // of the past that every endpoint is asked about
	spare   = 3  // questions to an endpoint that was asked, at the newest state of all
)

// A history is one life of a log: it grows in stages, a projector that crashes now and then follows it, and a server is
// asked all the time.
type history struct {
	*lane
	chainID    uint64
	rng        *rand.Rand
	aside      *rand.Rand // for what happens as often as there is time
	script     *histories.Script
	first      uint64 // the seq with the first block
	clickhouse readmodel.Config
	projector  *program[*projections.Projections]
	door       *door
	server     *program[*query.Query]
	client     *e2e.Client
	known      map[uint64][]e2e.Question // about the newest state, by seq
	said       *tail

	answers, differing, crashes, unavailable int
	lines                                    []string
}

func newHistory(l *lane, number uint64) *history {
	h := &history{lane: l, chainID: 1 + number%1_000_000_000, rng: rand.New(rand.NewPCG(number, 2)), aside: rand.New(rand.NewPCG(number, 3)),
		clickhouse: readmodel.DefaultConfig(), known: map[uint64][]e2e.Question{}, said: &tail{}}
	h.script = histories.Random(rand.New(rand.NewPCG(number, 1)), h.chainID, units)
	for h.first = 1; h.script.Records[h.first-1].GetBlock() == nil && h.first < h.script.Seq(); h.first++ {
	}
	h.clickhouse.Addr, h.clickhouse.QueryUser = l.clickHouse, "navlog_query"
	h.clickhouse.Prefix = fmt.Sprintf("navlog_gh%d", h.chainID) // the reader may read what begins with navlog_g
	return h
}

// play lets the log grow stage by stage, and asks.
func (h *history) play(ctx context.Context) (err error) {
	defer func() {
		for _, end := range []func() error{h.stopProjector, h.stopServer} {
			err = errors.Join(err, end())
		}
		err = errors.Join(err, h.forget(context.WithoutCancel(ctx), h.chainID, h.clickhouse))
	}()
	if err := h.topics(ctx, h.chainID); err != nil {
		return err
	}
	from := uint64(0)
	for _, to := range h.stages() {
		if err := h.append(ctx, h.script.Records[from:to]); err != nil {
			return err
		}
		if err := h.project(ctx, to); err != nil {
			return fmt.Errorf("project up to seq %d: %w", to, err)
		}
		if err := h.serve(ctx, to); err != nil {
			return fmt.Errorf("serve seq %d: %w", to, err)
		}
		list, err := h.newest(to)
		if err != nil {
			return err
		}
		chosen := sample(h.rng, list, spare)
		if to < h.script.Seq() {
			chosen = chosen[:min(briefly, len(chosen))]
		}
		if err := h.ask(ctx, chosen); err != nil {
			return err
		}
		from = to
	}
	for range moments {
		list, err := h.past()
		if err != nil {
			return err
		}
		if err := h.ask(ctx, sample(h.rng, list, 0)); err != nil {
			return err
		}
	}
	return nil
}

// stages are the seqs at which the log rests: random ends of units at which a block is indexed, and the end.
func (h *history) stages() (out []uint64) {
	for range h.rng.IntN(3) {
		at := h.first + h.rng.Uint64N(h.script.Seq()-h.first+1)
		for !h.script.Records[at-1].GetBoundary() {
			at++
		}
		out = append(out, at)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(append(out, h.script.Seq())), func(seq uint64) bool {
		c, err := h.chainAt(seq)
		return err != nil || head(c) == 0
	})
}

// ask asks questions whose answers do not move, and compares.
func (h *history) ask(ctx context.Context, list []e2e.Question) error {
	for _, q := range list {
		got, err := h.get(ctx, q)
		if err != nil {
			return err
		}
		h.compare(q, got)
	}
	return nil
}

// get sends a question, and again where the server asks for patience: a full machine is no wrong answer. What was
// asked again is counted.
func (h *history) get(ctx context.Context, q e2e.Question) (e2e.Answer, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := h.client.Get(ctx, q)
		if err != nil || !got.Unavailable() {
			return got, err
		}
		h.unavailable++
		select {
		case <-ctx.Done():
			return got, ctx.Err()
		case <-tick.C:
		}
	}
}

// atMost keeps a report readable.
const atMost = 12

func (h *history) compare(q e2e.Question, got e2e.Answer) {
	h.answers++
	if found := q.Compare(got); len(found) > 0 {
		h.differing++
		h.lines = append(h.lines, found[:min(len(found), max(0, atMost-len(h.lines)))]...)
	}
}

// meanwhile asks one question of the newest state while the projector writes: whatever seq the answer is of, it has to be
// what the fold of the log up to there says.
func (h *history) meanwhile(ctx context.Context) error {
	if h.server == nil {
		return nil
	}
	seqs := slices.Sorted(maps.Keys(h.known))
	list := h.known[seqs[h.aside.IntN(len(seqs))]]
	q := list[h.aside.IntN(len(list))]
	got, err := h.get(ctx, q)
	if err != nil {
		return err
	}
	seq := got.Seq()
	if seq == 0 || seq > h.script.Seq() || !h.script.Records[seq-1].GetBoundary() {
		h.answers++
		h.differing++
		h.lines = append(h.lines, fmt.Sprintf("%s: the answer is of seq %d, which ends no unit of the log", q, seq))
		return nil
	}
	expected, err := h.newest(seq)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(expected, func(e e2e.Question) bool { return e.Same(q) }); i >= 0 {
		h.compare(expected[i], got)
	}
	return nil
}

// project brings the tables up to a seq, with crashes on the way.
func (h *history) project(ctx context.Context, to uint64) error {
	if h.rng.IntN(3) == 0 { // a clean stop
		if err := h.stopProjector(); err != nil {
			return err
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for crashes := h.rng.IntN(4); ; {
		if h.projector == nil {
			if err := h.startProjector(crashes > 0); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; the projector says %+v", ctx.Err(), h.projector.it.Status())
		case <-h.door.shut:
			h.crashes++
			crashes--
			_ = h.stopProjector() // dead is dead, whatever it would say
		case <-h.projector.done:
			select {
			case <-h.door.shut:
				h.crashes++
				crashes--
				h.projector = nil
			default:
				return fmt.Errorf("the projector ended: %w", h.projector.err)
			}
		case <-tick.C:
			if h.projector.it.Status().Seq >= to {
				return nil
			}
			if err := h.meanwhile(ctx); err != nil {
				return err
			}
		}
	}
}

// startProjector starts one with batches of a random size and a state that holds much or forgets all the time.
func (h *history) startProjector(mortal bool) (err error) {
	bytes := int64(-1)
	if mortal {
		bytes = h.rng.Int64N(1 << (8 + h.rng.IntN(12))) // at the first words as well as in mid-stream
	}
	if h.door, err = openDoor(h.clickHouse, bytes); err != nil {
		return err
	}
	config := projections.DefaultConfig()
	config.MaxRows = 1 << h.rng.IntN(10) // units are cut together up to so many records
	if h.rng.IntN(2) == 0 {
		config.StateEntries = 1
	}
	through := h.clickhouse
	through.Addr = h.door.addr()
	p := projections.New(config, h.chainID, h.kafka, through, h.pool, prometheus.NewRegistry(), h.said.log())
	h.projector = start(p)
	return nil
}

func (h *history) stopProjector() error {
	if h.projector == nil {
		return nil
	}
	err := h.projector.stop()
	h.projector = nil
	h.door.close()
	return err
}

// serve makes sure that a server answers from a seq: the one that is there, or, now and then, a new one.
func (h *history) serve(ctx context.Context, seq uint64) error {
	if h.rng.IntN(3) == 0 {
		if err := h.stopServer(); err != nil {
			return err
		}
	}
	if h.server == nil {
		h.startServer()
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.server.done:
			return fmt.Errorf("the server ended: %w", h.server.err)
		case <-tick.C:
		}
		addr := h.server.it.Addr()
		if addr == "" {
			continue
		}
		if h.client == nil {
			h.client = e2e.NewClient("http://"+addr, &http.Client{Timeout: patience})
		}
		list, err := h.newest(seq)
		if err != nil {
			return err
		}
		if got, err := h.client.Get(ctx, list[0]); err != nil {
			return err
		} else if got.Seq() == seq {
			return nil
		}
	}
}

// startServer starts one with a cache or without.
func (h *history) startServer() {
	config := query.DefaultConfig()
	config.Listen, config.Router, config.PublicRateLimit, config.PartnerRateLimit = "127.0.0.1:0", router.Hex(), 0, 1_000_000
	if h.rng.IntN(2) == 0 {
		config.CacheBytes = 0
	}
	refuse := func(context.Context, string) (string, error) { return "", errors.New("no webhooks here") }
	reg := prometheus.NewRegistry()
	h.server = start(query.New(config, h.chainID, h.clickhouse, h.pool, refuse, reg, reg, h.said.log()))
}

func (h *history) stopServer() error {
	if h.server == nil {
		return nil
	}
	err := h.server.stop()
	h.server, h.client = nil, nil
	return err
}

// A program runs in this process.
type program[P interface{ Run(context.Context) error }] struct {
	it     P
	cancel context.CancelFunc
	done   chan struct{}
	err    error // what Run returned; read after done
}

func start[P interface{ Run(context.Context) error }](it P) *program[P] {
	ctx, cancel := context.WithCancel(context.Background())
	p := &program[P]{it: it, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = it.Run(ctx)
	}()
	return p
}

func (p *program[P]) stop() error {
	p.cancel()
	<-p.done
	return p.err
}

// A tail is the last lines that the programs of a history have logged.
type tail struct {
	mu   sync.Mutex
	last []string
}

func (l *tail) log() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, strings.TrimSpace(string(b)))
	if over := len(l.last) - 30; over > 0 {
		l.last = l.last[over:]
	}
	return len(b), nil
}

func (l *tail) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.last)
}
