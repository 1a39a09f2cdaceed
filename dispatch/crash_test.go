package dispatch

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// A dispatcher that hangs between a POST and the writing of its result, for so
// long that it has lost its lease: another sends the same event again, with the
// same id and body, and the first one's late result is refused by the fence.
func TestLostLease(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(ok)
	f.partner(7, r.url)
	hanging := make(chan struct{})
	first := f.dispatcher(nil)
	first.afterPost = sync.OnceFunc(func() {
		close(hanging)
		<-f.released
	})
	f.run(first)
	f.deposits(7, 1, 2)
	<-hanging
	f.exec("UPDATE lease SET owner = gen_random_uuid(), fence = fence + 1, until = now()")

	f.start(nil)
	f.eventually("delivered by the other", f.in(registry.Delivered, 1))
	calls := r.got()
	if len(calls) != 2 {
		t.Fatalf("%d requests, want the one whose result is late and its repetition", len(calls))
	}
	for _, c := range calls {
		f.verify(c, testSecret)
		if c.id() != depositID || string(c.body) != depositBody {
			t.Errorf("id %s, body %s", c.id(), c.body)
		}
	}
	f.exec("UPDATE delivery SET attempts = 77") // which only the fence's holder may change
	f.release()
	f.eventually("the late attempt is in the log", func() bool { return f.number("SELECT count(*) FROM attempt") == 2 })
	if n := f.number("SELECT attempts FROM delivery"); n != 77 {
		t.Error("the result of the dispatcher without lease was written")
	}
}

// child is what a dispatcher in a process of its own needs.
type child struct {
	Config Config
	Kafka  chainlog.Config
	URL    string
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
	g, err := guard.New(guard.Config{AllowNetworks: []string{"127.0.0.0/8"}})
	fail(err)
	sealer, err := registry.NewSealer(sealKey)
	fail(err)
	d := New(c.Config, c.Kafka, pool, sealer, g, prometheus.NewRegistry(), slog.Default())
	d.timing = quick()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // the parent is gone when standard input ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fail(d.Run(ctx))
	os.Exit(0)
}

// A dispatcher is killed with SIGKILL by its own receiver, before and after the
// answer, again and again: every event arrives, what arrives twice is the same,
// and there are no more doubles than POSTs under way at each kill.
func TestKillBetweenPostAndRecord(t *testing.T) {
	f := newFixture(t)
	const events, kills = 60, 4
	var mu sync.Mutex
	var process *exec.Cmd
	start := func() {
		mu.Lock()
		defer mu.Unlock()
		process = f.child()
	}
	r := f.receiver(func(w http.ResponseWriter, n, _ int) {
		if n%12 != 0 || n > 12*kills {
			return
		}
		if n%24 == 0 { // the answer is on the wire first
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
		}
		mu.Lock()
		defer mu.Unlock()
		_ = process.Process.Kill()
	})
	f.partner(7, r.url)
	f.deposits(7, 0, events)
	for range kills {
		start()
		_ = process.Wait()
	}
	start()
	f.eventually("all delivered", f.in(registry.Delivered, events))

	bodies := map[string]string{}
	calls := r.got()
	for _, c := range calls {
		f.verify(c, testSecret)
		if before, ok := bodies[c.id()]; ok && before != string(c.body) {
			t.Errorf("event %s came with two bodies", c.id())
		}
		bodies[c.id()] = string(c.body)
	}
	if len(bodies) != events {
		t.Errorf("%d of %d events arrived", len(bodies), events)
	}
	if extra, bound := len(calls)-events, kills*DefaultConfig().PerPartnerConcurrency; extra > bound {
		t.Errorf("%d events came twice, more than the %d that were under way", extra, bound)
	}
	f.contiguous(7, events)
}

// child starts a dispatcher in a process of its own.
func (f *fixture) child() *exec.Cmd {
	f.Helper()
	c := child{Config: DefaultConfig(), Kafka: f.kafka, URL: f.url}
	c.Config.ChainID, c.Config.LeaseSeconds = testChain, 1
	c.Config.CAFile = filepath.Join(f.TempDir(), "ca.pem")
	f.check(os.WriteFile(c.Config.CAFile, f.caFiles, 0o600))
	text, err := json.Marshal(c)
	f.check(err)
	exe, err := os.Executable()
	f.check(err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
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

// Stopping in the middle of a POST waits for it, writes its result and gives the
// lease back.
func TestStopFinishesWhatIsUnderWay(t *testing.T) {
	f := newFixture(t)
	arrived, answer := make(chan struct{}), make(chan struct{})
	r := f.receiver(func(http.ResponseWriter, int, int) {
		close(arrived)
		<-answer
	})
	f.partner(7, r.url)
	stop := f.run(f.dispatcher(nil))
	f.deposits(7, 1, 2)
	<-arrived
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	f.eventually("its readers have stopped", func() bool { return strings.Contains(f.logged.String(), "stopping") })
	close(answer)
	<-stopped
	if f.states()[registry.Delivered] != 1 || f.number("SELECT count(*) FROM lease WHERE until > now()") != 0 {
		t.Errorf("%v, and the lease may still be held", f.states())
	}
}
