package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/dispatch"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// program is what the four programs have in common.
type program interface {
	Run(ctx context.Context) error
	Ready() error
}

// deps are the things that programs share in one process.
type deps struct {
	config  config
	pool    *pgxpool.Pool
	metrics *prometheus.Registry
	log     *slog.Logger
}

func newDeps(ctx context.Context, c config, log *slog.Logger) (*deps, error) {
	pool, err := registry.Open(ctx, c.Postgres)
	if err != nil {
		return nil, err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &deps{c, pool, metrics, log}, nil
}

func (d *deps) ingest() *ingest.Ingest {
	return ingest.New(d.config.Chain, d.config.Kafka, d.pool, d.metrics, d.log.With("program", "ingest"))
}

func (d *deps) project() *projections.Projections {
	return projections.New(d.config.Projections, d.config.Chain.ID, d.config.Kafka, d.config.ClickHouse, d.pool, d.metrics, d.log.With("program", "project"))
}

func (d *deps) serve() (*query.Query, error) {
	g, err := guard.New(d.config.Guard)
	if err != nil {
		return nil, err
	}
	return query.New(d.config.HTTP, d.config.Chain.ID, d.config.ClickHouse, d.pool, g.CheckURL, d.metrics, d.log.With("program", "serve")), nil
}

func (d *deps) dispatch() (*dispatch.Dispatch, error) {
	g, err := guard.New(d.config.Guard)
	if err != nil {
		return nil, err
	}
	sealer, err := registry.NewSealer(d.config.SecretKey)
	if err != nil {
		return nil, err
	}
	c := d.config.Webhooks
	c.ChainID = d.config.Chain.ID
	return dispatch.New(c, d.config.Kafka, d.pool, sealer, g, d.metrics, d.log.With("program", "dispatch")), nil
}

// showReady makes the readiness of a program a metric. Its other gauges keep
// their last values while it cannot do anything.
func (d *deps) showReady(name string, p program) {
	d.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "navlog_ready", Help: "1 while the program is ready, as on /readyz.", ConstLabels: prometheus.Labels{"program": name},
	}, func() float64 {
		if p.Ready() != nil {
			return 0
		}
		return 1
	}))
}

// runOne runs a program and its ops server until ctx ends or one of them
// fails. The console shows how an ingest backfills.
func (d *deps) runOne(ctx context.Context, name string, p program, console *console) error {
	defer d.pool.Close()
	d.showReady(name, p)
	group, ctx := errgroup.WithContext(ctx)
	if listen := d.config.Ops.Listen; listen != "" {
		listener, err := listenOps(listen)
		if err != nil {
			return err
		}
		group.Go(func() error { return serveOps(ctx, listener, d.metrics, p.Ready) })
	}
	group.Go(func() error { return p.Run(ctx) })
	if i, ok := p.(*ingest.Ingest); ok {
		group.Go(func() error { return console.watch(ctx, i.Status, d.log) })
	}
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// start is the common beginning of the four commands.
func (cmd common) start(ctx context.Context, s *streams, name string, build func(*deps) (program, error), sections ...section) error {
	c, err := cmd.load(sections...)
	if err != nil {
		return err
	}
	console := newConsole(s.err)
	d, err := newDeps(ctx, c, cmd.logger(console))
	if err != nil {
		return err
	}
	p, err := build(d)
	if err != nil {
		d.pool.Close()
		return err
	}
	return d.runOne(ctx, name, p, console)
}

type ingestCmd struct {
	Run      ingestRunCmd      `cmd:"" default:"withargs" help:"Follow the chain and append its logs to the Kafka log."`
	Estimate ingestEstimateCmd `cmd:"" help:"Say what a backfill will cost, in calls, price units, bytes and time, by samples of the chain; write nothing."`
	Resume   ingestResumeCmd   `cmd:"" help:"End a freeze: show what going on with the reorganised chain takes, and do it with --accept-reorg."`
}

type ingestRunCmd struct{ common }

// Run follows the chain until a signal comes.
func (cmd ingestRunCmd) Run(ctx context.Context, s *streams) error {
	return cmd.start(ctx, s, "ingest", func(d *deps) (program, error) { return d.ingest(), nil }, needChain, needKafka, needPostgres)
}

type projectCmd struct{ common }

// projectGarbage is how much garbage there may be beside what is in use, in
// percent: a replay makes large pieces of it, and what is in use holds hardly a
// pointer, so that it is found quickly.
const projectGarbage = 10

// Run keeps the read models up to date until a signal comes.
func (cmd projectCmd) Run(ctx context.Context, s *streams) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(projectGarbage)
	}
	return cmd.start(ctx, s, "project", func(d *deps) (program, error) { return d.project(), nil }, needChainID, needKafka, needClickHouse, needPostgres, needSession, needProjections)
}

type serveCmd struct{ common }

const (
	// serveGarbage is how much garbage there may be beside what is in use, in
	// percent: little is in use, and answers out of the cache make much.
	serveGarbage = 400
	// serveMemory is the bytes from which on garbage is collected sooner, beside
	// those of the answers that are kept.
	serveMemory = 168 << 20
)

// Run answers HTTP until a signal comes.
func (cmd serveCmd) Run(ctx context.Context, s *streams) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(serveGarbage)
	}
	serve := func(d *deps) (program, error) {
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(serveMemory + int64(d.config.HTTP.CacheBytes))
		}
		return d.serve()
	}
	return cmd.start(ctx, s, "serve", serve, needChainID, needClickHouse, needPostgres, needHTTP)
}

type dispatchCmd struct{ common }

// Run sends webhooks until a signal comes.
func (cmd dispatchCmd) Run(ctx context.Context, s *streams) error {
	return cmd.start(ctx, s, "dispatch", func(d *deps) (program, error) { return d.dispatch() }, needChainID, needKafka, needPostgres, needWebhooks, needSecretKey)
}
