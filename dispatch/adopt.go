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
)

// Anybody can write any partner id into the chain, so what names a partner that
// does not exist leaves nothing in PostgreSQL. The referral topics keep every record
// for ever: once for each partner that comes to be they are read again, up to where
// they had been read by then, and what is the partner's becomes deliveries without
// endpoint, which can be pulled and replayed.
//
// No referral falls between the two. The partner exists first, and then the positions are
// read, after any transaction that moves them. What lies before a position is read again
// here; what lies behind it is accepted by somebody who knows the partner already. A
// referral that both find has one id, and so makes one delivery. After a crash all of it
// is done again.
//
// One dispatcher does this for all new partners, under a lease: the topics may be long, and
// if every dispatcher read them, each would only find what another one finds too. The lease
// saves work and guards nothing: two dispatchers that both believe that they have it make
// every delivery once all the same.

// errLeaseLost says that another dispatcher does the backfill by now.
var errLeaseLost = errors.New("another dispatcher took the backfill over")

// adopt looks for the earlier events of partners that are new.
func (d *Dispatch) adopt(ctx context.Context) {
	err := d.adoptNew(ctx)
	if ctx.Err() == nil {
		d.health.note("look for the earlier events of new partners", err)
	}
}

func (d *Dispatch) adoptNew(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	ids, err := d.queries.PartnersToAdopt(limited)
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
	if err = d.backfill(ctx); err != nil && errors.Is(context.Cause(ctx), errLeaseLost) {
		return nil // the other one reports what becomes of it
	}
	return err
}

// takeBackfill takes the lease of the backfill, or renews it; false: another dispatcher has it.
func (d *Dispatch) takeBackfill(ctx context.Context) (bool, error) {
	lease := db.TakeBackfillParams{Owner: d.owner, Milliseconds: d.shared.Lease.Milliseconds()}
	rows, err := d.queries.TakeBackfill(ctx, lease)
	if err != nil {
		return false, fmt.Errorf("take the lease of the backfill: %w", err)
	}
	return rows == 1, nil
}

// dropBackfill gives the lease back; one that is not dropped runs out.
func (d *Dispatch) dropBackfill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = d.queries.DropBackfill(ctx, d.owner)
}

// keepBackfill renews the lease until stop. The context that it returns ends with errLeaseLost when another
// dispatcher has the lease; PostgreSQL may be away for a while.
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

// backfill reads the topics again for the partners that are new, under the lease.
func (d *Dispatch) backfill(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	// Read under the lease: the dispatcher that had it before may have just finished.
	ids, err := d.queries.PartnersToAdopt(limited)
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
	found, err := r.again(ctx, ids, ends)
	if err != nil {
		return err
	}
	limited, cancel = context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	if err := d.queries.Adopt(limited, ids); err != nil {
		return fmt.Errorf("write down that %d partners are new no more: %w", len(ids), err)
	}
	d.log.Info("looked for the earlier events of new partners", "partners", len(ids), "events", found)
	return nil
}

// passed gives how far each partition was read, at most to its end.
func (r *reader) passed(ctx context.Context) (map[string]map[int32]int64, error) {
	names := map[uuid.UUID]string{}
	ids := make([]uuid.UUID, 0, len(r.topics))
	for name, t := range r.topics {
		names[t.id], ids = name, append(ids, t.id)
	}
	rows, err := r.d.queries.PositionsPassed(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read how far the referral topics were read: %w", err)
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

// again reads the topics from their start to these ends, and inserts what names one
// of the partners.
func (r *reader) again(ctx context.Context, partners []int64, ends map[string]map[int32]int64) (found int, err error) {
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
				continue // nothing was read of it, or it is gone
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
				return found, errors.New("the referral topics give nothing: is Kafka there?")
			}
			return found, fmt.Errorf("read partition %d of %s: %w", e.Partition, e.Topic, e.Err)
		}
		parcels, err := r.parcels(fetches)
		if err != nil {
			return found, err
		}
		n, err := r.keep(ctx, parcels, wanted, ends)
		found += n
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// reached tells whether all is read up to ends.
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

// keep inserts what names one of these partners, up to ends, and moves on. What
// cannot be a delivery is in dead_record already, since it was read the first time.
func (r *reader) keep(ctx context.Context, parcels []parcel, wanted map[int64]string, ends map[string]map[int32]int64) (int, error) {
	var arrivals []arrival
	for i := range parcels {
		p := &parcels[i]
		for _, record := range p.records {
			if record.Offset >= ends[p.topic][p.partition] {
				break // it is accepted like everything that comes now
			}
			referral := new(event.Referral) // decoded as a whole only where it is wanted
			if proto.Unmarshal(record.Value, referral) != nil || wanted[int64(referral.GetPartnerId())] == "" {
				continue
			}
			if a, err := decode(r.d.config.ChainID, record); err == nil && a.log == r.log {
				a.parcel, a.record = p, record
				arrivals = append(arrivals, a)
			}
		}
	}
	counts := map[string]int{}
	if len(arrivals) > 0 {
		limited, cancel := context.WithTimeout(ctx, r.d.timing.database)
		defer cancel()
		err := pgx.BeginFunc(limited, r.d.pool, func(tx pgx.Tx) error {
			q := r.d.queries.WithTx(tx)
			done, err := insert(limited, q, wanted, arrivals, counts)
			if err != nil {
				return err
			}
			return bury(limited, q, done.deads, map[string]int{})
		})
		if err != nil {
			return 0, fmt.Errorf("write the deliveries of %d earlier referrals: %w", len(arrivals), err)
		}
	}
	for _, p := range parcels {
		r.next[p.topic][p.partition] = p.to
	}
	return counts[recordInserted], nil
}
