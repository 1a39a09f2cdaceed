package registry

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Outcomes of a deed in the audit.
const (
	DeedDone   = "done"
	DeedBegun  = "begun"
	DeedFailed = "failed"
)

// A Deed is a change by an operator. Its detail holds no key and no secret.
type Deed struct {
	Command string
	Partner int64 // 0: about no partner
	Detail  string
}

// RecordDeed adds a deed to the audit; q may belong to the transaction that does it.
func RecordDeed(ctx context.Context, q *db.Queries, operator string, d Deed, outcome string) error {
	p := db.AuditParams{Operator: printable.Text(operator, printable.Sentence), Command: d.Command, Detail: printable.Text(
		d.Detail, printable.Message,
	), Outcome: outcome}
	if d.Partner != 0 {
		p.PartnerID = &d.Partner
	}
	if err := q.Audit(ctx, p); err != nil {
		return fmt.Errorf("record `navlog %s` in the audit: %w", d.Command, err)
	}
	return nil
}

// Change runs do in a transaction and records its deed in the same transaction.
func Change(ctx context.Context, pool *pgxpool.Pool, operator string, do func(*db.Queries) (Deed, error)) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		d, err := do(q)
		if err != nil {
			return err
		}
		return RecordDeed(ctx, q, operator, d, DeedDone)
	})
}
