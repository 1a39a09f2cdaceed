// Package ingest writes the chain into the log: it follows one EVM chain for a
// few vaults and appends every fact to chain.<id>.log exactly once.
//
// It is the only writer of the log. Everything that it knows is in the newest
// cursor record and in the tail of the log, and every step is one Kafka
// transaction: the records of one or more whole units (a block, a range of
// final blocks, a whole reorganisation), the referrals that became deep enough
// by it, and the cursor that says so. A session is therefore crash-only:
//
//	         ┌──────────────────────────────────────────────────────────────┐
//	         ▼                                                              │ any error of a transaction:
//	fence (ProducerID) ──▶ read cursor ──▶ read the log's tail ──▶ claim ──▶ advance, again and again
//	         ▲                                                              │
//	         └── back-off ◀── still ours ◀── read cursor ◀── drop client ◀──┘
//	                                             │
//	                                             └─▶ another writer's: fenced, Run ends
//
// claim is a transaction with nothing but the cursor, under this writer's
// name, so that a predecessor who is still alive learns that it was replaced.
// An error of a node is not an error of a transaction: nothing was decided
// yet, so the session goes on with the next endpoint.
//
// One call of advance takes the first of these steps that there is to take:
//
//	head at the node is lower than ours ........ nothing: a lagging node proves nothing
//	another hash at our height, read twice ..... reorganise, or freeze below the final block or the window
//	a vault that the log does not know ......... vault records, from eth_call
//	a vault behind the final block ............. a range of final blocks of the vaults that are furthest behind
//	a vault behind the head .................... join: its logs of the unfinalised blocks that the head has passed
//	blocks above the head ...................... one unit each, logs by block hash, parent hashes followed
//	final block or referrals moved ............. the cursor alone
//
// Of final blocks further below the head than the window, only the last one of
// each range is recorded; nearer to it, every block is, so that a read as of a
// recent block knows what time it was there, however late ingest came to it.
//
// Nodes lag, prune, cut and lose logs, and say nothing. What they answer is
// compared with the blooms of the blocks' headers (chain.proof). In a range of
// final blocks the headers must be a chain and the logs theirs, and a block whose
// bloom holds a vault or an event that the answer has not is proven; at the head
// (with proof full, everywhere) every block is that may have logs of a vault. A
// block is proven when all its logs, whoever has emitted them, are numbered from
// 0 and together set every bit of its bloom. That is not a cryptographic proof: a
// last log whose address and topics all occur in earlier logs of its block could
// be missing. A final block that no endpoint can prove is refused as pruned.
//
// Ranges are read ahead, several at once and by jobs that keep their place
// (pipeline, reader), and are committed in order. How long a range may be is
// learned from each endpoint's answers and refusals (limits).
//
// The positions of the vaults (covered to which block) and the head are
// separate: the head is the newest block that was indexed for all vaults that
// had joined it. The vaults that are furthest behind advance together until they
// meet the next one, so the logs of one vault are always in chain order.
//
// The window is the part of the log that can still change something: live
// records of blocks that are not final (they may have to be retracted), and
// referrals that are not told yet. It is a fold of the log like any other read
// model, and a restart makes it again from the record that the cursor names.
package ingest
