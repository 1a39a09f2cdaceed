// Package query is the read side of navlog: read models in, HTTP answers out. This folder
// only ties its rooms together: New and Run, the configuration, and the routes.
//
//	httpapi      routes, parameters, errors, cache, gzip, streams: what endpoints have in common
//	files        rows as CSV or Parquet
//	access       who may ask, and how much (PostgreSQL)
//	pin          which state an answer is about, and the questions about it (ClickHouse)
//	vaults, series, users, deposits, withdrawals, settlement, partner, events, statements
//	             one resource each: handler, JSON, and a .sql file for each question
//	explain      any number of these, down to the logs that make it
//	node         the node of the chain that explain makes proofs from
//	counts, unswept, navs, blocks
//	             how many there are, the deposits that wait for a sweep, NAV updates, and hashes of blocks:
//	             what more than one of these shows
//	webhooks     registration, deliveries, replay, events (PostgreSQL)
//	health       /healthz, /readyz, /status; docs: the page about the API
//	web          the pages that people look at, built of query/web/src
//	readtest, oracle
//	             for tests: a generation to ask, and what it should answer
//
// An endpoint is followed from its line in routes.go to its handler, and from there to
// the .sql files beside it. The newest block and any past one are the same question:
//
//	request ─▶ access ─▶ cache ─▶ slot ─▶ handler: parameters ─▶ pin ─▶ questions ─▶ JSON
//
// The stream is the one answer that does not end: it follows the snapshots, and asks for
// the stretch of the log that is new in each (events).
//
// # When things fail
//
// Without a snapshot an answer is 503; with ClickHouse gone, so is one that is not in the
// cache. With PostgreSQL gone the partner routes are 503, for a key older than a second is
// not trusted, and the public ones go on with the generation last known. A late or frozen
// chain fails nothing: it shows as X-Chain-State. While the first generation is built,
// what is made of facts alone (the list of vaults, NAVs, events, reorganisations, the stream)
// is answered as far as it is there, and all else is 503 with how far that is.
package query
