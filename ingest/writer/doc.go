// Package writer is the only writer of a chain's log. It calls no node: the other parts of ingest give it a Change, and
// it appends the change in one Kafka transaction.
//
// Its whole state (State) is in the newest cursor record and in the tail of the log, and every Commit is one
// transaction: the records of one or more whole units (a block, a range of final blocks, a whole reorganisation), the
// referrals that became due by it, and the cursor after it. A Writer is therefore crash-only: the first transaction
// that fails ends it, and the next one begins with what the broker has.
//
//	Fence ──▶ Restore: read the cursor, read the log's tail ──▶ Claim ──▶ Commit, again and again
//
// Fence takes the chain's transactional id from every older writer, so there is one writer. Claim is a transaction that
// contains only the cursor, with the id of this writer, so that a predecessor that is still alive learns that it was
// replaced.
//
// The positions of the vaults (Coverage) and the head are separate: the head is the newest block that was indexed for
// all vaults that had joined it. For each vault the coverage holds up to which block logs were accepted unproven, and
// up to which they were proven. The final block moves back only by an operator's decision.
//
// The Window is the part of the log that can still cause changes: live records of blocks that are not final, which may
// have to be retracted, and referrals that are not written to the referral topics yet. It is a fold of the log like any
// other read model, and a restart rebuilds it from the record that the cursor names.
//
// A log can name its partner by an attribution value, which an alias maps to a partner id. The aliases are in the
// vault's newest record, which the cursor points at, so that every reader of the log has them, also after a restart.
// They apply to the referrals that are written after their record; SendEarlier writes the referrals of earlier blocks.
package writer
