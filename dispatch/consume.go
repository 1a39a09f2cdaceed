package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	pollRecords  = 500 // records of one transaction
	consumePause = time.Second
)

// topic is one incarnation of a topic: a recreated topic has another id.
type topic struct {
	id         uuid.UUID
	partitions int
}

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// source is a partition of one incarnation of a topic.
type source struct {
	topic     uuid.UUID
	partition int32
}

// mark is a position with the leader epoch of the record before it, by which brokers notice that the partition was
// truncated before that position.
type mark struct {
	offset int64
	epoch  int32
}

// reader reads the referral topics from the positions in PostgreSQL.
type reader struct {
	d      *Dispatch
	client *kgo.Client
	admin  *kadm.Client
	topics map[string]topic
	// next holds the positions stored in PostgreSQL.
	next map[place]int64
	// given holds the partitions from which the client has returned records.
	given map[place]bool
	// ends holds the known ends of the partitions, including records that cannot be read
	// yet because an earlier transaction is open.
	ends  map[place]int64
	watch *chainlog.Watch
	// marks are those of the dispatcher; nil for a reader that moves no position.
	marks map[source]mark
	// log is the log whose referrals are backfilled.
	log [16]byte
}

// consume reads the referral topics for all dispatchers while this one has the lease of the intake, and otherwise
// checks that it could. It ends when ctx does. After an error it drops the lease, so that a dispatcher without that
// error can read, and restarts from the positions in PostgreSQL.
func (d *Dispatch) consume(ctx context.Context) error {
	client, err := kgo.NewClient(d.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	// One watch outlives the readers, so that restarting a reader does not reset how long a transaction was open.
	watch := chainlog.NewWatch(
		admin, d.timing.hanging, chainlog.ReferralDeposits(d.config.ChainID), chainlog.ReferralWithdrawals(d.config.ChainID),
	)
	for {
		err := d.readUnderLease(ctx, admin, watch)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errMoved):
			d.log.Info("reading the referral topics again from the positions in PostgreSQL", "error", err)
		case errors.Is(err, registry.ErrLeaseLost):
			d.log.Info("no longer reading the referral topics", "error", err)
		default:
			d.health.set(ctx, "read the referral topics", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(consumePause):
		}
	}
}

// readUnderLease waits for the lease of the intake. Then it reads the topics and backfills new partners until ctx ends,
// the lease is lost, or reading fails.
func (d *Dispatch) readUnderLease(ctx context.Context, admin *kadm.Client, watch *chainlog.Watch) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	var standby sync.WaitGroup
	lease, err := d.intakes.Acquire(ctx, 0, func() {
		d.log.Info("another dispatcher reads the referral topics")
		r := &reader{d: d, admin: admin, watch: watch, ends: map[place]int64{}}
		standby.Go(func() { every(waiting, d.timing.topics, r.standBy) })
	})
	stop()
	standby.Wait()
	if err != nil {
		return err
	}
	defer lease.Drop(ctx)
	d.reads.Store(true)
	defer d.reads.Store(false)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return lease.Watch(ctx) })
	group.Go(func() error { return d.read(ctx, watch) })
	group.Go(func() error { every(ctx, d.timing.scan, d.backfill); return nil })
	return group.Wait()
}

// standBy checks that this dispatcher could read the topics, and measures what the reading one has not read.
func (r *reader) standBy(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, r.d.timing.database) // of all steps: less than timing.proof
	defer cancel()
	err := r.locate(limited)
	if err == nil {
		err = r.lookAhead(limited)
	}
	r.d.health.set(ctx, "read the referral topics", err)
	if err == nil {
		r.d.health.setProven(time.Now())
	}
}

