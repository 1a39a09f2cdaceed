// Package fulldisk tests what failing engines do to the whole of navlog. If an engine's disk fills up and space is
// freed later, each program either recovers by itself or reports its state. If an engine loses its data, and is empty
// or restored from a backup, an operator follows docs/operations.md. In all cases no event is lost, and none is
// delivered as a new one.
package fulldisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/dispatch"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const chainID = 31337

var partnerIDs = []uint32{1, 2}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// disk is a separate file system that can be filled.
type disk struct {
	t   *testing.T
	dir string
}

// newDisk mounts a tmpfs of that many mebibytes, or skips the test if the user is not allowed to mount.
func newDisk(t *testing.T, mebibytes int) *disk {
	t.Helper()
	dir, err := engines.TempDir("full")
	must(t, err)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755", mebibytes)); err != nil {
		t.Skipf("a file system for the engine cannot be mounted, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return &disk{t, dir}
}

func (d *disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill leaves no free space.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(d.t, err)
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else {
			must(d.t, err)
		}
	}
}

// free frees the space again.
func (d *disk) free() { must(d.t, os.Remove(d.ballast())) }

// system is the four programs and their engines, one of which uses the disk.
type system struct {
	t        *testing.T
	kafka    chainlog.Config
	ch       readmodel.Config
	pg       registry.Config
	pool     *pgxpool.Pool
	node     string
	chain    *ethclient.Client
	deployed *devchain.Contracts
	scenario *devchain.Scenario
	ingest   *ingest.Ingest
	project  *projections.Projections
	serve    *query.Query
	dispatch *dispatch.Dispatch
	stops    []func()
	mayTear  atomic.Bool // the broker may end a transaction in one topic only
}

func newSystem(t *testing.T, brokers []string, clickhouse, postgres string) *system {
	t.Helper()
	s := &system{t: t, kafka: chainlog.DefaultConfig(), ch: readmodel.DefaultConfig(), pg: registry.DefaultConfig()}
	s.kafka.Brokers, s.ch.Addr, s.ch.Prefix, s.pg.URL = brokers, clickhouse, fmt.Sprintf("full%d_%s", os.Getpid(), strings.ToLower(t.Name()[4:8])), postgres
	var err error
	s.pool, err = registry.Open(t.Context(), s.pg)
	must(t, err)
	t.Cleanup(s.pool.Close)
	anvil := enginetest.Anvil(t, engines.AnvilOptions{SlotsInEpoch: 1, States: 100_000})
	s.node = anvil.URL
	s.chain, err = ethclient.DialContext(t.Context(), s.node)
	must(t, err)
	t.Cleanup(s.chain.Close)
	s.deployed, err = devchain.Deploy(t.Context(), s.node)
	must(t, err)
	s.scenario = devchain.New(s.node, s.deployed, 1, partnerIDs, slog.New(slog.DiscardHandler))
	s.steps(30)
	for _, id := range partnerIDs {
		_, err := partners.Make(t.Context(), s.pool, int64(id), fmt.Sprint("partner ", id), "")
		must(t, err)
	}
	s.programs()
	s.caughtUp()
	return s
}

func (s *system) steps(n int) {
	s.t.Helper()
	must(s.t, s.scenario.Steps(s.t.Context(), n))
}

func (s *system) programs() {
	s.t.Helper()
	s.startIngest()
	s.startProject()
	s.startServe()
	s.startDispatch()
}

