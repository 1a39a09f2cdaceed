package histories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	readers   = 3 // concurrent readers of a history
	perMoment = 3 // questions of a reader before it picks another moment
	perUnit   = 3 // questions of all readers: more would only slow down the projector
)

// read asks random questions about the newest state and about random past blocks until ctx ends, while units are
// written.
func (h *history) read(ctx context.Context, rng *rand.Rand) error {
	for ctx.Err() == nil {
		m, list, err := h.pick(rng)
		if err != nil {
			return err
		}
		for range perMoment {
			if !h.mayAsk(ctx) {
				return nil
			}
			q := list[rng.IntN(len(list))]
			got, err := h.client.Get(ctx, q)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
			if err := h.judge(q, m, got); err != nil {
				return err
			}
			if got.Status == http.StatusServiceUnavailable { // leave time for the writers
				pause(ctx, 20*time.Millisecond)
			}
		}
	}
	return nil
}

// mayAsk waits until another question may be asked.
func (h *history) mayAsk(ctx context.Context) bool {
	return wait.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.questions == 0 {
			return false, nil
		}
		h.questions--
		return true, nil
	}) == nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// pick chooses questions about the newest block or about a random past one, in the state of one of the last units.
func (h *history) pick(rng *rand.Rand) (moment, []oracle.Question, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var last []unit
	for _, u := range slices.Backward(h.units) {
		if u.last <= h.written && u.head > 0 && len(last) < 4 {
			last = append(last, u)
		}
	}
	u := last[rng.IntN(len(last))]
	m := moment{seq: u.last, block: u.head, knowledge: knowledgeAt(u.vaults)}
	if rng.IntN(2) == 0 {
		m.past, m.block = true, u.oldest+rng.Uint64N(u.head+1-u.oldest)
	}
	list, err := h.expected(m)
	return m, list, err
}

// judge compares an answer with the log at the moment that the answer claims. Only what the server cannot know yet may
// be left unanswered.
func (h *history) judge(q oracle.Question, asked moment, got oracle.Answer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	switch {
	case got.Status == http.StatusServiceUnavailable:
		h.unavailable++
		if !got.Patient {
			h.differs(fmt.Sprintf("%s: 503 without Retry-After", q))
		}
		return nil
	case asked.past && got.Status == http.StatusBadRequest && h.mayLack(asked.block):
		h.refused++
		return nil
	case got.Seq() == 0 && q.Endpoint() == routerSetting:
		return nil
	}
	u, ends := h.ending(got.Seq())
	about := moment{seq: got.Seq(), block: got.Block(), past: asked.past}
	if asked.past && got.Status == http.StatusNotFound { // that a vault does not exist can be answered without knowing the block
		about.block = asked.block
	}
	switch {
	case !ends || u.last > h.written:
		h.differs(fmt.Sprintf("%s: the answer, status %d, is of seq %d, which ends no unit of the log", q, got.Status,
			about.seq))
		return nil
	case u.head == 0: // a reorganisation has left no block, so there is no answer
		return nil
	case asked.past && (about.block != asked.block || about.block > u.head), !asked.past && about.block != u.head &&
		!h.rewritten(about):
		h.differs(fmt.Sprintf("%s: the answer is of seq %d, where the newest block is %d, and of block %d", q, about.seq,
			u.head, about.block))
		return nil
	}
	if !asked.past && about.block < u.head {
		h.behind++
	}
	return h.compareWith(q, about, u.vaults, got)
}

// routerSetting has a setting, which exists before any read model: it is answered while a generation is not built yet,
// so its response does not show what the generation has.
const routerSetting = "/api/v1/partner/router"

