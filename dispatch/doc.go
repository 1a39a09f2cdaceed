// Package dispatch notifies partners of the deposits and withdrawal requests
// that are attributed to them. It reads the referral topics, keeps one delivery
// per event in PostgreSQL, and posts each to its partner's URL until the partner
// acknowledges it or the retries are exhausted.
//
//	referral.* ──▶ consumer ──one txn──▶ delivery, position ──▶ lanes ──POST──▶ partners
//	               (consume.go,          (PostgreSQL)           (lane)
//	                accept.go)
//
// # Persist first
//
// The consumer inserts the deliveries of a batch and moves the positions of its
// partitions in one transaction; records that cannot become a delivery go to
// dead_record in the same transaction. An event's id is a pure function of the
// event, so reading a topic again, in part, from zero or recreated under another
// id, inserts nothing. One dispatcher reads for all, under the lease of the intake,
// and notifies the others, whose lanes send. The lease only saves work: the position
// moves by compare-and-set, so if two dispatchers read the same records, because one
// was suspended for longer than its lease, the slower one rolls back.
//
// A referral that names an unknown partner is skipped and leaves no row, because
// any account can write any id into the chain. The topics keep it forever; when the
// partner is created, its earlier referrals are backfilled (backfill.go).
//
// Before finality a transaction may be mined again in another block. Its event
// stays one event and gets the body of the newest mining (correction.go).
//
// # Then send
//
// Each partner with deliveries to send has a lane: a goroutine with a bounded
// number of POSTs in flight, so that a slow or dead partner does not delay the
// others. All lanes share one pool of slots, which bounds the sockets. A lane works
// under a lease with a fence number; the result of a POST is written only if the
// fence has not changed since the POST started. Many results are written in one
// transaction (ledger.go), and a lane starts the next POST only after the result of
// the previous one is written. Dispatchers divide the partners evenly (rebalance.go).
//
// A delivery:
//
//	                       replayed
//	        ┌───────────────────────────────────────────────┐
//	        ▼              acknowledged (2xx)                │
//	──▶ pending ──────────────────────────────────────▶ delivered
//	    │ │  │ ▲ └─ refused, retries left: wait 1 s, 5 s, 15 s ─┐
//	    │ │  │ └────────────────────────────────────────────────┘
//	    │ │  └── refused, no retry left ──────────────▶ failed ──── replayed ──▶ pending
//	    │ │ breaker opened     ▲   (as above, from either)
//	    │ ▼                    │
//	    │ parked ──────────────┴── acknowledged ──▶ delivered
//	    │ │    ▲ └─ probe refused: behind all others ─┐
//	    │ │    └──────────────────────────────────────┘
//	    ▼ ▼ partner disabled or without URL
//	 no_endpoint ── replayed ──▶ pending
//
// A parked delivery waits for the breaker of its partner's URL: it is not attempted and
// uses up no retries. While the breaker is open, one probe at a time sends the next parked delivery. When a probe gets
// a response, the other deliveries follow, at first one POST at a time and one more with
// each success (lane/breaker.go). A receiver that responds but rejects very many
// attempts in a row is treated like one that is down, except that only an accepted
// probe closes its breaker.
//
// Events are kept forever. Attempts and other details are pruned (retention.go).
//
// # What a crash can do
//
// Every accepted event is in PostgreSQL before the position moves past it, and the
// result of a POST is written after the POST. An event is therefore sent twice, with
// the same id and the same bytes, if the dispatcher
//
//   - crashes between a POST and its result;
//   - loses a lease while POSTs are in flight, because it hangs or cannot reach
//     PostgreSQL;
//   - stops during such an outage, since it waits only briefly for results (ledger.go).
//
// Within one attempt, a request that dies on a reused connection without a response is
// sent once more (lane/post.go), because the receiver may have closed the connection
// before. If it did not, it gets the event twice.
//
// Nothing else repeats an event: a fence names one lease, so a lane that ends drops
// its own lease and never a later one; redirects are not followed; and net/http is
// kept from repeating a request by itself.
package dispatch
