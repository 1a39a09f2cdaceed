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

// What cannot become a delivery is in dead_record, bytes and all. It may be able
// to later: a dispatcher that is older than ingest has met an event that only its
// successor knows. `navlog webhook dead retry` asks for it, and a dispatcher tries
// again here. What becomes a delivery has the next sequence of its partner, like
// an event that came now.

// retryDead tries what it was asked to try again, one record in each transaction.
func (d *Dispatch) retryDead(ctx context.Context) {
	for {
		tried, err := d.retryOneDead(ctx)
		if ctx.Err() != nil {
			return
		}
		d.health.set("try dead records again", err)
		if err != nil || !tried {
			return
		}
	}
}

// retryOneDead tries one record; false: none waits.
func (d *Dispatch) retryOneDead(ctx context.Context) (tried bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	var told []int64
	counts := map[string]int{}
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
		var still *dead
		if told, still, err = d.revive(ctx, q, row, counts); err != nil {
			return fmt.Errorf("dead record %d: %w", row.ID, err)
		}
		if still == nil {
			return q.ResolveDeadRecord(ctx, db.ResolveDeadRecordParams{ID: row.ID, RetriedAt: row.RetryAt})
		}
		return q.KeepDeadRecord(ctx, db.KeepDeadRecordParams{
			ID: row.ID, RetriedAt: row.RetryAt, Reason: still.reason, Error: printable.Text(still.why, printable.Message),
		})
	})
	if err != nil {
		return false, err
	}
	for result, n := range counts {
		d.metrics.records.WithLabelValues(result).Add(float64(n))
	}
	for _, p := range told {
		d.wake(p)
	}
	return tried, nil
}

// revive makes a delivery of a dead record, or says why it still cannot be one. One
// whose partner does not exist is found again when it does, by adopt.
func (d *Dispatch) revive(ctx context.Context, q *db.Queries, row db.ClaimDeadRecordRow, counts map[string]int) (told []int64, still *dead, err error) {
	p := parcel{topic: row.Topic, id: row.TopicID, partition: row.Partition}
	p.records = []*kgo.Record{{Topic: row.Topic, Partition: row.Partition, Offset: row.Offset, Value: row.Value}}
	arrivals, deads := d.open([]parcel{p})
	if len(deads) > 0 {
		return nil, &deads[0], nil
	}
	followed, err := followedLog(ctx, q, arrivals)
	if err != nil {
		return nil, nil, err
	}
	if of := arrivals[0].log; of != followed {
		return nil, &dead{&p, p.records[0], recordPoison, fmt.Sprintf("it is of the log %x, and deliveries are made of the log %x", of, followed)}, nil
	}
	partners, err := knownPartners(ctx, q, arrivals)
	if err != nil {
		return nil, nil, err
	}
	done, err := insert(ctx, q, partners, arrivals, counts)
	if err == nil && len(done.deads) > 0 {
		still = &done.deads[0]
	}
	return done.told, still, err
}
