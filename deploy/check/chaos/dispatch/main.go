// Command dispatch is `make chaos-dispatch`: it kills what sends webhooks, again
// and again, and counts what arrives.
//
//	producer ──▶ Kafka ──▶ navlog dispatch (two) ◀──▶ PostgreSQL
//	                             │  ▲ SIGKILL            ▲ SIGKILL, leases taken away, positions set to zero
//	receiver ◀────── TLS ────────┘
//
// A seed decides what happens and when. Events are deposits and withdrawals, of
// partners whose receivers answer, of one whose receiver is down, and of one without
// a URL; some are refused for ever. At the end of each seed every event must
//
//   - have been acknowledged by its receiver, with the id and the bytes that follow
//     from the event alone, or wait for a reason that can be seen: an open breaker,
//     no endpoint, or attempts that ran out, each of them refused (lost in oracle.go);
//   - have come no more often than its answers explain, but for what was under way
//     when its partner changed hands (extra and bound);
//   - have been refused 1 + 3 times at most, at least 1, 5 and 15 s apart, but for a
//     POST of a dispatcher that lost its partner meanwhile (schedule). The last events
//     of each seed come when nothing happens any more, so that they have no excuse.
//
// The last line is
//
//	seeds=N events=M lost=0 extra=K in_flight_bound=B
//
// with K <= B for each partner, and so in the sum. Two faults that were planted on
// purpose, a fourth retry and every POST twice, turn a seed red (planted_test.go).
//
// # What B is
//
// B is measured and not what the configuration would allow. An event may be sent
// again after it was accepted for one reason only: its partner has changed hands
// while the answer was not in PostgreSQL. A dispatcher that lives never repeats a
// POST that was answered; one that is killed loses its partners when the lease
// runs out, and so does one that could not renew while PostgreSQL was down. So B
// counts the POSTs that were not refused, that had arrived when the lease of their
// partner was taken anew, and whose event was recorded as delivered only after
// it, and of each such change no more than a dispatcher can have under way to one
// partner. None of the three comes from the dispatcher's own account of what it had
// under way: the receiver notes the arrivals, a trigger on the lease notes each
// new fence (ledger.go), and the record is the one that keeps the event from being
// sent again.
//
// A lease that is stolen is harder, and happens in this program only: the old
// owner believes in it until it renews, a third of the lease later, or until the
// first of its results is refused; where PostgreSQL is down by then, for as long as
// that, up to the whole lease. What it begins meanwhile cannot be recorded and
// cannot be told from what the new owner begins, so after each theft the POSTs of
// a partner that begin in that time count, too, up to its concurrency. A topic
// that is read again or made anew adds nothing: the ids are known.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/referrals"
)

// chaos is what the command line says.
type chaos struct {
	Data   string        `type:"path" default:"build/chaos-dispatch" help:"Folder for the engines; what is in it goes at the end, unless something was wrong."`
	Navlog string        `type:"existingfile" default:"bin/navlog" help:"The binary to test."`
	Seeds  int           `default:"50" help:"How many seeds, from --first on."`
	First  uint64        `default:"1" help:"The first seed."`
	Events int           `default:"300" help:"Events of each seed."`
	Settle time.Duration `default:"60s" help:"How long events that are still to be sent may make no progress: 15 s lie between two attempts."`

	world    *referrals.World
	receiver *receiver
}

// tally is what one seed, or all, came to.
type tally struct{ events, lost, extra, bound int }

func main() {
	var c chaos
	kong.Parse(&c, kong.Name("chaos-dispatch"), kong.Description("Kill what sends webhooks and count what arrives."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	sum, err := c.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos-dispatch:", err)
	}
	fmt.Printf("seeds=%d events=%d lost=%d extra=%d in_flight_bound=%d\n", c.Seeds, sum.events, sum.lost, sum.extra, sum.bound)
	if err != nil || sum.lost > 0 || sum.extra > sum.bound {
		os.Exit(1)
	}
}

func (c *chaos) run(ctx context.Context) (sum tally, err error) {
	if c.Seeds < 1 || c.Events < 2*partners {
		return sum, fmt.Errorf("--seeds is %d and must be 1 or more, --events %d and must be %d or more", c.Seeds, c.Events, 2*partners)
	}
	dir, err := engines.RunDir(c.Data, true)
	if err != nil {
		return sum, err
	}
	if c.world, err = referrals.Start(ctx, dir); err != nil {
		return sum, err
	}
	defer c.world.Close()
	if c.receiver, err = startReceiver(filepath.Join(dir, "ca"), c.world); err != nil {
		return sum, err
	}
	defer c.receiver.Close()
	if _, err := c.world.Pool.Exec(ctx, witness); err != nil {
		return sum, fmt.Errorf("watch the leases: %w", err)
	}
	for i := range c.Seeds {
		seed, started := c.First+uint64(i), time.Now()
		one, err := c.seed(ctx, seed)
		sum.events, sum.lost, sum.extra, sum.bound = sum.events+one.events, sum.lost+one.lost, sum.extra+one.extra, sum.bound+one.bound
		if err != nil {
			return sum, fmt.Errorf("seed %d: %w; logs are in %s", seed, err, dir)
		}
		fmt.Fprintf(os.Stderr, "seed %d: events=%d lost=%d extra=%d in_flight_bound=%d in %.1f s\n", seed, one.events, one.lost, one.extra, one.bound, time.Since(started).Seconds())
	}
	return sum, engines.RemoveAtExit(dir)
}
