// Package histories makes random histories of a chain as ingest would log them, and its test holds the whole read side to
// them: the log, the projector, the engines and the HTTP API, while the projector crashes at random places and readers ask
// all the time.
//
//	script, random ─▶ log (embedded Kafka) ─▶ project ──▶ door ──▶ ClickHouse ─▶ serve ◀─ readers
//	        │                                            shuts in the middle                │
//	        └─▶ the records that are live at a seq ─▶ oracle (deploy/check/e2e) ─▶ expected ─▶ compare
//
// Whatever an answer says it is about (X-Indexed-Seq, X-Indexed-Block, X-Generation), it has to be what the log up to that
// seq says of the chain up to that block. An answer that mixes two beliefs equals none of them.
//
// A history is made by its number alone: what the chain says, how the log is cut, when the door shuts and what is asked
// come from it. What is not made by it is in which order things happen that happen at the same time.
package histories
