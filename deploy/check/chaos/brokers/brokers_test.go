// Package brokers makes the brokers of an Apache Kafka cluster fail while all programs work, and checks that no log and
// no event is lost or duplicated.
//
//	traffic ──▶ anvil ──▶ ingest ──▶ three brokers ──▶ project, dispatch
//	                                      ▲
//	                                      │ SIGKILL, and then SIGSTOP: the coordinator of ingest's transactions, the
//	                                      │ active controller, and each other one; at last SIGKILL of two at once
//
// A killed broker refuses connections. A frozen one accepts them and does not respond, so its clients wait for their
// time limits, and when it continues, it does not know yet that others lead its partitions.
//
// After the failure of one broker the log must grow again while that broker is missing. While two are down, no write is
// acknowledged, and ingest is not ready. Each broker comes back, and the next one fails when all replicas are in sync.
// No program may exit. At the end package fleet compares log, read model and webhooks with the chain.
package brokers

import (
	"context"
	"errors"
	"flag"
	"syscall"
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
	// growth is how many blocks the log must gain while a broker is missing.
	growth = 10
	// refusal is how long a write to a cluster without a quorum is given to be acknowledged.
	refusal = 5 * time.Second
	// scratch is a topic with three replicas that no program uses.
	scratch = "chaos.scratch"
)

var rounds = flag.Int("rounds", 1, "how often each broker is killed, and frozen, before two are killed at once")

// A drill is a cluster with the programs that use it.
type drill struct {
	*fleet.Fleet
	t               *testing.T
	cluster         *engines.ApacheKafkaCluster
	ingest, project *fleet.Program
	failures        int
}

// A failure is a way in which a broker stops to respond, and how it comes back.
type failure struct {
	name       string
	begin, end func(context.Context, *engines.ApacheKafka) error
}

var (
	killed = failure{"killed", func(_ context.Context, k *engines.ApacheKafka) error { k.Kill(); return nil },
		func(ctx context.Context, k *engines.ApacheKafka) error { return k.Restart(ctx) }}
	frozen = failure{"frozen", signal(syscall.SIGSTOP), signal(syscall.SIGCONT)}
)

