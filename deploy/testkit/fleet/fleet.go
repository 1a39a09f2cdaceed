// Package fleet runs the programs of navlog as processes, on engines that a drill breaks, with a development chain and
// the partners' receiver, and compares what they did with the chain.
//
//	traffic ──▶ anvil ──▶ ingest ──▶ Kafka ──▶ project ──▶ ClickHouse
//	              │                    │
//	              │                    └─────▶ dispatch ──▶ receiver
//	              ▼
//	       Judge: the chain, compared with the committed records of the log and with the requests that arrived;
//	       `navlog verify` compares the read model with the log
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/ethclient"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	chainID = 31337
	// Patience is how long anything that must happen may take on a busy machine.
	Patience = 3 * time.Minute
	glance   = 50 * time.Millisecond
	// firstSteps contain every kind of event.
	firstSteps = 60
)

// Options configure a fleet.
type Options struct {
	Replicas     int // of the topics
	Partners     int
	SlotsInEpoch int           // of the chain: twice as many blocks are not final
	Settings     []string      // environment of every program, in addition
	Folders      stack.Folders // of engines whose data is not in the fleet's folder
}

// A Fleet is a development chain, engines, partners, their receiver, and the programs that were launched.
type Fleet struct {
	*stack.Stack        // Kafka is nil if the caller started the brokers
	Dir          string // of the engines and of the programs' output; it is removed with this process
	URL          string // of the chain
	Contracts    *devchain.Contracts
	Partners     []oracle.Partner
	Receiver     *Receiver

	options  Options
	brokers  []string // that the caller started
	navlog   string   // the binary
	chain    *ethclient.Client
	anvil    *engines.Anvil
	programs []*Program
	steps    int64 // scenarios that were created
}

// New builds navlog and starts ClickHouse, PostgreSQL and the chain, with contracts and some traffic; it creates the
// partners and starts their receiver. It starts no program. kafka starts the brokers in a folder at the same time, and
// returns their addresses; the caller stops them after Close. With nil the fleet has the embedded Kafka.
func New(
	ctx context.Context, o Options, kafka func(ctx context.Context, dir string) ([]string, error),
) (_ *Fleet, err error) {
	f := &Fleet{options: o}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if f.Dir, err = engines.TempDir("fleet"); err != nil {
		return nil, err
	}
	in := stack.In(f.Dir)
	in = stack.Folders{Kafka: cmp.Or(o.Folders.Kafka, in.Kafka), ClickHouse: cmp.Or(o.Folders.ClickHouse, in.ClickHouse),
		Postgres: cmp.Or(o.Folders.Postgres, in.Postgres)}
	var group errgroup.Group
	if kafka != nil {
		folder := in.Kafka
		in.Kafka = ""
		group.Go(func() (err error) {
			f.brokers, err = kafka(ctx, folder)
			return err
		})
	}
	group.Go(func() (err error) {
		if f.Stack, err = stack.Start(ctx, in); err == nil {
			err = f.Connect(ctx)
		}
		return err
	})
	group.Go(func() (err error) {
		f.navlog, err = stack.Build("navlog")
		return err
	})
	group.Go(func() (err error) {
		f.anvil, err = engines.StartAnvil(ctx, filepath.Join(f.Dir, "anvil"),
			engines.AnvilOptions{SlotsInEpoch: o.SlotsInEpoch, States: 100_000, Fleeting: true})
		return err
	})
	if err = group.Wait(); err != nil {
		return nil, err
	}
	f.URL = f.anvil.URL
	if f.chain, err = ethclient.DialContext(ctx, f.URL); err != nil {
		return nil, fmt.Errorf("connect to the chain: %w", err)
	}
	if f.Contracts, err = devchain.Deploy(ctx, f.URL); err != nil {
		return nil, err
	}
	if err = f.makePartners(ctx); err != nil {
		return nil, err
	}
	return f, f.Steps(ctx, firstSteps)
}

// Brokers returns the addresses of Kafka's brokers.
func (f *Fleet) Brokers() []string {
	if f.Kafka != nil {
		return []string{f.Kafka.Addr}
	}
	return f.brokers
}

// KillChain kills the chain's node.
func (f *Fleet) KillChain() { f.anvil.Kill() }

