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
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Ingest writes one chain into its log.
type Ingest struct {
	config   Config
	kafka    chainlog.Config
	pool     *pgxpool.Pool
	log      *slog.Logger
	status   *status.Tracker
	vaults   vaults.Set      // those of chain.vaults
	fault    error           // why they cannot be read: a file may have changed since the configuration was checked
	commands vaults.Commands // nil without a registry
	instance []byte          // id of this writer in every cursor that it commits: 16 random bytes
	nodes    *rpc.Pool

	// hook, if set, is called at every step of a transaction.
	hook func(writer.Step) error
	// retract is roughly how many records a resumption retracts in one transaction and in one unit; 0 for the default.
	retract struct{ atOnce, asUnit int }
	// earlierAtOnce is the number of records that a command about referrals reads between two steps of the vaults.
	earlierAtOnce int
}

// New makes an ingest of a valid configuration. pool may be nil; with it, Run writes the status to the registry, and
// carries out the operators' commands there.
func New(config Config, kafka chainlog.Config, pool *pgxpool.Pool, reg prometheus.Registerer,
	log *slog.Logger) *Ingest {
	config = config.Complete()
	instance := make([]byte, 16)
	rand.Read(instance)
	i := &Ingest{
		config: config, kafka: kafka.Tracked(), pool: pool, log: log, instance: instance,
		status: status.New(reg, config.ID, fmt.Sprintf("%x", instance)),
	}
	if pool != nil {
		i.commands = db.New(pool)
	}
	i.vaults, i.fault = vaults.Read(config.Vaults)
	i.nodes = rpc.NewPool(config.ID, config.RPC, config.Agreement, config.Prices, reg, log)
	for _, e := range i.nodes.Status() {
		i.status.Disagreements.WithLabelValues(e.Name) // create the series at 0
	}
	return i
}

// Run follows the chain until ctx ends, and then returns nil, with no transaction in flight. With config.Standby it
// waits while another ingest writes, also after another one has taken over. Without it, Run takes over, and returns
// ErrFenced when another ingest does. It returns a *RefusedError if configuration, chain and log contradict each other,
// and an error if Kafka or every node cannot be reached at the start.
func (i *Ingest) Run(ctx context.Context) error {
	defer i.nodes.Close()
	defer inBackground(ctx, i.nodes.Monitor)()
	if i.pool != nil {
		defer inBackground(ctx, func(ctx context.Context) {
			_ = registry.Report(ctx, i.pool, registry.Ingest, func() any { return i.Status() })
		})()
	}
	err := i.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// inBackground runs f in a goroutine until ctx ends or stop is called, which returns when f has returned.
func inBackground(ctx context.Context, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { f(ctx) })
	return func() { cancel(); ended.Wait() }
}

// A claim is what the sessions of a Run know about the right to write.
type claim struct {
	// last is the instance of the newest cursor that is known to be of the right writer, as a session has seen or written
	// it.
	last []byte
	// fenced reports whether this ingest has fenced other writers and sent heartbeats since, and has not stood by again.
	fenced bool
}

func (i *Ingest) run(ctx context.Context) error {
	if i.fault != nil {
		return rpc.Refuse("%v", i.fault)
	}
	if err := i.prepare(ctx); err != nil {
		return err
	}
	var c claim
	for wait := new(rpc.Backoff); ; {
		_, _, _ = i.kafka.Reach(ctx, reachTimeout) // the session has the error
		err := i.session(ctx, &c, wait)
		fenced := errors.Is(err, writer.ErrFenced)
		if fenced {
			c = claim{}
		}
		if permanent := writer.IsPermanent(err); permanent || ctx.Err() != nil {
			if permanent {
				i.status.Note(func(s *status.Status) { s.Reason = err.Error() })
			}
			if c.fenced { // otherwise it may read its own heartbeat although another ingest writes
				i.clearHeartbeat(ctx)
			}
			return err
		}
		if !fenced {
			i.log.Warn("session failed, starting another", "error", err)
			i.status.Note(func(s *status.Status) { s.State, s.Reason = status.Starting, err.Error() })
			_ = wait.Sleep(ctx) // if it ends with ctx, so does the next session
			continue
		}
		i.status.Note(func(s *status.Status) { s.State, s.Reason = status.Fenced, err.Error() })
		if i.config.Standby == 0 {
			return fmt.Errorf("%w: set chain.standby above 0s in both for one to stand by, or run only one", err)
		}
		i.status.Reset() // the new writer reports on the log
		i.log.Warn("another ingest took over", "error", err)
	}
}

// prepare checks chain, topics and vaults once. The chain comes first, so that no topics of a wrong one are created.
func (i *Ingest) prepare(ctx context.Context) error {
	n, err := i.nodes.First(ctx)
	if err != nil {
		return err
	}
	if err := i.ensureTopics(ctx); err != nil {
		return err
	}
	for asked := 1; ; asked++ {
		err := i.vaults.Check(ctx, n, i.config.ID)
		if err == nil {
			break
		}
		if ctx.Err() != nil || writer.IsPermanent(err) || asked == i.nodes.Size() {
			return err
		}
		i.log.Warn("cannot check the vaults at this endpoint, trying another", "endpoint", n.Name, "error", err)
		i.nodes.Next()
		if n, err = i.nodes.First(ctx); err != nil {
			return err
		}
	}
	if n := i.config.Confirmations; n > 0 {
		i.log.Warn("referrals are sent before their block is final: a webhook cannot be retracted if a reorganisation "+
			"removes its cause", "confirmations", n)
	}
	return nil
}

func (i *Ingest) topics() writer.Log { return writer.Log{ChainID: i.config.ID, Kafka: i.kafka} }

// reachTimeout is the time limit for the first response of Kafka before a session, and to a standby.
const reachTimeout = 5 * time.Second

func (i *Ingest) ensureTopics(ctx context.Context) error {
	if _, _, err := i.kafka.Reach(ctx, writer.StartTimeout); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, writer.StartTimeout)
	defer cancel()
	client, err := kgo.NewClient(i.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	if err := chainlog.EnsureTopics(bounded, kadm.NewClient(client), i.config.ID, i.kafka.Topology()); err != nil {
		return err
	}
	return i.warnOfSingleReplicas(bounded, kadm.NewClient(client))
}

// developmentChain is the chain id of anvil and similar nodes.
const developmentChain = 31337

func (i *Ingest) warnOfSingleReplicas(ctx context.Context, adm *kadm.Client) error {
	if i.config.ID == developmentChain {
		return nil
	}
	single, err := chainlog.SingleReplicas(ctx, adm, i.config.ID)
	if len(single) > 0 {
		i.log.Warn("these topics have one replica: when its disk is lost, so is the log, and webhooks that were not sent; "+
			"use three brokers and kafka.replicationFactor 3, and kafka-reassign-partitions for topics that exist", "topics",
			single)
	}
	return err
}
