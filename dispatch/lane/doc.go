// Package lane sends the deliveries of one partner. A lane is a goroutine with a lease on
// the partner, a bounded number of POSTs in flight, connections of its own and the breaker
// of the partner's URL, so that a partner that is slow or dead takes nothing from any other.
//
// It knows nothing of Kafka and of other lanes. It reads what is due in PostgreSQL, parks
// and ends deliveries there, and asks its dispatcher for three things (Shared): where its
// partner is told, that this be read anew, and that an attempt be recorded. The dispatcher
// takes the lease for it (Take), lets it Run until it is idle or has ended, and drops the
// lease (Drop) when it is off its list.
//
// # Its machine
//
// A lane lives in turns. A turn begins with plan, which finds out in which situation the
// partner is and does what that asks for, and ends when one of four things happens:
//
//	Take ──▶ plan ──▶ wait ──┬── a slot is free, and something is due ──▶ send ───┐
//	 │        ▲              ├── a POST has ended, and is recorded ──▶ finish ────┤
//	 │        │              ├── something came (Wake) ──▶ look at once ──────────┤
//	 │        │              └── the time is over that plan gave ─────────────────┤
//	 │        └────────────────────────────── else ◀──────────────────────────────┤
//	 │                                                                            │
//	 └─ somebody else has the lease ──▶ end                    idle for long ─────┤
//	                                        lease lost, given away, program ends ─┤
//	                                  Drop ◀── let POSTs under way finish ◀───────┘
//
// The situations, of which plan takes the first that is true:
//
//	unreachable   no URL, or disabled    what is due ends as no_endpoint
//	held          an operator's park     what waits is parked, once
//	shut          the breaker is open    the same, until its time or its probe is over
//	open          else                   what is due is read and sent, as many at a time
//	                                     as the breaker permits; parked ones first looked for
//
// # Where to read
//
//	lane.go         the machine: Run, plan, and the one decision of each (situation, canSend, over, mustEnd)
//	lease.go        the lease and its fence
//	follow.go       the endpoint that is followed, and its breaker in PostgreSQL
//	due.go          what is due, what is parked, what has nowhere to go
//	attempt.go      one POST, from its slot to its record
//	transition.go   what an attempt makes of its delivery, as a table
//	breaker.go      when a receiver counts as down, and how it is tried again
//	post.go         the request and its connections; failure.go what is said of one without an answer
package lane
