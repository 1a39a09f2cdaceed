// Package verify proves that a generation of the read model is what the log says,
// and that the log is what the chain says. It writes nothing to ClickHouse, runs
// beside the writer, and shares no code with it.
//
//	chain ◀── node: blocks by hash, covered blocks by ranges, totals of vaults
//	  log ◀── seq contiguous, retractions take back what is live
//	spine, facts ◀── fingerprints of the log, a row for each record          append-only: as of a seq S
//	derived ◀── their definition in SQL over the facts, both ways            as of the table's own cursor
//	derived ◀── the oracle, the log folded into plain maps                   as of the table's own cursor
//
// A derived table knows no past: a question to it gives what it holds now, and in
// the same answer its cursor, the last seq that concerned it. It is written before
// the spine. So the spine's last seq S is read first: if the cursor is not above
// it, the table is what the facts up to S come to, for no unit between the two
// concerned it; and if it is, the question is asked again.
//
// Audit is the part of it that takes seconds. Compare holds a fresh generation to
// the live one, which is quicker than to the log, and tells where they part.
package verify
