// Package projections turns the chain log into read models in ClickHouse.
//
//	chain.<id>.log ──feed──▶ units ──decode──▶ facts ──write──▶ generation (one database: events, lists)
//	                                             └──fold───┘
//
// Its rooms: decode makes a fact of a record, fold says what rows a unit adds to the two
// tables, write inserts them, verify proves them, and oracle is the slow and obvious
// fold that tests compare with. Here are the programs: Projections, which keeps
// generations up to date, and Operator, which decides which there are.
//
// # The life of a generation
//
//	building ─ events only, in large batches ─▶ at a cursor that covers every vault ─▶ lists built ─▶ following
//	   │                                                                                               │
//	   └─ not served                                                            events, lists: unit after unit
//
// While it is built a generation has events only, which follow from each record: no
// look-up, no memory. When it has reached a cursor of ingest's that says that the log
// had all of every vault there, lists is built of events by its definitions in a few
// statements (write.Writer.Build), and from then on each unit brings its own part of it.
// It need not be at the end of the log, which one that is written all the time does not
// have.
//
// The first generation of all then goes live by itself, and so does the successor of
// one that cannot have what the log says: a vault that joins after lists was built has
// its history below the newest block, where nothing may change but by a
// reorganisation. The live generation passes its records over, and another one is
// made beside it, from the log. Any other generation is made live by an Operator,
// which is what `navlog projection` runs (see its comment for the states).
//
// # Many generations
//
// PostgreSQL has the only list of generations, with the state of each, and so
// the only pointer to the live one. A projector reads the list once a second and
// has one keeper for every generation that is live, in standby or being built,
// and is of its log and schema. Keepers share nothing that one of them could use
// up, so that one that fails hurts no other, and a generation in standby is as
// new as the live one: a rollback is one UPDATE. A projector that cannot write the live
// generation does not end: it says that it is not ready, and why, and waits for another
// one to write. For a rebuild only puts one on the list, and a projector makes it.
//
// # One keeper
//
//	            ┌────────────── lease lost, fenced, engine away: back off ─────────────┐
//	            ▼                                                                      │
//	waiting ─ first record ─▶ standby ─ lease ─▶ building ─ lists built, end of the log ─▶ following
//	                                               │
//	                                               ├─ hole or double found ─▶ bad (ends by `navlog projection rebuild`)
//	                                               ├─ a vault came back ─▶ outdated (ends by its successor)
//	                                               └─ not on the list any more ─▶ ended
//
// The lease is a session advisory lock in PostgreSQL, which the server releases
// when its holder dies. It only keeps a second writer from wasting its time:
// what makes two writers harmless is the compare-and-swap (package write).
//
// At the end of the log a keeper also has the engine merge tables that lie in
// many large parts into one, as a rebuild leaves them (see merge).
//
// Where to begin reading the log is not stored. A record's Kafka offset can only be
// larger than its seq suggests, because transaction markers and aborted records take
// offsets and no seq. So a jump ahead by as many offsets as seqs are missing never
// jumps too far, and a handful of jumps find the place.
package projections
