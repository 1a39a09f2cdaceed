// Package partner serves what a partner requests with its key: totals, signed statements, and the events sent to its
// webhook URL. It also describes how deposits are made through the partner.
//
//	stats, router   totals, computed from running totals; the contract that deposits go through
//	statement       the signed statements that partners are paid by, and the keys that sign them
//	webhooks        the registered URL, deliveries, tests and replays, and the events for pulling
//	rotation        a new signing secret, a new API key
//	certificates    the certificates for the webhook URL
//
// # Statements
//
// schemas/statement defines what a statement is.
//
//	final block of ingest ──▶ pin ──▶ place in the log ──▶ vaults there ──▶ events, a page at a time ──▶ signature
//
// A statement is a function of its time range: requested again, it has the same signed bytes, or an error explains
// why it cannot be made. So its block is the first one in the log after the range, and its vaults are those that the
// log had at that record; both are the same in every later response (statement_place.sql). Its events are final, and
// nothing written meanwhile changes them. They are read in pages, each from where the last one ended, in the order of
// the partner's list, so that memory use does not grow with the length of a statement.
//
// # Webhooks
//
// The routes of webhooks only use PostgreSQL, where dispatch keeps its deliveries. Requests for a test or a replay are
// stored there as commands for dispatch.
package partner
