// Package verify proves that a generation of the read model equals a fold of the log, and that the log equals the
// chain. It writes nothing to ClickHouse, runs beside the writer, and shares no code with it.
//
//	chain ◀── node: blocks by hash, covered blocks by ranges, totals of vaults
//	  log ◀── seq contiguous, retractions retract what is live
//	events ◀── fingerprints of the log, a row for each effect      append-only: as of a seq
//	lists ◀── their definition in SQL over events, both ways       as of their own cursor
//	lists ◀── the oracle, the log folded into plain maps           as of their own cursor
//
// Lists have no history: a query returns their current rows together with their cursor. So the cursor is read first,
// and the query is repeated if the result has another cursor. touched is not compared: it only records what changed.
//
// Audit is the part that takes seconds. Compare compares a new generation with the live one, which is quicker than
// comparing with the log, and reports the first record that differs.
package verify
