package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	pollRecords  = 500 // records of one transaction
	consumePause = time.Second
)

// topic is one life of a topic: made anew, it has another id.
type topic struct {
	id         uuid.UUID
	partitions int
}

// reader reads the referral topics from the positions in PostgreSQL.
type reader struct {
	d      *Dispatch
	client *kgo.Client
	admin  *kadm.Client
	topics map[string]topic
	// next holds the positions as PostgreSQL has them, per topic and partition.
	next map[string]map[int32]int64
	// given are the partitions that the client has given records of.
	given map[string]map[int32]bool
	// ends are the ends of all records, where known: also of those that cannot be read
	// because a transaction before them is open.
	ends  map[string]map[int32]int64
	watch *chainlog.Watch
	// log is the one whose referrals adopt looks for.
	log [16]byte
}

// consume reads until ctx ends. After any error it begins again from what
// PostgreSQL says.
func (d *Dispatch) consume(ctx context.Context) error {
	client, err := kgo.NewClient(d.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("make a Kafka client: %w", err)
	}
	defer client.Close()
	// One for all times of reading: a transaction is open for as long as it is, however often reading begins again.
	watch := chainlog.NewWatch(kadm.NewClient(client), d.timing.hanging, chainlog.ReferralDeposits(d.config.ChainID), chainlog.ReferralWithdrawals(d.config.ChainID))
	for {
		err := d.read(ctx, watch)
		if ctx.Err() != nil {
			return nil
		}
		d.health.set("read the referral topics", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(consumePause):
		}
	}
}

// read reads until ctx ends, a topic is made anew, or something fails.
func (d *Dispatch) read(ctx context.Context, watch *chainlog.Watch) error {
	client, err := kgo.NewClient(d.kafka.Options()...) // a new one: the last one's cache may be of a topic's last life
	if err != nil {
		return fmt.Errorf("make a Kafka client: %w", err)
	}
	defer client.Close()
	r := &reader{d: d, admin: kadm.NewClient(client), watch: watch}
	if r.topics, err = r.findTopics(ctx); err != nil {
		return err
	}
	if r.next, err = r.positions(ctx); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	defer r.client.Close()
	for checked := time.Now(); ; {
		if err := r.poll(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		d.health.set("read the referral topics", nil)
		d.health.prove(time.Now())
		if time.Since(checked) < d.timing.topics {
			continue
		}
		if err := r.lookAhead(ctx); err != nil {
			return err
		}
		topics, err := r.findTopics(ctx)
		if err != nil {
			return err
		}
		for name, t := range topics {
			if r.topics[name] != t {
				return fmt.Errorf("topic %s was made anew or got more partitions: it is read from the start under its new id", name)
			}
		}
		checked = time.Now()
	}
}

// findTopics asks Kafka for the lives of the two topics. ingest makes them.
func (r *reader) findTopics(ctx context.Context) (map[string]topic, error) {
	details, err := chainlog.ListTopics(ctx, r.admin, chainlog.ReferralDeposits(r.d.config.ChainID), chainlog.ReferralWithdrawals(r.d.config.ChainID))
	if err != nil {
		return nil, fmt.Errorf("list the referral topics: %w", chainlog.Explain(err))
	}
	topics := map[string]topic{}
	for name, t := range details {
		if errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			return nil, fmt.Errorf("topic %s does not exist yet: ingest makes it when it starts", name)
		}
		if t.Err != nil {
			return nil, fmt.Errorf("look at topic %s: %w", name, chainlog.Explain(t.Err))
		}
		if uuid.UUID(t.ID) == uuid.Nil { // all topics would have one position
			return nil, fmt.Errorf("the broker gives topic %s no id, by which its positions are kept: Apache Kafka does from 2.8 on", name)
		}
		topics[name] = topic{uuid.UUID(t.ID), len(t.Partitions)}
	}
	return topics, nil
}

