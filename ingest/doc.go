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
//	         ▼                                                              │ any error of a transaction
//	fence (ProducerID) ──▶ read cursor ──▶ read the log's tail ──▶ claim ──▶ advance, again and again
//	  ▲      ▲                                                              │            │
//	  │      │                                                              │            ▼
//	  │      └── back-off ◀── still ours ◀── read cursor ◀── drop client ◀──┴──────── frozen
//	  │                                          │          `navlog ingest resume`, or another writer
//	  └── the writer ended, or is silent ◀── stand by ◀── another writer's
//
// A start stands by first, for another one may write. With chain.standby 0 nobody does:
// who starts takes over, and another writer's cursor ends Run (ErrFenced).
//
// claim is a transaction with nothing but the cursor, under this writer's
// name, so that a predecessor who is still alive learns that it was replaced.
// An error of a node is not an error of a transaction: nothing was decided
// yet, so the session goes on with the next endpoint.
//
// One call of advance takes the first of these steps that there is to take; of
// the last three, each in turn:
//
//	head at the node is lower than ours ........ nothing: a lagging node proves nothing
//	another hash at our height, read twice ..... nothing while another endpoint has ours; else reorganise, or freeze
//	an operator commands about a vault ......... a vault record: it is removed, or comes back, or has an alias more
//	                                             or less; or earlier referrals, which are looked for between other steps
//	a vault that is new, or has another name ... vault records, from eth_call
//	the head is below the final block .......... ranges of final blocks of the vaults at the head, or,
//	                                             where none is, of those that are furthest behind
//	blocks above the head ...................... one unit each, logs by block hash, parent hashes followed
//	a vault is behind the head ................. one commit of final blocks of those that are furthest behind, or else
//	                                             the join: their logs of the next unfinalised blocks that the head has passed
//	final block or referrals moved ............. the cursor alone
//
// So a vault that was added later catches up between the steps of the others,
// which wait neither for its history nor for a node that fails to give it.
//
// The vaults are those of the log that were not removed, and those that chain.vaults adds.
// A vault that is missing from chain.vaults stays, with a warning. Only a command removes one
// (`navlog vault remove`): it waits in PostgreSQL, is read once a second, and is done when the
// log has its record. Doing it twice changes nothing, so a crash between the log and the
// registry needs no repair. Without PostgreSQL the log's vaults stay.
//
// A log can name its partner by an attribution value, of which an alias makes a partner id. The aliases stand in
// the vault's newest record, which the cursor points at, so that every reader of the log has them and a restart
// knows them. They count for the referrals that are written from their record on; the referrals of earlier
// blocks are written by a command (sendEarlier).
//
// A reorganisation below the final block, or below what the window knows, is
// not followed: ingest freezes. The cursor says why, nothing is appended, and a
// restart changes nothing, until an operator accepts the chain (Resume). That
// takes back everything above the newest recorded block that is in the chain,
// between two decision records, and only its last transaction ends the freeze.
// From there on the ordinary steps read the chain again. It writes under the
// name of the writer that froze: seeing its own name without the freeze, that
// one begins a new session.
//
// Of final blocks further below the head than the window, only the last one of
// each commit is recorded; nearer to it, every block is, so that a read as of a
// recent block knows what time it was there, however late ingest came to it.
//
// Calls are money. A history is asked for by ranges of logs and by next to nothing
// else: a node that dates its logs needs one header for each commit, which holds
// many ranges (rpc.Pipeline.Due), another one a header more for each block that has a
// log. Everything that is asked is counted (rpc.Bill).
//
// NAV that no event gives is sampled: at each block that the mapping's interval divides, ingest
// calls the vault at the hash of the block, and the answer stands in the unit of the block, after
// its logs. No header proves a sample, so with chain.agreement 2 two endpoints must return the
// same, also for old blocks. A node without the state of a block does not stop the log: the
// sample is missing, and the coverage keeps the block from which on there are samples. A contract
// that reverts has none either.
//
// Nodes lag, prune, cut and lose logs, and say nothing. What they answer is
// compared with the blooms of the blocks' headers (chain.proof), from one window
// below the head on, and with proof full everywhere. In a range of
// final blocks the headers must be a chain, which goes on from the range before,
// and the logs theirs, and a block whose bloom holds a vault or an event that the
// answer has not is proven, but for dense blooms between the logs of an answer, which
// hold anything by chance; at the head (with proof full, everywhere) every block
// is that may have logs of a vault. Below the window, without headers, an answer
// must agree with the question and with itself, an answer of a round number of logs
// is taken for cut, the block that a commit ends with is compared, and a node is
// asked once whether it has old logs at all; that it loses single
// logs there is not seen, but by the pass that chain.prove asks for (prover): it
// compares these blocks with what the log has of them afterwards, at a pace, and
// the cursor says of each vault up to which block logs were believed, and proven. A
// block is proven when all its logs, whoever has emitted them, are numbered from
// 0 and together set every bit of its bloom. That is not a cryptographic proof: a
// last log whose address and topics all occur in earlier logs of its block could
// be missing. A final block that no endpoint can prove is refused as
// pruned; where only late vaults need it they wait, and the status says so.
//
// Ranges are read ahead, several at once and by jobs that keep their place, and are
// committed in order (rpc.Pipeline). How long a range may be is learned from each
// endpoint's answers and refusals. What knows nodes and no log is in rpc, what proves
// an answer and asks nobody in proof.
//
// The positions of the vaults (covered to which block) and the head are
// separate: the head is the newest block that was indexed for all vaults that
// had joined it. The vaults that are furthest behind advance together until they
// meet the next one, so the logs of one vault are always in chain order. The
// final block is the highest one that chain.agreement nodes name, or one at a depth below
// the log's head; it only moves back by an operator's decision. A node that names none,
// or its head, leaves everything unfinal, one that fails to answer is asked again.
//
// The window is the part of the log that can still change something: live
// records of blocks that are not final (they may have to be retracted), and
// referrals that are not told yet. It is a fold of the log like any other read
// model, and a restart makes it again from the record that the cursor names.
package ingest
