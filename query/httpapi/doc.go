// Package httpapi is what all endpoints have in common: it takes a request through the
// checks, finds or makes the answer, and sends it in the form that the client takes. It
// knows no SQL and no resource.
//
//	request ─▶ Admit ─▶ cache of the snapshot ─▶ slot ─▶ Handler ─▶ finished answer ─▶ 304, gzip or plain
//	             │             │ hit                        │
//	             └ 401 403 429 └────────────────────────────┴─▶ sent
//
// A Route names the handlers of a path and what is special about it; query/routes.go
// lists them all. A handler reads its parameters (Params collects every mistake), and
// calls Request.Pinned with the rest of its work: that reports the mistakes, reads
// asOfBlock, pins the answer to one state (package ask), and may run the work again
// if a question read a state that is not the pin's.
//
// # The cache
//
// A finished answer is a function of the rows that it read, the request and the partner; proofs
// too, because what a node says is compared with the hashes of the log. It is kept for as long as
// none of those rows changed and no request in it lapsed (ask.Validity). Of two equal requests at
// once one is answered, and the other waits for it.
//
// # Under load
//
// The engine has slots of three classes (class.go): cheap and expensive requests, and those
// that wait for proofs. Each class has a fair queue (slots.go): prefixes take turns, then the
// addresses in them, and nobody has more than a share of the slots and of the queue. Partners
// do not wait behind the public. Requests wait for some seconds at most and then are 503. The
// time that a request holds its slot is charged to its address and its prefixes (engine.go).
// What comes out of the cache, and the health endpoints, need no slot.
//
// A client that leaves ends the work for it, and its questions in the engine: whileWanted.
//
// A long answer is sent while it is made, and holds one of a few places for those, and memory,
// until its client has it; a slot of the engine it holds only while it asks (turnstile). A
// client that takes less than MinRate is cut off: pace.go. Connections are bounded too: conns.go.
//
// # Files
//
// A list can be had whole, as CSV or Parquet, where its Route says AsFile: file.go. The
// handler reads pages as long as a file asks for at once, and gives Whole what reads the next
// one. The first is read before anything is sent, while an error can still be told; each
// other one while the one before it is written, and only what still is of the file's block
// is. A file takes one of a few places for files, a slot of the engine for each part, and has
// a time of its own, as has what is a file itself (IsFile). Error, panic or slow reader: the connection ends, which no client
// takes for the end of the file.
//
// # Answers that go on
//
// A Route that is Live answers for as long as its client stays: live.go. It has a place
// of its own kind, and takes a slot of the engine for each question that it asks, so that
// 2,000 of them wait like one request. It is neither cached nor compressed, each piece has
// a deadline of its own, and a comment now and then says that the connection lives. What
// it tells and when is the handler's (package events); EndLive ends all of them whole,
// before the server waits for the other answers.
//
// # Errors
//
// Whatever goes wrong is a Failure with a code of the OpenAPI document: what a handler
// returns as any other error is 500, or 503 where the engine is to blame and may be
// better soon. The cause goes to the log with the request's id and never to the client.
package httpapi
