package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/client"
)

// A system is a set of embedded engines with empty data, and the configuration of a navlog that uses them.
type system struct {
	*stack.Stack
	navlog string // the binary
	dir    string
	keep   bool

	config string         // path of navlog.yaml
	api    *client.Client // of `navlog serve`
	ops    map[string]string
}

// startSystem starts the engines in a new data folder, and returns when all of them respond. The navlog on them reads
// the chain from an endpoint.
func startSystem(ctx context.Context, b *benchmark, c *chain, endpoint map[string]any, profile string) (*system,
	error) {
	dir, err := engines.RunDir(b.Data, b.Keep)
	if err != nil {
		return nil, err
	}
	started, err := stack.Start(ctx, stack.In(dir))
	if err != nil {
		return nil, err
	}
	s := &system{Stack: started, navlog: b.Navlog, dir: dir, keep: b.Keep}
	if err := s.configure(c, endpoint, profile); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// stop stops the engines and removes their data, unless they are kept for inspection.
func (s *system) stop() error {
	err := s.Close()
	if !s.keep {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// configure writes navlog.yaml as an operator would for this chain; an empty profile is navlog's default. Everything
// else keeps its default except the rate limit, which is meant for public clients.
func (s *system) configure(c *chain, endpoint map[string]any, profile string) error {
	var ports [3]string
	for i := range ports {
		var err error
		if ports[i], err = engines.FreeAddr(); err != nil {
			return err
		}
	}
	var err error
	if s.api, err = client.New("http://"+ports[0], "", apiClient); err != nil {
		return err
	}
	s.ops = map[string]string{"ingest": ports[1], "project": ports[2]}
	chain := map[string]any{"id": chainID, "rpc": []any{endpoint},
		"vaults": []map[string]any{{"address": c.vault.Hex(), "startBlock": c.start}}}
	if profile != "" {
		chain["profile"] = profile
	}
	text, err := yaml.Marshal(map[string]any{
		"chain": chain,
		"http":  map[string]any{"listen": ports[0], "router": c.vault.Hex(), "publicRateLimit": 0},
	})
	if err != nil {
		return err
	}
	s.config = filepath.Join(s.dir, "navlog.yaml")
	return os.WriteFile(s.config, text, 0o600)
}

// programs are the processes of one run, by name.
type programs map[string]*stack.Process

// start starts `navlog NAME` for each name.
func (s *system) start(names ...string) (programs, error) {
	run := programs{}
	for _, name := range names {
		cmd := exec.Command(s.navlog, name, "--config", s.config)
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

// ingest runs only ingest, until the log holds the whole chain.
func (s *system) ingest(ctx context.Context, c *chain) error {
	run, err := s.start("ingest")
	if err != nil {
		return err
	}
	defer run.stop()
	return run.until(ctx, visibleEvery, func() bool { return ingestedBlock(ctx, s) >= c.last })
}

func (r programs) stop() {
	for _, p := range r {
		_ = p.Stop() // the exit status does not matter
	}
}

// until calls done at each interval until it returns true. It fails if a program exits or ctx ends.
func (r programs) until(ctx context.Context, interval time.Duration, done func() bool) error {
	return wait.Poll(ctx, interval, func() (bool, error) {
		if done() {
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
