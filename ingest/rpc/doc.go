// Package rpc calls the nodes of a chain over JSON-RPC, and checks what they return. It does not depend on the log or
// on Kafka.
//
//	Pool      the endpoints: which one is in use for the head, which one takes over, whether
//	          all of them serve the same chain, what all calls cost
//	Node      one endpoint: its calls, its health (health), what it accepts at once
//	          (limits), its own rate
//	Reader    the logs of final blocks by ranges, compared with headers or with
//	          each other
//	Pipeline  several ranges in flight, returned in the order of their blocks
//
// Members of a response that are not needed may be missing. A value with a single possible meaning is accepted in any
// form, and any other is rejected with the name of its field. Some relays reject batches, which is remembered for each
// endpoint (batch).
//
// A response is untrusted JSON: its envelope is opened without building anything (envelope), and its logs are decoded
// by a scanner (scan, decode), since a generic decoder would take most of the time of a backfill. Both bound the size
// of a response. Each provider describes its limits on ranges in its own words; limits interprets them. Every call is
// counted (Bill), because providers sell them.
//
// If a response cannot be trusted, the type of the error says why: RefusedError if a retry is of no use, UnprovenError
// if the response does not contain all logs of a block, ErrDisagree if two endpoints contradict each other. A URL may
// contain a key: errors and status show only its scheme and host.
package rpc
