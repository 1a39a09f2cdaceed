// Command dispatch is the benchmark `make bench-dispatch`: how many webhooks per second `navlog dispatch` delivers, how
// soon they arrive, and how much partners that never respond slow down the others.
//
//	this process                      its own processes
//	producer ──▶ Kafka ──────────────▶ navlog dispatch ◀──▶ PostgreSQL
//	receiver ◀──────────── TLS ───────┘
//
// Receiver, broker, database and dispatcher share the machine. Every part uses partners of its own. If not every event
// of a part arrives unchanged and correctly signed, the benchmark ends with an error instead of a figure.
package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/stack"
)

// parts of the benchmark, in the order in which they run.
var parts = []string{"rate", "latency", "drain", "parked"}

// benchmark holds the command-line options.
type benchmark struct {
	Data   string   `type:"path" default:"build/bench-dispatch" help:"Folder for the engines' data, which is removed at the end."`
	Navlog string   `type:"existingfile" default:"bin/navlog" help:"The binary to measure."`
	Keep   bool     `help:"Keep the data and the dispatcher's log."`
	Only   []string `placeholder:"PART" enum:"${parts}" default:"${parts}" help:"Run these parts only: ${enum}."`

	Events      int `default:"100000" help:"Events of the closed loop."`
	Dispatchers int `default:"1" help:"Dispatchers that share the partners of the closed loop."`

	world    *partners.World
	receiver *receiver
	next     int64 // partner id
}

func main() {
	var b benchmark
	bench.Main("bench-dispatch", "Measure navlog's webhooks.", &b, parts, b.run)
}

// run measures the requested parts.
func (b *benchmark) run(ctx context.Context) error {
	if b.Dispatchers < 1 || b.Events < 1 {
		return fmt.Errorf("--dispatchers %d and --events %d must be 1 or more", b.Dispatchers, b.Events)
	}
	dir, err := engines.RunDir(b.Data, b.Keep)
	if err != nil {
		return err
	}
	if b.world, err = partners.Start(ctx, dir); err != nil {
		return err
	}
	defer b.world.Close()
	if b.receiver, err = startReceiver(filepath.Join(dir, "ca"), b.world); err != nil {
		return err
	}
	defer b.receiver.close()
	return bench.Run(ctx, parts, b.Only,
		map[string]bench.Part{"rate": b.rate, "latency": b.latency, "drain": b.drain, "parked": b.parked})
}

// dispatching calls do while n dispatchers run. It returns an error if one of them exits by itself.
func (b *benchmark) dispatching(
	ctx context.Context, n int, do func(context.Context, []*stack.Process) error,
) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all []*stack.Process
	defer func() {
		for _, d := range all {
			if stopped := d.Stop(); err == nil {
				err = stopped
			}
		}
	}()
	for range n {
		d, err := b.world.Dispatch(b.Navlog, b.receiver.CAFile, "dispatch.log")
		if err != nil {
			return err
		}
		all = append(all, d)
		go func() {
			<-d.Ended() // it is stopped in the end
			cancel(fmt.Errorf("the dispatcher ended: see dispatch.log in %s (--keep)", b.world.Dir))
		}()
	}
	if err = do(ctx, all); err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return err
}

// partners creates n partners; those for which dead is true never get a response. Pending deliveries to partners of an
// earlier part are dropped, or their attempts would be measured in this one.
func (b *benchmark) partners(ctx context.Context, n int, dead func(i int) bool) ([]uint32, error) {
	for _, sql := range []string{
		"UPDATE delivery SET state = 'failed', finished_at = now() WHERE state IN ('pending', 'parked')",
		"DELETE FROM breaker",
		"VACUUM ANALYZE delivery",
	} {
		if _, err := b.world.Pool.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("end the part before: %w", err)
		}
	}
	ids := make([]uint32, n)
	for i := range ids {
		b.next++
		url := b.receiver.url(b.next, dead(i))
		if err := b.world.Partner(ctx, b.next, url); err != nil {
			return nil, err
		}
		ids[i] = uint32(b.next)
	}
	return ids, nil
}

func noPartner(int) bool { return false }
