package histories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
			if got.Unavailable() { // leave time for the writers
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
	var lately []unit
	for _, u := range slices.Backward(h.units) {
		if u.last <= h.written && u.head > 0 && len(lately) < 4 {
			lately = append(lately, u)
		}
	}
	u := lately[rng.IntN(len(lately))]
	m := moment{seq: u.last, block: u.head, vaults: u.vaults}
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
	case got.Unavailable():
		h.unavailable++
		if !got.Patient() {
			h.differs(fmt.Sprintf("%s: 503 without Retry-After", q))
		}
		return nil
	case asked.past && got.Refused() && h.mayLack(asked.block):
		h.refused++
		return nil
	case got.Seq() == 0 && q.Endpoint() == "/api/v1/partner/router": // a setting, which exists before any read model
		return nil
	}
	u, ends := h.ending(got.Seq())
	about := moment{seq: got.Seq(), block: got.Block(), past: asked.past}
	if asked.past && got.Missing() { // that a vault does not exist can be answered without knowing the block
		about.block = asked.block
	}
	switch {
	case !ends || u.last > h.written:
		h.differs(fmt.Sprintf("%s: the answer, status %d, is of seq %d, which ends no unit of the log", q, got.Status(), about.seq))
		return nil
	case u.head == 0: // a reorganisation has left no block, so there is no answer
		return nil
	case asked.past && (about.block != asked.block || about.block > u.head), !asked.past && about.block != u.head && !h.rewritten(about):
		h.differs(fmt.Sprintf("%s: the answer is of seq %d, where the newest block is %d, and of block %d", q, about.seq, u.head, about.block))
		return nil
	}
	if !asked.past && about.block < u.head {
		h.behind++
	}
	return h.compareWith(q, about, u.vaults, got)
}

// compareWith compares an answer with the expected answer for each number of vaults that its generation may know. A
// generation knows the vaults that were described when its lists were built, which is not reported. Each answer rules
// out some of the numbers, and one must remain.
func (h *history) compareWith(q oracle.Question, about moment, described int, got oracle.Answer) error {
	may := h.mayKnow(got.Generation())
	var left []int
	var found []string
	judged := false
	for _, n := range slices.Backward(may) {
		about.vaults = min(n, described) // a generation cannot know vaults that were not described yet
		list, err := h.expected(about)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(e oracle.Question) bool { return e.Same(q) })
		if i < 0 { // the question is not possible with that many vaults
			left = append(left, n)
			continue
		}
		judged = true
		lines := list[i].Compare(got)
		if len(lines) == 0 {
			left = append(left, n)
		} else if found == nil {
			found = lines
		}
	}
	if !judged {
		h.unjudged++
		return nil
	}
	h.answers++
	if len(left) == 0 {
		h.differs(append(found, fmt.Sprintf("(generation %s, seq %d, block %d)", got.Generation(), about.seq, about.block))...)
		return nil
	}
	slices.Sort(left)
	h.generations[got.Generation()] = left
	return nil
}

// mayKnow returns the numbers of vaults that a generation may know according to its answers so far; before its first
// answer these are all numbers.
func (h *history) mayKnow(generation string) []int {
	if _, met := h.generations[generation]; !met {
		for n := initial; n <= h.units[len(h.units)-1].vaults; n++ {
			h.generations[generation] = append(h.generations[generation], n)
		}
	}
	return h.generations[generation]
}

// initial is the number of vaults that every generation knows: they are described before the first block.
const initial = 2

// mayLack reports whether a server may not know a block: the chain was shorter, or began later, at a seq at which the
// server may still be.
func (h *history) mayLack(block uint64) bool {
	return slices.ContainsFunc(h.units, func(u unit) bool {
		return h.settled <= u.last && u.last <= h.written && (u.head < block || block < u.oldest)
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

// ask asks questions whose answers do not change, and compares. For some answers it also requests the events behind
// their numbers.
func (h *history) ask(ctx context.Context, list []oracle.Question) error {
	for _, q := range list {
		got, err := h.get(ctx, q)
		if err != nil {
			return err
		}
		h.mu.Lock()
		h.answers++
		if generation := got.Generation(); generation != "" { // a setting belongs to no generation
			h.mayKnow(generation)
		}
		if lines := q.Compare(got); len(lines) > 0 {
			h.differs(lines...)
		}
		h.mu.Unlock()
		if h.rng.IntN(why) > 0 {
			continue
		}
		lines, numbers, err := oracle.Explain(ctx, h.get, q)
		if err != nil {
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
		if err != nil || !got.Unavailable() {
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
