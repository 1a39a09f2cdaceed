package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
)

// ingestResumeCmd ends a freeze. It needs neither the registry nor the read models, only the log and the chain. The
// decision is recorded in the log, and also in the audit if the registry can be reached.
type ingestResumeCmd struct {
	changeFlags
	AcceptReorg bool `help:"Retract everything that is no longer in the chain, and continue with the chain. Without this flag, only show what would be retracted."`
}

func (cmd ingestResumeCmd) Run(ctx context.Context, s *cli.Streams) error {
	c, err := config.ReadReaching(ctx, cmd.Flags, config.NeedChain, config.NeedKafka)
	if err != nil {
		return err
	}
	i, steps := withoutRegistry(cmd.Flags, s, c)
	defer steps.End()
	var r *operate.Resumption
	resume := func() (err error) {
		defer steps.End()
		r, err = i.Resume(ctx, cmd.AcceptReorg, steps.Report)
		return err
	}
	if cmd.AcceptReorg {
		d := registry.Action{Command: "ingest resume", Detail: fmt.Sprintf("chain %d, --accept-reorg", c.Chain.ID)}
		err = cmd.auditedIfReachable(ctx, s, c, d, "navlog_ingest", "the log has the decision", resume)
	} else {
		err = resume()
	}
	if err != nil {
		return err
	}
	err = cmd.Print(s.Out, r, func(w io.Writer) { writeResumption(w, r) })
	if err == nil && !r.Accepted { // a script without the flag must not mistake the plan for success
		err = cli.Frozen.With(errors.New(
			"nothing was changed: `navlog ingest resume --accept-reorg` continues with that chain",
		))
	}
	return err
}

func writeResumption(w io.Writer, r *operate.Resumption) {
	cli.Fprintf(w, "chain %d was frozen: %s\n", r.ChainID, r.Frozen)
	cli.Fprintf(w, "The log goes up to block %d (%s).\n", r.Head.Number, r.Head.Hash)
	cli.Fprintf(w, "The newest block that it has in common with %s is block %d (%s).\n", r.Endpoint, r.Ancestor.Number,
		r.Ancestor.Hash)
	one, many := "record above it would be", "records above it would be"
	if r.Accepted {
		one, many = "record above it was", "records above it were"
	}
	cli.Fprintf(w, "%s retracted: %s and %s.\n", printable.Count(r.Records, one, many), printable.Count(r.Blocks, "block"),
		printable.Count(r.Logs, "log"))
	if len(r.Referrals) > 0 {
		cli.Fprintf(w, "%s no longer in the chain. Inform the partners: a webhook cannot be revoked.\n",
			printable.Count(len(r.Referrals), "referral was published and is", "referrals were published and are"))
		fmt.Fprint(w, "If a transaction had been mined before, its partner has the event under the id of the first "+
			"mining: compare transaction and type.\n\n")
		cli.Rows(w, r.Referrals, "TRANSACTION\tTYPE\tPARTNER\tVAULT\tBLOCK\tLOG\tEVENT ID",
			func(l operate.LostReferral) []any {
				return []any{l.TxHash, l.Type, l.PartnerID, l.Vault, l.BlockNumber, l.LogIndex, l.EventID}
			})
		fmt.Fprintln(w)
	}
	if r.Accepted {
		cli.Fprintf(w, "A running ingest continues from block %d by itself; otherwise start it.\n", r.Ancestor.Number)
	}
}
