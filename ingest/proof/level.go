package proof

import "math"

// Level says how far a node's logs are compared with the blooms of the block headers before they are accepted. Each
// level includes the checks of the ones before it. For final blocks further below the head than the window, only Full
// reads the headers, because providers bill each of them.
type Level string

// The levels of proof.
const (
	// None accepts logs that are consistent with each other: for chains whose headers have empty blooms.
	None Level = "none"
	// Bloom reads a block again if its bloom shows that logs are missing.
	Bloom Level = "bloom"
	// Head reads all logs of a block at the head, from every contract, and accepts them if they make up its bloom.
	Head Level = "head"
	// Full does this for every block that may have logs of a vault, and reads the headers of all blocks to find those
	// blocks.
	Full Level = "full"
)

// HeadersFrom returns the first block of a backfill whose logs are compared with its header, if the window begins with
// recordFrom.
func (p Level) HeadersFrom(recordFrom uint64) uint64 {
	switch p {
	case None:
		return math.MaxUint64
	case Full:
		return 0
	}
	return recordFrom
}
