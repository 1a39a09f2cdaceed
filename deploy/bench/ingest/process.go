package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

// cpuSeconds returns the CPU time that a process has used so far, or 0 if the system does not provide it.
func cpuSeconds(pid int) float64 {
	took, _ := stack.CPU(pid)
	return took.Seconds()
}

// programs are the processes of one run of navlog, by name.
type programs map[string]*stack.Process

// startPrograms starts `navlog NAME` for each name on the engines of a configured system.
func startPrograms(b *benchmark, s *system, names ...string) (programs, error) {
	run := programs{}
	for _, name := range names {
		cmd := exec.Command(b.Navlog, name, "--config", s.config)
		cmd.Dir, cmd.Env = s.dir, s.Environment()
		if address, ok := s.ops[name]; ok {
			cmd.Env = append(cmd.Env, "NAVLOG_OPS_LISTEN="+address)
		}
		p, err := stack.Launch(cmd, filepath.Join(s.dir, name+".log"))
		if err != nil {
			run.stop()
			return nil, err
		}
		run[name] = p
	}
	return run, nil
}

func (r programs) stop() {
	for _, p := range r {
		_ = p.Stop() // the exit status does not matter
	}
}

// until calls done at each interval until it returns true. It fails if a program exits or ctx ends.
func (r programs) until(ctx context.Context, interval time.Duration, done func(context.Context) bool) error {
	return wait.Poll(ctx, interval, func() (bool, error) {
		if done(ctx) {
			return true, nil
		}
		for _, p := range r {
			if err := p.Running(); err != nil {
				return false, err
			}
		}
		return false, nil
	})
}
