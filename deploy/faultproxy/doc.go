// Package faultproxy is a JSON-RPC proxy that fails the way Ethereum providers fail, for tests of programs that read a
// chain through one.
//
// It sits between a client and one or more honest nodes, which it treats as backends behind one address. What goes
// wrong follows from a seed:
//
//	request ──▶ count the call (per method) ──▶ draw from (seed, method, count) ──▶ scripted fault, drawn fault or none
//	                                                                                     │
//	client ◀── deliver: slow, cut, 429, reset … ◀── alter: stale, empty, wrong … ◀── ask the backend
//
// Some of this is not a failure: responses in unusual formats are formatted differently from those of most nodes but
// mean the same. They are drawn separately, so that a seed has the same failures with and without them.
//
// False responses are those of a node that was broken into: a head that is presented as final, blocks that do not
// exist, changed headers. They are drawn separately too. A client with only one endpoint cannot detect most of them.
//
// Faults of samples affect the call that measures NAV. They are drawn separately too.
//
// Draws depend neither on a clock nor on the order between methods, so the same seed and the same sequence of requests
// of each method get the same faults. A fault that has nothing to corrupt (partial logs of an empty response, a range
// limit that is not exceeded) is neither injected nor counted. Every injected fault is counted and reported as one
// Injection before its response is sent; neither contains a time, so the reports of two equal runs are equal.
//
// A batch is one request whose delivery can fail, under the name "batch"; faults are drawn for each of its calls too.
//
// The proxy speaks HTTP only. It is not for production: its responses are false on purpose.
package faultproxy
