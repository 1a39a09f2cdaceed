// Package ingest writes the chain into the log: it follows one EVM chain for a few vaults and appends every fact to
// chain.<id>.log exactly once. This package is the program: its settings, its sessions and who of several processes
// writes. What a session does is in the packages below it:
//
//	status    what ingest reports about itself
//	rpc       calls the nodes; proof checks responses without making calls
//	writer    the only writer of the log: state, window, transaction, cursor, referrals
//	follow    the head of the chain: blocks, reorganisations, finality, samples of NAV
//	catchup   old blocks: the history of a new log, and late vaults
//	vaults    which vaults are indexed, their records, and operators' commands
//	operate   for operators: estimates, proofs by receipts, and resuming a frozen log
//	backup    copies of the log
//
// A session is the life of one writer, and crash-only: "State machines" of docs/architecture.md has its states. It
// stands by first, unless the newest cursor is by this process, because another process may be the writer. With
// chain.standby 0 a start takes over at once, and another writer's cursor ends Run (writer.ErrFenced). An error of a
// node is not an error of a transaction: nothing was decided yet, so the session continues with the next endpoint.
//
// One call of advance takes the first of these steps that is due; of the last three, it takes each in turn:
//
//	follow   head at the node is lower than ours ...... nothing: a lagging node proves nothing
//	follow   another hash at our height, read twice ... nothing while another endpoint has ours; else reorganise,
//	                                                    or freeze
//	vaults   an operator's command about a vault ...... a vault record, or earlier referrals, which are read
//	                                                    between steps
//	vaults   a new vault, another name or mapping ..... vault records, from eth_call
//	                                                    while a node fails here, the steps below continue
//	catchup  the head is below the final block ........ ranges of final blocks of the vaults at the head or, if there is
//	                                                    none, of those that are furthest behind
//	follow   blocks above the head .................... one unit each
//	catchup  a vault is behind the head ............... one commit of its final blocks, or else the join
//	         final block or referrals moved ........... only the cursor
package ingest