// read reads until ctx ends, a topic is recreated, a position is moved, or something fails. Each step has a limit, so
// that a broker or a PostgreSQL that does not respond is a failure.
func (d *Dispatch) read(ctx context.Context, watch *chainlog.Watch) error {
	client, err := kgo.NewClient(d.kafka.Options()...) // a new one: a cache may describe the deleted topic
	if err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	r := &reader{d: d, admin: kadm.NewClient(client), watch: watch, marks: d.marks}
	if err := r.locate(ctx); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	defer r.client.Close()
	d.log.Info("reading the referral topics")
	for checked, proven := time.Now(), time.Now(); ; {
		if err := r.poll(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		if took := time.Since(proven); took > d.timing.proof { // another dispatcher may be faster
			return fmt.Errorf("a read of the referral topics took %s: check Kafka and PostgreSQL", took.Round(time.Second))
		}
		proven = time.Now()
		d.health.set(ctx, "read the referral topics", nil)
		d.health.setProven(proven)
		if time.Since(checked) < d.timing.topics {
			continue
		}
		if err := r.lookAhead(ctx); err != nil {
			return err
		}
		if err := r.unchanged(ctx); err != nil {
			return err
		}
		checked = time.Now()
	}
}

// unchanged returns an error if the topics or the positions are no longer those that are read. A position goes back if
// PostgreSQL fails over to a replica that lacks the last commits; without new records, nothing else would show it.
func (r *reader) unchanged(ctx context.Context) error {
	now := &reader{d: r.d, admin: r.admin}
	if err := now.locate(ctx); err != nil {
		return err
	}
	for name, t := range now.topics {
		if r.topics[name] != t {
			return fmt.Errorf("topic %s was recreated or got more partitions: restarting the reader", name)
		}
	}
	if !maps.Equal(now.next, r.next) {
		return errors.New("the positions in PostgreSQL were moved, as by a failover that lost commits: reading again from " +
			"there")
	}
	return nil
}

// locate looks up the topics and their positions.
func (r *reader) locate(ctx context.Context) (err error) {
	if r.topics, err = r.findTopics(ctx); err == nil {
		r.next, err = r.positions(ctx)
	}
	return err
}

// findTopics looks up the two referral topics, which ingest creates.
func (r *reader) findTopics(ctx context.Context) (map[string]topic, error) {
	ctx, cancel := context.WithTimeout(ctx, r.d.timing.database)
	defer cancel()
	details, err := chainlog.ListTopics(
		ctx, r.admin, chainlog.ReferralDeposits(r.d.config.ChainID), chainlog.ReferralWithdrawals(r.d.config.ChainID),
	)
	if err != nil {
		return nil, fmt.Errorf("list the referral topics: %w", chainlog.Explain(err))
	}
	topics := map[string]topic{}
	for name, t := range details {
		if errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			return nil, fmt.Errorf("topic %s does not exist yet: ingest creates it at its start", name)
		}
		if t.Err != nil {
			return nil, fmt.Errorf("look up topic %s: %w", name, chainlog.Explain(t.Err))
		}
		if uuid.UUID(t.ID) == uuid.Nil { // all topics would have one position
			return nil, fmt.Errorf(
				"the broker reports no id for topic %s, which navlog needs to keep positions: use Apache Kafka 2.8 or newer", name,
			)
		}
		topics[name] = topic{uuid.UUID(t.ID), len(t.Partitions)}
	}
	return topics, nil
}

// positions returns the next offset of every partition, creating the positions of new
// partitions at 0.
func (r *reader) positions(ctx context.Context) (map[place]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.d.timing.database)
	defer cancel()
	next := map[place]int64{}
	for name, t := range r.topics {
		partitions := make([]int32, t.partitions)
		for i := range partitions {
			partitions[i] = int32(i)
		}
		err := r.d.queries.CreatePositions(ctx, db.CreatePositionsParams{TopicID: t.id, Topic: name, Partitions: partitions})
		if err != nil {
			return nil, fmt.Errorf("create the positions of %s: %w", name, err)
		}
		rows, err := r.d.queries.Positions(ctx, t.id)
		if err != nil {
			return nil, fmt.Errorf("read the positions of %s: %w", name, err)
		}
		for _, row := range rows {
			next[place{name, row.Partition}] = row.NextOffset
		}
	}
	return next, nil
}

// open creates the consumer. It returns control records, so that a position can reach
// the very end, and never resets an offset that is out of range by itself.
func (r *reader) open() error {
	offsets := map[string]map[int32]kgo.Offset{}
	for p, offset := range r.next {
		if offsets[p.topic] == nil {
			offsets[p.topic] = map[int32]kgo.Offset{}
		}
		offsets[p.topic][p.partition] = r.from(p, offset)
	}
	client, err := kgo.NewClient(append(r.d.kafka.Options(),
		kgo.ConsumePartitions(offsets),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
	)...)
	if err != nil {
		return fmt.Errorf("create a Kafka reader of the referral topics: %w", err)
	}
	r.client, r.ends, r.given = client, map[place]int64{}, map[place]bool{}
	return nil
}

// from returns where to begin in a partition, with the epoch if this dispatcher has committed that position: a client
// reports a truncation once, and the reader may have failed before the position was moved. The epoch of another
// position would not do: all that another dispatcher has read since would look truncated.
func (r *reader) from(p place, offset int64) kgo.Offset {
	start := kgo.NewOffset().At(offset)
	if m, known := r.marks[r.source(p)]; known && m.offset == offset {
		start = start.WithEpoch(m.epoch)
	}
	return start
}

func (r *reader) source(p place) source { return source{r.topics[p.topic].id, p.partition} }

// poll waits up to timing.topics for records and accepts them.
func (r *reader) poll(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, r.d.timing.topics)
	fetches := r.client.PollRecords(limited, pollRecords)
	cancel()
	if ctx.Err() != nil {
		return nil
	}
	var rewound error
	for _, e := range fetches.Errors() {
		_, truncated := errors.AsType[*kgo.ErrDataLoss](e.Err)
		switch {
		case errors.Is(e.Err, context.DeadlineExceeded) && e.Topic == "":
		case truncated, errors.Is(e.Err, kerr.OffsetOutOfRange):
			if rewound = r.rewind(ctx, place{e.Topic, e.Partition}); !errors.Is(rewound, errMoved) {
				return rewound
			}
		default:
			return fmt.Errorf("read partition %d of %s: %w", e.Partition, e.Topic, chainlog.Explain(e.Err))
		}
	}
	if rewound != nil {
		return rewound
	}
	batches, err := r.batches(fetches)
	if err != nil || len(batches) == 0 {
		return err
	}
	r.d.metrics.setLag(r.lag()) // nothing counts as read before it is committed
	if err := r.d.accept(ctx, batches); err != nil {
		return err
	}
	for _, p := range batches {
		r.next[p.place] = p.to
		r.marks[r.source(p.place)] = mark{p.to, p.epoch}
	}
	r.d.metrics.setLag(r.lag())
	return nil
}

