package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// registryFlags are shared by the operator's commands that work on the registry.
type registryFlags struct {
	cli.Flags
	cli.Output
}

// rowsFlag limits a list.
type rowsFlag struct {
	Limit int32 `default:"50" range:"1 to 10000" help:"Maximum number of rows, 1 to 10000."`
}

// withRegistry runs do with the registry opened for reading: a read-only command changes nothing, not even the version
// of the tables.
func (f registryFlags) withRegistry(ctx context.Context, do func(*pgxpool.Pool, config.Config) error,
	sections ...config.Section) error {
	return f.withOpened(ctx, registry.OpenAsItIs, do, sections...)
}

// withRegistry runs do with the registry open, after migrating it as the programs do.
func (f changeFlags) withRegistry(ctx context.Context, do func(*pgxpool.Pool, config.Config) error,
	sections ...config.Section) error {
	return f.withOpened(ctx, registry.Open, do, sections...)
}

func (f registryFlags) withOpened(ctx context.Context,
	open func(context.Context, registry.Config) (*pgxpool.Pool, error),
	do func(*pgxpool.Pool, config.Config) error, sections ...config.Section) error {
	c, err := config.ReadReaching(ctx, f.Flags, append(sections, config.NeedPostgres)...)
	if err != nil {
		return err
	}
	pool, err := open(ctx, c.Postgres)
	if err != nil {
		return err
	}
	defer registry.Close(pool)
	return do(pool, c)
}

// signature names the operator of a command that changes something.
type signature struct {
	As string `name:"as" env:"NAVLOG_OPERATOR" placeholder:"NAME" help:"Operator's name for the audit (default: user and host, which are of little use in a container)."`
}

// operator returns the operator's name.
func (s signature) operator() string {
	if s.As != "" {
		return s.As
	}
	name := os.Getenv("SUDO_USER")
	if u, err := user.Current(); err == nil {
		name = cmp.Or(name, u.Username)
	}
	name = cmp.Or(name, fmt.Sprintf("uid %d", os.Getuid())) // a container has no user names
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return name + "@" + host
}

// changeFlags are shared by the commands that change something.
type changeFlags struct {
	registryFlags
	signature
}

// outcomeWithin is the time limit of one look at what a command waits for.
const outcomeWithin = 2 * time.Second

// waitUntilDone calls done ten times a second until it returns true, the time limit is over, or a signal arrives:
// what it waits for happens in any case. So an error of done does not end the wait; the last one is printed. done
// reports the progress.
func (f changeFlags) waitUntilDone(ctx context.Context, s *cli.Streams, limit time.Duration,
	done func(context.Context, *console.Steps) (bool, error)) {
	var fault error
	steps := console.Progress(f.Flags, s)
	defer func() {
		steps.End()
		if fault != nil {
			cli.Fprintf(s.Err, "the outcome could not be read: %v\n", fault)
		}
	}()
	over := time.After(limit)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			return
		case <-tick.C:
		}
		is := false
		err := withTimeout(ctx, outcomeWithin, func(ctx context.Context) (err error) {
			is, err = done(ctx, steps)
			return err
		})
		if ctx.Err() == nil {
			fault = err
		}
		if is {
			return
		}
	}
}

// withTimeout limits the time of a look at the registry, which a server that hangs would never answer.
func withTimeout(ctx context.Context, limit time.Duration, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := look(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no response from PostgreSQL within %s: %w", limit, err)
	}
	return err
}

// audited runs a change to a store other than the registry. Its audit row is written first, so the attempt is recorded
// however the command ends.
func (s signature) audited(ctx context.Context, streams *cli.Streams, pool *pgxpool.Pool, d registry.Action,
	do func() error) error {
	if err := registry.RecordAction(ctx, db.New(pool), s.operator(), d, registry.ActionBegun); err != nil {
		return err
	}
	return s.recordOutcome(ctx, streams, pool, d, do())
}

// recordOutcome records how a change ended, and returns its error. If that cannot be recorded, the change was made
// nevertheless, and its result must be printed.
func (s signature) recordOutcome(ctx context.Context, streams *cli.Streams, pool *pgxpool.Pool, d registry.Action,
	failed error) error {
	outcome := registry.ActionDone
	if failed != nil {
		outcome = registry.ActionFailed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // even if the command was interrupted
	defer cancel()
	if err := registry.RecordAction(ctx, db.New(pool), s.operator(), d, outcome); err != nil {
		cli.Fprintf(streams.Err, "the change is %s, but the audit could not record that: %v\n", outcome, err)
	}
	return failed
}

// auditedIfReachable is audited with the registry of c, if it is there: the change does not wait for the registry.
// login may record it in the audit, and instead is what the operator can rely on without the audit row. Another
// login does not make the change, because the right one can be used at once.
func (s signature) auditedIfReachable(ctx context.Context, streams *cli.Streams, c config.Config, d registry.Action,
	login, instead string, do func() error) error {
	if c.Postgres.URL == "" {
		return do()
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pool, err := registry.Open(limited, c.Postgres)
	if err == nil {
		defer registry.Close(pool)
		err = registry.RecordAction(limited, db.New(pool), s.operator(), d, registry.ActionBegun)
	}
	if loginRejected(err) {
		return fmt.Errorf("nothing was changed, because the login of postgres.url may not record it: give it the login "+
			"%s, or that of the tables' owner (docs/operations-dispatch.md): %w", login, err)
	}
	if err != nil && ctx.Err() != nil {
		return err // interrupted before the change
	}
	if err != nil {
		cli.Fprintf(streams.Err, "the audit may have no row of this, because the registry cannot be written (%v); %s\n", err,
			instead)
		return do()
	}
	return s.recordOutcome(ctx, streams, pool, d, do())
}

// loginRejected reports whether PostgreSQL rejects the login, the database or a right (classes 28, 3D and 42501 of
// https://www.postgresql.org/docs/current/errcodes-appendix.html).
func loginRejected(err error) bool {
	refusal, is := errors.AsType[*pgconn.PgError](err)
	return is && (refusal.Code == "42501" || strings.HasPrefix(refusal.Code, "28") ||
		strings.HasPrefix(refusal.Code, "3D"))
}

type auditCmd struct {
	registryFlags
	Partner int64 `placeholder:"ID" help:"Only changes of this partner (default: all)."`
	rowsFlag
}

type auditRow struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Operator  string    `json:"operator"`
	Login     string    `json:"login"`
	Command   string    `json:"command"`
	PartnerID int64     `json:"partnerId,omitempty"`
	Detail    string    `json:"detail"`
	Outcome   string    `json:"outcome"`
}

func (cmd auditCmd) Run(ctx context.Context, s *cli.Streams) error {
	return cmd.withRegistry(ctx, func(pool *pgxpool.Pool, _ config.Config) error {
		found, err := db.New(pool).ListAudit(ctx, db.ListAuditParams{PartnerID: cmd.Partner, Limit: cmd.Limit})
		if err != nil {
			return fmt.Errorf("list the audit: %w", err)
		}
		rows := make([]auditRow, len(found))
		for i, r := range found {
			rows[i] = auditRow(r)
		}
		return cli.Table(cmd.Output, s.Out, rows, "AT\tOPERATOR\tLOGIN\tCOMMAND\tPARTNER\tOUTCOME\tDETAIL",
			func(r auditRow) []any {
				return []any{clock(&r.At), strconv.Quote(r.Operator), r.Login, r.Command, orDash(r.PartnerID), r.Outcome, r.Detail}
			})
	})
}
