// Package lane sends the deliveries of one partner. A lane is a goroutine with a lease on
// the partner, a bounded number of POSTs in flight, its own connections and the breaker of
// the partner's URL, so that a slow or dead partner does not delay the others.
//
// A lane does not depend on Kafka or on other lanes. It reads the due deliveries from
// PostgreSQL, and parks and ends deliveries there. It needs two things from its dispatcher
// (Shared): a partner's endpoint, and the recording of an attempt. The dispatcher calls Take
// to acquire the lease, then Run until the lane is idle or has ended, and Drop to return the
// lease once the lane is retired.
//
// # Its machine
//
// A lane works in turns. A turn starts with plan, which determines the situation of the
// partner and acts on it, and ends when one of four things happens:
//
//	Take ──▶ plan ──▶ wait ──┬── a slot is free, and something is due ──▶ send ───┐
//	 │        ▲              ├── a POST has ended and is recorded ──▶ finish ─────┤
//	 │        │              ├── Wake was called ──▶ look at once ────────────────┤
//	 │        │              └── the wait that plan returned is over ─────────────┤
//	 │        └────────────────────────────── else ◀──────────────────────────────┤
//	 │                                                                            │
//	 └─ another dispatcher has the lease ──▶ end             idle for long ───────┤
//	                                          lease lost, released, program ends ─┤
//	                                  Drop ◀── let POSTs in flight finish ◀───────┘
//
// The situations, of which plan takes the first that applies:
//
//	unreachable   no URL, or disabled    due deliveries end as no_endpoint
//	held          parked by an operator  pending deliveries are parked, once
//	shut          the breaker is open    the same, until its time or its probe is over
//	open          otherwise              due deliveries are read and sent, as many at a
//	                                     time as the breaker permits, parked ones first
//
// # Where to read
//
//	lane.go         the machine: Run, plan, and its decisions (canSend, over, mustEnd)
//	lease.go        the lease and its fence
//	follow.go       the current endpoint, its certificates, and its breaker in PostgreSQL
//	due.go          deliveries that are due, parked, or have no endpoint
//	attempt.go      one POST, from its slot to its record
//	verdict.go      how an attempt changes its delivery
//	breaker.go      when a receiver counts as down, and how it is probed
//	post.go         the request and its connections; failure.go describes errors
package lane
