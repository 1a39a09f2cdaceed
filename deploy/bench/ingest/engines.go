package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/schemas/client"
)

// A system is a set of embedded engines with empty data, and the configuration of a navlog that uses them.
type system struct {
	*stack.Stack
	dir  string
	keep bool

	config string         // path of navlog.yaml
	api    *client.Client // of `navlog serve`
	ops    map[string]string
}

// startSystem starts the engines in a new data folder and returns when all of them respond.
func startSystem(ctx context.Context, b *benchmark) (*system, error) {
	dir, err := engines.RunDir(b.Data, b.Keep)
	if err != nil {
		return nil, err
	}
	started, err := stack.Start(ctx, stack.In(dir))
	if err != nil {
		return nil, err
	}
	return &system{Stack: started, dir: dir, keep: b.Keep}, nil
}

// stop stops the engines and removes their data, unless they are kept for inspection.
func (s *system) stop() error {
	err := s.Close()
	if !s.keep {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// settings are the settings of navlog that differ between runs.
type settings struct {
	rpc        string
	ws         string // where the node announces blocks; empty: polling
	vault      string
	startBlock uint64
	profile    string // of the chain; empty is navlog's default
}

// configure writes navlog.yaml as an operator would for this chain. Everything else keeps its default except the rate
// limit, which is meant for public clients.
func (s *system) configure(c settings) error {
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
	endpoint := map[string]any{"url": c.rpc}
	if c.ws != "" {
		endpoint["ws"] = c.ws
	}
	chain := map[string]any{
		"id": chainID, "rpc": []any{endpoint}, "vaults": []map[string]any{{"address": c.vault, "startBlock": c.startBlock}},
	}
	if c.profile != "" {
		chain["profile"] = c.profile
	}
	text, err := yaml.Marshal(map[string]any{
		"chain": chain,
		"http":  map[string]any{"listen": ports[0], "router": c.vault, "publicRateLimit": 0},
	})
	if err != nil {
		return err
	}
	s.config = filepath.Join(s.dir, "navlog.yaml")
	return os.WriteFile(s.config, text, 0o600)
}
