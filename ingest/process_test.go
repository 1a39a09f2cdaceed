package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// child is the configuration of an ingest in a separate process. When it reaches StopAt for the StopNth time, it stops
// itself with SIGSTOP.
type child struct {
	Config  Config
	RPC     []string
	Kafka   chainlog.Config
	StopAt  writer.Step
	StopNth int
}

const childVariable = "NAVLOG_TEST_INGEST"

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, "navlog:", err) // as its main does
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runChild(text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	c.Config.RPC = rpc.Endpoints(c.RPC...)
	i := New(c.Config, c.Kafka, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	i.hook = func(at writer.Step) error {
		if at == c.StopAt {
			if c.StopNth--; c.StopNth == 0 {
				return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			}
		}
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // standard input ends when the parent is gone
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	return i.Run(ctx)
}

// running is an ingest in a separate process.
type running struct {
	*exec.Cmd
	rig    *rig
	stderr bytes.Buffer
	ended  chan struct{}
	gone   atomic.Bool
}

func (r *rig) process(stopAt writer.Step, stopNth int) *running {
	r.t.Helper()
	c := child{Config: r.config, Kafka: r.kafka, StopAt: stopAt, StopNth: stopNth}
	for _, e := range r.config.RPC {
		c.RPC = append(c.RPC, e.URL)
	}
	c.Config.RPC = nil
	text, err := json.Marshal(c)
	r.must(err)
	exe, err := os.Executable()
	r.must(err)
	p := &running{Cmd: exec.Command(exe), rig: r, ended: make(chan struct{})}
	p.Env = append(os.Environ(), childVariable+"="+string(text))
	p.Stderr = &p.stderr
	stdin, err := p.StdinPipe()
	r.must(err)
	r.must(p.Start())
	go func() {
		defer close(p.ended)
		_ = p.Wait()
		p.gone.Store(true)
	}()
	r.t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGCONT)
		_ = stdin.Close()
		<-p.ended
	})
	return p
}

// stopped reports whether the process has stopped itself.
func (p *running) stopped() bool {
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(p.Process.Pid)).Output()
	return err == nil && strings.HasPrefix(strings.TrimSpace(string(state)), "T")
}

// fenced waits until the process ends because another ingest has taken over.
func (p *running) fenced() {
	p.rig.t.Helper()
	p.rig.eventually("end of the fenced process", p.gone.Load)
	if code, text := p.ProcessState.ExitCode(), p.stderr.String(); code != 1 ||
		!strings.Contains(text, "): set chain.standby above 0s in both") {
		p.rig.t.Errorf("the fenced process ends with code %d and prints %q", code, text)
	}
}

// A process that is stopped in the middle of a transaction until another one has taken over can no longer write when it
// continues: it ends as fenced, and its uncommitted records have no effect.
func TestStoppedProcessIsFenced(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		for _, at := range few([]writer.Step{writer.BeforeProduce, writer.AfterFlush, writer.AfterCursor, writer.AfterEnd}) {
			t.Run(string(at), func(t *testing.T) {
				r := newRig(t, brokers)
				r.steps(15)
				old := r.process(at, 2)
				r.eventually("stop of the first process", old.stopped)
				p := r.follow()
				r.steps(2)
				p.caughtUp()
				r.verify()
				r.must(old.Process.Signal(syscall.SIGCONT))
				r.steps(1) // so that it has something to write if it stopped between two transactions
				old.fenced()
				p.caughtUp()
				r.steps(2)
				p.caughtUp()
				r.verify()
			})
		}
	})
}

// Of two processes that start together exactly one remains, and the writer of the log changes at most twice: to one of
// them, and once to the other.
func TestTwoProcessesStartTogether(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		r.steps(10)
		r.index()
		for round := range 3 {
			before := len(r.writers())
			a, b := r.process("", 0), r.process("", 0)
			r.eventually("end of one of two", func() bool {
				r.feed()
				return a.gone.Load() || b.gone.Load()
			})
			winner, loser := a, b
			if a.gone.Load() {
				winner, loser = b, a
			}
			loser.fenced()
			r.steps(1)
			height := r.height()
			r.eventually("head by the winner", func() bool { return r.cursor().GetHead().GetNumber() >= height })
			if winner.gone.Load() {
				t.Fatalf("round %d: the winner ended too: %s", round, winner.stderr.String())
			}
			if hands := len(r.writers()) - before; hands < 1 || hands > 2 {
				t.Errorf("round %d: the log changed hands %d times, want 1 or 2; output of the winner:\n%s\nof the loser:\n%s",
					round, hands, winner.stderr.String(), loser.stderr.String())
			}
			r.must(winner.Process.Signal(syscall.SIGKILL))
			<-winner.ended
		}
		r.follow()
		r.verify()
	})
}

// writers returns the instances that committed cursors, one for each change of the writer.
func (r *rig) writers() (hands [][]byte) {
	r.t.Helper()
	for _, k := range r.topic(chainlog.CursorTopic(r.config.ID)) {
		cursor := new(event.Cursor)
		r.must(proto.Unmarshal(k.Value, cursor))
		if by := cursor.GetInstanceId(); len(hands) == 0 || !bytes.Equal(hands[len(hands)-1], by) {
			hands = append(hands, by)
		}
	}
	return hands
}
