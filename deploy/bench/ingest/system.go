package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/client"
)

// A system is a set of embedded engines with empty data, and the settings of a navlog that uses them.
type system struct {
	*stack.Stack
	navlog string // the binary
	dir    string
	keep   bool

	settings []string
	api      *client.Client // of `navlog serve`
	ops      string         // address at which `navlog ingest` reports its metrics
}

// start starts the engines in a new data folder, and returns when all of them respond. The navlog on them reads the
// chain from a node. Everything has its default except the additional settings and the rate limit, which is meant for
// public clients.
func (b *benchmark) start(ctx context.Context, c *chain, node string, settings ...string) (*system, error) {
	dir, err := engines.RunDir(b.Data, b.Keep)
	if err != nil {
		return nil, err
	}
	started, err := stack.Start(ctx, stack.In(dir))
	if err != nil {
		return nil, err
	}
	s := &system{Stack: started, navlog: b.Navlog, dir: dir, keep: b.Keep}
	listen, err := engines.FreeAddr()
	if err == nil {
		s.api, err = client.New("http://"+listen, "", apiClient)
	}
	if err == nil {
		s.ops, err = engines.FreeAddr()
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.settings = append(settings, fmt.Sprint("NAVLOG_CHAIN_ID=", chainID), "NAVLOG_CHAIN_RPC="+node,
		"NAVLOG_CHAIN_VAULTS_0_ADDRESS="+c.vault.Hex(), fmt.Sprint("NAVLOG_CHAIN_VAULTS_0_START_BLOCK=", c.start),
		"NAVLOG_HTTP_LISTEN="+listen, "NAVLOG_HTTP_ROUTER="+c.vault.Hex(), "NAVLOG_HTTP_PUBLIC_RATE_LIMIT=0")
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

// programs are the processes of one run, by name.
type programs map[string]*stack.Process

// start starts `navlog NAME` for each name.
func (s *system) start(names ...string) (programs, error) {
	run := programs{}
	for _, name := range names {
		ops := "127.0.0.1:0"
		if name == "ingest" {
			ops = s.ops
		}
		p, err := s.Run(s.navlog, name, filepath.Join(s.dir, name+".log"), append(s.settings, "NAVLOG_OPS_LISTEN="+ops)...)
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
