package dispatch

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// A dispatcher hangs between a POST and the writing of its result for so long that it loses
// its lease: another one sends the same event again, with the same id and body, and the
// fence rejects the first one's late result.
func TestLostLease(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	hanging := make(chan struct{})
	first := f.dispatcher(nil)
	hang := sync.OnceFunc(func() {
		close(hanging)
		<-f.released
	})
	first.shared.Record = func(ctx context.Context, a lane.Attempt) bool {
		hang()
		return first.ledger.record(ctx, a)
	}
	f.run(first)
	f.deposits(7, 1, 2)
	<-hanging
	f.exec("UPDATE job_lease SET owner = gen_random_uuid(), fence = fence + 1, until = now() WHERE kind = 'partner'")

	f.start(nil)
	f.eventually("delivered by the other dispatcher", f.in(registry.Delivered, 1))
	calls := r.got()
	if len(calls) != 2 {
		t.Fatalf("%d requests, want 2: the one with the late result, and its repetition", len(calls))
	}
	for _, c := range calls {
		f.verify(c, testSecret)
		if c.id() != depositID || string(c.body) != depositBody {
			t.Errorf("id %s, body %s", c.id(), c.body)
		}
	}
	f.exec("UPDATE delivery SET attempts = 77") // only the holder of the fence may change it
	f.release()
	f.eventually("the late attempt is in the log", func() bool { return f.number("SELECT count(*) FROM attempt") == 2 })
	if n := f.number("SELECT attempts FROM delivery"); n != 77 {
		t.Error("the result of a dispatcher without a lease was written")
	}
}

// child is the configuration of a dispatcher in its own process.
type child struct {
	Config Config
	Kafka  chainlog.Config
	URL    string
	Allow  []string // networks that the guard allows
	Once   bool     // no retries
}

const childVariable = "NAVLOG_TEST_DISPATCHER"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		runChild(text)
	}
	os.Exit(m.Run())
}

func runChild(text string) {
	var c child
	fail := func(err error) {
		if err != nil {
			slog.Error("child", "error", err)
			os.Exit(1)
		}
	}
	fail(json.Unmarshal([]byte(text), &c))
	rc := registry.DefaultConfig()
	rc.URL = c.URL
	pool, err := registry.Open(context.Background(), rc)
	fail(err)
	g, err := guard.New(guard.Config{AllowNetworks: c.Allow})
	fail(err)
	d := New(c.Config, c.Kafka, pool, partners.Sealer(), g, prometheus.NewRegistry(), slog.Default())
	d.timing, d.shared.Timing = quick(), quickLane()
	if c.Once {
		d.shared.Timing.Retries = nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // standard input ends with the parent
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fail(d.Run(ctx))
	os.Exit(0)
}

var (
	kills     = flag.Int("kills", 6, "kills of TestSIGKILLBetweenPostAndRecord")
	killsSeed = flag.Uint64("kills-seed", 1, "seed of these kills: at which POSTs they happen")
)

// A dispatcher is killed with SIGKILL by its own receiver, at random before or after the
// response: every event arrives, repeated events have the same body and a fresh signature,
// and there are no more repetitions than POSTs in flight at each kill.
func TestSIGKILLBetweenPostAndRecord(t *testing.T) {
	f := newFixture(t)
	events := 15 * *kills
	var mu sync.Mutex
	var process *exec.Cmd
	underWay, killed, left := 0, map[int]bool{}, *kills // underWay: summed over the kills
	t.Logf("-kills-seed %d", *killsSeed)
	random := rand.New(rand.NewPCG(*killsSeed, 1))
	for len(killed) < *kills {
		killed[1+random.IntN(events)] = true
	}
	start := func() {
		mu.Lock()
		defer mu.Unlock()
		process = f.child()
	}
	r := f.partner7(func(w http.ResponseWriter, n, _ int) {
		if !killed[n] {
			return
		}
		if n%2 == 0 { // the response is on the wire first
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
		}
		mu.Lock()
		defer mu.Unlock()
		left--
		underWay += DefaultConfig().PerPartnerConcurrency
		_ = process.Process.Kill()
	})
	f.deposits(7, 0, events)
	dead := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return left <= 0
	}
	for !dead() {
		start()
		_ = process.Wait()
	}
	start()
	f.eventually("all delivered", f.in(registry.Delivered, events))

	seen := map[string]call{}
	calls := r.got()
	for _, c := range calls {
		f.verify(c, testSecret)
		if before, ok := seen[c.id()]; ok {
			if string(before.body) != string(c.body) {
				t.Errorf("event %s came with two bodies", c.id())
			}
			if later := c.at.Sub(before.at); later >= 2*time.Second &&
				before.header.Get("X-Service-Timestamp") == c.header.Get("X-Service-Timestamp") {
				t.Errorf("event %s came again after %s with the old timestamp", c.id(), later)
			}
		}
		seen[c.id()] = c
	}
	if len(seen) != events {
		t.Errorf("%d of %d events arrived", len(seen), events)
	}
	if extra := len(calls) - events; extra > underWay {
		t.Errorf("%d events came twice, more than the %d in flight", extra, underWay)
	}
	f.contiguous(7, int64(events))
}

