// Package verify proves that a generation of the read model is what the log says,
// and that the log is what the chain says. It writes nothing to ClickHouse, runs
// beside the writer, and shares no code with it.
//
//	chain ◀── node: blocks by hash, covered blocks by ranges, totals of vaults
//	  log ◀── seq contiguous, retractions retract what is live
//	events ◀── fingerprints of the log, a row for each effect      append-only: as of a seq
//	lists ◀── their definition in SQL over events, both ways       as of their own cursor
//	lists ◀── the oracle, the log folded into plain maps           as of their own cursor
//
// Lists know no past: a question to them gives what they hold now, and in the same answer
// their cursor. So the cursor is read first, and the question is asked again if the answer
// has another one. touched is compared with nothing: it only says what changed.
//
// Audit is the part of it that takes seconds. Compare compares a fresh generation with the
// live one, which is quicker than with the log, and reports the first record that differs.
package verify
