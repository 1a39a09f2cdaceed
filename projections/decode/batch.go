package decode

import (
	"iter"

	"github.com/navlog/navlog/schemas/readmodel"
)

// Batch contains records of the log in order, and mostly whole units.
type Batch []Fact

// All iterates over the facts.
func (b Batch) All() iter.Seq[*Fact] {
	return func(yield func(*Fact) bool) {
		for i := range b {
			if !yield(&b[i]) {
				return
			}
		}
	}
}

// Last is the last fact.
func (b Batch) Last() *Fact { return &b[len(b)-1] }

// Unit is one atomic unit of the log: a block, a range of old blocks, a whole reorganisation.
type Unit struct {
	Facts Batch
	// lowest is the lowest block of its facts; readmodel.Never if none of them has a block.
	lowest uint64
	// Rewrites reports whether the unit retracts records: all from block lowest on.
	Rewrites bool
}

// End is the seq of its last record.
func (u *Unit) End() uint64 { return u.Facts.Last().Seq }

// Ancestor is the block below the lowest one of the unit; the log may have no record of it.
func (u *Unit) Ancestor() uint64 { return max(u.lowest, 1) - 1 }

// Units splits whole units, one after each boundary.
func (b Batch) Units() (out []Unit) {
	start := 0
	for i := range b {
		if b[i].Boundary {
			out = append(out, newUnit(b[start:i+1]))
			start = i + 1
		}
	}
	return out
}

func newUnit(facts Batch) Unit {
	u := Unit{Facts: facts, lowest: ^uint64(0)}
	for f := range facts.All() {
		u.Rewrites = u.Rewrites || f.Sign < 0
		if f.Kind == readmodel.LogRecord || f.Kind == readmodel.BlockRecord || f.Kind == readmodel.SampleRecord {
			u.lowest = min(u.lowest, f.Log.Block)
		}
	}
	return u
}
