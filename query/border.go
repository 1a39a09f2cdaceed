package query

import "math"

// A border is up to where a state is told by the totals that the engine holds of
// whole spans, of blocks or of seqs. What is between the border and the pin is
// told one by one: added where the pin is after the border, taken off where it
// is before.
//
//	way 1    ──── totals ────┤ from ▒▒▒▒▒ to                way -1   ──── totals ──────────────┤
//	                       edge          pin                            pin  from ▒▒▒▒▒▒ to  edge
type border struct {
	edge     uint64 // in spans
	way      int64  // 1 or -1
	from, to uint64 // both included
}

// nearest is the border that leaves the least to be told one by one.
func nearest(at, span uint64) border {
	edge := (at + span/2) / span
	if edge*span <= at {
		return below(at, span)
	}
	return border{edge, -1, at + 1, edge*span - 1}
}

// below is the last border that is not after the pin.
func below(at, span uint64) border {
	edge := at / span
	return border{edge, 1, edge * span, at}
}

// all has everything in the totals, and what is after the pin taken off.
func all(at uint64) border { return border{math.MaxUint64, -1, at + 1, math.MaxUint64} }
