package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry/db"
)

// dead_record keeps the bytes of every record that could not become a delivery. The same
// record may be valid for a newer dispatcher, for instance if ingest was upgraded first.
// `navlog webhook dead retry` requests a retry and a dispatcher does it here. A record that
// now becomes a delivery gets its partner's next sequence, like a new event.

// retryDead retries the requested dead records, each in its own transaction.
func (d *Dispatch) retryDead(ctx context.Context) {
	for {
		tried, err := d.retryOneDead(ctx)
		d.health.set(ctx, "retry dead records", err)
		if err != nil || !tried {
			return
		}
	}
}

// retryOneDead retries one dead record and reports whether there was one.
func (d *Dispatch) retryOneDead(ctx context.Context) (tried bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	var done insertion
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		q := d.queries.WithTx(tx)
		row, err := q.ClaimDeadRecord(ctx)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		tried = true
		if done, err = d.decodeDead(ctx, q, row); err != nil {
			return fmt.Errorf("dead record %d: %w", row.ID, err)
		}
		if len(done.deadletters) == 0 {
			return q.ResolveDeadRecord(ctx, db.ResolveDeadRecordParams{ID: row.ID, RetriedAt: row.RetryAt})
		}
		still := done.deadletters[0]
		return q.KeepDeadRecord(ctx, db.KeepDeadRecordParams{
			ID: row.ID, RetriedAt: row.RetryAt, Reason: still.reason, Error: printable.Text(still.why, printable.Message),
		})
	})
	if err != nil {
		return false, err
	}
	d.committed(done)
	return tried, nil
}

// decodeDead turns a dead record into a delivery, or returns the dead letter that it still is. If
// its partner does not exist, backfill finds the record when the partner is created.
func (d *Dispatch) decodeDead(ctx context.Context, q *db.Queries, row db.ClaimDeadRecordRow) (insertion, error) {
	p := readBatch{place: place{row.Topic, row.Partition}, id: row.TopicID}
	p.records = []*kgo.Record{{Topic: row.Topic, Partition: row.Partition, Offset: row.Offset, Value: row.Value}}
	arrivals, deadletters := d.decodeAll([]readBatch{p})
	if len(deadletters) > 0 {
		return insertion{deadletters: deadletters}, nil
	}
	followed, err := followedLog(ctx, q, arrivals)
	if err != nil {
		return insertion{}, err
	}
	if of := arrivals[0].log; of != followed {
		return insertion{deadletters: []deadletter{{&p, p.records[0], recordPoison, fmt.Sprintf(
			"the record is of the log %x, and deliveries are made of the log %x", of, followed,
		)}}}, nil
	}
	partners, err := knownPartners(ctx, q, arrivals)
	if err != nil {
		return insertion{}, err
	}
	return insert(ctx, q, partners, arrivals)
}
