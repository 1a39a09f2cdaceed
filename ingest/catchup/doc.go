// Package catchup appends old blocks: the history of a new log (Backfill), and that of vaults that were added later
// (Step), which ends when they join the head.
//
// Ranges of final blocks are read ahead, several at once, by jobs that keep their position, and are committed in order
// (rpc.Pipeline). The vaults that are furthest behind advance together until they meet the next one, so the logs of one
// vault are always in chain order. Above the final block a late vault joins: its logs of the blocks of the window are
// appended in separate units. Late vaults catch up between the steps of the others, which wait neither for their
// history nor for a node that fails to return it.
//
// Of the final blocks further below the head than the window, only the last one of each commit is recorded. Nearer to
// the head every block is, so that a query as of a recent block has its time, however late it was read.
//
// Calls cost money. A history is read by ranges of logs and with hardly any other call: if the node returns the time of
// logs, each commit needs one header and holds many ranges (rpc.Pipeline.Due); if it does not, each block that has a
// log needs one more.
//
// Nodes lag, prune, truncate and lose logs without an error. Their responses are compared with the blooms of the block
// headers (chain.proof) from one window below the head: the headers must form a chain that continues the range before,
// and a block whose bloom contains a vault or an event that the response lacks is proven. Below the window no headers
// are read. A response must be consistent with the request and with itself, one with a round number of logs is treated
// as truncated, the block at the end of a commit is compared, and each node is checked for having old logs at all.
// Single lost logs are not detected there, except by the proofs by receipts that chain.receiptsEvery schedules
// (operate.Schedule). If no endpoint can prove a final block, ingest ends with an error that calls it pruned. If only
// late vaults need the block, they wait, and the status reports this.
package catchup
