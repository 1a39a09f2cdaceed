// Package operate answers what operators want to know about a history and a log: what a backfill will cost (History),
// and whether the log is the chain's, by receipts, at one time (Receipts) or on a schedule (Schedule). It writes
// nothing, and does not know the session of a running ingest.
package operate
