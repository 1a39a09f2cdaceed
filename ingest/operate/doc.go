// Package operate reports on a history and a log to operators: what a backfill will cost (History), and whether the log
// is the chain's, by receipts, at one time (Receipts) or on a schedule (Schedule). Resume accepts the chain that froze
// a log; nothing else in this package writes. It does not depend on the session of a running ingest.
//
// Resume retracts everything above the newest recorded block that is in the chain, between two decision records, and
// only its last transaction ends the freeze. After that the ordinary steps read the chain again. Resume writes with the
// id of the writer that froze: when that writer sees its own id without the freeze, it begins a new session.
package operate