// makePartners starts the receiver and registers it for each partner.
func (f *Fleet) makePartners(ctx context.Context) (err error) {
	if f.Receiver, err = NewReceiver(f.Dir); err != nil {
		return err
	}
	for id := int64(1); id <= int64(f.options.Partners); id++ {
		p := oracle.Partner{ID: uint32(id)}
		made, err := partners.Make(ctx, f.Pool, id, fmt.Sprintf("partner %d", id), f.Receiver.URL(p))
		if err != nil {
			return err
		}
		p.Name, p.APIKey, p.SigningSecret = made.Name, made.APIKey, made.SigningSecret
		f.Partners = append(f.Partners, p)
		f.Receiver.Expect(p)
	}
	return nil
}

// Close kills the programs and the engines that New has started.
func (f *Fleet) Close() {
	for _, p := range f.programs {
		p.Kill()
	}
	if f.Receiver != nil {
		f.Receiver.Close()
	}
	if f.chain != nil {
		f.chain.Close()
	}
	if f.anvil != nil {
		f.anvil.Kill()
	}
	if f.Stack != nil {
		f.Kill()
	}
}

// Scenario returns traffic that continues the chain as it is now.
func (f *Fleet) Scenario() *devchain.Scenario {
	var ids []uint32
	for _, p := range f.Partners {
		ids = append(ids, p.ID)
	}
	f.steps++
	return devchain.New(f.URL, f.Contracts, f.steps, ids, slog.New(slog.DiscardHandler))
}

// Steps adds n steps of traffic to the chain, which are about as many blocks.
func (f *Fleet) Steps(ctx context.Context, n int) error { return f.Scenario().Steps(ctx, n) }

// Traffic adds one step in each interval until the returned function is called, which returns the first error.
func (f *Fleet) Traffic(ctx context.Context, interval time.Duration) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	scenario := f.Scenario()
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
			// A step that has begun is completed: one that is cut off may still be mined later.
			if err := scenario.Steps(context.WithoutCancel(ctx), 1); err != nil {
				done <- fmt.Errorf("a step of the traffic: %w", err)
				return
			}
		}
	}()
	return func() error {
		cancel()
		return <-done
	}
}

// Head returns the number of the chain's newest block.
func (f *Fleet) Head(ctx context.Context) (uint64, error) {
	head, err := f.chain.BlockNumber(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the newest block: %w", err)
	}
	return head, nil
}

// Environment returns the environment of a program.
func (f *Fleet) Environment(settings ...string) []string {
	own := []string{
		fmt.Sprint("NAVLOG_CHAIN_ID=", chainID), "NAVLOG_CHAIN_RPC=" + f.URL, "NAVLOG_CHAIN_POLL_INTERVAL=50ms",
		"NAVLOG_KAFKA_BROKERS=" + strings.Join(f.Brokers(), ","),
		fmt.Sprint("NAVLOG_KAFKA_REPLICATION_FACTOR=", max(1, f.options.Replicas)),
		"NAVLOG_HTTP_ROUTER=" + f.Contracts.Router.Hex(), "NAVLOG_SECRET_KEY=" + partners.SealKey,
		"NAVLOG_WEBHOOKS_CA_FILE=" + f.Receiver.CAFile, "NAVLOG_GUARD_ALLOW_NETWORKS=" + partners.Network,
	}
	for i, v := range f.Contracts.Vaults {
		own = append(own, fmt.Sprintf("NAVLOG_CHAIN_VAULTS_%d_ADDRESS=%s", i, v.Address.Hex()),
			fmt.Sprintf("NAVLOG_CHAIN_VAULTS_%d_START_BLOCK=%d", i, v.StartBlock))
	}
	return f.Stack.Environment(slices.Concat(own, f.options.Settings, settings)...)
}

// Run runs a command of navlog to its end, and returns what it printed, which an error contains too.
func (f *Fleet) Run(ctx context.Context, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, f.navlog, arguments...)
	cmd.Dir, cmd.Env = f.Dir, f.Environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("navlog %s: %w\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out), err
}

// Ready returns nil if every program that was launched, and was not forgotten, is ready.
func (f *Fleet) Ready(ctx context.Context) error {
	for _, p := range f.programs {
		if err := p.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Until waits until a condition holds. It fails with the condition's last error if it takes longer than Patience, and
// if a program exits.
func (f *Fleet) Until(ctx context.Context, holds func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var last error
	err := wait.Poll(ctx, glance, func() (bool, error) {
		for _, p := range f.programs {
			if err := p.exited(); err != nil {
				return false, err
			}
		}
		last = holds()
		return last == nil, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("still not after %s: %w", Patience, last)
	}
	return err
}
