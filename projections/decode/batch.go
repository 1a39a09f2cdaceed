package decode

import "iter"

// Batch is whole units of the log in their order, in the pieces in which they were
// read, for nothing is gained by copying them into one. No piece is empty, and the
// last fact is a boundary.
type Batch [][]Fact

// All gives the facts one after the other.
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

// Effects gives what the facts do, one effect after the other, each with its fact.
func (b Batch) Effects() iter.Seq2[*Fact, *Effect] {
	return func(yield func(*Fact, *Effect) bool) {
		for f := range b.All() {
			for i := range f.Effects {
				if !yield(f, &f.Effects[i]) {
					return
				}
			}
		}
	}
}

// Len is how many facts there are.
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

// Unit is one atomic unit of the log: a block, a range of old blocks, a whole
// reorganisation.
type Unit struct {
	Facts Batch
	// End is the seq of its last record.
	End uint64
	// Lowest is the lowest block that its facts are of; readmodel.Never for a unit of none.
	Lowest uint64
	// Rewrites says that it takes something back, and so changes what was so in
	// the past, from block Lowest on.
	Rewrites bool
}

// Ancestor is the last block that the unit leaves as it was.
func (u *Unit) Ancestor() uint64 { return max(u.Lowest, 1) - 1 }

// Units cuts the batch after each boundary.
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
	u := Unit{Facts: facts, End: facts.Last().Seq, Lowest: ^uint64(0)}
	for f := range facts.All() {
		u.Rewrites = u.Rewrites || f.Sign < 0
		if f.Kind == LogKind || f.Kind == BlockKind || f.Kind == SampleKind {
			u.Lowest = min(u.Lowest, f.Log.Block)
		}
	}
	return u
}

// Keep gives the unit without the facts for which keep is false. There may be no fact
// left; its end and what it rewrites stay.
func (u Unit) Keep(keep func(*Fact) bool) Unit {
	var kept []Fact
	for f := range u.Facts.All() {
		if keep(f) {
			kept = append(kept, *f)
		}
	}
	u.Facts = Batch{kept}
	return u
}