func (s *system) startIngest() {
	s.t.Helper()
	chain := ingest.DefaultConfig()
	chain.ID, chain.PollInterval = chainID, 50*time.Millisecond
	chain.RPC = []rpc.Endpoint{{URL: s.node}}
	for _, v := range s.deployed.Vaults {
		chain.Vaults = append(chain.Vaults, vaults.Config{Address: v.Address.Hex(), StartBlock: v.StartBlock})
	}
	must(s.t, chain.Validate())
	s.ingest = ingest.New(chain, s.kafka, s.pool, prometheus.NewRegistry(), quiet)
	s.run(s.ingest.Run)
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func (s *system) startProject() {
	s.t.Helper()
	s.project = projections.New(projections.DefaultConfig(), chainID, s.kafka, s.ch, s.pool, prometheus.NewRegistry(), quiet)
	s.run(s.project.Run)
}

func (s *system) startServe() {
	s.t.Helper()
	http := query.DefaultConfig()
	http.Listen, http.Router, http.PublicRateLimit = "127.0.0.1:0", s.deployed.Router.Hex(), 0
	noURL := func(context.Context, string) (string, error) { return "", errors.New("no URL is in use") }
	s.serve = query.New(http, chainID, s.ch, s.pool, noURL, prometheus.NewRegistry(), quiet)
	s.run(s.serve.Run)
}

func (s *system) startDispatch() {
	s.t.Helper()
	g, err := guard.New(guard.DefaultConfig())
	must(s.t, err)
	webhooks := dispatch.DefaultConfig()
	webhooks.ChainID = chainID
	s.dispatch = dispatch.New(webhooks, s.kafka, s.pool, partners.Sealer(), g, prometheus.NewRegistry(), quiet)
	s.run(s.dispatch.Run)
}

// torn begins the advice of ingest when it finds a transaction that has ended in one topic only.
const torn = "restore both from the same backup"

// run runs a program until stop or the end of the test. It must not exit by itself, unless the embedded broker's disk
// was full.
func (s *system) run(program func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := program(ctx)
		switch {
		case s.mayTear.Load() && err != nil && strings.Contains(err.Error(), torn):
			err = nil
		case ctx.Err() == nil:
			s.t.Errorf("a program ended by itself: %v", err)
		}
		done <- err
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	s.stops = append(s.stops, stop)
}

// stop stops all programs.
func (s *system) stop() {
	for _, stop := range s.stops {
		stop()
	}
	s.stops = nil
}

// head returns the newest block of the chain.
func (s *system) head() uint64 {
	s.t.Helper()
	head, err := s.chain.BlockNumber(s.t.Context())
	must(s.t, err)
	return head
}

// caughtUp waits until the log, the read model and dispatch have everything of the chain.
func (s *system) caughtUp() {
	s.t.Helper()
	head := s.head()
	wait.Until(s.t, func() error {
		in, out := s.ingest.Status(), s.project.Status()
		if in.State != status.Following || in.IndexedBlock < head || out.State != projections.Following || out.Block < head || out.Seq != in.Seq {
			return fmt.Errorf("of block %d: ingest is %s at block %d, %q, project is %s at block %d, %q", head, in.State, in.IndexedBlock, in.Reason, out.State, out.Block, out.Reason)
		}
		for name, ready := range map[string]func() error{"ingest": s.ingest.Ready, "project": s.project.Ready, "serve": s.serve.Ready, "dispatch": s.dispatch.Ready} {
			if err := ready(); err != nil {
				return fmt.Errorf("%s is not ready: %w", name, err)
			}
		}
		return s.deliveredAll(in.ReferralBlock)
	})
}

// deliveredAll returns nil if dispatch has a delivery for each deposit and withdrawal request up to a block that names
// a partner.
func (s *system) deliveredAll(block uint64) error {
	conn, err := s.ch.Open("")
	if err != nil {
		return err
	}
	defer conn.Close()
	for view, kind := range map[string]string{"deposits": webhook.DepositReferral, "requests": webhook.WithdrawalReferral} {
		var want, got int64
		ask := fmt.Sprintf("SELECT toInt64(count()) FROM %s.%s WHERE partner IN (1, 2) AND block <= %d", s.ch.Database(max(1, s.project.Status().Generation)), view, block)
		if err := conn.QueryRow(s.t.Context(), ask).Scan(&want); err != nil {
			return err
		}
		if err := s.pool.QueryRow(s.t.Context(), "SELECT count(*) FROM delivery WHERE type = $1", kind).Scan(&got); err != nil {
			return err
		}
		if got != want || want == 0 {
			return fmt.Errorf("dispatch has %d deliveries of %d %s", got, want, view)
		}
	}
	return nil
}

// verify proves that the read model matches the log and the log matches the chain: no event is lost or duplicated.
func (s *system) verify() {
	s.t.Helper()
	r, err := verify.Verify(s.t.Context(), chainID, s.kafka, s.ch, s.pool, verify.Options{Node: s.node})
	must(s.t, err)
	if r.Err() != nil {
		s.t.Fatalf("not equal:\n%s", r)
	}
}

// The disk with ClickHouse's tables fills up. project reports it, and continues when there is space, whether or not
// parts are broken.
func TestClickHouseDiskFull(t *testing.T) {
	t.Parallel()
	d := newDisk(t, 512)
	ch, err := engines.StartClickHouse(t.Context(), filepath.Join(d.dir, "data"))
	must(t, err)
	t.Cleanup(func() { _ = ch.Close() })
	s := newSystem(t, enginetest.Kafka(t), ch.Addr, enginetest.Postgres(t))
	conn, err := s.ch.Open("")
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	var kept uint64
	var refusedBelow string
	must(t, conn.QueryRow(t.Context(), "SELECT any(keep_free_space), (SELECT value FROM system.merge_tree_settings WHERE name = 'min_free_disk_bytes_to_perform_insert') FROM system.disks").Scan(&kept, &refusedBelow))
	if kept == 0 || refusedBelow == "0" {
		t.Errorf("the engine keeps %d bytes free, and refuses inserts below %s", kept, refusedBelow)
	}
	for round := range 2 {
		d.fill()
		s.steps(10)
		wait.Until(t, func() error {
			if st := s.project.Status(); st.State != projections.Retrying || !strings.Contains(st.Reason, "the disk of ClickHouse is full") {
				return fmt.Errorf("round %d: with a full disk project is %s, %q", round, st.State, st.Reason)
			}
			return nil
		})
		d.free()
		s.steps(5)
		s.caughtUp()
	}
	s.verify()
}

// The disk of the embedded broker fills up. ingest reports why it is blocked. The broker may have ended a transaction
// in one topic only, and ingest exits when it finds that; the broker ends it in the other when it starts again, and
// nothing is lost.
func TestKafkaDiskFull(t *testing.T) {
	t.Parallel()
	d := newDisk(t, 64)
	k, err := engines.StartKafka(t.Context(), filepath.Join(d.dir, "log"))
	must(t, err)
	t.Cleanup(func() { _ = k.Close() })
	logDiskFull(t, d, k.Addr, true, func(s *system) {
		s.stop()
		must(t, k.Restart(t.Context()))
		s.programs()
	})
}

// The disk of Apache Kafka fills up. Kafka exits when its only log folder fails, and is restarted when there is space.
// No program exits with it, and none of its data is lost.
func TestApacheKafkaDiskFull(t *testing.T) {
	t.Parallel()
	if err := engines.ApacheKafkaAvailable(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	d := newDisk(t, 256)
	k, err := engines.StartApacheKafka(t.Context(), filepath.Join(d.dir, "log"))
	must(t, err)
	t.Cleanup(func() { k.Kill() })
	logDiskFull(t, d, k.Addr, false, func(*system) { must(t, k.Restart(t.Context())) })
}

// logDiskFull fills the disk of the log's broker; it calls revive when there is space again.
func logDiskFull(t *testing.T, d *disk, broker string, mayTear bool, revive func(*system)) {
	t.Helper()
	s := newSystem(t, []string{broker}, enginetest.ClickHouse(t), enginetest.Postgres(t))
	s.mayTear.Store(mayTear)
	d.fill()
	before := s.ingest.Status().IndexedBlock
	s.steps(10)
	wait.Until(t, func() error {
		if st := s.ingest.Status(); st.Reason == "" {
			return fmt.Errorf("with a full log ingest is %s at block %d (before %d) without a reason", st.State, st.IndexedBlock, before)
		}
		return nil
	})
	d.free()
	revive(s)
	s.steps(5)
	s.caughtUp()
	s.verify()
}

// The registry's disk fills up. PostgreSQL may exit, and is restarted when there is space; dispatch loses nothing.
func TestPostgresDiskFull(t *testing.T) {
	t.Parallel()
	d := newDisk(t, 256)
	p, err := engines.StartPostgres(t.Context(), filepath.Join(d.dir, "pg"))
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	s := newSystem(t, enginetest.Kafka(t), enginetest.ClickHouse(t), p.URL)
	d.fill()
	s.steps(20)
	wait.Until(t, func() error {
		if err := s.dispatch.Ready(); err == nil {
			return errors.New("with a full registry dispatch is ready")
		}
		return nil
	})
	d.free()
	if ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second); s.pool.Ping(ctx) != nil { // it has exited or is about to
		must(t, p.Restart(t.Context()))
		cancel()
	} else {
		cancel()
	}
	s.steps(5)
	s.caughtUp()
	s.verify()
}
