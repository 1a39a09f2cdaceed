package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/telemetry"
)

// A referral that names an unknown partner leaves nothing in PostgreSQL, because any account can write any partner id
// into the chain. The referral topics keep every record forever. They are read again once for each new partner, up to
// the positions at that time, and the partner's earlier referrals become deliveries in state no_endpoint, which can be
// pulled and replayed.
//
// No referral is missed. The partner is created first, and the positions are read afterwards, behind any transaction
// that moves them. Records before a position are read again here; records after it are accepted by a dispatcher that
// knows the partner. A referral that both find has one id and so becomes one delivery. After a crash the backfill
// starts again.
//
// One dispatcher does this for all new partners, under a lease, because the topics may be long. The lease only saves
// work and guards nothing: two dispatchers that both think that they hold it still insert every delivery once.

// errLeaseLost means that another dispatcher took the lease of the backfill.
var errLeaseLost = errors.New("another dispatcher took the backfill over")

// backfill looks for the earlier referrals of new partners.
func (d *Dispatch) backfill(ctx context.Context) {
	err := d.backfillUnderLease(ctx)
	if ctx.Err() == nil {
		d.health.note("backfill new partners", err)
	}
}

func (d *Dispatch) backfillUnderLease(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	ids, err := d.queries.PartnersToBackfill(limited)
	if err != nil || len(ids) == 0 {
		return err
	}
	taken, err := d.takeBackfill(limited)
	if err != nil || !taken {
		return err
	}
	defer d.dropBackfill(ctx)
	ctx, stop := d.keepBackfill(ctx)
	defer stop()
	if err = d.backfillNew(ctx); err != nil && errors.Is(context.Cause(ctx), errLeaseLost) {
		return nil // the new holder reports the outcome
	}
	return err
}

// takeBackfill takes or renews the lease of the backfill, and reports whether this
// dispatcher holds it.
func (d *Dispatch) takeBackfill(ctx context.Context) (bool, error) {
	lease := db.TakeBackfillParams{Owner: d.owner, Milliseconds: d.shared.Lease.Milliseconds()}
	rows, err := d.queries.TakeBackfill(ctx, lease)
	if err != nil {
		return false, fmt.Errorf("take the lease of the backfill: %w", err)
	}
	return rows == 1, nil
}

// dropBackfill drops the lease; otherwise it expires.
func (d *Dispatch) dropBackfill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = d.queries.DropBackfill(ctx, d.owner)
}

// keepBackfill renews the lease until stop. The returned context ends with errLeaseLost
// when another dispatcher has the lease. It does not end while PostgreSQL cannot be reached.
func (d *Dispatch) keepBackfill(ctx context.Context) (_ context.Context, stop func()) {
	ctx, lose := context.WithCancelCause(ctx)
	var renewal sync.WaitGroup
	renewal.Go(func() {
		every(ctx, d.shared.Lease/3, func(ctx context.Context) {
			limited, cancel := context.WithTimeout(ctx, d.shared.Lease/3)
			defer cancel()
			if kept, err := d.takeBackfill(limited); err == nil && !kept {
				lose(errLeaseLost)
			}
		})
	})
	return ctx, func() { lose(nil); renewal.Wait() }
}

// backfillNew reads the topics again for the new partners. The lease is held.
func (d *Dispatch) backfillNew(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	// Read under the lease: its last holder may just have finished.
	ids, err := d.queries.PartnersToBackfill(limited)
	if err != nil || len(ids) == 0 {
		return err
	}
	client, err := kgo.NewClient(d.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("make a Kafka client: %w", err)
	}
	defer client.Close()
	r := &reader{d: d, admin: kadm.NewClient(client)}
	if r.topics, err = r.findTopics(limited); err != nil {
		return err
	}
	ends, err := r.passed(limited)
	if err != nil {
		return err
	}
	if r.log, err = followedLog(limited, d.queries, nil); err != nil {
		return err
	}
	found, err := r.readAgain(ctx, ids, ends)
	if err != nil {
		return err
	}
	limited, cancel = context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	if err := d.queries.MarkBackfilled(limited, ids); err != nil {
		return fmt.Errorf("mark %d partners as backfilled: %w", len(ids), err)
	}
	d.log.Info("backfilled new partners", "partners", len(ids), "events", found)
	return nil
}

