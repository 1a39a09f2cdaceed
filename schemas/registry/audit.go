package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Outcomes of an action in the audit.
const (
	ActionDone   = "done"
	ActionBegun  = "begun"
	ActionFailed = "failed"
)

// Action is a change by an operator. Its detail holds no key and no secret.
type Action struct {
	Command string
	Partner int64 // 0: about no partner
	Detail  string
}

// RecordAction adds an action to the audit; q may belong to the transaction that makes it.
func RecordAction(ctx context.Context, q *db.Queries, operator string, a Action, outcome string) error {
	p := db.AuditParams{Operator: printable.Text(operator, printable.Sentence), Command: a.Command, Detail: printable.Text(
		a.Detail, printable.Message,
	), Outcome: outcome}
	if a.Partner != 0 {
		p.PartnerID = &a.Partner
	}
	if err := q.Audit(ctx, p); err != nil {
		return fmt.Errorf("record `navlog %s` in the audit: %w", a.Command, err)
	}
	return nil
}

// UnknownOutcomeError reports that PostgreSQL did not confirm the end of a change, which may have happened: the server
// received COMMIT, or did not, before the connection was lost. If it happened, the audit has it.
type UnknownOutcomeError struct{ Err error }

func (e *UnknownOutcomeError) Error() string {
	return "it is not known whether this was done, because PostgreSQL did not confirm it; `navlog audit` lists it if " +
		"it was: " +
		e.Err.Error()
}

// Unwrap returns the error of COMMIT.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// Change runs do in a transaction and records its action in the same transaction. If its error is not an
// *UnknownOutcomeError, nothing was changed.
func Change(ctx context.Context, pool *pgxpool.Pool, operator string, do func(*db.Queries) (Action, error)) error {
	committing, ended := false, "" // the server whose session has ended
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		d, err := do(q)
		if err == nil {
			err = RecordAction(ctx, q, operator, d, ActionDone)
		}
		committing = err == nil
		if tx.Conn().IsClosed() {
			ended = tx.Conn().PgConn().Conn().RemoteAddr().String()
		}
		return err
	})
	switch refusal := new(pgconn.PgError); {
	case err != nil && committing && !rolledBack(err):
		return &UnknownOutcomeError{err}
	case err == nil || ended == "" || ctx.Err() != nil || errors.As(err, &refusal) && refusal.Code == readOnlyTransaction:
		return err
	}
	return fmt.Errorf("the connection to PostgreSQL at %s ended before anything was changed, run this again: %w", ended,
		err)
}

// Author is who changes a partner: an operator, or the partner itself with one of its API keys.
type Author struct {
	Name string // in the audit
	Key  string // of the partner; empty: an operator
}

// Errors about a client that may not make a change: its key was revoked, or its partner was disabled.
var (
	ErrKeyRevoked = errors.New("the key is revoked")
	ErrDisabled   = errors.New("the partner is disabled")
)

// changePartner is Change for a change of a partner, and holds the partner's lock meanwhile.
func changePartner(ctx context.Context, pool *pgxpool.Pool, by Author, id int64,
	do func(*db.Queries, db.LockPartnerRow) (Action, error),
) error {
	return Change(ctx, pool, by.Name, func(q *db.Queries) (Action, error) {
		p, err := lockFor(ctx, q, by, id)
		if err != nil {
			return Action{}, err
		}
		return do(q, p)
	})
}

// lockFor locks a partner. A client was admitted some time ago, and a revocation may have had the lock before: so its
// key must be live now, and its partner enabled. Otherwise the error is ErrKeyRevoked or ErrDisabled.
func lockFor(ctx context.Context, q *db.Queries, by Author, id int64) (db.LockPartnerRow, error) {
	p, err := q.LockPartner(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, NoPartner(id)
	}
	if err == nil && by.Key != "" {
		var client db.PartnerByKeyRow
		switch client, err = q.PartnerByKey(ctx, HashKey(by.Key)); {
		case errors.Is(err, pgx.ErrNoRows):
			return p, ErrKeyRevoked
		case err == nil && client.Disabled:
			return p, ErrDisabled
		}
	}
	if err != nil {
		return p, fmt.Errorf("lock partner %d: %w", id, err)
	}
	return p, nil
}

// rolledBack reports whether an error of COMMIT proves that the transaction was rolled back. A fatal error does not: a
// pooler reports with one that it has lost the server.
func rolledBack(err error) bool {
	var refusal *pgconn.PgError
	return errors.Is(err, pgx.ErrTxCommitRollback) || errors.As(err, &refusal) && refusal.SeverityUnlocalized == "ERROR"
}