// positions reads where every partition goes on; one that was never read begins
// at 0.
func (r *reader) positions(ctx context.Context) (map[string]map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.d.timing.database)
	defer cancel()
	next := map[string]map[int32]int64{}
	for name, t := range r.topics {
		partitions := make([]int32, t.partitions)
		for i := range partitions {
			partitions[i] = int32(i)
		}
		err := r.d.queries.CreatePositions(ctx, db.CreatePositionsParams{TopicID: t.id, Topic: name, Partitions: partitions})
		if err != nil {
			return nil, fmt.Errorf("begin the positions of %s: %w", name, err)
		}
		rows, err := r.d.queries.Positions(ctx, t.id)
		if err != nil {
			return nil, fmt.Errorf("read the positions of %s: %w", name, err)
		}
		next[name] = map[int32]int64{}
		for _, row := range rows {
			next[name][row.Partition] = row.NextOffset
		}
	}
	return next, nil
}

// open makes the consumer. It keeps the markers of transactions, so that a
// position can reach the very end, and never jumps when its position is outside
// of the topic.
func (r *reader) open() error {
	offsets := map[string]map[int32]kgo.Offset{}
	for name, partitions := range r.next {
		offsets[name] = map[int32]kgo.Offset{}
		for p, offset := range partitions {
			offsets[name][p] = kgo.NewOffset().At(offset)
		}
	}
	client, err := kgo.NewClient(append(r.d.kafka.Options(),
		kgo.ConsumePartitions(offsets),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
	)...)
	if err != nil {
		return fmt.Errorf("make a Kafka reader of the referral topics: %w", err)
	}
	r.client, r.ends, r.given = client, map[string]map[int32]int64{}, map[string]map[int32]bool{}
	return nil
}

// seek makes the consumer go on at these offsets and drop what it has read
// ahead.
func (r *reader) seek(offsets map[string]map[int32]int64) {
	set := map[string]map[int32]kgo.EpochOffset{}
	for name, partitions := range offsets {
		set[name] = map[int32]kgo.EpochOffset{}
		for p, offset := range partitions {
			set[name][p] = kgo.EpochOffset{Epoch: -1, Offset: offset}
		}
	}
	r.client.SetOffsets(set)
}

// poll waits for records, up to timing.topics, and accepts them.
func (r *reader) poll(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, r.d.timing.topics)
	fetches := r.client.PollRecords(limited, pollRecords)
	cancel()
	if ctx.Err() != nil {
		return nil
	}
	for _, e := range fetches.Errors() {
		switch {
		case errors.Is(e.Err, context.DeadlineExceeded) && e.Topic == "":
		case errors.Is(e.Err, kerr.OffsetOutOfRange):
			if err := r.rewind(ctx, e.Topic, e.Partition); err != nil {
				return err
			}
		default:
			return fmt.Errorf("read partition %d of %s: %w", e.Partition, e.Topic, chainlog.Explain(e.Err))
		}
	}
	parcels, err := r.parcels(fetches)
	if err != nil || len(parcels) == 0 {
		return err
	}
	r.d.metrics.setLag(r.lag()) // nothing is read before it is written
	switch err := r.d.accept(ctx, parcels); {
	case errors.Is(err, errMoved):
		if r.next, err = r.positions(ctx); err != nil {
			return err
		}
		r.seek(r.next)
	case err != nil:
		return err
	default:
		for _, p := range parcels {
			r.next[p.topic][p.partition] = p.to
		}
	}
	r.d.metrics.setLag(r.lag())
	return nil
}

// parcel is what was read of one partition: the records that move its position
// from one offset to another.
type parcel struct {
	topic     string
	id        uuid.UUID
	partition int32
	from, to  int64
	records   []*kgo.Record // without markers
	log       []byte        // that its referrals are of; nil without any
}

