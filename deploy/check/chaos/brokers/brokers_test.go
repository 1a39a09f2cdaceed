// Package brokers kills the brokers of an Apache Kafka cluster while all programs work, and checks that no log and no
// event is lost or duplicated.
//
//	traffic ──▶ anvil ──▶ ingest ──▶ three brokers ──▶ project, dispatch
//	                                      ▲
//	                                      │ SIGKILL: the coordinator of ingest's transactions, the active controller,
//	                                      │ each other one, and two at once
//
// After the death of one broker the log must grow again while that broker is down. While two are down, no write is
// acknowledged, and ingest is not ready. Each broker is restarted, and the next one is killed when all replicas are in
// sync. No program may exit. At the end package fleet compares log, read model and webhooks with the chain.
package brokers

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/fleet"
	"github.com/navlog/navlog/schemas/chainlog"
)

const (
	chainID = 31337
	brokers = 3
	// interval of the traffic: a block.
	interval = 100 * time.Millisecond
	// growth is how many blocks the log must gain while a broker is down.
	growth = 10
	// refusal is how long a write to a cluster without a quorum is given to be acknowledged.
	refusal = 5 * time.Second
	// scratch is a topic with three replicas that no program uses.
	scratch = "chaos.scratch"
)

var rounds = flag.Int("rounds", 1, "how often each broker is killed before two are killed at once")

// A drill is a cluster with the programs that use it.
type drill struct {
	*fleet.Fleet
	t                         *testing.T
	cluster                   *engines.ApacheKafkaCluster
	ingest, project, dispatch *fleet.Program
	kills                     int
}

// `make chaos-brokers ROUNDS=5` kills more.
func TestKilledBrokers(t *testing.T) {
	if *rounds < 1 {
		t.Fatalf("-rounds is %d and must be 1 or more", *rounds)
	}
	if err := engines.ApacheKafkaAvailable(); err != nil {
		enginetest.LeaveOut(t, err)
	}
	d := &drill{t: t}
	t.Cleanup(d.stop)
	verdict, err := d.try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("kills=%d %s", d.kills, verdict)
	if err := verdict.Err(); err != nil {
		t.Error(err)
	}
	if verdict.Repeated != 0 {
		t.Errorf("no program was killed, and %d events were repeated", verdict.Repeated)
	}
	if d.kills != *rounds*brokers+brokers-1 || verdict.Logs < 100 || verdict.Events < 20 {
		t.Errorf("the drill did too little: kills=%d %s", d.kills, verdict)
	}
}

// try kills each broker as often as there are rounds, then two at once, and returns the comparison with the chain.
func (d *drill) try(ctx context.Context) (*fleet.Verdict, error) {
	if err := d.start(ctx, fleet.Options{Replicas: brokers, Partners: 3, SlotsInEpoch: 1}); err != nil {
		return nil, err
	}
	stopTraffic := d.Traffic(ctx, interval)
	for range *rounds {
		if err := d.eachInTurn(ctx); err != nil {
			return nil, errors.Join(err, stopTraffic())
		}
	}
	if err := errors.Join(d.twoAtOnce(ctx), stopTraffic()); err != nil {
		return nil, err
	}
	history, err := d.Finish(ctx, d.ingest, d.project)
	if err != nil {
		return nil, err
	}
	return d.Judge(ctx, history)
}

// start starts the engines and the programs.
func (d *drill) start(ctx context.Context, o fleet.Options) (err error) {
	d.Fleet, err = fleet.New(ctx, o, func(ctx context.Context, dir string) (addrs []string, err error) {
		if d.cluster, err = engines.StartApacheKafkaCluster(ctx, dir, brokers); err != nil {
			return nil, err
		}
		return d.cluster.Addrs(), nil
	})
	if err != nil {
		return err
	}
	for _, p := range []struct {
		program **fleet.Program
		name    string
	}{{&d.ingest, "ingest"}, {&d.project, "project"}, {&d.dispatch, "dispatch"}} {
		if *p.program, err = d.Launch(p.name, p.name); err != nil {
			return err
		}
	}
	if err := d.recovered(ctx); err != nil {
		return err
	}
	return d.makeScratch(ctx)
}

// stop stops what start has started, whether or not it succeeded.
func (d *drill) stop() {
	if d.Fleet != nil {
		d.Close()
	}
	if d.cluster != nil {
		d.cluster.Kill()
	}
}

func (d *drill) makeScratch(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(d.Brokers()...))
	if err != nil {
		return err
	}
	defer client.Close()
	made, err := kadm.NewClient(client).CreateTopic(ctx, 1, brokers, nil, scratch)
	return errors.Join(err, made.Err)
}

// recovered waits until all programs are ready and all replicas are in sync.
func (d *drill) recovered(ctx context.Context) error {
	return d.Until(ctx, func() error {
		if err := d.Ready(ctx); err != nil {
			return err
		}
		return d.cluster.InSync(ctx)
	})
}

