// Package faultproxy is a JSON-RPC proxy that fails the way Ethereum providers
// fail, for tests of whoever reads a chain through one.
//
// It stands between a client and one or more honest nodes, which it treats as
// backends behind one address. What goes wrong follows from a seed:
//
//	request ──▶ count the call (per method) ──▶ draw from (seed, method, count) ──▶ scripted fault, drawn fault or none
//	                                                                                     │
//	client ◀── deliver: slow, cut, 429, reset … ◀── alter: stale, empty, wrong … ◀── ask the backend
//
// Some of what goes wrong is no failure: oddities are answers that are written
// otherwise than most nodes write them and mean one thing all the same. They are
// drawn apart, so that a seed has the same failures with them and without.
//
// Lies are answers of a node that was broken into: a head that is named as final,
// blocks that do not exist, changed headers. They too are drawn apart. A client
// with one endpoint only cannot see through most of them.
//
// Faults of samples befall the call that measures NAV. They too are drawn apart.
//
// No clock and no order between methods enters a draw, so the same seed and the
// same sequence of requests of each method meet the same faults. A fault that
// finds nothing to spoil (partial logs of an empty answer, a range limit that
// is not passed) is not injected and not counted. Every injected fault is
// counted and reported as one Injection, before its answer is sent; neither
// holds a time, so the reports of two equal runs are equal.
//
// A batch is one request that can be delivered badly, under the name "batch",
// and its calls are drawn for one by one.
//
// The proxy speaks HTTP only. It is not for production: it lies.
package faultproxy