// compareWith compares an answer with the expected answer for each knowledge that its generation may have after that
// many vault records. Each answer rules out some of it, and one must remain.
func (h *history) compareWith(q oracle.Question, about moment, records int, got oracle.Answer) error {
	may := h.mayKnow(got.Generation)
	var left []knowledge
	var found []string
	judged := false
	for _, k := range slices.Backward(may) {
		if k.built > records {
			continue
		}
		about.knowledge = k
		list, err := h.expected(about)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(e oracle.Question) bool { return e.Same(q) })
		if i < 0 { // the question is not possible with these vaults
			left = append(left, k)
			continue
		}
		judged = true
		lines := list[i].Compare(got)
		if len(lines) == 0 {
			left = append(left, k)
		} else if found == nil {
			found = lines
		}
	}
	if !judged {
		h.unjudged++
		return nil
	}
	h.count(got)
	if len(left) == 0 {
		h.differs(append(found, fmt.Sprintf("(generation %s, seq %d, block %d)", got.Generation, about.seq,
			about.block))...)
		return nil
	}
	if q.Endpoint() != routerSetting {
		slices.Reverse(left)
		h.generations[got.Generation] = left
	}
	return nil
}

// count counts an answer that was compared.
func (h *history) count(got oracle.Answer) {
	if h.answers++; got.Status == http.StatusOK {
		h.content++
	}
}

// mayKnow returns the knowledge that a generation may have according to its answers so far; before its first answer it
// may be any.
func (h *history) mayKnow(generation string) []knowledge {
	if _, met := h.generations[generation]; met {
		return h.generations[generation]
	}
	var all []knowledge
	had := map[string]bool{}
	for built := initial; built <= h.units[len(h.units)-1].vaults; built++ {
		for created := range built + 1 {
			k := knowledge{created, built}
			vaults, _ := h.vaults(k)
			if same := fmt.Sprint(built, vaults); !had[same] {
				had[same] = true
				all = append(all, k)
			}
		}
	}
	h.generations[generation] = all
	return all
}

// initial is the number of vault records that every generation has: they come before the first block.
const initial = 2

// mayLack reports whether a server may not know a block: the chain was shorter at a seq at which the server may still
// be, or began later when its generation was made.
func (h *history) mayLack(block uint64) bool {
	return slices.ContainsFunc(h.units, func(u unit) bool {
		return u.last <= h.written && (h.settled <= u.last && u.head < block || block < u.oldest)
	})
}

// rewritten reports whether an answer about the newest state may be about an older block, because a reorganisation of
// what is above that block is being written.
func (h *history) rewritten(about moment) bool {
	return slices.ContainsFunc(h.units, func(u unit) bool {
		return u.rewrites && about.seq < u.first && u.last <= h.written && u.ancestor <= about.block
	})
}

// atMost keeps a report readable.
const atMost = 12

// differs records the differences of an answer. h.mu must be held.
func (h *history) differs(lines ...string) {
	h.differing++
	h.lines = append(h.lines, lines[:min(len(lines), max(0, atMost-len(h.lines)))]...)
}

// ask asks questions about a moment after which the log rests, and compares. For some answers it also requests the
// events behind their numbers.
func (h *history) ask(ctx context.Context, about moment, list []oracle.Question) error {
	for _, q := range list {
		got, err := h.get(ctx, q)
		if err != nil {
			return err
		}
		lines := q.Compare(got)
		h.mu.Lock()
		switch {
		case about.past && got.Status == http.StatusBadRequest && h.mayLack(about.block):
			h.refused++
		case got.Generation == "": // a setting belongs to no generation
			h.count(got)
			if len(lines) > 0 {
				h.differs(lines...)
			}
		default: // of the newest generation, or of an earlier one that has the same vaults
			err = h.compareWith(q, about, about.built, got)
		}
		h.mu.Unlock()
		if err != nil {
			return err
		}
		if h.rng.IntN(why) > 0 || len(lines) > 0 {
			continue
		}
		var numbers int
		if lines, numbers, err = oracle.Explain(ctx, h.get, q); err != nil {
			return err
		}
		h.mu.Lock()
		h.explained += numbers
		if len(lines) > 0 {
			h.differs(lines...)
		}
		h.mu.Unlock()
	}
	return nil
}

// get sends a question, and retries if the server responds with Retry-After: a busy machine is not a wrong answer.
// Retries are counted.
func (h *history) get(ctx context.Context, q oracle.Question) (oracle.Answer, error) {
	for {
		got, err := h.client.Get(ctx, q)
		if err != nil || got.Status != http.StatusServiceUnavailable {
			return got, err
		}
		h.mu.Lock()
		h.unavailable++
		h.mu.Unlock()
		pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return got, ctx.Err()
		}
	}
}
