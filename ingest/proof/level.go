package proof

import "math"

// Level says how far a node's answers about logs are compared with the blooms
// of the blocks' headers before they are believed. Each level does what the
// ones before it do. Of final blocks further below the head than the window only
// full reads the headers: a provider bills each of them.
type Level string

// The levels of proof.
const (
	// None believes answers that agree with themselves: for chains whose
	// headers have empty blooms.
	None Level = "none"
	// Bloom asks again for blocks whose bloom says that logs are missing.
	Bloom Level = "bloom"
	// Head reads all logs of a block at the head, whoever has emitted them, and
	// believes them when they make up its bloom.
	Head Level = "head"
	// Full does so for every block that may have logs of a vault, and reads the
	// headers of all blocks to know which these are.
	Full Level = "full"
)

// HeadersFrom is the first block whose headers are compared with its logs in a
// backfill, where the window begins with recordFrom.
func (p Level) HeadersFrom(recordFrom uint64) uint64 {
	switch p {
	case None:
		return math.MaxUint64
	case Full:
		return 0
	}
	return recordFrom
}
