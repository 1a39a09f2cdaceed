// Package follow follows the head of the chain: it appends the blocks above the head of the log, one unit each, and
// replaces those that a reorganisation orphans.
//
//	ReadHead      reads the head and the final block of one endpoint
//	Anchor        sets the first head of a log without old blocks
//	AppendBlocks  appends the blocks above the head: logs by block hash, parent hashes followed
//	Facts         reads one block for some vaults, with the samples of NAV, as often as chain.agreement requires
//
// If the node's head is lower than that of the log, ReadHead does nothing: a lagging node proves nothing. If it has
// another hash at the log's height, ReadHead does nothing while another endpoint still has the log's block. Otherwise
// it reorganises in one unit. A reorganisation below the final block, or deeper than the window, is not followed: the
// log freezes until an operator accepts the chain. If a node names no final block, or its head, nothing becomes final.
//
// A NAV that no event reports is sampled: at each multiple of the mapping's interval, the vault is called at the hash
// of the block, and the result is in the unit of the block, after its logs. No header proves a sample, so with
// chain.agreement 2 two endpoints must return the same, also for old blocks. A node without the state of a block does
// not stop the log: the sample is missing, and the coverage keeps the first block from which there are samples. A
// contract that reverts has no sample either.
package follow
