package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/schemas/printable"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Print every mistake in the configuration."`
}

// programFlag limits a check to one of the four programs.
type programFlag struct {
	Program string `enum:",ingest,project,serve,dispatch" default:"" placeholder:"PROGRAM" help:"Check only what ingest, project, serve or dispatch needs, for a machine or container with its secrets only."`
}

type configCheckCmd struct {
	cli.Flags
	programFlag
	Connect bool `help:"Also check that each node and engine in the configuration responds and accepts the login."`
	cli.Output
}

// Run exits with 0 and one line, or prints every mistake on its own line. With --connect it prints a line for each
// engine. As JSON, it prints the findings in the form of doctor.
func (cmd configCheckCmd) Run(ctx context.Context, s *cli.Streams) error {
	c, err := config.Load(cmd.Config, os.Environ())
	e := &examination{config: c, program: cmd.Program}
	if cmd.JSON {
		e.configuration(err)
	} else if err := cmd.describe(s, e, err); err != nil || !cmd.Connect {
		return err
	}
	if cmd.Connect {
		if err := e.reach(ctx, cmd.Flags, s, false); err != nil {
			return err
		}
	}
	return e.report(s.Out, cmd.Output)
}

// describe prints what was checked, or returns all mistakes. loading are those that were found when it was loaded.
func (cmd configCheckCmd) describe(s *cli.Streams, e *examination, loading error) error {
	c := e.config
	sections, nodes := e.withoutNodes(e.sections())
	if err := errors.Join(loading, c.Validate(sections...)); err != nil {
		return cli.Configuration.With(fmt.Errorf("the configuration has mistakes:\n%w", err))
	}
	fmt.Fprintf(s.Out, "the configuration is valid: chain %d, %s\n", c.Chain.ID,
		printable.Count(len(c.Chain.Vaults), "vault"))
	if !nodes {
		fmt.Fprintln(s.Out, "no node is given: ingest needs one, and so does verify with the chain")
	}
	if cmd.Program == "" && c.SecretKey == "" {
		fmt.Fprintln(s.Out, "NAVLOG_SECRET_KEY is not given: dispatch needs it, and so do commands such as `navlog partner create`")
	}
	return nil
}
