// Package write is the only room that inserts into a generation.
//
// # A unit
//
//	units ──▶ rows of facts ──────────────┐
//	  └─────▶ what derived tables lack ───┴──▶ inserted at once ──▶ the spine ──▶ it counts
//
// The spine is the commit point. Whatever a unit brings is in all other tables before
// the spine has it, and what is served is the spine's newest unit. A writer that dies
// leaves tables ahead of the spine; the next one begins at the spine, makes the same
// rows again, however it cuts the batches, and gives each table only what comes after
// its cursor.
//
// A unit that rewrites the past, a reorganisation, stands alone in its batch. It
// replaces the cursor row of every derived table, in the same insert as its rows: the
// fence in it says from which block on the past is another (readmodel.Fence), also
// where this unit brings the table no row, for the units after it may. Facts need no
// fence: they are only appended, and read up to a seq.
//
// # One insert
//
// The insert is a compare-and-swap: its deduplication token is made of the cursor
// that it follows, and ClickHouse accepts a token once.
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
// Every unit that concerns a derived table moves its cursor, also where no row
// changes: else the token would stay free, and the insert of a writer that was stopped
// for a while could still be accepted. What concerns a table is a function of the log.
package write
