// Package histories makes random histories of a chain as ingest would log them, and its test holds the whole read side to
// them: the log, the projector, the engines and the HTTP API, while the projector crashes at random places.
//
//	script, random ─▶ log (embedded Kafka) ─▶ project ──▶ door ──▶ ClickHouse ─▶ serve ─▶ HTTP
//	        │                                            shuts in the middle                │
//	        └─▶ the records that are live at a seq ─▶ fold, oracle (deploy/e2e) ─▶ expected ─▶ compare
//
// A history is made by its number alone: what the chain says, how the log is cut, when the door shuts and what is asked
// come from it. What is not made by it is in which order things happen that happen at the same time.
package histories
