package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/navlog/navlog/deploy/testkit/child"
)

// A process is one program of navlog, or a competitor.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string // path of what it says
	ended chan struct{}
	err   error // how it ended; read after ended
}

// launch starts a program in a process group of its own. What it says goes to a file in dir.
func launch(dir, name string, env []string, workDir string, command ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), ended: make(chan struct{})}
	output, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer output.Close()
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = workDir, child.Environment(env...), output, output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// stop ends the process and all its children: in good order, or by SIGKILL after 20 seconds.
func (p *process) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT) // harmless where it has ended
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// failure says how a process ended that should not have.
func (p *process) failure() error {
	text, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s ended too early (%v): %s", p.name, p.err, strings.Join(lines[max(0, len(lines)-3):], " | "))
}

// cpuSeconds is what a process has taken of all cores so far; 0 where the system does not tell it.
func cpuSeconds(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// pid (name) state parent ..., where the name may hold anything; user and system time are the 12th and 13th after it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	const ticks = 100 // a second, on every Linux that Go runs on
	return (user + system) / ticks
}

// programs are the ones that a run of navlog is made of, each a process of its own.
type programs struct {
	all    []*process
	ingest *process
}

// startPrograms starts `navlog NAME` for each name on the engines of a configured stack.
func startPrograms(b *benchmark, s *stack, names ...string) (*programs, error) {
	run := &programs{}
	for _, name := range names {
		var env []string
		if address, ok := s.ops[name]; ok {
			env = append(env, "NAVLOG_OPS_LISTEN="+address)
		}
		p, err := launch(s.dir, name, env, s.dir, b.Navlog, name, "--config", s.config)
		if err != nil {
			run.stop()
			return nil, err
		}
		run.all = append(run.all, p)
		if name == "ingest" {
			run.ingest = p
		}
	}
	return run, nil
}

func (r *programs) stop() {
	for _, p := range r.all {
		p.stop()
	}
}

// until calls done each interval until it is true. It fails when a program ends or ctx does.
func (r *programs) until(ctx context.Context, interval time.Duration, done func(context.Context) bool) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !done(ctx) {
		for _, p := range r.all {
			select {
			case <-p.ended:
				return p.failure()
			default:
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
