package ingest

import "math"

// Proof says how far a node's answers about logs are compared with the blooms
// of the blocks' headers before they are believed. Each level does what the
// ones before it do. Of final blocks further below the head than the window only
// full reads the headers: a provider bills each of them.
type Proof string

// The levels of proof.
const (
	// ProofNone believes answers that agree with themselves: for chains whose
	// headers have empty blooms.
	ProofNone Proof = "none"
	// ProofBloom asks again for blocks whose bloom says that logs are missing.
	ProofBloom Proof = "bloom"
	// ProofHead reads all logs of a block at the head, whoever has emitted them, and
	// believes them when they make up its bloom.
	ProofHead Proof = "head"
	// ProofFull does so for every block that may have logs of a vault, and reads the
	// headers of all blocks to know which these are.
	ProofFull Proof = "full"
)

// headersFrom is the first block whose headers are compared with its logs in a
// backfill, where the window begins with recordFrom.
func (p Proof) headersFrom(recordFrom uint64) uint64 {
	switch p {
	case ProofNone:
		return math.MaxUint64
	case ProofFull:
		return 0
	}
	return recordFrom
}
