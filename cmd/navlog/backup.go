package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
)

// backupCmd copies the log of the chain, while ingest runs.
type backupCmd struct {
	cli.Flags
	cli.Output
	Dir    string `arg:"" help:"Folder of the backup. An earlier or interrupted backup in it is continued."`
	Verify bool   `help:"Only check the backup: every file, record and hash. Needs neither Kafka nor a configuration."`
}

func (cmd backupCmd) Run(ctx context.Context, s *cli.Streams) error {
	var c config.Config
	if !cmd.Verify {
		var err error
		if c, err = config.ReadReaching(ctx, cmd.Flags, config.NeedChainID, config.NeedKafka); err != nil {
			return err
		}
	}
	steps := console.Progress(cmd.Flags, s)
	var r *backup.Report
	var err error
	if cmd.Verify {
		r, err = backup.Verify(ctx, cmd.Dir, steps.Report)
	} else {
		r, err = backup.Write(ctx, c.Chain.ID, c.Kafka, cmd.Dir, steps.Report)
	}
	steps.End()
	if err != nil {
		return backupFault(err)
	}
	what := "backed up: " + printable.Count(r.Done, "new segment")
	if cmd.Verify {
		what = "complete: every file, record and hash is correct"
	}
	return cmd.Print(s.Out, r, func(w io.Writer) { writeBackup(w, r, what) })
}

// restoreCmd writes a backup into empty topics.
type restoreCmd struct {
	changeFlags
	Dir string `arg:"" help:"Folder of the backup."`
}

// Run restores. The audit records it, if the registry can be reached.
func (cmd restoreCmd) Run(ctx context.Context, s *cli.Streams) error {
	c, err := config.ReadReaching(ctx, cmd.Flags, config.NeedChainID, config.NeedKafka)
	if err != nil {
		return err
	}
	var r *backup.Report
	d := registry.Action{Command: "restore", Detail: fmt.Sprintf("chain %d, backup %s", c.Chain.ID, cmd.Dir)}
	err = cmd.auditedIfReachable(ctx, s, c, d, "navlog_ingest", "keep a note of it", func() (err error) {
		steps := console.Progress(cmd.Flags, s)
		defer steps.End()
		r, err = backup.Restore(ctx, c.Chain.ID, c.Kafka, cmd.Dir, steps.Report)
		return err
	})
	if err != nil {
		return backupFault(err)
	}
	return cmd.Print(s.Out, r, func(w io.Writer) {
		writeBackup(w, r, fmt.Sprintf("restored: %s in this run; `navlog ingest` continues from here; rebuild the read "+
			"models (docs/operations.md)",
			printable.Count(r.Done, "segment")))
	})
}

// backupFault attaches the exit code to an error.
func backupFault(err error) error {
	if damaged := new(backup.DamagedError); errors.As(err, &damaged) {
		return cli.Different.With(err)
	}
	if errors.Is(err, backup.ErrNone) {
		return cli.Usage.With(err)
	}
	return err
}

func writeBackup(w io.Writer, r *backup.Report, what string) {
	cli.Fprintf(w, "%s\n", what)
	cli.Fprintf(w, "log\t%s of chain %d, up to seq %d, block %d\n", r.LogID, r.ChainID, r.Seq, r.Block)
	cli.Fprintf(w, "records\t%d of the log, %s, %d of withdrawals\n",
		r.Log, printable.Count(r.Deposits, "referral of deposits", "referrals of deposits"), r.Withdrawals)
	cli.Fprintf(w, "files\t%s, %s\n", printable.Count(r.Segments, "segment"), printable.Count(r.Bytes, "byte"))
	if r.Unfinished > 0 {
		cli.Fprintf(w, "unfinished\t%s, which a restore leaves out: run `navlog backup` again\n",
			printable.Count(r.Unfinished, "more segment"))
	}
	cli.Fprintf(w, "seal\t%s\n", r.Seal)
}