// passed returns the position of each partition, at most the partition's end.
func (r *reader) passed(ctx context.Context) (map[string]map[int32]int64, error) {
	names := map[uuid.UUID]string{}
	ids := make([]uuid.UUID, 0, len(r.topics))
	for name, t := range r.topics {
		names[t.id], ids = name, append(ids, t.id)
	}
	rows, err := r.d.queries.PositionsPassed(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the positions of the referral topics: %w", err)
	}
	committed, err := r.admin.ListCommittedOffsets(ctx, r.names()...)
	if err == nil {
		err = committed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("read the ends of the referral topics: %w", err)
	}
	ends := map[string]map[int32]int64{}
	for _, row := range rows {
		name := names[row.TopicID]
		end, _ := committed.Lookup(name, row.Partition)
		if ends[name] == nil {
			ends[name] = map[int32]int64{}
		}
		ends[name][row.Partition] = min(row.NextOffset, end.Offset)
	}
	return ends, nil
}

func (r *reader) names() []string {
	names := make([]string, 0, len(r.topics))
	for name := range r.topics {
		names = append(names, name)
	}
	return names
}

// readAgain reads the topics from their start to ends, inserts the referrals of the
// partners, and returns how many it inserted.
func (r *reader) readAgain(ctx context.Context, partners []int64, ends map[string]map[int32]int64) (
	found int, err error,
) {
	starts, err := r.admin.ListStartOffsets(ctx, r.names()...)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("read the starts of the referral topics: %w", err)
	}
	r.next = map[string]map[int32]int64{}
	wanted := make(map[int64]string, len(partners))
	for _, p := range partners {
		wanted[p] = registry.NoEndpoint
	}
	for name, partitions := range ends {
		for p, end := range partitions {
			start, _ := starts.Lookup(name, p)
			if start.Offset >= end {
				continue // never read, or deleted from the topic
			}
			if r.next[name] == nil {
				r.next[name] = map[int32]int64{}
			}
			r.next[name][p] = start.Offset
		}
	}
	if len(r.next) == 0 {
		return 0, nil
	}
	if err := r.open(); err != nil {
		return 0, err
	}
	defer r.client.Close()
	for !r.reached(ends) {
		limited, cancel := context.WithTimeout(ctx, r.d.timing.database)
		fetches := r.client.PollRecords(limited, pollRecords)
		cancel()
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		for _, e := range fetches.Errors() {
			if errors.Is(e.Err, context.DeadlineExceeded) {
				return found, errors.New("no record of the referral topics arrived in time: check that Kafka is up")
			}
			return found, fmt.Errorf("read partition %d of %s: %w", e.Partition, e.Topic, e.Err)
		}
		batches, err := r.batches(fetches)
		if err != nil {
			return found, err
		}
		n, err := r.insertWanted(ctx, batches, wanted, ends)
		found += n
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// reached reports whether everything before ends was read.
func (r *reader) reached(ends map[string]map[int32]int64) bool {
	for name, partitions := range r.next {
		for p, next := range partitions {
			if next < ends[name][p] {
				return false
			}
		}
	}
	return true
}

// insertWanted inserts the referrals of the wanted partners that lie before ends, and advances
// next. Other dead letters were stored when the record was first read.
func (r *reader) insertWanted(
	ctx context.Context, batches []readBatch, wanted map[int64]string, ends map[string]map[int32]int64,
) (int, error) {
	var arrivals []arrival
	for i := range batches {
		p := &batches[i]
		for _, record := range p.records {
			if record.Offset >= ends[p.topic][p.partition] {
				break // accept handles the records from here
			}
			referral := new(event.Referral) // decode everything only for wanted partners
			if proto.Unmarshal(record.Value, referral) != nil || wanted[int64(referral.GetPartnerId())] == "" {
				continue
			}
			if a, err := decode(r.d.config.ChainID, record); err == nil && a.log == r.log {
				a.batch, a.record = p, record
				arrivals = append(arrivals, a)
			}
		}
	}
	counts := map[string]int{}
	if len(arrivals) > 0 {
		limited, cancel := context.WithTimeout(ctx, r.d.timing.database)
		defer cancel()
		var spans []telemetry.Span
		err := pgx.BeginFunc(limited, r.d.pool, func(tx pgx.Tx) error {
			q := r.d.queries.WithTx(tx)
			done, err := insert(limited, q, wanted, arrivals, counts)
			if err != nil {
				return err
			}
			spans = done.spans
			return insertDeadletters(limited, q, done.deadletters, map[string]int{})
		})
		if err != nil {
			return 0, fmt.Errorf("write the deliveries of %d earlier referrals: %w", len(arrivals), err)
		}
		endAll(spans)
	}
	for _, p := range batches {
		r.next[p.topic][p.partition] = p.to
	}
	return counts[recordInserted], nil
}