// grows waits until the log has gained blocks and the read model has them.
func (d *drill) grows(ctx context.Context) error {
	block, err := d.ingest.Metric(ctx, "navlog_ingest_indexed_block")
	if err != nil {
		return err
	}
	var seq float64
	err = d.Until(ctx, func() error {
		now, err := d.ingest.Metrics(ctx)
		if err != nil {
			return err
		}
		if n := now["navlog_ingest_indexed_block"]; n < block+growth {
			return fmt.Errorf("the log is at block %.0f, and was at %.0f", n, block)
		}
		seq = now["navlog_ingest_seq"]
		return nil
	})
	if err != nil {
		return err
	}
	return d.Until(ctx, func() error {
		if n, err := d.project.Metric(ctx, "navlog_projections_seq"); err != nil || n < seq {
			return fmt.Errorf("the read model is at seq %.0f of %.0f: %w", n, seq, err)
		}
		return nil
	})
}

// eachInTurn kills every broker once: first the coordinator of ingest's transactions, then the active controller, then
// the others.
func (d *drill) eachInTurn(ctx context.Context) error {
	killed := map[int]bool{}
	next := func() (int, string, error) {
		coordinator, err := d.cluster.Coordinator(ctx, chainlog.TransactionalID(chainID))
		if err != nil || !killed[coordinator] {
			return coordinator, "the coordinator of ingest's transactions", err
		}
		if controller, err := d.cluster.Controller(ctx); err != nil || !killed[controller] {
			return controller, "the active controller", err
		}
		for i := range brokers {
			if !killed[i] {
				return i, "another broker", nil
			}
		}
		return 0, "", nil
	}
	for len(killed) < brokers {
		i, role, err := next()
		if err != nil {
			return err
		}
		killed[i] = true
		if err := d.kill(ctx, i, role); err != nil {
			return fmt.Errorf("broker %d, %s: %w", i+1, role, err)
		}
	}
	return nil
}

// kill kills a broker, waits until the log grows without it, and restarts it.
func (d *drill) kill(ctx context.Context, i int, role string) error {
	if err := d.grows(ctx); err != nil {
		return err
	}
	began := time.Now()
	d.cluster.Brokers[i].Kill()
	d.kills++
	if err := d.grows(ctx); err != nil {
		return err
	}
	without := time.Since(began)
	began = time.Now()
	if err := d.cluster.Brokers[i].Restart(ctx); err != nil {
		return err
	}
	if err := d.recovered(ctx); err != nil {
		return err
	}
	d.t.Logf("broker %d killed, %s: log and read model have %d more blocks after %.1f s; "+
		"restarted and in sync after %.1f s", i+1, role, growth, without.Seconds(), time.Since(began).Seconds())
	return nil
}

// twoAtOnce kills two brokers, checks that nothing is acknowledged and that ingest reports it, and restarts them.
func (d *drill) twoAtOnce(ctx context.Context) error {
	if err := d.grows(ctx); err != nil {
		return err
	}
	for i := range brokers - 1 {
		d.cluster.Brokers[i].Kill()
		d.kills++
	}
	if err := d.write(ctx); err == nil {
		return errors.New("a write was acknowledged while only one of three brokers was up")
	}
	began := time.Now()
	var reason error
	if err := d.Until(ctx, func() error {
		if reason = d.ingest.Ready(ctx); reason == nil {
			return errors.New("ingest is ready although the log cannot be written")
		}
		return nil
	}); err != nil {
		return err
	}
	before, err := d.ingest.Metric(ctx, "navlog_ingest_seq")
	if err != nil {
		return err
	}
	if err := d.write(ctx); err == nil {
		return errors.New("a write was acknowledged while only one of three brokers was up")
	}
	after, err := d.ingest.Metric(ctx, "navlog_ingest_seq")
	if err != nil {
		return err
	}
	if reason = d.ingest.Ready(ctx); reason == nil {
		return errors.New("ingest is ready again although the log cannot be written")
	}
	if before != after {
		return fmt.Errorf("ingest went from seq %.0f to %.0f while only one of three brokers was up", before, after)
	}
	d.t.Logf("two brokers killed: no write is acknowledged; after %.1f s: %v",
		time.Since(began).Seconds(), reason)
	began = time.Now()
	var group errgroup.Group
	for i := range brokers - 1 {
		group.Go(func() error { return d.cluster.Brokers[i].Restart(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := d.recovered(ctx); err != nil {
		return err
	}
	d.t.Logf("two brokers restarted: all programs ready, all replicas in sync after %.1f s",
		time.Since(began).Seconds())
	return d.grows(ctx)
}

// write writes a record to the scratch topic, and returns nil if the cluster acknowledged it in time.
func (d *drill) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refusal)
	defer cancel()
	// Without idempotence a write whose outcome is unknown can be given a time limit, and needs no coordinator.
	client, err := kgo.NewClient(kgo.SeedBrokers(d.Brokers()...),
		kgo.DisableIdempotentWrite(), kgo.RecordDeliveryTimeout(refusal))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ProduceSync(ctx, &kgo.Record{Topic: scratch, Value: []byte("x")}).FirstErr()
}
