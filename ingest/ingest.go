package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
)

// startTimeout bounds the first contact with Kafka.
const startTimeout = 30 * time.Second

// errFenced says that another ingest has taken over the chain.
var errFenced = errors.New("another ingest writes this chain's log now")

// RefusedError says that the configuration, the chain and the log do not belong
// together. Trying again does not help.
type RefusedError = rpc.RefusedError

func refuse(format string, a ...any) error { return &RefusedError{Reason: fmt.Sprintf(format, a...)} }

// Ingest writes one chain into its log.
type Ingest struct {
	config   Config
	kafka    chainlog.Config
	pool     *pgxpool.Pool
	log      *slog.Logger
	metrics  *metrics
	vaults   []vault
	instance []byte // 16 random bytes: this writer, in every cursor that it commits
	nodes    *rpc.Pool

	// hook, where set, is called at every step of a transaction, for tests that
	// let it fail there.
	hook func(step) error
	// takeBack is how many records a resumption takes back in one transaction and
	// in one unit, about.
	takeBack struct{ atOnce, asUnit int }
	// partsAtOnce is how many parts without a block a commit waits for.
	partsAtOnce int

	mu     sync.Mutex
	status Status
}

// New makes an ingest of a valid configuration. It does nothing before Run.
// pool may be nil; with it, Run writes the status to the registry.
func New(config Config, kafka chainlog.Config, pool *pgxpool.Pool, reg prometheus.Registerer, log *slog.Logger) *Ingest {
	config = config.Complete()
	instance := make([]byte, 16)
	rand.Read(instance)
	i := &Ingest{
		config: config, kafka: kafka, pool: pool, log: log, metrics: newMetrics(reg), vaults: config.vaults(), instance: instance,
		status: Status{State: Starting, ChainID: config.ID, Instance: fmt.Sprintf("%x", instance)},
	}
	i.partsAtOnce = rpc.PartsAtOnce
	i.takeBack.atOnce, i.takeBack.asUnit = takenBackAtOnce, takenBackAsUnit
	i.nodes = rpc.NewPool(config.ID, config.RPC, config.Prices, reg, log)
	return i
}

// Run follows the chain until ctx ends, and returns nil then, with no
// transaction in flight. While another ingest writes it waits, and takes over when that
// one ends or is silent for chain.takeOver. It returns a *RefusedError when configuration, chain and log contradict each other, and an
// error when Kafka or every node cannot be reached at the start; later it waits
// for them to come back.
func (i *Ingest) Run(ctx context.Context) error {
	defer i.nodes.Close()
	tending, stop := context.WithCancel(ctx)
	var tended sync.WaitGroup
	tended.Go(func() { i.nodes.Tend(tending) })
	defer func() { stop(); tended.Wait() }()
	err := i.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (i *Ingest) run(ctx context.Context) error {
	if err := i.prepare(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		switch err := i.inTurn(ctx); {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errFenced), errors.Is(err, errTurnLost):
			i.log.Warn("ingest waits for its turn again", "error", err)
			i.note(func(s *Status) { s.Reason = err.Error() })
		default:
			i.note(func(s *Status) { s.Reason = err.Error() })
			return err
		}
	}
	return nil
}

// inTurn waits for the turn to write, and writes until it ends or something is wrong
// that trying again does not mend. Who was fenced goes to the end of the line: another
// one writes, whatever the group says.
func (i *Ingest) inTurn(ctx context.Context) error {
	t, err := i.line(ctx)
	if err != nil {
		return err
	}
	defer t.leave()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	i.note(func(s *Status) {
		s.State, s.Reason = Standby, "another ingest has the turn to write, or nobody knows yet; this one takes over when that one ends"
	})
	go t.watch(watching, i.outOfLine)
	lasts, done, err := t.wait(ctx)
	if err != nil {
		return err
	}
	defer done()
	i.note(func(s *Status) { s.State, s.Reason = Starting, "" })
	defer i.reporting(lasts)()
	if err := i.write(lasts); err != nil {
		return err
	}
	return errTurnLost
}

// outOfLine tells what keeps this ingest from its place among the others.
func (i *Ingest) outOfLine(err error) {
	i.log.Warn("no place in the group of ingests", "error", err)
	i.note(func(s *Status) {
		if s.State == Standby {
			s.Reason = fmt.Sprintf("no place in the group of ingests, which needs the right to read group navlog-ingest-%d: %v", i.config.ID, err)
		}
	})
}

// reporting writes the status to the registry, of the one who writes alone, until what
// it gives is called.
func (i *Ingest) reporting(ctx context.Context) (stop func()) {
	if i.pool == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var reported sync.WaitGroup
	reported.Go(func() { _ = registry.Report(ctx, i.pool, registry.Ingest, func() any { return i.Status() }) })
	return func() { cancel(); reported.Wait() }
}

// write makes sessions until ctx ends, and returns nil then.
func (i *Ingest) write(ctx context.Context) error {
	var last []byte // instance of the newest cursor that we know to be rightful
	for wait := rpc.NewBackoff(); ; {
		err := i.session(ctx, &last, wait)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errFenced), hopeless(err):
			return err
		}
		i.log.Warn("ingest starts its session again", "error", err)
		i.note(func(s *Status) { s.State, s.Reason = Starting, err.Error() })
		if wait.Sleep(ctx) != nil {
			return nil
		}
	}
}

// hopeless says that trying again cannot help.
func hopeless(err error) bool {
	var refused *RefusedError
	var corrupt *chainlog.CorruptError
	var hole *chainlog.HoleError
	return errors.As(err, &refused) || errors.As(err, &corrupt) || errors.As(err, &hole)
}

// prepare checks the engines once: topics, chain and vaults.
func (i *Ingest) prepare(ctx context.Context) error {
	if err := i.ensureTopics(ctx); err != nil {
		return err
	}
	n, err := i.nodes.First(ctx)
	if err != nil {
		return err
	}
	if err := i.checkVaults(ctx, n); err != nil {
		return err
	}
	if n := i.config.Confirmations; n > 0 {
		i.log.Warn("referrals are told before their block is final: a webhook cannot be taken back when a reorganisation removes its cause", "confirmations", n)
	}
	return nil
}

func (i *Ingest) ensureTopics(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := kgo.NewClient(i.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("make a Kafka client: %w", err)
	}
	defer client.Close()
	if err := client.Ping(bounded); err != nil {
		return fmt.Errorf("reach Kafka at %v: %w; is kafka.brokers right and the broker up?", i.kafka.Brokers, err)
	}
	if err := chainlog.EnsureTopics(bounded, kadm.NewClient(client), i.config.ID, i.kafka.Topology()); err != nil {
		return err
	}
	return i.warnOfSingleReplicas(bounded, kadm.NewClient(client))
}

// developmentChain is the chain id of anvil and its like.
const developmentChain = 31337

func (i *Ingest) warnOfSingleReplicas(ctx context.Context, adm *kadm.Client) error {
	if i.config.ID == developmentChain {
		return nil
	}
	single, err := chainlog.SingleReplicas(ctx, adm, i.config.ID)
	if len(single) > 0 {
		i.log.Warn("these topics have one replica: when its disk is lost, so is the log, and webhooks that were not sent; use three brokers and kafka.replicationFactor 3, and kafka-reassign-partitions for topics that exist", "topics", single)
	}
	return err
}

// reached lets a test fail at a step of a transaction.
func (i *Ingest) reached(at step) error {
	if i.hook == nil {
		return nil
	}
	return i.hook(at)
}
