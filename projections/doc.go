// Package projections turns the chain log into read models in ClickHouse.
//
//	chain.<id>.log ──feed──▶ units ──decode──▶ facts ──write──▶ generation (one database: events, lists)
//	                                             └──fold───┘
//
// Its packages: decode turns a record into a fact, fold computes the rows that a unit adds to the two tables, write
// inserts them, verify proves them, and oracle is a slow and simple fold with which tests compare them. This package
// has the programs: Projections, which keeps generations up to date, and Operator, which decides which generations
// exist.
//
// # The life of a generation
//
//	building ─ events only, in large batches ─▶ at a cursor that covers every vault ─▶ lists built ─▶ following
//	   │                                                                                               │
//	   └─ not served                                                            events, lists: unit after unit
//
// While a generation is being built, it has only events, which follow from each record without look-ups or memory.
// When it has reached a cursor of ingest at which the log was complete for every vault, lists is built from events by
// its definitions in a few statements (write.Writer.Build), and from then on each unit adds to both tables. This does
// not wait for the end of the log, because a log that is written all the time has none.
//
// The very first generation then goes live by itself, and so does the successor of an outdated one: a vault that was
// added after lists was built has its history below the newest block, where only a reorganisation may change
// anything. So the live generation skips its records, and another one is built beside it from the log. A successor
// without a vault that was restored meanwhile is skipped as long as the live generation has the vault and can be
// written, and dropped when another successor is live. A successor with a fault that another one would have too, such
// as a hole in the log, waits for an operator. Any other generation is made live by an Operator, which `navlog
// projection` runs.
//
// # Many generations
//
// PostgreSQL has the only list of generations, with the state of each, and so the only pointer to the live one. A
// projector reads the list once a second and runs one keeper for every generation of its log and schema that is live,
// in standby or being built. Keepers share no resource that one of them could exhaust, so a failing keeper does not
// affect the others, and a standby generation is as up to date as the live one: a rollback is one UPDATE. A projector
// that cannot write the live generation does not end: it reports that it is not ready, with the reason, and waits for
// another generation to write. A rebuild only adds a generation to the list, and a projector builds it.
//
// # One keeper
//
//	            ┌────────────── lease lost, fenced, engine down: back off ─────────────┐
//	            ▼                                                                      │
//	waiting ─ first record ─▶ standby ─ lease ─▶ building ─ lists built, end of the log ─▶ following
//	                                               │
//	                                               ├─ gap or duplicate found ─▶ bad (ends by `navlog projection rebuild`)
//	                                               ├─ a vault was restored ─▶ outdated (ends by its successor)
//	                                               ├─ log or table broken ─▶ bad (retried within 10 minutes)
//	                                               └─ no longer on the list ─▶ ended
//
// The lease is a row in PostgreSQL (registry.Leases). It only keeps a second writer from wasting its time: the
// compare-and-swap (package write) makes two writers harmless, also if the first one was suspended for longer than its
// lease and then resumed.
//
// At the end of the log, a keeper also lets the engine merge tables that consist of many large parts, as after a
// rebuild (see merge).
//
// The position at which to start reading the log is not stored. A record's Kafka offset can only be larger than its
// seq suggests, because transaction markers and aborted records take offsets but no seqs. So a jump ahead by the
// number of missing seqs never jumps too far, and a few jumps find the place.
package projections
