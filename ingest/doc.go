// Package ingest writes the chain into the log: it follows one EVM chain for a few vaults and appends every fact to
// chain.<id>.log exactly once.
//
// It is the only writer of the log. Its whole state is in the newest cursor record and in the tail of the log, and
// every step is one Kafka transaction: the records of one or more whole units (a block, a range of final blocks, a
// whole reorganisation), the referrals that became deep enough by it, and the cursor after it. A session is therefore
// crash-only:
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
// A start stands by first, because another process may be the writer. With chain.standby 0 no process stands by: a
// start takes over at once, and another writer's cursor ends Run (ErrFenced).
//
// claim is a transaction that contains only the cursor, with the id of this writer, so that a predecessor that is still
// alive learns that it was replaced. An error of a node is not an error of a transaction: nothing was decided yet, so
// the session continues with the next endpoint.
//
// One call of advance takes the first of these steps that is due; of the last three, it takes each in turn:
//
//	head at the node is lower than ours ........ nothing: a lagging node proves nothing
//	another hash at our height, read twice ..... nothing while another endpoint has ours; else reorganise, or freeze
//	an operator's command about a vault ........ a vault record: it is removed or restored, or an alias is set or
//	                                             removed; or earlier referrals, which are read between other steps
//	a vault that is new, or has another name ... vault records, from eth_call
//	the head is below the final block .......... ranges of final blocks of the vaults at the head or, if there is
//	                                             none, of those that are furthest behind
//	blocks above the head ...................... one unit each, logs by block hash, parent hashes followed
//	a vault is behind the head ................. one commit of final blocks of those that are furthest behind, or else
//	                                             the join: their logs of the next unfinalised blocks up to the head
//	final block or referrals moved ............. only the cursor
//
// So a vault that was added later catches up between the steps of the others, which wait neither for its history nor
// for a node that fails to return it.
//
// The vaults are those of the log that were not removed, and those that chain.vaults adds. A vault that is missing from
// chain.vaults stays, with a warning. Only a command removes one (`navlog vault remove`): the command is queued in
// PostgreSQL, which ingest reads once a second, and is done when the log has its record. A command that runs twice
// changes nothing more, so a crash between the log and the registry needs no repair. Without PostgreSQL the log's
// vaults stay.
//
// A log can name its partner by an attribution value, which an alias maps to a partner id. The aliases are in the
// vault's newest record, which the cursor points at, so that every reader of the log has them and a restart knows them.
// They apply to the referrals that are written after their record; a command writes the referrals of earlier blocks
// (sendEarlier).
//
// A reorganisation below the final block, or deeper than the window, is not followed: ingest freezes. The cursor holds
// the reason, nothing is appended, and a restart changes nothing, until an operator accepts the chain (Resume). Resume
// retracts everything above the newest recorded block that is in the chain, between two decision records, and only its
// last transaction ends the freeze. After that the ordinary steps read the chain again. Resume writes with the id of
// the writer that froze: when that writer sees its own id without the freeze, it begins a new session.
//
// Of the final blocks further below the head than the window, only the last one of each commit is recorded. Nearer to
// the head every block is, so that a query as of a recent block has its time, however late ingest read it.
//
// Calls cost money. A history is read by ranges of logs and with hardly any other call: if the node returns the time of
// logs, each commit needs one header and holds many ranges (rpc.Pipeline.Due); if it does not, each block that has a
// log needs one more. All calls are counted (rpc.Bill).
//
// A NAV that no event reports is sampled: at each multiple of the mapping's interval, ingest calls the vault at the
// hash of the block. The result is in the unit of the block, after its logs. No header proves a sample, so with
// chain.agreement 2 two endpoints must return the same, also for old blocks. A node without the state of a block does
// not stop the log: the sample is missing, and the coverage keeps the first block from which there are samples. A
// contract that reverts has no sample either.
//
// Nodes lag, prune, truncate and lose logs without an error. Their responses are compared with the blooms of the block
// headers (chain.proof) from one window below the head.
//
//   - In a range of final blocks, the headers must form a chain that continues the range before, and the logs must
//     belong to them. A block whose bloom contains a vault or an event that the response lacks is proven. Between the
//     logs of a response, dense blooms are ignored, since they match anything by chance.
//   - At the head every block is proven that may have logs of a vault.
//   - Below the window no headers are read. A response must be consistent with the request and with itself, one with a
//     round number of logs is treated as truncated, the block at the end of a commit is compared, and each node is
//     checked once for having old logs at all. Single lost logs are not detected there, except by the proofs by receipts
//     that chain.receiptsEvery schedules (operate.Schedule). For each vault the cursor holds up to which block logs
//     were accepted unproven, and up to which they were proven.
//
// A block is proven if all its logs, from all contracts, are numbered from 0 and together set every bit of its bloom.
// That is not a cryptographic proof: a last log whose address and topics all occur in earlier logs of its block could
// be missing. If no endpoint can prove a final block, ingest ends with an error that calls it pruned. If only late
// vaults need the block they wait, and the status reports this.
//
// Ranges are read ahead, several at once, by jobs that keep their position, and are committed in order (rpc.Pipeline).
// The length of ranges is adapted to each endpoint's responses and refusals. Package rpc contains everything that is
// about nodes and not about the log, package proof what checks a response without making calls, and package operate
// what reads the log and the chain for operators: estimates, and proofs by receipts.
//
// The positions of the vaults (covered up to a block) and the head are separate: the head is the newest block that was
// indexed for all vaults that had joined it. The vaults that are furthest behind advance together until they meet the
// next one, so the logs of one vault are always in chain order. The final block is the highest one that chain.agreement
// nodes name, or one at a depth below the log's head; it moves back only by an operator's decision. If a node names no
// final block, or its head, nothing becomes final; if it fails to respond, it is called again.
//
// The window is the part of the log that can still cause changes: live records of blocks that are not final, which may
// have to be retracted, and referrals that are not written to the referral topics yet. It is a fold of the log like any
// other read model, and a restart rebuilds it from the record that the cursor names.
package ingest
