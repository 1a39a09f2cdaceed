// Package dispatch repeatedly kills the processes that send webhooks, and counts what arrives.
//
//	producer ──▶ Kafka ──▶ navlog dispatch (two) ◀──▶ PostgreSQL
//	                             │  ▲ SIGKILL            ▲ SIGKILL, leases taken away, positions set to zero
//	receiver ◀────── TLS ────────┘
//
// A seed determines what happens and when. Events are deposits and withdrawals of partners with working receivers, of
// one whose receiver is down, and of one without a URL; some events are refused every time. At the end of each seed
// every event must
//
//   - have been acknowledged by its receiver, with the id and the bytes that follow from the event only, or be
//     undelivered for a visible reason: an open breaker, no endpoint, or attempts that ran out, each of them refused
//     (lost in oracle.go);
//   - have arrived no more often than its responses explain, except for what was in flight when its partner changed
//     hands (extra and bound);
//   - have been refused at most 1 + 3 times, at least 1, 5 and 15 s apart, except for a POST of a dispatcher that lost
//     its partner meanwhile (schedule). The last events of each seed arrive after the faults have ended, so nothing
//     explains them.
//
// The line of each seed is
//
//	events=M lost=0 extra=K in_flight_bound=B
//
// with K <= B for each partner, and therefore in total. Two deliberate faults, a fourth retry and sending every POST
// twice, make a seed fail (planted_test.go).
//
// # What B is
//
// B is measured, not derived from the configuration. There is only one reason why an event may be sent again after it
// was accepted: its partner changed hands while the response was not yet in PostgreSQL. A dispatcher that stays alive
// never repeats a POST that was acknowledged; one that is killed loses its partners when the lease expires, and so does
// one that could not renew it because PostgreSQL was down. So B counts the POSTs that were not refused, that had
// arrived when the lease of their partner was acquired again, and whose event was recorded as delivered only later. For
// each such change it counts at most as many as a dispatcher can have in flight to one partner. None of this relies on
// the dispatcher's own account of what was in flight: the receiver records the arrivals, a trigger on the lease records
// each new fence (ledger.go), and the delivery record is the one that prevents the event from being sent again.
//
// Leases that are taken away are harder, and occur only in this test: the old owner trusts its lease until it renews
// it, after a third of the lease's duration, or until its first result is rejected. If PostgreSQL is down by then, it
// trusts the lease for the length of the outage, up to the lease's whole duration. What it begins meanwhile cannot be
// recorded, and cannot be distinguished from what the new owner begins. So after each lease loss the POSTs of a partner
// that begin during that time count too, up to its concurrency. Reading a topic again, or recreating it, adds nothing,
// because the ids are known.
package dispatch

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/partners"
)

// chaos is a run of several seeds on the same engines.
type chaos struct {
	navlog       string // the binary to test
	seeds        int
	first        uint64        // the first seed; the others follow it
	events       int           // of each seed, at least two for each partner
	settleWithin time.Duration // maximum time without progress while events are pending; two attempts are up to 15 s apart
	log          func(format string, a ...any)

	world    *partners.World
	receiver *receiver
}

// tally is the result of one seed.
type tally struct{ events, lost, extra, bound int }

// run tries the seeds. It creates a folder in data for the engines, which is removed unless a seed failed.
func (c *chaos) run(ctx context.Context, data string) error {
	dir, err := engines.RunDir(data, true)
	if err != nil {
		return err
	}
	if c.world, err = partners.Start(ctx, dir); err != nil {
		return err
	}
	defer c.world.Close()
	if c.receiver, err = startReceiver(filepath.Join(dir, "ca"), c.world); err != nil {
		return err
	}
	defer c.receiver.Close()
	if _, err := c.world.Pool.Exec(ctx, recordingTriggers); err != nil {
		return fmt.Errorf("watch the leases: %w", err)
	}
	for i := range c.seeds {
		seed, started := c.first+uint64(i), time.Now()
		one, err := c.seed(ctx, seed)
		c.log("seed %d: events=%d lost=%d extra=%d in_flight_bound=%d in %.1f s", seed, one.events, one.lost, one.extra,
			one.bound, time.Since(started).Seconds())
		if err != nil {
			return fmt.Errorf("seed %d: %w; logs are in %s", seed, err, dir)
		}
	}
	return engines.RemoveAtExit(dir)
}
