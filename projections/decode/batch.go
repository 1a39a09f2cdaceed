package decode

import (
	"iter"

	"github.com/navlog/navlog/schemas/readmodel"
)

// Batch contains whole units of the log in order. It consists of the pieces in which they were read, because copying
// them into one slice has no benefit. No piece is empty, and the last fact is a boundary.
type Batch [][]Fact

// All iterates over the facts.
func (b Batch) All() iter.Seq[*Fact] {
	return func(yield func(*Fact) bool) {
		for _, piece := range b {
			for i := range piece {
				if !yield(&piece[i]) {
					return
				}
			}
		}
	}
}

// Len is the number of facts.
func (b Batch) Len() (n int) {
	for _, piece := range b {
		n += len(piece)
	}
	return n
}

// First is the first fact.
func (b Batch) First() *Fact { return &b[0][0] }

// Last is the last fact.
func (b Batch) Last() *Fact {
	piece := b[len(b)-1]
	return &piece[len(piece)-1]
}

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

// Units splits the batch after each boundary.
func (b Batch) Units() (out []Unit) {
	var open Batch
	for _, piece := range b {
		start := 0
		for i := range piece {
			if !piece[i].Boundary {
				continue
			}
			out = append(out, newUnit(append(open, piece[start:i+1])))
			open, start = nil, i+1
		}
		if start < len(piece) {
			open = append(open, piece[start:])
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
