package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/cmd/internal/wiring"
	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/telemetry"
)

// A programSpec is how one of the four programs is built, and how much memory it may use unless GOGC and GOMEMLIMIT say
// otherwise.
type programSpec struct {
	// garbage is GOGC: the garbage allowed in addition to the live memory, in percent; 0: Go's default.
	garbage int
	// memory is GOMEMLIMIT in bytes, above which garbage is collected sooner; nil: no limit.
	memory func(config.Config) int64
	build  func(*wiring.Deps) (wiring.Program, error)
}

var programSpecs = map[string]programSpec{
	// Little memory is live, and reading a history creates much garbage.
	"ingest": {garbage: 200, build: func(d *wiring.Deps) (wiring.Program, error) { return d.Ingest(), nil }},
	// With 10 percent, which once limited the memory of a replay, garbage collection took half of the program's time. A
	// replay allocates large chunks.
	"project": {garbage: 100, memory: func(config.Config) int64 { return 208 << 20 },
		build: func(d *wiring.Deps) (wiring.Program, error) { return d.Project(), nil }},
	// Little memory is live, and cached responses create much garbage. The resident memory was 30 to 49 MiB larger than
	// the limit, with and without a cache: the limit does not cover the pages of the binary.
	"serve": {garbage: 400, memory: func(c config.Config) int64 { return 56<<20 + int64(c.HTTP.CacheBytes) },
		build: func(d *wiring.Deps) (wiring.Program, error) { return d.Serve() }},
	"dispatch": {build: func(d *wiring.Deps) (wiring.Program, error) { return d.Dispatch() }},
}

// start runs one of the four programs and its ops server until ctx ends or one of them fails. The console shows the
// progress of a backfill by ingest.
func start(ctx context.Context, s *cli.Streams, cmd cli.Flags, name string) error {
	c, err := config.ReadFor(cmd, name)
	if err != nil {
		return err
	}
	one := programSpecs[name]
	if one.garbage > 0 && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(one.garbage)
	}
	if one.memory != nil && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(one.memory(c))
	}
	screen := console.New(s.Err)
	log := cmd.Logger(screen)
	defer telemetry.Start(ctx, "navlog-"+name, cli.BuildVersion(), log)()
	d, err := wiring.New(ctx, c, log)
	if err != nil {
		return err
	}
	defer registry.Close(d.Pool)
	if name == "serve" || name == "dispatch" {
		warnOfNodes(log, c)
	}
	p, err := one.build(d)
	if err != nil {
		return err
	}
	d.ShowReady(name, p)
	group, ctx := errgroup.WithContext(ctx)
	if listen := c.Ops.Listen; listen != "" {
		listener, err := wiring.ListenOps(listen)
		if err != nil {
			return err
		}
		group.Go(func() error { return d.ServeOps(ctx, listener, map[string]wiring.Program{name: p}) })
	}
	group.Go(func() error { return p.Run(ctx) })
	if i, ok := p.(*ingest.Ingest); ok {
		group.Go(func() error { return screen.Watch(ctx, wiring.Backfill(i), log) })
	}
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// withoutRegistry returns an ingest for one command, which only needs the log and the nodes, and the command's
// progress.
func withoutRegistry(f cli.Flags, s *cli.Streams, c config.Config) (*ingest.Ingest, *console.Steps) {
	screen := console.New(s.Err)
	log := f.Logger(screen)
	return ingest.New(c.Chain, c.Kafka, nil, prometheus.NewRegistry(), log), screen.Steps(log)
}

// warnOfNodes warns if a program that serves the internet, or connects to URLs of partners, has the keys of providers'
// nodes, which it never calls.
func warnOfNodes(log *slog.Logger, c config.Config) {
	for _, e := range c.Chain.RPC {
		for _, url := range []string{e.URL, e.WS} {
			if url != "" && strings.TrimRight(url, "/") != contracts.EndpointName(url) {
				log.Warn("chain.rpc has keys that this program does not need: give them only to ingest, as NAVLOG_CHAIN_RPC_FILE",
					"node", contracts.EndpointName(url))
				return
			}
		}
	}
}

type ingestCmd struct {
	Run      programCmd        `cmd:"" default:"withargs" help:"Follow the chain and append its logs to the Kafka log."`
	Estimate ingestEstimateCmd `cmd:"" help:"Estimate the cost of a backfill in calls, price units, bytes and time, from samples of the chain; write nothing."`
	Resume   ingestResumeCmd   `cmd:"" help:"End a freeze: show what accepting the reorganised chain would retract, and do it with --accept-reorg."`
}

// programCmd runs the program that is the first word of the command line.
type programCmd struct{ cli.Flags }

func (cmd programCmd) Run(ctx context.Context, s *cli.Streams, parsed *kong.Context) error {
	return start(ctx, s, cmd.Flags, strings.Fields(parsed.Command())[0])
}

// probeCmd is the health check of a container without a shell and curl.
type probeCmd struct {
	URL string `arg:"" help:"Address of a /readyz."`
}

// Run fails unless the URL responds with 200 within 4 seconds. Health checks only use the exit codes 0 and 1.
func (cmd probeCmd) Run(ctx context.Context) error {
	return cli.Failed.With(wiring.Probe(ctx, cmd.URL))
}
