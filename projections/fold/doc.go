// Package fold says what rows units of the log add to the two tables of a generation.
//
// The rows of events follow from each record, and nothing is looked up (Event). The
// rows of lists follow from the units and from the live rows of the keys that the
// units name (Lists):
//
//	named keys ──▶ live rows ──clip at the ancestor──▶ state before the unit ──fold──▶ state after it
//	                   │                                                                   │
//	                   └───────────── rows with sign -1 ◀── difference ──▶ rows with sign 1 ┘
//
// A row says from which block on something is true, so the state at the ancestor
// follows from the live rows: what began above the ancestor is dropped, and what
// ended above it continues. A reorganisation retracts every log above its ancestor and
// brings the new branch. So after the clip only its live effects are folded, like
// those of any other unit.
//
// Every list has one definition in SQL (schemas/readmodel/definitions), which builds
// it and proves it. A property test compares this package with the definitions.
package fold
