// Command navlog is one binary with a subcommand per program:
//
//	ingest     chain -> log            (Kafka)
//	project    log -> read models      (ClickHouse)
//	serve      read models -> HTTP
//	dispatch   referral topics -> signed webhooks
//	up         all four, with embedded engines and a development chain
//
// The operator's commands are audit, config, migrate, partner, projection,
// status, verify and webhook. faultproxy is for tests.
//
// This package only ties the programs together: it reads the configuration,
// opens the engines, and runs what was asked for until a signal comes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Up         upCmd         `cmd:"" help:"Run everything on this machine: embedded engines, a development chain, the four programs."`
	Ingest     ingestCmd     `cmd:"" help:"Follow the chain and append its logs to the Kafka log; say what that will cost; go on after a freeze."`
	Project    projectCmd    `cmd:"" help:"Build the ClickHouse read models from the log."`
	Serve      serveCmd      `cmd:"" help:"Answer the HTTP API from the read models."`
	Dispatch   dispatchCmd   `cmd:"" help:"Send signed webhooks to partners."`
	Partner    partnerCmd    `cmd:"" help:"Create partners, their keys and their signing secrets."`
	Webhook    webhookCmd    `cmd:"" help:"List, show and replay deliveries; test, park and resume partners' webhooks."`
	Projection projectionCmd `cmd:"" help:"List, rebuild, switch and drop the generations of the read models."`
	Audit      auditCmd      `cmd:"" help:"List what operators changed: who, when and by which command."`
	Status     statusCmd     `cmd:"" help:"Show what each program says of itself."`
	Verify     verifyCmd     `cmd:"" help:"Prove that the log is what the chain says and that the read models equal it."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the tables in PostgreSQL up to date, and grant the programs' roles their rights."`
	Config     configCmd     `cmd:"" help:"Check a configuration."`
	Faultproxy faultproxyCmd `cmd:"" help:"Stand in front of a node and fail like a provider, from a seed: for tests of indexers."`
	Probe      probeCmd      `cmd:"" hidden:"" help:"Ask a /readyz and fail unless it answers 200; for container health checks."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

// common are the flags that every command takes.
type common struct {
	Config  string `short:"c" type:"path" placeholder:"FILE" env:"NAVLOG_CONFIG" help:"Configuration file (default: navlog.yaml where it exists). Environment variables NAVLOG_... win over it."`
	LogJSON bool   `name:"log-json" help:"Write log lines as JSON."`
	Verbose bool   `short:"v" help:"Log debug lines too."`
}

func (c common) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if c.Verbose {
		options.Level = slog.LevelDebug
	}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if c.LogJSON {
		handler = slog.NewJSONHandler(w, options)
	}
	log := slog.New(handler)
	slog.SetDefault(log)
	return log
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "navlog:", err)
		os.Exit(1)
	}
}

// errHelp ends a run that only printed help.
var errHelp = errors.New("help was printed")

// run is main without the process around it, so that tests can call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(error); ok && errors.Is(e, errHelp) {
				err = nil
				return
			}
			panic(r)
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	var c cli
	parser, err := kong.New(&c,
		kong.Name("navlog"),
		kong.Description("Indexes on-chain vaults into an immutable log, serves exact statistics from it, and tells partners with signed webhooks."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { panic(errHelp) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"faults": faultNames()},
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(&streams{stdout, stderr}),
	)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return fmt.Errorf("%w (try `navlog --help`)", err)
	}
	return parsed.Run()
}

// streams are where a command writes: results to out, everything else to err.
type streams struct{ out, err io.Writer }

type versionCmd struct{}

// Run prints the version that the Go toolchain recorded in the binary.
func (versionCmd) Run(s *streams) error {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	_, err := fmt.Fprintln(s.out, "navlog", version)
	return err
}
