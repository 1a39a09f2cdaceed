// Package rpc calls the nodes of a chain over JSON-RPC, and checks what they return. It does not depend on the log or
// on Kafka.
//
//	Pool      the endpoints, in the order of the configuration: which one is in use for the head,
//	          whether all of them serve the same chain, what all calls cost
//	Node      one endpoint: its calls, its state (health), what it accepts at once (limits), its
//	          own rate
//	Reader    the logs of final blocks by ranges, compared with headers or with each other
//	Pipeline  several ranges in flight, returned in the order of their blocks
//
// An endpoint is usable, or it rests (its head lags, it is rate-limited, or it failed), or it is wrong: it serves
// another chain. Only Pool.ranked decides which one is in use. What an endpoint accepts is learned: how many blocks a
// range may have, how many calls a batch may have, and after how many logs it truncates a response. The first two fall
// when it refuses and rise slowly with success. Each provider describes its limits in its own words; refusalOf
// interprets them.
//
// A value with a single possible meaning is accepted in any form, and any other is rejected with the name of its field.
// A response is untrusted JSON: its size is bounded, its envelope is opened without building anything (jsonrpc, json),
// and its logs are decoded from slices of it (decode), since encoding/json would take most of the time of a backfill.
//
// If a response cannot be trusted, the type of the error says why: RefusedError if a retry is of no use, UnprovenError
// if the response does not contain all logs of a block, ErrDisagree if two endpoints contradict each other. A URL may
// contain a key: errors and status show only its scheme and host.
package rpc
