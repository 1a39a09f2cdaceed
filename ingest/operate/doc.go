// Package operate reports on a history and a log to operators: what a backfill will cost (History), and whether the log
// is the chain's, by receipts, at one time (Receipts) or on a schedule (Schedule). Resume accepts the chain that froze
// a log; nothing else in this package writes. It does not depend on the session of a running ingest.
package operate
