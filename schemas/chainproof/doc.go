// Package chainproof says what a header and receipts prove, and asks nobody.
//
//	ReadHeader, ReadReceipts   what a node answers
//	Prove, Block               all logs of a block, proven by its hash
//	Proof                      one log of it, for somebody who knows the hash alone
//	Chain                      that the header above names it
//
// Amounts are in no bloom: they are in the receipts, whose root is in the header, whose
// hash is the block's. What is proven so is that a log is there. That there is no other
// one follows from all receipts of a block, and of a chain from the blooms of all headers
// (ingest/proof).
package chainproof
