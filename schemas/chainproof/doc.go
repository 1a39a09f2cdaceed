// Package chainproof checks what a header and receipts prove, without any network access.
//
//	ReadHeader, ReadReceipts   the responses of a node
//	Prove, Block               all logs of a block, proven by its hash
//	Proof                      one log of it, for a reader who knows only the hash
//	Chain                      headers linked by their parent hashes
//
// Amounts are in no bloom: they are in the receipts, whose root is in the header, whose hash is the block's hash. This
// proves that a log exists. That there are no others follows from all receipts of a block; for a chain it follows from
// the blooms of all headers (ingest/proof).
package chainproof