// readBatch is the result of one read of one partition: its records move the position from one offset to another.
type readBatch struct {
	place
	id       uuid.UUID // of the topic
	from, to int64
	epoch    int32         // of the last record
	records  []*kgo.Record // without control records
	log      []byte        // log id of its referrals; nil if it has none
}

// batches groups the records that were read by partition. It returns an error if records of a partition are missing,
// since moving a position over records that were not accepted would lose them. A client can skip records if a broker
// remembers how far it responded to a fetch even if the fetch was cancelled. After such an error the client is replaced
// by one that starts at the position.
//
// One gap is normal: the records of an aborted transaction are not returned, and the next record is its abort marker.
func (r *reader) batches(fetches kgo.Fetches) ([]readBatch, error) {
	var batches []readBatch
	var faults []error
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) == 0 {
			return
		}
		at := place{p.Topic, p.Partition}
		first, due := p.Records[0].Offset, r.next[at]
		if first > due && r.given[at] && !aborts(p.Records[0]) {
			faults = append(faults, fmt.Errorf(
				"partition %d of %s continues at offset %d instead of its position %d: reading again from the position",
				p.Partition, p.Topic, first, due,
			))
			return
		}
		r.given[at], r.ends[at] = true, p.HighWatermark
		last := p.Records[len(p.Records)-1]
		out := readBatch{
			place: at, id: r.topics[p.Topic].id, from: due, to: last.Offset + 1, epoch: last.LeaderEpoch,
		}
		for _, record := range p.Records {
			if !record.Attrs.IsControl() {
				out.records = append(out.records, record)
			}
		}
		batches = append(batches, out)
	})
	return batches, errors.Join(faults...)
}

// aborts reports whether a record is an abort marker: a control record whose key is two
// 16-bit numbers, the version and the type, and type 0 is abort
// (https://kafka.apache.org/documentation/#controlbatch).
func aborts(r *kgo.Record) bool {
	return r.Attrs.IsControl() && len(r.Key) >= 4 && r.Key[2] == 0 && r.Key[3] == 0
}

// lookAhead reads the ends of the topics. While a transaction stays open, a reader gets neither records nor an error,
// so only the ends show it.
func (r *reader) lookAhead(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, r.d.timing.database)
	defer cancel()
	ends, err := r.watch.Ends(limited)
	if err != nil {
		return err
	}
	clear(r.ends) // a recreated topic may have fewer partitions
	for name, partitions := range ends {
		for p, end := range partitions {
			r.ends[place{name, p}] = end.Written
		}
	}
	r.d.metrics.setLag(r.lag())
	r.d.metrics.openTransaction.Set(r.watch.Open().Seconds())
	r.d.health.set(ctx, "read all of the referral topics", r.watch.Hanging())
	return nil
}

// lag counts the offsets that are written but not read yet.
func (r *reader) lag() int64 {
	var lag int64
	for p, end := range r.ends {
		lag += max(0, end-r.next[p])
	}
	return lag
}

// rewind moves a position that is out of range, or whose partition was truncated, to the first record of its partition,
// and returns errMoved. If the position is past the end, as after a restored backup or the election of a replica
// without the last records, nothing is lost and known events are skipped; if it is before the start, records were
// deleted unread. The position is moved in PostgreSQL, because the partition may grow past the old position, and then
// no reader could notice that it has to begin earlier.
func (r *reader) rewind(ctx context.Context, p place) error {
	ctx, cancel := context.WithTimeout(ctx, r.d.timing.database)
	defer cancel()
	starts, err := chainlog.Checked(r.admin.ListStartOffsets(ctx, p.topic))
	if err != nil {
		return fmt.Errorf("read the start of %s: %w", p.topic, err)
	}
	start, _ := starts.Lookup(p.topic, p.partition)
	position := r.next[p]
	batch := readBatch{place: p, id: r.topics[p.topic].id, from: position, to: start.Offset}
	if err := movePositions(ctx, r.d.queries, []readBatch{batch}); err != nil {
		return fmt.Errorf("move the position in partition %d of %s to its start: %w", p.partition, p.topic, err)
	}
	delete(r.marks, r.source(p))
	if lost := start.Offset - position; lost > 0 {
		r.d.metrics.lostRecords.Add(float64(lost))
		r.d.log.Error("referral records were deleted before they were read: "+
			"set the topic's retention to infinite, and read the log again into a new topic",
			"topic", p.topic, "partition", p.partition, "position", position, "first", start.Offset)
	} else {
		r.d.log.Warn("referral topic is shorter than what was read of it: reading it from the start, known events are "+
			"skipped",
			"topic", p.topic, "partition", p.partition, "position", position)
	}
	return errMoved
}