// parcels sorts what was read by partition, and gives an error for a partition in which
// records are missing: a position that moved over records that nobody accepted would lose
// them. A client does leave records out where it was told to go back (seek) and goes on
// instead. That was seen with the embedded broker, which remembers how far it answered a
// fetch, though that fetch was cancelled. After such an error the client is thrown away,
// and a new one starts at the position.
//
// One gap is no fault: the records of an aborted transaction are not given, and its marker
// comes next.
func (r *reader) parcels(fetches kgo.Fetches) ([]parcel, error) {
	var parcels []parcel
	var faults []error
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) == 0 {
			return
		}
		if first, due := p.Records[0].Offset, r.next[p.Topic][p.Partition]; first > due && r.given[p.Topic][p.Partition] && !aborts(p.Records[0]) {
			faults = append(faults, fmt.Errorf("partition %d of %s goes on at offset %d and not at its position %d: it is read again from there", p.Partition, p.Topic, first, due))
			return
		}
		if r.given[p.Topic] == nil {
			r.given[p.Topic] = map[int32]bool{}
		}
		r.given[p.Topic][p.Partition] = true
		if r.ends[p.Topic] == nil {
			r.ends[p.Topic] = map[int32]int64{}
		}
		r.ends[p.Topic][p.Partition] = p.HighWatermark
		out := parcel{
			topic: p.Topic, id: r.topics[p.Topic].id, partition: p.Partition,
			from: r.next[p.Topic][p.Partition], to: p.Records[len(p.Records)-1].Offset + 1,
		}
		for _, record := range p.Records {
			if !record.Attrs.IsControl() {
				out.records = append(out.records, record)
			}
		}
		parcels = append(parcels, out)
	})
	return parcels, errors.Join(faults...)
}

// aborts tells whether a record is the marker of a transaction that was aborted: a control
// record with a key of two numbers of 16 bits, a version and the kind, of which 0 is abort
// (https://kafka.apache.org/documentation/#controlbatch).
func aborts(r *kgo.Record) bool {
	return r.Attrs.IsControl() && len(r.Key) >= 4 && r.Key[2] == 0 && r.Key[3] == 0
}

// lookAhead reads how far the topics are written. A transaction that nobody ends gives
// a reader neither records nor an error, so it is looked for.
func (r *reader) lookAhead(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.d.timing.database)
	defer cancel()
	ends, err := r.watch.Ends(ctx)
	if err != nil {
		return err
	}
	for name, partitions := range ends {
		r.ends[name] = map[int32]int64{}
		for p, end := range partitions {
			r.ends[name][p] = end.Written
		}
	}
	r.d.metrics.setLag(r.lag())
	r.d.metrics.openTransaction.Set(r.watch.Open().Seconds())
	r.d.health.set("read all of the referral topics", r.watch.Hanging())
	return nil
}

// lag counts the offsets that are written and not read yet.
func (r *reader) lag() int64 {
	var lag int64
	for name, partitions := range r.ends {
		for p, end := range partitions {
			lag += max(0, end-r.next[name][p])
		}
	}
	return lag
}

// rewind reads a partition from its first record, because the position is
// outside of it. Past its end, as after a restored backup, nothing is lost and
// what is known is skipped; before its start, records were deleted unread.
func (r *reader) rewind(ctx context.Context, name string, partition int32) error {
	starts, err := r.admin.ListStartOffsets(ctx, name)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return fmt.Errorf("read the start of %s: %w", name, err)
	}
	start, _ := starts.Lookup(name, partition)
	position := r.next[name][partition]
	if lost := start.Offset - position; lost > 0 {
		r.d.metrics.lostRecords.Add(float64(lost))
		r.d.log.Error("referral records were deleted before they were read: check that the retention of the topic is infinite; read the log again with a new topic",
			"topic", name, "partition", partition, "position", position, "first", start.Offset)
	} else {
		r.d.log.Warn("referral topic is shorter than what was read of it: reading it again from the start, known events are skipped",
			"topic", name, "partition", partition, "position", position)
	}
	r.seek(map[string]map[int32]int64{name: {partition: start.Offset}})
	return nil
}
