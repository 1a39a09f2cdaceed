package state

import (
	"sync"

	"github.com/navlog/navlog/schemas/readmodel"
)

// maxTouched is how many keys are remembered with their own seq: two sets of this size, at about 60 bytes per key.
const maxTouched = 100_000

// touched records, for each list and owner, which seq changed it last, and which past blocks were rewritten. It
// covers the units after seq since; older changes are unknown.
type touched struct {
	mu         sync.RWMutex
	generation int32
	since      uint64
	last       uint64 // the seq up to which units are known
	young, old map[readmodel.TouchedKey]uint64
	forgotten  uint64    // no key that is missing from both sets changed after this seq
	all        uint64    // seq of the last unit that touched all keys
	rewrites   []rewrite // in the order of seq
}

// rewrite is a unit that retracted the blocks above its ancestor.
type rewrite struct{ seq, ancestor uint64 }

// maxRewrites is how many rewriting units are remembered.
const maxRewrites = 1000

// begin drops everything, and starts at a seq of a generation.
func (t *touched) begin(generation int32, seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.generation, t.since, t.last, t.forgotten, t.all = generation, seq, seq, seq, seq
	t.young, t.old, t.rewrites = map[readmodel.TouchedKey]uint64{}, nil, nil
}

// add records what a unit up to seq touched; ancestor is that of a unit that retracts, otherwise readmodel.Never.
func (t *touched) add(seq, ancestor uint64, keys []readmodel.TouchedKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		if key == readmodel.TouchedAll {
			t.all = max(t.all, seq)
			continue
		}
		t.young[key] = max(t.young[key], seq)
	}
	if len(t.young) > maxTouched {
		for _, at := range t.old {
			t.forgotten = max(t.forgotten, at)
		}
		t.old, t.young = t.young, map[readmodel.TouchedKey]uint64{}
	}
	if ancestor != readmodel.Never {
		t.rewrites = append(t.rewrites, rewrite{seq, ancestor})
		if len(t.rewrites) > maxRewrites {
			t.since = max(t.since, t.rewrites[0].seq)
			t.rewrites = t.rewrites[1:]
		}
	}
}

// reach records that all units up to seq have been added.
func (t *touched) reach(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, seq)
}

// unchanged reports whether no unit in (after, upTo] touched any of the keys. A seq that no unit has reached yet is
// from before the generation lost its newest part.
func (t *touched) unchanged(generation int32, after, upTo uint64, keys []readmodel.TouchedKey) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if generation != t.generation || after > t.last || upTo > t.last || after < t.all {
		return false
	}
	for _, key := range keys {
		at, known := t.young[key]
		if !known {
			if at, known = t.old[key]; !known {
				at = t.forgotten
			}
		}
		if at > after {
			return false
		}
	}
	return true
}

// kept reports whether no unit in (after, upTo] rewrote a block up to block.
func (t *touched) kept(generation int32, after, upTo, block uint64) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if generation != t.generation || after > t.last || upTo > t.last || after < t.since {
		return false
	}
	for i := len(t.rewrites) - 1; i >= 0 && t.rewrites[i].seq > after; i-- {
		if r := t.rewrites[i]; r.seq <= upTo && r.ancestor < block {
			return false
		}
	}
	return true
}
