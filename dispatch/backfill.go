package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry"
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
// The dispatcher that reads the topics does this for all new partners. If its lease ends meanwhile, two dispatchers may
// do it, and still insert every delivery once.

// backfill looks for the earlier referrals of new partners.
func (d *Dispatch) backfill(ctx context.Context) {
	d.health.note(ctx, "backfill new partners", d.backfillNew(ctx))
}

// backfillNew reads the topics again for the new partners, if there are any.
func (d *Dispatch) backfillNew(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, d.timing.database)
	defer cancel()
	ids, err := d.queries.PartnersToBackfill(limited)
	if err != nil || len(ids) == 0 {
		return err
	}
	client, err := kgo.NewClient(d.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	r := &reader{d: d, admin: kadm.NewClient(client)}
	if r.topics, err = r.findTopics(limited); err != nil {
		return err
	}
	ends, err := r.currentPositions(limited)
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
		return fmt.Errorf("mark %s as backfilled: %w", printable.Count(len(ids), "partner"), err)
	}
	d.log.Info("backfilled new partners", "partners", len(ids), "events", found)
	return nil
}

// currentPositions returns the position of each partition, at most the partition's end.
func (r *reader) currentPositions(ctx context.Context) (map[place]int64, error) {
	names := map[uuid.UUID]string{}
	ids := make([]uuid.UUID, 0, len(r.topics))
	for name, t := range r.topics {
		names[t.id], ids = name, append(ids, t.id)
	}
	rows, err := r.d.queries.PositionsPassed(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the positions of the referral topics: %w", err)
	}
	committed, err := chainlog.Checked(r.admin.ListCommittedOffsets(ctx, slices.Collect(maps.Keys(r.topics))...))
	if err != nil {
		return nil, fmt.Errorf("read the ends of the referral topics: %w", err)
	}
	ends := map[place]int64{}
	for _, row := range rows {
		p := place{names[row.TopicID], row.Partition}
		end, _ := committed.Lookup(p.topic, p.partition)
		ends[p] = min(row.NextOffset, end.Offset)
	}
	return ends, nil
}

// readAgain reads the topics from their start to ends, inserts the referrals of the
// partners, and returns how many it inserted.
func (r *reader) readAgain(ctx context.Context, partners []int64, ends map[place]int64) (found int, err error) {
	starts, err := chainlog.Checked(r.admin.ListStartOffsets(ctx, slices.Collect(maps.Keys(r.topics))...))
	if err != nil {
		return 0, fmt.Errorf("read the starts of the referral topics: %w", err)
	}
	r.next = map[place]int64{}
	wanted := make(map[int64]string, len(partners))
	for _, p := range partners {
		wanted[p] = registry.NoEndpoint
	}
	for p, end := range ends {
		if start, _ := starts.Lookup(p.topic, p.partition); start.Offset < end {
			r.next[p] = start.Offset
		} // else nothing of it was read, or all of that was deleted from the topic
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
func (r *reader) reached(ends map[place]int64) bool {
	for p, next := range r.next {
		if next < ends[p] {
			return false
		}
	}
	return true
}

// insertWanted inserts the referrals of the wanted partners that lie before ends, and advances
// next. Other dead letters were stored when the record was first read.
func (r *reader) insertWanted(
	ctx context.Context, batches []readBatch, wanted map[int64]string, ends map[place]int64,
) (int, error) {
	var arrivals []arrival
	for i := range batches {
		p := &batches[i]
		for _, record := range p.records {
			if record.Offset >= ends[p.place] {
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
	var done insertion
	var stored []deadletter
	if len(arrivals) > 0 {
		limited, cancel := context.WithTimeout(ctx, r.d.timing.database)
		defer cancel()
		err := pgx.BeginFunc(limited, r.d.pool, func(tx pgx.Tx) (err error) {
			q := r.d.queries.WithTx(tx)
			if done, err = insert(limited, q, wanted, arrivals); err != nil {
				return err
			}
			stored, err = insertDeadletters(limited, q, done.deadletters)
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("write the deliveries of %s: %w", printable.Count(len(arrivals), "earlier referral"), err)
		}
		endAll(done.spans)
		r.d.report(stored)
	}
	for _, p := range batches {
		r.next[p.place] = p.to
	}
	return done.counts[recordInserted], nil
}
