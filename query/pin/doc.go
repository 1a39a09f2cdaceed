// Package pin decides which state an answer is about, asks the read models about that
// state, and finds out whether it was one state. It is the only room of query that opens
// ClickHouse, and knows no resource.
//
//	registry: generations, what the programs say ──1 s──▶ Registry ─┐
//	ClickHouse: last seq, newest and first block, vaults ─LISTEN─▶ Snapshot ─At─▶ Pin ─Ask─▶ rows
//	                                                                  ▲             │ See(fence)
//	                                                                  └──── Answer ◀┘
//
// The Watcher looks at the generation that is served when project announces that it
// wrote, and otherwise now and then, and keeps what it saw as the Snapshot: the seq S of
// the newest whole unit, the newest and the first block, and the vaults. Beside it query
// keeps finished answers (httpapi), the newest rows of the log that open streams wait for
// (events.Feed), and for /status when each vault was last valued (health).
//
// A Pin is a snapshot and a block X, the newest one or that of asOfBlock. Questions to
// facts say seq <= S and block <= X, and are exact whatever is written meanwhile.
// Questions to derived tables say X alone and give the pin the fence that they read
// among their rows (readmodel.Fence): only that tells whether the table says of X what
// the log up to S says.
//
// # How an answer is made
//
//	           ┌────────────────────────── made again at the newer snapshot ◀──┐
//	           ▼                                                               │ yes
//	pin ─▶ questions ─▶ all fences hold? ─ no ─▶ does the snapshot get there within 300 ms?
//	                       │ yes                        │ no: a unit stays half written
//	                       ▼                            ├─ asOfBlock: ErrNotYet, 503
//	                     sent                           └─ newest: as of the last block which that unit leaves as it was
//
// So an answer is exact or it is not there, and never a mixture of two beliefs. An error
// of a handler that saw such tables is not believed either. Once one answer waited in
// vain, others about the same snapshot do not wait.
//
// # Which generation
//
// The live one, where its tables are those of this program. While none is live, the
// newest one that is being built: its Snapshot is Partial, there are facts but no derived
// tables, and only what is made of facts alone may be asked.
//
// Without PostgreSQL the generation last known is read on; without ClickHouse the last
// snapshot stays, and questions fail as Error.
package pin
