// Package fold computes the rows that units of the log add to the two tables of a generation.
//
// The rows of events follow from each record, without look-ups (Events). The rows of lists follow from the units and
// from the live rows of the keys that the units name (Lists):
//
//	named keys ──▶ live rows ──clip at the ancestor──▶ state before the unit ──fold──▶ state after it
//	                   │                                                                   │
//	                   └───────────── rows with sign -1 ◀── difference ──▶ rows with sign 1 ┘
//
// A row contains the block from which something is true, so the state at the ancestor follows from the live rows:
// rows that began above the ancestor are dropped, and rows that ended above it are open again. A reorganisation
// retracts every log above its ancestor and adds the new branch. So after the clip only its live effects are folded,
// like those of any other unit.
//
// Every list has one definition in SQL (schemas/readmodel/definitions), which builds and verifies it. A property test
// compares this package with the definitions.
package fold
