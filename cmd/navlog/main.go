// Command navlog is one binary with a subcommand per program:
//
//	ingest     chain -> log            (Kafka)
//	project    log -> read models      (ClickHouse)
//	serve      read models -> HTTP
//	dispatch   referral topics -> signed webhooks
//
// The operator's commands are audit, config, migrate, partner, projection,
// status, verify and webhook. What runs all of it on one machine, with engines of
// its own, is cmd/navlog-dev: nothing of that is linked in here.
//
// This package only ties the programs together: it reads the configuration,
// opens the engines, and runs what was asked for until a signal comes.
package main

import (
	"context"
	"io"

	"github.com/navlog/navlog/cmd/internal/cli"
)

type subcommands struct {
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
	Probe      probeCmd      `cmd:"" hidden:"" help:"Ask a /readyz and fail unless it answers 200; for container health checks."`
	Version    cli.Version   `cmd:"" help:"Print the version."`
}

func main() { cli.Main("navlog", run) }

// run is main without the process around it, so that tests can call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return cli.Run(ctx, "navlog", "Indexes on-chain vaults into an immutable log, serves exact statistics from it, and tells partners with signed webhooks.",
		new(subcommands), args, stdout, stderr)
}
