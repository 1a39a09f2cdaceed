package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

type dispatchCmd struct {
	Run    programCmd        `cmd:"" default:"withargs" help:"Send webhooks until a signal arrives."`
	Rewind dispatchRewindCmd `cmd:"" help:"Read the referral topics again; events that are known are not sent again. Stop dispatch first."`
}

type dispatchRewindCmd struct {
	changeFlags
	Topic     string `enum:"deposits,withdrawals,both" default:"both" help:"Which referral topic: deposits, withdrawals or both."`
	Partition int32  `default:"-1" help:"Only this partition (default: all)."`
	Offset    int64  `default:"0" help:"From which Kafka offset on, 0 or more. A partition that was read less far stays where it is."`
	Yes       bool   `short:"y" help:"Do not ask for confirmation."`
}

// rewindRow is the position in a partition, before and after the rewind.
type rewindRow struct {
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
}

// Run moves positions back. There is one delivery for each event id, so reading again creates only the missing ones.
func (cmd dispatchRewindCmd) Run(ctx context.Context, s *cli.Streams) error {
	if cmd.Offset < 0 || cmd.Partition < -1 {
		return cli.Usage.With(errors.New("--offset and --partition must be 0 or more"))
	}
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, c config.Config) error {
		p := db.RewindPositionsParams{NextOffset: cmd.Offset, Topics: cmd.topics(c.Chain.ID)}
		if cmd.Partition >= 0 {
			p.Partition = &cmd.Partition
		}
		if err := stopped(ctx, db.New(pool)); err != nil {
			return err
		}
		rows, err := cmd.plan(ctx, db.New(pool), p)
		if err != nil {
			return err
		}
		if !cmd.Yes {
			if err := (cli.Output{}).Print(s.Err, rows, func(w io.Writer) { writePositions(w, rows) }); err != nil {
				return err
			}
			question := "The referral topics are read again from there. An event that is known is not sent again, one that " +
				"is missing is.\n"
			if err := confirm(ctx, s, question); err != nil {
				return err
			}
		}
		err = registry.Change(ctx, pool, cmd.operator(), func(q *db.Queries) (registry.Action, error) {
			if err := stopped(ctx, q); err != nil {
				return registry.Action{}, err
			}
			if rows, err = cmd.plan(ctx, q, p); err != nil {
				return registry.Action{}, err
			}
			n, err := q.RewindPositions(ctx, p)
			if err == nil && n != int64(len(rows)) {
				err = errors.New("another command moved a position: run this again")
			}
			if err != nil {
				return registry.Action{}, fmt.Errorf("rewind: %w", err)
			}
			detail := fmt.Sprintf("to offset %d in %s of %s", cmd.Offset, printable.Count(n, "partition"),
				strings.Join(p.Topics, ", "))
			return registry.Action{Command: "dispatch rewind", Detail: detail}, nil
		})
		if err != nil {
			return err
		}
		return cmd.Print(s.Out, rows, func(w io.Writer) {
			writePositions(w, rows)
			cli.Fprintf(w, "%s read again when dispatch starts\n", printable.Count(len(rows), "partition is", "partitions are"))
		})
	}, config.NeedChainID)
}

func (cmd dispatchRewindCmd) topics(chainID uint64) []string {
	switch cmd.Topic {
	case "deposits":
		return []string{chainlog.ReferralDeposits(chainID)}
	case "withdrawals":
		return []string{chainlog.ReferralWithdrawals(chainID)}
	}
	return []string{chainlog.ReferralDeposits(chainID), chainlog.ReferralWithdrawals(chainID)}
}

// stopped fails while a dispatcher runs: the dispatcher has its position in memory, and would continue from there for
// some seconds.
func stopped(ctx context.Context, q *db.Queries) error {
	n, err := q.RunningDispatchers(ctx)
	if err != nil {
		return fmt.Errorf("look for dispatchers that run: %w", err)
	}
	if n > 0 {
		return errors.New("a dispatcher runs, or did in the last 5 s: stop every `navlog dispatch`, and run this again")
	}
	return nil
}

// plan lists the positions to move. An empty list is an error.
func (cmd dispatchRewindCmd) plan(ctx context.Context, q *db.Queries, p db.RewindPositionsParams) ([]rewindRow, error) {
	found, err := q.ListPositions(ctx, p.Topics)
	if err != nil {
		return nil, fmt.Errorf("list the positions: %w", err)
	}
	var rows []rewindRow
	for _, r := range found {
		if r.NextOffset > p.NextOffset && (p.Partition == nil || r.Partition == *p.Partition) {
			rows = append(rows, rewindRow{r.Topic, r.TopicID.String(), r.Partition, r.NextOffset, p.NextOffset})
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("nothing was changed: no partition of %s was read past offset %d",
			strings.Join(p.Topics, ", "), p.NextOffset)
	}
	return rows, nil
}

func writePositions(w io.Writer, rows []rewindRow) {
	cli.Rows(w, rows, "TOPIC\tPARTITION\tFROM\tTO\tTOPIC ID",
		func(r rewindRow) []any { return []any{r.Topic, r.Partition, r.From, r.To, r.TopicID} })
}

// confirm asks a person to type yes, after a text that ends with a newline. A signal ends the wait for the answer.
func confirm(ctx context.Context, s *cli.Streams, text string) error {
	fmt.Fprintf(s.Err, "%sType yes to continue: ", text)
	in, answer := bufio.NewReader(stdin), make(chan string, 1)
	go func() {
		line, _ := in.ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return fmt.Errorf("nothing was changed: %w", ctx.Err())
	case line := <-answer:
		if line != "yes" {
			return cli.Usage.With(errors.New("nothing was changed: type yes, or give --yes"))
		}
		return nil
	}
}
