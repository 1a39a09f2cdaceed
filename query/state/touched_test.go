package state

import (
	"encoding/binary"
	"testing"

	"github.com/navlog/navlog/schemas/readmodel"
)

// key returns the n-th key of a test.
func key(n int) (k readmodel.TouchedKey) {
	binary.BigEndian.PutUint64(k[13:], uint64(n))
	return k
}

const generationOfTest = 3

// begun returns a touched that starts at a seq.
func begun(seq uint64) *touched {
	t := &touched{}
	t.begin(generationOfTest, seq)
	return t
}

// unit adds a unit, after which all units up to it are known.
func (t *touched) unit(seq, ancestor uint64, keys ...readmodel.TouchedKey) {
	t.add(seq, ancestor, keys)
	t.reach(seq)
}

// TestUnchanged: a key is unchanged until a unit touches it.
func TestUnchanged(t *testing.T) {
	units := begun(10)
	units.unit(11, readmodel.Never, key(1))
	units.unit(12, readmodel.Never, key(2), key(3))
	units.unit(13, 5)
	for _, c := range []struct {
		name        string
		generation  int32
		after, upTo uint64
		keys        []readmodel.TouchedKey
		want        bool
	}{
		{"not since", 3, 11, 13, []readmodel.TouchedKey{key(1)}, true},
		{"since", 3, 10, 13, []readmodel.TouchedKey{key(1)}, false},
		{"one of two", 3, 11, 13, []readmodel.TouchedKey{key(1), key(3)}, false},
		{"never touched", 3, 10, 13, []readmodel.TouchedKey{key(9)}, true},
		{"nothing was read", 3, 10, 13, nil, true},
		{"before units are known", 3, 9, 13, []readmodel.TouchedKey{key(9)}, false},
		{"up to a unit that is not known", 3, 11, 14, []readmodel.TouchedKey{key(9)}, false},
		{"of a seq that was lost", 3, 14, 12, []readmodel.TouchedKey{key(9)}, false},
		{"another generation", 4, 11, 13, []readmodel.TouchedKey{key(9)}, false},
	} {
		if got := units.unchanged(c.generation, c.after, c.upTo, c.keys); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestTouchedAll: a unit that touched very many keys counts as touching all.
func TestTouchedAll(t *testing.T) {
	units := begun(10)
	units.unit(11, readmodel.Never, readmodel.TouchedAll)
	if units.unchanged(3, 10, 11, []readmodel.TouchedKey{key(1)}) ||
		!units.unchanged(3, 11, 11, []readmodel.TouchedKey{key(1)}) {
		t.Error("all keys should be touched by that unit only")
	}
}

// TestEvictedKeys: a key that was evicted is never reported as unchanged since before its eviction. Memory is
// bounded.
func TestEvictedKeys(t *testing.T) {
	units := begun(10)
	units.unit(11, readmodel.Never, key(-1))
	seq := uint64(11)
	for n := 0; n < 3*maxTouched; {
		keys := make([]readmodel.TouchedKey, 1000)
		for i := range keys {
			keys[i] = key(n)
			n++
		}
		seq++
		units.unit(seq, readmodel.Never, keys...)
		if known := len(units.young) + len(units.old); known > 2*maxTouched+len(keys) {
			t.Fatalf("%d keys are kept", known)
		}
	}
	for name, c := range map[string]struct {
		key   int
		after uint64
		want  bool
	}{
		"evicted, from before it was touched": {0, 11, false},
		"evicted, from when it was touched":   {0, 12, false},
		"touched long ago, and known":         {3*maxTouched - 1, seq, true},
		"touched last":                        {3*maxTouched - 1, seq - 1, false},
		"never touched, from long ago":        {-9, 12, false},
		"never touched, from lately":          {-9, seq - 1, true},
	} {
		if got := units.unchanged(3, c.after, seq, []readmodel.TouchedKey{key(c.key)}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestKept: a past block is unchanged until a unit has an ancestor below it, whatever units touch.
func TestKept(t *testing.T) {
	units := begun(10)
	units.unit(11, 7, key(1))
	units.unit(12, readmodel.Never, readmodel.TouchedAll)
	units.unit(13, 5)
	for _, c := range []struct {
		name               string
		after, upTo, block uint64
		want               bool
	}{
		{"the ancestor itself", 10, 13, 5, true},
		{"above one ancestor", 10, 13, 6, false},
		{"above the ancestor of an earlier unit", 11, 12, 8, true},
		{"above both", 10, 12, 8, false},
		{"before units are known", 9, 13, 1, false},
		{"up to a unit that is not known", 10, 14, 1, false},
		{"of a seq that was lost", 14, 12, 1, false},
	} {
		if got := units.kept(3, c.after, c.upTo, c.block); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if units.kept(4, 10, 13, 1) {
		t.Error("a block of another generation is kept")
	}
	for seq := uint64(14); seq < 14+maxRewrites; seq++ {
		units.unit(seq, 9)
	}
	last := uint64(13 + maxRewrites)
	if len(units.rewrites) > maxRewrites || units.kept(3, 11, last, 1) || !units.kept(3, last-1, last, 9) {
		t.Errorf("of %d rewriting units", len(units.rewrites))
	}
}
