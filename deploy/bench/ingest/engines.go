package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/engines"
)

// A stack is a set of embedded engines with empty data, and the configuration of a navlog that uses them.
type stack struct {
	dir  string
	keep bool

	kafka      *engines.Kafka
	clickHouse *engines.ClickHouse
	postgres   *engines.Postgres

	config string // path of navlog.yaml
	api    string // http://host:port of `navlog serve`
	ops    map[string]string
}

// startStack starts the engines below a new folder of data and returns when all of them answer.
func startStack(ctx context.Context, b *benchmark) (*stack, error) {
	dir, err := engines.RunDir(b.Data, b.Keep)
	if err != nil {
		return nil, err
	}
	s := &stack{dir: dir, keep: b.Keep}
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		s.kafka, err = engines.StartKafka(starting, filepath.Join(dir, "kafka"))
		return err
	})
	group.Go(func() (err error) {
		s.clickHouse, err = engines.StartClickHouse(starting, filepath.Join(dir, "clickhouse"), 0)
		return err
	})
	group.Go(func() (err error) {
		s.postgres, err = engines.StartPostgres(starting, filepath.Join(dir, "postgres"), 0)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// stop stops the engines and removes their data, unless it is to be looked at.
func (s *stack) stop() error {
	var faults []error
	if s.kafka != nil {
		faults = append(faults, s.kafka.Close())
	}
	if s.clickHouse != nil {
		faults = append(faults, s.clickHouse.Close())
	}
	if s.postgres != nil {
		faults = append(faults, s.postgres.Close())
	}
	if !s.keep {
		faults = append(faults, os.RemoveAll(s.dir))
	}
	return errors.Join(faults...)
}

// settings are the ones of navlog in which the runs differ.
type settings struct {
	rpc          string
	ws           string // where the node announces blocks; empty: it is polled
	vault        string
	startBlock   uint64
	pollInterval time.Duration // 0 is the profile's
	profile      string        // of the chain; empty is navlog's own
}

// configure writes navlog.yaml: what an operator would write, with everything else left at its default but the limit of
// requests, which is there for strangers.
func (s *stack) configure(c settings) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	s.api = "http://" + ports[0]
	s.ops = map[string]string{"ingest": ports[1], "project": ports[2]}
	endpoint := map[string]any{"url": c.rpc}
	if c.ws != "" {
		endpoint["ws"] = c.ws
	}
	chain := map[string]any{
		"id": chainID, "rpc": []any{endpoint}, "vaults": []map[string]any{{"address": c.vault, "startBlock": c.startBlock}},
	}
	if c.pollInterval > 0 {
		chain["pollInterval"] = c.pollInterval.String()
	}
	if c.profile != "" {
		chain["profile"] = c.profile
	}
	document := map[string]any{
		"chain":      chain,
		"kafka":      map[string]any{"brokers": []string{s.kafka.Addr}},
		"clickhouse": map[string]any{"addr": s.clickHouse.Addr, "queryUser": "navlog_query"},
		"postgres":   map[string]any{"url": s.postgres.URL},
		"http":       map[string]any{"listen": ports[0], "router": c.vault, "publicRateLimit": 0},
	}
	text, err := yaml.Marshal(document)
	if err != nil {
		return err
	}
	s.config = filepath.Join(s.dir, "navlog.yaml")
	return os.WriteFile(s.config, text, 0o600)
}

// freePorts gives addresses on loopback that nothing listens on. They are held until all are known, so they differ.
func freePorts(n int) ([]string, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		held = append(held, l)
	}
	addresses := make([]string, 0, n)
	for _, l := range held {
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
