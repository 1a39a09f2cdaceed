// Package query is the read side of navlog: it serves the read models over HTTP. This folder only connects its
// packages: New and Run, the configuration, and the routes.
//
//	serve        routes, parameters, errors, cache, gzip, streams: the common part of all endpoints
//	files        rows as CSV or Parquet
//	access       authentication and limits (PostgreSQL)
//	state        the states of the read models that answers can be about (ClickHouse, PostgreSQL)
//	ask          queries about one state (ClickHouse), and those that several resources share
//	vaults, users, deposits, withdrawals, events
//	             one resource each: handler, JSON, and a .sql file for each query
//	partner      totals, statements and webhooks of a partner (ClickHouse, PostgreSQL)
//	explain      the logs behind any number in these responses, and their proofs, made with a node of the chain
//	health       /healthz, /readyz, /status
//	docs         the reference page of the API, and the pages of docs/
//	web          the pages for people, built from query/web/src
//	readtest, oracle
//	             for tests: a generation to query, and the expected responses
//
// To follow an endpoint, start at its line in routes.go, and continue with its handler and the .sql files next to it.
// The newest block and any past one are handled by the same queries:
//
//	request ─▶ access ─▶ cache ─▶ slot ─▶ handler: parameters ─▶ pin ─▶ queries ─▶ JSON
//
// The stream is the only response that does not end: it follows the snapshots, and reads what is new in the log in
// each of them (events).
//
// # When things fail
//
// Without a snapshot, responses are 503. While ClickHouse is down, so are those that are not cached. While PostgreSQL
// is down, partner routes respond with 503, because a key is only trusted for a second after its lookup, and public
// routes continue with the last known generation. A late or frozen chain causes no errors: X-Chain-State shows it.
// While the first generation is built, routes that only need events (events, reorganisations, the stream) serve what
// is there so far, and all others respond with 503 and the progress.
package query
