// Command navlog is one binary with a subcommand per program:
//
//	ingest     chain -> log            (Kafka)
//	project    log -> read models      (ClickHouse)
//	serve      read models -> HTTP
//	dispatch   referral topics -> signed webhooks
//
// The other commands are for operators. cmd/navlog-dev runs everything on one machine with its own engines, which
// are not linked into navlog.
//
// This package only ties the programs together: it reads the configuration, opens the engines, and runs the requested
// command until a signal arrives.
package main

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/operate"
	"github.com/navlog/navlog/cmd/internal/partner"
)

type subcommands struct {
	Ingest   ingestCmd   `cmd:"" group:"programs" help:"chain -> log; also estimate, resume (after a freeze)"`
	Project  programCmd  `cmd:"" group:"programs" help:"log -> read models"`
	Serve    programCmd  `cmd:"" group:"programs" help:"read models -> HTTP API"`
	Dispatch dispatchCmd `cmd:"" group:"programs" help:"log -> signed webhooks to partners"`

	Config  configCmd  `cmd:"" group:"begin" help:"Check the configuration, and with --connect the engines."`
	Mapping mappingCmd `cmd:"" group:"begin" help:"Check a mapping, or try one on the logs of a vault."`
	Doctor  doctorCmd  `cmd:"" group:"begin" help:"Check everything that navlog needs; print faults and fixes."`
	Migrate migrateCmd `cmd:"" group:"begin" help:"Update the tables in PostgreSQL; --roles grants rights."`

	Status    statusCmd         `cmd:"" group:"look" help:"Show the state of all programs on one screen; --watch, --url."`
	Explain   partner.Explain   `cmd:"" group:"look" help:"Show the logs behind a number of the API, and add them up."`
	Log       operate.Log       `cmd:"" group:"look" help:"Read the log: tail, show, stats."`
	Statement partner.Statement `cmd:"" group:"look" help:"Get a partner's signed statement; verify one against a node."`
	Verify    verifyCmd         `cmd:"" group:"look" help:"Prove log = chain, and read models = log."`
	Audit     auditCmd          `cmd:"" group:"look" help:"List what operators changed: who, when, by which command."`

	Partner    partnerCmd    `cmd:"" group:"change" help:"Create partners; rotate and revoke keys and secrets."`
	Webhook    webhookCmd    `cmd:"" group:"change" help:"List, show, replay deliveries; park and resume partners."`
	Vault      vaultCmd      `cmd:"" group:"change" help:"Add, remove, restore and detect vaults."`
	Projection projectionCmd `cmd:"" group:"change" help:"List, rebuild, switch and drop generations."`
	Kafka      kafkaCmd      `cmd:"" group:"change" help:"Print and grant the rights of the programs on Kafka."`
	Backup     backupCmd     `cmd:"" group:"change" help:"Copy the log into files; --verify checks them."`
	Restore    restoreCmd    `cmd:"" group:"change" help:"Write a backup of the log into empty topics."`

	Completion completionCmd `cmd:"" group:"other" help:"Print a completion script for bash, zsh or fish."`
	Version    cli.Version   `cmd:"" group:"other" help:"Print the version."`
	Probe      probeCmd      `cmd:"" hidden:"" help:"Request a /readyz and fail unless it returns 200; for container health checks."`
}

// groups are the chapters of the help text, in order.
var groups = []kong.Group{
	{Key: "programs", Title: "The four programs, which run until a signal arrives:"},
	{Key: "begin", Title: "Set up:"},
	{Key: "look", Title: "Inspect:"},
	{Key: "change", Title: "Change:"},
	{Key: "other", Title: "Other:"},
}

const description = `Indexes on-chain vaults into an immutable log, serves exact statistics from it, and notifies partners with signed webhooks.

  node -> ingest -> log (Kafka) -> project -> read models -> serve -> HTTP
                            '-> dispatch -> webhooks

Begin with a copy of deploy/navlog.example.yaml; navlog doctor reports what is missing.`

func main() { cli.Main("navlog", run) }

// run is main without the process around it, so that tests can call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return cli.Run(ctx, "navlog", description, new(subcommands), args, stdout, stderr, kong.ExplicitGroups(groups))
}
