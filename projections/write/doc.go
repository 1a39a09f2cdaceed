// Package write is the only package that inserts into a generation.
//
// # A unit
//
//	units ──▶ rows of events ───────────────▶ insert into events ──┐
//	  └─────▶ named keys ──look-ups in lists──▶ rows of lists ─────┴──▶ insert into lists with the cursor row: it counts
//
// The cursor row of lists is the commit point. The rows of a unit are in events before they are in lists, and readers
// see the unit that the cursor names. A writer that crashes between the two inserts leaves events one batch ahead. The
// next writer starts at the cursor, makes the same rows again, even if it cuts the batches differently, and inserts
// into events only the rows after its last seq.
//
// A unit that retracts is a batch of its own, because its look-ups have their own ancestor, and it adds one to
// rewrites in the cursor.
//
// # One insert
//
// Each insert is one block, hence one part, and a compare-and-swap: its deduplication token contains the cursor that
// it follows, and ClickHouse accepts each token once.
//
//	read cursor c ──▶ insert the rows after c, token "<table>:after:<c>" ──▶ read cursor
//	      ▲                     ▲                                              │
//	      │                     │ same block, same token,                      ├─ last seq, our writer id ──▶ done
//	      │                     │ once system.processes no longer shows it     │
//	      │                     ├───────────── unchanged, insert had failed ◀──┤
//	      │                     │ same block, token + ":retry<n>", alarm       │
//	      │                     ├───────────── unchanged, insert had success ◀─┤
//	      │                                                                    │
//	      └── give up: drop the writer, open another ◀── c older than 10 s     └─ anything else ──▶ fenced
//
// The cursor of events is its last seq, that of lists is its cursor row. Each insert into lists replaces this row,
// even if nothing else changes: a part that collapses to nothing would remove its token, and then the insert of a
// stalled writer could still be accepted.
//
// # Building
//
// While a generation is being built, only events is written, in large blocks and without look-ups. Then lists is
// built from events by its definitions (Build).
package write
