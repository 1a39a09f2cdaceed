// Package write is the only room that inserts into a generation.
//
// # A unit
//
//	units ──▶ rows of events ───────────────────▶ insert into events ──┐
//	  └─────▶ named keys ──look-ups in lists──▶ rows of lists ─────────┴──▶ insert into lists with the cursor row ──▶ it counts
//
// The cursor row of lists is the commit point. Whatever a unit brings is in events
// before lists has it, and what is served is the unit that the cursor names. A writer
// that dies between the two leaves events a batch ahead; the next one begins at the
// cursor, makes the same rows again, however it cuts the batches, and gives events only
// what comes after its last seq.
//
// A unit that retracts stands alone in its batch, for its look-ups have an ancestor of
// their own, and it adds one to rewrites in the cursor.
//
// # One insert
//
// Each insert is one block, hence one part, and a compare-and-swap: its deduplication
// token is made of the cursor that it follows, and ClickHouse accepts a token once.
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
// The cursor of events is its last seq, that of lists its cursor row. Each insert into
// lists replaces that row, also if nothing else changes: a part that collapses to
// nothing would take its token with it, and the insert of a writer that stalled could
// still be accepted.
//
// # Building
//
// While a generation is built only events is written, in large blocks and without
// look-ups. Then lists is built of events by its definitions (Build).
package write
