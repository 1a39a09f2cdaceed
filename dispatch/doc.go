// Package dispatch tells partners about the deposits and withdrawal requests
// that are attributed to them. It reads the referral topics, keeps one delivery
// per event in PostgreSQL, and posts each to its partner's URL until the partner
// has acknowledged it or the attempts are used up.
//
//	referral.* ──▶ consumer ──one txn──▶ delivery, position ──▶ lanes ──POST──▶ partners
//	               (consume.go,          (PostgreSQL)           (lane)
//	                accept.go)
//
// # Persist first
//
// The consumer inserts the deliveries of a batch and moves the position of their
// partitions in one transaction; what cannot become a delivery goes to
// dead_record in the same one. An event's id is a pure function of the event, so
// a topic that is read again, in part or from zero, or made anew under another
// id, inserts nothing. Several dispatchers may read the same topics: the
// position moves by compare-and-set, and the loser rolls back and reads the
// position again.
//
// What names a partner that does not exist is passed over without a trace, for
// anybody can write any id into the chain. The topics keep it for ever, and when the
// partner is created they are read again for it (adopt.go).
//
// Below final confirmations a transaction may be mined again in another block. What
// was told of it stays one event, and gets the body of the newest mining (mined.go).
//
// # Then send
//
// Each partner with something to be sent has a lane: a goroutine with a bounded
// number of POSTs in flight, so that a slow or dead partner takes nothing from
// any other. All lanes share one large number of sockets, in turns. A lane works
// under a lease with a fence number; the result of a POST is written only while
// the fence is still the one it was started under. Results are written many in
// one transaction (ledger.go), and a lane starts another POST only after the
// last one's result is written. Dispatchers share the partners evenly
// (share.go).
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
// lane/transition.go has it as a table. A parked delivery waits for the breaker of its
// partner's URL: it is not tried and loses none of its attempts. While the
// breaker is open, one probe at a time takes the next parked delivery in turn;
// when one is answered, the rest follows at a pace that begins with one POST at a
// time and grows with each success (lane/breaker.go). A receiver that answers and has
// accepted nothing for very many attempts in a row is treated like one that is
// down, but that only an accepted probe closes its breaker.
//
// Events are kept for ever. Of the attempts of one the last are, and of old ones
// less; what else is old goes (retention.go).
//
// # What a crash can do
//
// Every accepted event is in PostgreSQL before the position says that it was
// read, and its result is written after the POST. A crash between the two sends
// the same bytes again, with the same id; so does a lease that runs out while its
// POSTs are under way, because its dispatcher hangs or cannot reach PostgreSQL, and
// a stop during such an outage, which waits for results only so long (ledger.go).
// Nothing else is ever sent twice by itself: a fence names one lease, so a lane
// that ends gives back its own and none that was taken since; redirects are not
// followed, and net/http may not repeat a request.
package dispatch
