package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/ingest/rpc"
)

// devChainID is anvil's default.
const devChainID = 31337

// devSlotsInEpoch makes a block of the development chain final when it is 8 deep (anvil: two epochs), so that webhooks,
// which wait for finality, are sent within seconds.
const devSlotsInEpoch = 4

// startEngines starts, in parallel, the engines that no flag or setting replaces, and writes their addresses into the
// configuration.
func (u *up) startEngines(ctx context.Context) error {
	if err := u.checkListen(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return u.startKafka(ctx) })
	group.Go(func() error { return u.startClickHouse(ctx) })
	group.Go(func() error { return u.startPostgres(ctx) })
	group.Go(func() error { return u.startChain(ctx) })
	return group.Wait()
}

// checkListen reports a port that is in use before anything is started.
func (u *up) checkListen(ctx context.Context) error {
	address := cmp.Or(u.cmd.Listen, u.config.HTTP.Listen)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --listen", address, err)
	}
	return listener.Close()
}

func (u *up) startKafka(ctx context.Context) error {
	if len(u.cmd.Kafka) > 0 {
		u.config.Kafka.Brokers = u.cmd.Kafka
	}
	if len(u.config.Kafka.Brokers) == 0 {
		k, err := engines.StartKafka(ctx, filepath.Join(u.cmd.Data, "kafka"))
		if err != nil {
			return err
		}
		u.services.Own(ctx, "Kafka", k.Close)
		u.config.Kafka.Brokers = []string{k.Addr}
	}
	u.ready.Kafka = u.config.Kafka.Brokers
	return nil
}

func (u *up) startClickHouse(ctx context.Context) error {
	if u.cmd.ClickHouse != "" {
		u.config.ClickHouse.Addr = u.cmd.ClickHouse
	}
	if u.config.ClickHouse.Addr == "" {
		own := u.config.ClickHouse
		own.Addr = "127.0.0.1:9000" // a placeholder: the actual one is chosen at the start
		if err := own.Validate(); err != nil {
			return cli.Configuration.With(fmt.Errorf("the configuration has mistakes:\n%w", err))
		}
		c, err := engines.StartClickHouseFor(ctx, filepath.Join(u.cmd.Data, "clickhouse"), u.config.ClickHouse.Prefix)
		if err != nil {
			return err
		}
		u.services.Start(ctx, "ClickHouse",
			func(ctx context.Context) error { return errors.Join(c.Watch(ctx), c.Close()) })
		u.config.ClickHouse.Addr, u.config.ClickHouse.QueryUser = c.Addr, "navlog_query"
		u.ready.ClickHouseHTTP = "http://" + c.HTTPAddr
	}
	u.ready.ClickHouse = u.config.ClickHouse.Addr
	return nil
}

func (u *up) startPostgres(ctx context.Context) error {
	if u.cmd.Postgres != "" {
		u.config.Postgres.URL = u.cmd.Postgres
	}
	if u.config.Postgres.URL == "" {
		p, err := engines.StartPostgres(ctx, filepath.Join(u.cmd.Data, "postgres"))
		if err != nil {
			return err
		}
		u.services.Start(ctx, "PostgreSQL",
			func(ctx context.Context) error { return errors.Join(p.Watch(ctx), p.Close()) })
		u.config.Postgres.URL = p.URL
	}
	u.config.Postgres.MaxConns = max(u.config.Postgres.MaxConns, 30) // four programs share the pool
	u.ready.Postgres = u.config.Postgres.URL
	return nil
}

func (u *up) startChain(ctx context.Context) error {
	if u.cmd.RPC != "" {
		u.config.Chain.RPC = rpc.Endpoints(u.cmd.RPC)
	}
	if len(u.config.Chain.RPC) == 0 {
		options := engines.AnvilOptions{ChainID: devChainID, SlotsInEpoch: devSlotsInEpoch}
		if !u.cmd.NoScenario {
			options.BlockTime = max(time.Second, u.cmd.Interval.Round(time.Second)) // anvil counts whole seconds
		}
		a, err := engines.StartAnvil(ctx, filepath.Join(u.cmd.Data, "chain"), options)
		if err != nil {
			return err
		}
		u.services.Start(ctx, "chain",
			func(ctx context.Context) error { return errors.Join(a.Watch(ctx), a.Close()) })
		u.config.Chain.RPC = rpc.Endpoints(a.URL)
	}
	u.ready.RPC = u.config.Chain.RPC[0].URL
	return nil
}
