// Package proof checks what a node's response proves. It makes no calls.
//
// A header's bloom covers the addresses and topics of all logs of its block. A value that the bloom lacks is in no log;
// one that it contains may be in one (MayHold). Logs that are numbered from 0 and set every bit of the bloom are all
// logs of the block (Incomplete), except that a last log that adds no bit could be missing. Amounts are not covered by
// blooms: schemas/chainproof proves them.
package proof
