// Package state knows which state of the read model answers can be about. With package ask it is
// the only room of query that opens ClickHouse, and it knows no resource.
//
//	registry: generations, reports of the programs ──1 s──▶ Registry ─┐
//	ClickHouse: cursor, what units touched, vaults ─LISTEN─▶ Snapshot ─ask.At─▶ Pin
//
// The Watcher looks at the generation that is served when project announces that it wrote, and
// otherwise now and then, and keeps what it saw as the Snapshot: the cursor of lists, the first
// block, and the vaults. It also remembers which lists and owners each unit touched, and back to
// which block units went: by that Snapshot.Unchanged and Snapshot.Kept judge finished answers.
//
// # Which generation
//
// The live one, if its tables are those of this program. While none is live, the newest one that
// is being built: its Snapshot is Partial, there are events and no lists, and only what is made of
// events may be asked.
//
// Without PostgreSQL the Watcher reads on in the generation that it last knew. Without ClickHouse
// the last snapshot stays, and questions fail with an Error.
package state
