// Package fleet runs the programs of navlog as processes, on engines that a drill breaks, with a development chain and
// the partners' receiver, and compares what they did with the chain. It is for tests: what fails ends the test.
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
	"sync"
	"testing"
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
	Patience     = 3 * time.Minute
	pollInterval = 50 * time.Millisecond
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
	// Kafka starts the brokers in a folder, and returns their addresses; the caller stops them. With nil the fleet has
	// the embedded Kafka.
	Kafka func(ctx context.Context, dir string) ([]string, error)
}

// A Fleet is a development chain, engines, partners, their receiver, and the programs that were launched. It ends with
// its test.
type Fleet struct {
	*stack.Stack        // Kafka is nil if Options.Kafka started the brokers
	Dir          string // of the engines and of the programs' output; it is removed with this process
	URL          string // of the chain
	Contracts    *devchain.Contracts
	Partners     []oracle.Partner
	Receiver     *Receiver
	Programs     map[string]*Program // the newest one of each name

	t       *testing.T
	options Options
	brokers []string // that Options.Kafka started
	navlog  string   // the binary
	chain   *ethclient.Client
	anvil   *engines.Anvil
	steps   int64 // scenarios that were created
}

// New builds navlog and starts ClickHouse, PostgreSQL, Kafka and the chain, with contracts and some traffic; it creates
// the partners and starts their receiver. It starts no program.
func New(t *testing.T, o Options) *Fleet {
	t.Helper()
	f := &Fleet{t: t, options: o, Programs: map[string]*Program{}}
	t.Cleanup(f.close)
	f.must(f.start(t.Context()))
	f.Receiver = NewReceiver(t)
	for id := int64(1); id <= int64(o.Partners); id++ {
		p := oracle.Partner{ID: uint32(id)}
		made, err := partners.Make(t.Context(), f.Pool, id, fmt.Sprintf("partner %d", id), f.Receiver.URL(p))
		f.must(err)
		p.Name, p.APIKey, p.SigningSecret = made.Name, made.APIKey, made.SigningSecret
		f.Partners = append(f.Partners, p)
		f.Receiver.Expect(p)
	}
	f.Steps(firstSteps)
	return f
}

func (f *Fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// start starts the engines and the chain, and builds navlog.
func (f *Fleet) start(ctx context.Context) (err error) {
	if f.Dir, err = engines.TempDir("fleet"); err != nil {
		return err
	}
	in, given := stack.In(f.Dir), f.options.Folders
	in = stack.Folders{Kafka: cmp.Or(given.Kafka, in.Kafka), ClickHouse: cmp.Or(given.ClickHouse, in.ClickHouse),
		Postgres: cmp.Or(given.Postgres, in.Postgres)}
	var group errgroup.Group
	if f.options.Kafka != nil {
		folder := in.Kafka
		in.Kafka = ""
		group.Go(func() (err error) {
			f.brokers, err = f.options.Kafka(ctx, folder)
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
			engines.AnvilOptions{SlotsInEpoch: f.options.SlotsInEpoch, States: 100_000, Fleeting: true})
		return err
	})
	if err = group.Wait(); err != nil {
		return err
	}
	f.URL = f.anvil.URL
	if f.chain, err = ethclient.DialContext(ctx, f.URL); err != nil {
		return fmt.Errorf("connect to the chain: %w", err)
	}
	f.Contracts, err = devchain.Deploy(ctx, f.URL)
	return err
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

// close kills the engines. The programs were killed before.
func (f *Fleet) close() {
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
func (f *Fleet) Steps(n int) {
	f.t.Helper()
	f.must(f.Scenario().Steps(f.t.Context(), n))
}

// Traffic adds one step in each interval until the returned function is called, or until the test ends.
func (f *Fleet) Traffic(interval time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
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
				done <- err
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("a step of the traffic: %v", err)
		}
	})
	f.t.Cleanup(stop)
	return stop
}

// Head returns the number of the chain's newest block.
func (f *Fleet) Head() uint64 {
	f.t.Helper()
	head, err := f.chain.BlockNumber(f.t.Context())
	f.must(err)
	return head
}

// environment returns the environment of a program.
func (f *Fleet) environment(settings ...string) []string {
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

// Run runs a command of navlog to its end.
func (f *Fleet) Run(arguments ...string) {
	f.t.Helper()
	_, err := f.Try(f.t.Context(), arguments...)
	f.must(err)
}

// Try is Run for a command that may fail. It returns what the command printed, which an error contains too.
func (f *Fleet) Try(ctx context.Context, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, f.navlog, arguments...)
	cmd.Dir, cmd.Env = f.Dir, f.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("navlog %s: %w\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out), err
}

// Ready returns nil if every program that may not exit is ready.
func (f *Fleet) Ready() error {
	for _, p := range f.Programs {
		if err := p.Ready(); !p.MayExit && err != nil {
			return err
		}
	}
	return nil
}

// Until waits until a condition holds. The test ends with the condition's last error if that takes longer than
// Patience, and if a program exits.
func (f *Fleet) Until(holds func() error) {
	f.t.Helper()
	f.must(f.Await(f.t.Context(), holds))
}

// Await is Until for another goroutine than that of the test.
func (f *Fleet) Await(ctx context.Context, holds func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var last error
	err := wait.Poll(ctx, pollInterval, func() (bool, error) {
		for _, p := range f.Programs {
			if err := p.Running(); err != nil && !p.MayExit {
				return false, fmt.Errorf("%s: %w", p.Name, err)
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
