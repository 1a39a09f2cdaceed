package proof

import "math"

// Level defines whether a node's logs are compared with the headers of their blocks before they are accepted.
type Level string

// The levels of proof.
const (
	// None accepts logs that are consistent with each other: for chains whose headers have empty blooms.
	None Level = "none"
	// Headers reads the headers of blocks that are not final, or at most a window below the head, and compares logs with
	// their blooms. All logs of a block, from every contract, must make up the bloom if the block is not final and may
	// have logs of a vault, or if its bloom shows that logs are missing. The headers of older blocks are not read,
	// because providers bill each of them.
	Headers Level = "headers"
)

// HeadersFrom returns the first block of a backfill whose logs are compared with its header, if the window begins with
// recordFrom.
func (p Level) HeadersFrom(recordFrom uint64) uint64 {
	if p == None {
		return math.MaxUint64
	}
	return recordFrom
}
