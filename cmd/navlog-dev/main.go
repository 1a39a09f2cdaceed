// Command navlog-dev is for development: `up` runs all of navlog on one machine, with embedded engines and its own
// chain, and faultproxy is a proxy that injects faults into a node's responses from a seed, for tests of indexers. It
// is the only program that links the embedded engines and their helper processes; cmd/navlog, which is deployed, has
// none of that.
package main

import (
	"context"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/faultproxy"
)

type commands struct {
	Up         upCmd         `cmd:"" help:"Run everything on this machine: embedded engines, a development chain, the four programs."`
	Faultproxy faultproxyCmd `cmd:"" help:"Proxy a node and inject the faults of providers, from a seed: for tests of indexers."`
	Version    cli.Version   `cmd:"" help:"Print the version."`
}

func main() { cli.Main("navlog-dev", run) }

// run is main without the process around it, so that tests can call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	return cli.Run(ctx, "navlog-dev",
		"Runs navlog on this machine for development, with its own engines, chain and traffic. Never deploy it.",
		new(commands), args, stdout, stderr,
		kong.Vars{"presets": strings.Join(devchain.Presets(), ", "), "faults": faultNames(faultproxy.All()),
			"lies": faultNames(faultproxy.FalseResponses()), "samples": faultNames(faultproxy.Samples())})
}
