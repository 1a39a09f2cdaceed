// Package state finds the states of the read model that answers can be about. Besides package ask, it is the only
// package of query that accesses ClickHouse, and it depends on no resource.
//
//	registry: generations, reports of the programs ──1 s──▶ Registry ─┐
//	ClickHouse: cursor, what units touched, vaults ─LISTEN─▶ Snapshot ─ask.At─▶ Pin
//
// The Watcher looks at the served generation when project announces a write, and otherwise at intervals, and keeps
// the result as the Snapshot: the cursor of lists, the first block, and the vaults. It also remembers which lists and
// owners each unit touched, and back to which block units went; Snapshot.Unchanged and Snapshot.Kept use that to
// decide whether finished answers still hold.
//
// # Which generation
//
// The live one is served, if its schema is that of this program. While none is live, the newest one that is being
// built is used: its Snapshot is Partial, it has events but no lists, and only routes that use nothing but events are
// served.
//
// While the generation has no indexed block, there is no Snapshot: before the first one, and after a reorganisation
// that retracts all of them. Without PostgreSQL the Watcher continues with the last known generation. Without
// ClickHouse the last snapshot stays, and queries fail with an Error.
package state
