package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
)

// childEnv turns the process into an ingest if it is set. Its value is a childSpec as JSON.
const childEnv = "NAVLOG_CHAOS_CHILD"

type childSpec struct {
	Config ingest.Config // except its endpoints, which JSON does not restore
	RPC    []string
	Kafka  chainlog.Config
	Death  Death
}

// The exit codes of ingest.
const (
	exitKilled  = -1
	exitDone    = 0
	exitFailed  = 1 // a supervisor would restart it
	exitFenced  = 3
	exitRefused = 4
)

// Child runs an ingest and never returns, if this process was started as one. It must be called first in main.
func Child() {
	text, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	var spec childSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		fmt.Fprintln(os.Stderr, "read the task:", err)
		os.Exit(exitRefused)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { // the parent closes stdin to stop this process; it is also closed when the parent dies
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	spec.Config.RPC = rpc.Endpoints(spec.RPC...)
	if spec.Death.Step != "" {
		spec.Kafka.Hooks = []kgo.Hook{&deathHook{death: spec.Death}}
	}
	i := ingest.New(spec.Config, spec.Kafka, nil, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(os.Stderr, nil)))
	err := i.Run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ingest ends:", err)
	}
	var refused *rpc.RefusedError
	if wrong := i.Status().Disproven; wrong != "" { // no fault of a plan may corrupt the log
		fmt.Fprintln(os.Stderr, "ingest has disproven its own log:", wrong)
		os.Exit(exitRefused)
	}
	switch {
	case err == nil:
		os.Exit(exitDone)
	case errors.Is(err, writer.ErrFenced):
		os.Exit(exitFenced)
	case errors.As(err, &refused):
		os.Exit(exitRefused)
	}
	os.Exit(exitFailed)
}

// deathHook ends the process at the n-th request to the broker, or response from it, of a kind that only a
// transactional client uses.
type deathHook struct {
	death Death
	count atomic.Int64
}

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (e *deathHook) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	switch {
	case err != nil:
	case key == int16(kmsg.Produce):
		e.atStep(stepProduce)
	case key == int16(kmsg.EndTxn):
		e.atStep(stepEnd)
	}
}

// OnBrokerRead implements kgo.HookBrokerRead.
func (e *deathHook) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	switch {
	case err != nil:
	case key == int16(kmsg.Produce):
		e.atStep(stepProduced)
	case key == int16(kmsg.EndTxn):
		e.atStep(stepEnded)
	}
}

func (e *deathHook) atStep(step string) {
	if step != e.death.Step || e.count.Add(1) != int64(e.death.Nth) {
		return
	}
	fmt.Printf("%s %+v\n", deathMessage, e.death)
	signal := syscall.SIGKILL
	if e.death.Stop {
		signal = syscall.SIGSTOP
	}
	_ = syscall.Kill(os.Getpid(), signal)
}

// deathMessage is what a process prints before its planned death, so that the parent knows that this was the cause.
const deathMessage = "the planned death:"

// A process is a running ingest.
type process struct {
	*stack.Process
	death  Death
	stdin  io.Closer
	killed atomic.Bool // at its planned time
}

func startProcess(spec childSpec, log string) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this executable: %w", err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	return launch(cmd, spec.Death, log)
}

// launch starts a program that prints deathMessage.
func launch(cmd *exec.Cmd, death Death, log string) (*process, error) {
	p := &process{death: death}
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.Process, err = stack.Launch(cmd, log)
	return p, err
}

// deathBegun reports whether the planned death has begun.
func (p *process) deathBegun() bool {
	return p.killed.Load() || strings.Contains(p.Output(), deathMessage)
}

// kill kills the process immediately, if it is not nil.
func (p *process) kill() {
	if p != nil {
		p.Kill()
	}
}

// killAndCheck kills the process immediately. If it had already exited by itself with a code that a supervisor cannot
// recover from, killAndCheck returns an error.
func (p *process) killAndCheck() error {
	p.kill()
	if code := p.code(); code != exitKilled && code != exitFailed && !p.deathBegun() {
		return fmt.Errorf("ingest exited by itself with %s; its output:\n%s", p.State(), p.Output())
	}
	return nil
}

// stopsItself waits for a while until the process has stopped itself, and reports whether it did. If not, the process
// is killed: no endpoint answered it, or it took too long and would then be a newer ingest than the one that replaced
// it.
func (p *process) stopsItself(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, optionalWait)
	defer cancel()
	_ = wait.Poll(ctx, pollInterval, func() (bool, error) { return p.deathBegun() || p.Running() != nil, nil })
	if p.deathBegun() {
		return true, nil
	}
	return false, p.killAndCheck()
}

// code returns the exit code, exitKilled for a signal.
func (p *process) code() int { return p.State().ExitCode() }

// isStandby reports whether the process has lost the log to another one and is a standby.
func (p *process) isStandby() bool { return strings.Contains(p.Output(), "another ingest took over") }

// isWaiting reports whether the process found another one at its start and still waits.
func (p *process) isWaiting() bool {
	output := p.Output()
	return strings.LastIndex(output, "this one stands by") > strings.LastIndex(output, "this one takes over")
}
