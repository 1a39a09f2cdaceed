// Package projections turns the chain log into read models in ClickHouse.
//
//	chain.<id>.log ──feed──▶ units ──fold──▶ rows of 7 tables ──compare-and-swap──▶ generation (one database)
//
// A generation is a deterministic fold of the log up to its cursor. Its writer
// takes whole atomic units (up to a boundary record), folds them into rows, and
// inserts the rows of a batch into each table as one block, one atomic part.
// The cursor of a table is max(seq) of its rows, so that position and rows
// cannot come apart. Tables are inserted concurrently and may stand at
// different cursors after a crash; the writer then starts at the smallest one,
// folds the same records to the same rows again, and gives each table only
// what it lacks.
//
// # One insert
//
// The insert is a compare-and-swap: its deduplication token is made of the
// cursor that it follows, and ClickHouse accepts a token once.
//
//	read cursor c ──▶ insert the rows after c, token "<table>:after:<c>" ──▶ read cursor
//	      ▲                     ▲                                              │
//	      │                     │ same block, same token,                      ├─ last seq, our writer id ──▶ done
//	      │                     │ once system.processes no longer shows it     │
//	      │                     ├───────────── unchanged, insert had failed ◀──┤
//	      │                     │ same block, token + ":retry<n>", alarm       │
//	      │                     ├───────────── unchanged, insert had success ◀─┤
//	      │                                                                    │
//	      └── give up: drop all state, acquire again ◀── c older than 10 s     └─ anything else ──▶ fenced
//
// # Many generations
//
// PostgreSQL has the only list of generations, with the state of each, and so
// the only pointer to the live one. A projector reads the list once a second and
// has one keeper for every generation that is live, in standby or being built,
// and is of its log and schema. Keepers share nothing that one of them could use
// up, so that one that fails hurts no other, and a generation in standby is as
// new as the live one: a rollback is one UPDATE. An Operator, which is what
// `navlog projection` runs, changes the list (see its comment for the states) and
// writes no row. A projector ends only when the live generation needs a person
// and there is no other one to write, for that one could become the live one; in
// the process of `navlog up`, which has the engines, it waits for a rebuild.
//
// # One keeper
//
//	            ┌────────────── lease lost, fenced, engine away: back off ─────────────┐
//	            ▼                                                                      │
//	waiting ─ first record ─▶ standby ─ lease ─▶ building ─ end of the log ─▶ following
//	                                               │
//	                                               ├─ hole or double found ─▶ bad (ends by `navlog projection rebuild`)
//	                                               └─ not on the list any more ─▶ ended
//
// The lease is a session advisory lock in PostgreSQL, which the server releases
// when its holder dies. It only keeps a second writer from wasting its time:
// what makes two writers harmless is the compare-and-swap.
//
// At the end of the log a keeper also has the engine merge tables that lie in
// many large parts into one, as a rebuild leaves them (see merge).
//
// # State
//
// The fold needs a little state per key: what a user has in each vault, what is
// known of a withdrawal request, how many live deposits tie a user to a partner.
// It is loaded from the generation's own rows with seq <= position, for the
// keys of a batch at a time, and kept while the writer runs. The log takes back
// newest first, so that counts and firsts undo exactly. Nothing else is
// remembered, and any error throws the state away.
//
// Where to begin reading the log is not stored either. A record's Kafka offset
// can only be larger than its seq suggests, because transaction markers and
// aborted records take offsets and no seq. So a jump ahead by as many offsets
// as seqs are missing never jumps too far, and a handful of jumps find the place.
package projections