func signal(s syscall.Signal) func(context.Context, *engines.ApacheKafka) error {
	return func(_ context.Context, k *engines.ApacheKafka) error { return syscall.Kill(k.Pid, s) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// `make chaos-brokers ROUNDS=5` does more.
func TestFailingBrokers(t *testing.T) {
	if *rounds < 1 {
		t.Fatalf("-rounds is %d and must be 1 or more", *rounds)
	}
	if err := engines.ApacheKafkaAvailable(); err != nil {
		enginetest.LeaveOut(t, err)
	}
	d := newDrill(t)
	stopTraffic := d.Traffic(interval)
	for range *rounds {
		d.eachInTurn(killed)
		d.eachInTurn(frozen)
	}
	d.twoAtOnce()
	stopTraffic()
	verdict := d.Compare(d.Finish(d.ingest, d.project))
	if verdict.Repeated != 0 {
		t.Errorf("no program was killed, and %d events were repeated", verdict.Repeated)
	}
	if d.failures != 2**rounds*brokers+brokers-1 || verdict.Logs < 100 || verdict.Events < 20 {
		t.Errorf("the drill did too little: %d failures, %s", d.failures, verdict)
	}
}

// newDrill starts the engines and the programs.
func newDrill(t *testing.T) *drill {
	t.Helper()
	d := &drill{t: t}
	t.Cleanup(func() {
		if d.cluster != nil {
			d.cluster.Kill()
		}
	})
	d.Fleet = fleet.New(t, fleet.Options{Replicas: brokers, Partners: 3, SlotsInEpoch: 1,
		Kafka: func(ctx context.Context, dir string) (addrs []string, err error) {
			if d.cluster, err = engines.StartApacheKafkaCluster(ctx, dir, brokers); err != nil {
				return nil, err
			}
			return d.cluster.Addrs(), nil
		}})
	d.Start("ingest", "project", "dispatch")
	d.ingest, d.project = d.Programs["ingest"], d.Programs["project"]
	d.recovered()
	client, err := kgo.NewClient(kgo.SeedBrokers(d.Brokers()...))
	must(t, err)
	defer client.Close()
	made, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, brokers, nil, scratch)
	must(t, errors.Join(err, made.Err))
	return d
}

// recovered waits until all programs are ready and all replicas are in sync.
func (d *drill) recovered() {
	d.t.Helper()
	d.Until(func() error {
		if err := d.Ready(); err != nil {
			return err
		}
		return d.cluster.InSync(d.t.Context())
	})
}

// grows waits until the log has gained blocks and the read model has them.
func (d *drill) grows() {
	d.t.Helper()
	d.Writes(d.ingest, growth)
	d.Follows(d.project, d.ingest)
}

// eachInTurn lets every broker fail once: first the coordinator of ingest's transactions, then the active controller,
// then the others.
func (d *drill) eachInTurn(how failure) {
	d.t.Helper()
	failed := map[int]bool{}
	next := func() (int, string) {
		coordinator, err := d.cluster.Coordinator(d.t.Context(), chainlog.TransactionalID(chainID))
		must(d.t, err)
		if !failed[coordinator] {
			return coordinator, "the coordinator of ingest's transactions"
		}
		controller, err := d.cluster.Controller(d.t.Context())
		must(d.t, err)
		if !failed[controller] {
			return controller, "the active controller"
		}
		i := 0
		for failed[i] {
			i++
		}
		return i, "another broker"
	}
	for len(failed) < brokers {
		i, role := next()
		failed[i] = true
		d.fail(i, role, how)
	}
}

// fail lets a broker fail, waits until the log grows without it, and brings it back.
func (d *drill) fail(i int, role string, how failure) {
	d.t.Helper()
	d.grows()
	broker, began := d.cluster.Brokers[i], time.Now()
	must(d.t, how.begin(d.t.Context(), broker))
	d.failures++
	d.grows()
	without := time.Since(began)
	began = time.Now()
	must(d.t, how.end(d.t.Context(), broker))
	d.recovered()
	d.t.Logf("broker %d %s, %s: log and read model have %d more blocks after %.1f s; back and in sync after %.1f s", i+1,
		how.name, role, growth, without.Seconds(), time.Since(began).Seconds())
}

// twoAtOnce kills two brokers, checks that nothing is acknowledged and that ingest reports it, and restarts them.
func (d *drill) twoAtOnce() {
	t := d.t
	t.Helper()
	d.grows()
	for i := range brokers - 1 {
		d.cluster.Brokers[i].Kill()
		d.failures++
	}
	d.refused()
	began := time.Now()
	var reason error
	d.Until(func() error {
		if reason = d.ingest.Ready(); reason == nil {
			return errors.New("ingest is ready although the log cannot be written")
		}
		return nil
	})
	before, err := d.ingest.Metric("navlog_ingest_seq")
	must(t, err)
	d.refused()
	after, err := d.ingest.Metric("navlog_ingest_seq")
	must(t, err)
	if reason = d.ingest.Ready(); reason == nil {
		t.Fatal("ingest is ready again although the log cannot be written")
	}
	if before != after {
		t.Fatalf("ingest went from seq %.0f to %.0f while only one of three brokers was up", before, after)
	}
	t.Logf("two brokers killed: no write is acknowledged; after %.1f s: %v", time.Since(began).Seconds(), reason)
	began = time.Now()
	var group errgroup.Group
	for i := range brokers - 1 {
		group.Go(func() error { return d.cluster.Brokers[i].Restart(t.Context()) })
	}
	must(t, group.Wait())
	d.recovered()
	t.Logf("two brokers restarted: all programs ready, all replicas in sync after %.1f s", time.Since(began).Seconds())
	d.grows()
}

// refused checks that the cluster acknowledges no write of a record to the scratch topic.
func (d *drill) refused() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), refusal)
	defer cancel()
	// Without idempotence a write whose outcome is unknown can be given a time limit, and needs no coordinator.
	client, err := kgo.NewClient(kgo.SeedBrokers(d.Brokers()...),
		kgo.DisableIdempotentWrite(), kgo.RecordDeliveryTimeout(refusal))
	must(d.t, err)
	defer client.Close()
	if client.ProduceSync(ctx, &kgo.Record{Topic: scratch, Value: []byte("x")}).FirstErr() == nil {
		d.t.Fatal("a write was acknowledged while only one of three brokers was up")
	}
}
