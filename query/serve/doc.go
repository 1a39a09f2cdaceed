// Package serve is the common part of all HTTP endpoints: it checks a request, finds or makes the answer, and sends
// it in the form that the client accepts. It contains no SQL and depends on no resource.
//
//	request ─▶ Admit ─▶ body ─▶ cache of the snapshot ─▶ slot ─▶ Handler ─▶ finished response ─▶ 304, gzip or plain
//	             │        │           │ hit                        │
//	             └────────┴───────────┴────────────────────────────┴─▶ sent
//	           401 403 429, 400 413
//
// A Route has the handlers of a path and its special properties; query/routes.go lists all routes. A handler reads
// its parameters (Params collects every mistake), and passes the rest of its work to Request.Pinned, which reports
// the mistakes, reads asOfBlock, pins the answer to one state (package ask), and may repeat the work if a query read
// a state other than the pin's.
//
// # The cache
//
// A finished response is a function of the rows that it read, the request and the partner. This includes proofs,
// because a node's response is compared with the hashes of the log. A response is cached for as long as none of those
// rows changed and no request in it lapsed (ask.Validity). Of equal concurrent requests one is handled, and the
// others wait for its response. They share an error only if they have the same snapshot and it is
// not about one client (Failure.Crowd).
//
// # Under load
//
// There are slots of three classes (engine.go): for cheap requests, for expensive requests, and for requests that wait
// for proofs, whose queries use an expensive slot in addition. Each class has a fair queue (slots.go): prefixes take
// turns, then the addresses in them, and each has at most a share of the slots and of the queue. Partners do not wait
// behind the public. Requests wait for a few seconds at most, and then fail with 503. The time for which a request
// holds its slot is charged to its address and its prefixes (engine.go). Cached responses and the health endpoints need
// no slot, and POSTs have a few places of their own, because they use no ClickHouse and may wait for DNS.
//
// If a client disconnects, the work for it ends, including its queries in the engine: see whileConnected.
//
// A long response is sent while it is made. It occupies memory and one of a few places until its client has received
// it, but an engine slot only while it runs queries (Request.Turn). A client that receives less than MinRate is cut
// off: see pace.go. Connections are limited, too: see conns.go.
//
// # Files
//
// A list can be downloaded as a whole, as CSV or Parquet, if its Route sets AsFile: see file.go. The handler reads
// large pages, and passes Whole a function that reads the next one. The first page is read before anything is sent,
// while an error can still be reported; each later page is read while the previous one is written, and is only
// written if the file's block has not changed. A file takes one of a few places for files and an engine slot for each
// page, and has a separate timeout; so does a response that is itself a file (IsFile). After an error, a panic or a
// slow reader the connection is closed, and no client mistakes that for the end of the file.
//
// # Live responses
//
// A Live Route responds for as long as its client stays connected: see live.go. It has a place of its own kind, and
// takes an engine slot for each of its queries, so 2,000 streams wait like a single request. While it catches up from
// a position that the client chose, the queries are charged to the client (Live.Work), and it needs one of a few more
// places until the client has received what was read (Live.CatchUp). A live response is neither cached nor compressed,
// each piece has its own deadline, and a comment is sent from time to time to show that the connection is alive. The
// handler decides what it sends and when (package events). EndLive ends all of them cleanly, before the server waits
// for the other responses.
//
// # Errors
//
// Every error is a Failure with a code of the OpenAPI document. If a handler returns any other error, the response is
// 500, or 503 if the engine is the cause and may recover soon. The cause is logged with the request's id and never
// sent to the client.
package serve
