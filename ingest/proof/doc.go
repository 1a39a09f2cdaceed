// Package proof says what an answer of a node proves, and asks nobody.
//
// A header's bloom covers the addresses and topics of all logs of its block. What it
// lacks is not there, what it has may be (Watched), and logs that are numbered from 0
// and set every bit of it are all of them (Incomplete), but for a last log that adds no
// bit. Amounts are in no bloom: schemas/chainproof has what proves them.
package proof
