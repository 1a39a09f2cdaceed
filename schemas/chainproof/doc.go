// Package chainproof says what a header and receipts prove, and asks nobody.
//
// Amounts are in no bloom: they are in the receipts, whose root is in the header
// (Receipts, Logs), whose hash is the block's, which the header above names (Chain).
package chainproof
