package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Say everything that is wrong with the configuration, at once."`
}

type configCheckCmd struct {
	cli.Flags
}

// Run exits with 0 and one line, or with every mistake on a line of its own.
func (cmd configCheckCmd) Run(s *cli.Streams) error {
	c, err := config.Load(cmd.Config, os.Environ())
	if err = errors.Join(err, c.Validate(config.AllSections...)); err != nil {
		return fmt.Errorf("the configuration has mistakes:\n%w", err)
	}
	_, err = fmt.Fprintf(s.Out, "configuration is sound: chain %d, %d vaults\n", c.Chain.ID, len(c.Chain.Vaults))
	return err
}
