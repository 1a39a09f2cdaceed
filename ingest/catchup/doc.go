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
// docs/ingest-cost.md has the calls that this costs, and what is proven of the responses. If no endpoint can prove a
// final block, ingest ends with an error that calls it pruned. If only late vaults need the block, they wait, and the
// status reports this.
package catchup