// A dispatcher is killed with SIGKILL while its inserting transaction is open, and another
// one during its commit: the first leaves nothing behind, the second everything, and each
// event is sent once.
func TestSIGKILLBetweenInsertAndCommit(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	const gate = 4711
	f.exec(fmt.Sprintf(`CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM pg_advisory_xact_lock_shared(%d); RETURN NULL; END $$`, gate))
	f.deposits(7, 0, 20)

	// killAtGate starts a dispatcher, kills it while it waits at the gate, and opens the gate: its PostgreSQL session
	// continues until it has to respond.
	killAtGate := func() {
		t.Helper()
		session, err := f.pool.Acquire(t.Context())
		f.check(err)
		defer session.Release()
		_, err = session.Exec(t.Context(), "SELECT pg_advisory_lock($1)", gate)
		f.check(err)
		const waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted"
		process := f.child()
		f.eventually("the dispatcher waits at the gate", func() bool { return f.number(waiting, gate) == 1 })
		f.check(process.Process.Kill())
		_ = process.Wait()
		_, err = session.Exec(t.Context(), "SELECT pg_advisory_unlock($1)", gate)
		f.check(err)
		const others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = " +
			"'client backend' AND state <> 'idle' AND pid <> pg_backend_pid()"
		f.eventually("its session has ended", func() bool { return f.number(others) == 0 })
	}

	// The counters are set after the deliveries are inserted, in the same transaction.
	f.exec("CREATE TRIGGER gate AFTER UPDATE ON stream FOR EACH ROW EXECUTE FUNCTION gate()")
	killAtGate()
	if n, moved := f.number("SELECT count(*) FROM delivery"), f.number("SELECT sum(next_offset) FROM position"); n != 0 ||
		moved != 0 {
		t.Fatalf("killed before the commit: %d deliveries, positions %d", n, moved)
	}
	f.exec("DROP TRIGGER gate ON stream")

	// A deferred trigger runs within COMMIT, whose response is lost.
	f.exec("CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON delivery DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE " +
		"FUNCTION gate()")
	killAtGate()
	if n, sent := f.number("SELECT count(*) FROM delivery"), len(r.got()); n == 0 || sent != 0 {
		t.Fatalf("killed during the commit: %d deliveries, %d requests", n, sent)
	}
	f.exec("DROP TRIGGER gate ON delivery")

	d := f.start(nil)
	f.eventually("all delivered", f.in(registry.Delivered, 20))
	f.eventually("all records are read", func() bool { return d.Ready() == nil && d.Status().LagRecords == 0 })
	if n := len(r.got()); n != 20 {
		t.Errorf("%d requests for 20 events", n)
	}
	f.contiguous(7, 20)
}

// child starts a dispatcher in its own process.
func (f *fixture) child() *exec.Cmd {
	f.Helper()
	return f.childWith(func(*child) {})
}

func (f *fixture) childWith(change func(*child), environment ...string) *exec.Cmd {
	f.Helper()
	c := child{Config: DefaultConfig(), Kafka: f.kafka, URL: f.url, Allow: []string{"127.0.0.0/8"}}
	c.Config.ChainID, c.Config.LeaseSeconds = testChain, 1
	c.Config.CAFile = filepath.Join(f.TempDir(), "ca.pem")
	f.check(os.WriteFile(c.Config.CAFile, f.caFiles, 0o600))
	change(&c)
	text, err := json.Marshal(c)
	f.check(err)
	exe, err := os.Executable()
	f.check(err)
	cmd := exec.Command(exe)
	cmd.Env = append(append(os.Environ(), childVariable+"="+string(text)), environment...)
	cmd.Stdout, cmd.Stderr = f.logged, f.logged
	cmd.WaitDelay = 10 * time.Second
	stdin, err := cmd.StdinPipe()
	f.check(err)
	f.check(cmd.Start())
	f.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	return cmd
}

// Stopping during a POST waits for it, writes its result and drops the lease.
func TestStopFinishesPostsInFlight(t *testing.T) {
	f := newFixture(t)
	arrived, answer := make(chan struct{}), make(chan struct{})
	f.partner7(func(http.ResponseWriter, int, int) {
		close(arrived)
		<-answer
	})
	stop := f.run(f.dispatcher(nil))
	f.deposits(7, 1, 2)
	<-arrived
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	f.eventually("the readers have stopped", func() bool { return strings.Contains(f.logged.String(), "stopping") })
	close(answer)
	<-stopped
	if f.states()[registry.Delivered] != 1 || f.number("SELECT count(*) FROM job_lease WHERE until > now()") != 0 {
		t.Errorf("%v, or the lease is still held", f.states())
	}
}
