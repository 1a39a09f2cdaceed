// Package rpc asks the nodes of a chain, over JSON-RPC, and believes little of what
// they say. It knows no log and no Kafka.
//
//	Pool      the endpoints: which one is asked for the head, who takes over, whether
//	          all are of one chain, what all of it costs
//	Node      one endpoint: its questions, its health (health), what it gives at once
//	          (limits), its own rate
//	Reader    the logs of final blocks by ranges, compared with headers or with
//	          themselves
//	Pipeline  several ranges in flight, given back in the order of their blocks
//
// What is not needed of an answer is not required, what can mean one thing only is taken
// for it, and what is wrong is refused with the name of its field. Some relays take no
// batches of questions, which is remembered for each endpoint (batch).
//
// An answer is JSON of a stranger: an envelope is opened without building anything
// (envelope), the logs in it are decoded by a scanner of our own (scan, decode), since
// a generic decoder takes most of the time of a backfill, and both are bounded in
// bytes. Nodes put limits on ranges in words that nobody has agreed on; what the words
// teach is in limits. Every question counts (Bill), for providers sell them.
//
// Where a node cannot be believed the error says so by its type: RefusedError where
// trying again is of no use, UnprovenError where the answer is not all that a block
// has, ErrDisagree where two endpoints contradict each other. A URL may hold a key:
// of URLs errors and status have scheme and host only.
package rpc
