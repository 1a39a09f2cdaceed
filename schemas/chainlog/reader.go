package chainlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
)

// Position is a place in the log, given by seq. Offset is only a hint: a reader verifies the record that it finds
// there.
type Position struct {
	// Seq is the seq of the last applied record; 0 before the first.
	Seq uint64
	// Offset is the offset of the same record, or 0 if unknown.
	Offset int64
}

// Entry is a record with its Kafka offset and its bytes in the log.
type Entry struct {
	*event.Record
	Offset int64
	Value  []byte
	// Parent is the trace context that the record carries (Carry); empty if it carries none.
	Parent string
}

// Raw is a committed record in its bytes, with the fields that order records. Callers may
// keep Value, but must not change it.
type Raw struct {
	Seq      uint64
	Boundary bool
	Offset   int64
	Value    []byte
	// Kafka is the record with its key, headers and timestamp; nil if the reader did not make the Raw.
	Kafka *kgo.Record
}

// Reader reads the committed records of chain.<id>.log after a position, and verifies that seq is contiguous.
type Reader struct {
	client  *kgo.Client
	chainID uint64
	last    uint64
	seen    uint64 // seq of the last record that was fetched, 0 before the first
	next    int64  // offset after the last record that was fetched
	stable  int64  // last stable offset when it was fetched
	hinted  bool   // the first fetch started at an unverified hint
}

// NewReader returns a reader of the records after from. options connect to the brokers
// (Config.Options). The caller must close it.
func NewReader(chainID uint64, from Position, options ...kgo.Opt) (*Reader, error) {
	start := kgo.NewOffset().AtStart()
	if from.Offset > 0 {
		start = kgo.NewOffset().At(from.Offset)
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{LogTopic(chainID): {0: start}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(fetchBytes),
	}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("create a Kafka reader of %s: %w", LogTopic(chainID), err)
	}
	return &Reader{client: client, chainID: chainID, last: from.Seq, hinted: from.Offset > 0}, nil
}

// Close closes the reader.
func (r *Reader) Close() { r.client.Close() }

// Left returns how many offsets were committed after the last returned record at the time of
// its fetch. They include markers and aborted records, so 0 or 1 means the end.
func (r *Reader) Left() int64 { return max(0, r.stable-r.next) }

// Poll waits for records after the last one that it returned, and returns at most limit of
// them. It returns ctx's error if ctx ends first, a *CorruptError for a record that cannot be
// decoded, and a *HoleError if seq is not contiguous: a hole, or a repeated seq.
func (r *Reader) Poll(ctx context.Context, limit int) ([]Entry, error) {
	raw, err := r.PollRaw(ctx, limit)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(raw))
	for i := range raw {
		if entries[i], err = raw[i].entry(r.chainID); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (r *Raw) entry(chainID uint64) (Entry, error) {
	record, err := Decode(chainID, &kgo.Record{Topic: LogTopic(chainID), Offset: r.Offset, Value: r.Value})
	return Entry{record, r.Offset, r.Value, Parent(r.Kafka)}, err
}

// PollRaw is Poll, but decodes only what the order of the records needs.
func (r *Reader) PollRaw(ctx context.Context, limit int) ([]Raw, error) {
	for {
		fetches := r.client.PollRecords(ctx, limit)
		entries, err := r.fetched(fetches, fetchError(ctx, fetches))
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// fetched accepts the result of a fetch.
func (r *Reader) fetched(fetches kgo.Fetches, err error) ([]Raw, error) {
	if err != nil {
		return nil, fmt.Errorf("read %s after seq %d: %w", LogTopic(r.chainID), r.last, Explain(err))
	}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) { r.stable = p.LastStableOffset })
	return r.accept(fetches.Records())
}

// accept returns the entries before the first fault, and the fault.
func (r *Reader) accept(records []*kgo.Record) ([]Raw, error) {
	entries := make([]Raw, 0, len(records))
	for _, in := range records {
		r.next = in.Offset + 1
		if in.Attrs.IsControl() {
			continue
		}
		record, err := Peek(r.chainID, in)
		if err != nil {
			return entries, err
		}
		first := r.seen == 0
		if first && r.hinted && record.Seq > r.last+1 {
			// The hint is too far ahead, as after a restored topic: read from the start.
			r.hinted, r.next = false, 0
			r.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{in.Topic: {0: {Epoch: -1, Offset: 0}}})
			return entries, nil
		}
		if want := r.expectedSeq(); record.Seq != want && !(first && record.Seq < want) {
			return entries, &HoleError{Topic: in.Topic, Offset: in.Offset, Want: want, Got: record.Seq}
		}
		r.seen = record.Seq
		if record.Seq > r.last { // a hint may point a little before the position
			r.last = record.Seq
			entries = append(entries, record)
		}
	}
	return entries, nil
}

// expectedSeq returns the expected next seq. The first fetched record may be an earlier one, but the records before the
// position must be contiguous too, so that a repeated seq is always noticed.
func (r *Reader) expectedSeq() uint64 {
	if r.seen == 0 {
		return r.last + 1
	}
	return r.seen + 1
}

// HoleError reports that records are missing from the log, or that a seq is repeated.
type HoleError struct {
	Topic     string
	Offset    int64
	Want, Got uint64
}

func (e *HoleError) Error() string {
	if e.Got < e.Want {
		return fmt.Sprintf("%s goes back to seq %d at offset %d instead of seq %d: two writers wrote the log, or an "+
			"aborted transaction reappeared; restore the topic from a replica or a backup", e.Topic, e.Got, e.Offset, e.Want)
	}
	return fmt.Sprintf("%s continues with seq %d at offset %d instead of seq %d: records were lost; restore the "+
		"topic from a replica or a backup", e.Topic, e.Got, e.Offset, e.Want)
}

// ReadAfter calls visit in order with every record after from that is committed now, and
// returns at the end or with the first error of visit. It fails like Reader.Poll.
func ReadAfter(ctx context.Context, chainID uint64, from Position, visit func(Entry) error, options ...kgo.Opt) error {
	return ReadRawAfter(ctx, chainID, from, func(in Raw) error {
		e, err := in.entry(chainID)
		if err != nil {
			return err
		}
		return visit(e)
	}, options...)
}

// ReadRawAfter is ReadAfter without decoding more than the order of the records needs.
func ReadRawAfter(ctx context.Context, chainID uint64, from Position, visit func(Raw) error, options ...kgo.Opt) error {
	starts, ends, err := Committed(ctx, LogTopic(chainID), options)
	if err != nil {
		return err
	}
	start, _ := starts.Lookup(LogTopic(chainID), 0)
	end, _ := ends.Lookup(LogTopic(chainID), 0)
	if from.Offset >= end.Offset {
		from.Offset = 0 // a hint past the end, as after a restored topic
	}
	// The last offset is a commit or abort marker: without control records the end is never reached.
	reader, err := NewReader(chainID, from, append([]kgo.Opt{kgo.KeepControlRecords()}, options...)...)
	if err != nil {
		return err
	}
	defer reader.Close()
	for reader.next = start.Offset; reader.next < end.Offset; {
		entries, fault := reader.fetched(fetch(ctx, reader.client))
		for _, e := range entries {
			if err := visit(e); err != nil {
				return err
			}
		}
		if fault != nil {
			return fault
		}
	}
	return nil
}

const (
	// readAtOnce bounds the records that a reader holds in memory.
	readAtOnce = 10_000
	fetchBytes = 16 << 20
)

// ReadOrigin returns the origin in the first record of the log, which names the log and its
// chain, or nil if the log has no committed record.
func ReadOrigin(ctx context.Context, chainID uint64, options ...kgo.Opt) (*event.Origin, error) {
	first, err := readNext(ctx, chainID, Position{}, options...)
	if first == nil {
		return nil, err
	}
	if len(first.GetOrigin().GetLogId()) != 16 {
		return nil, &CorruptError{
			Topic: LogTopic(chainID), Offset: first.Offset, Err: errors.New("the first record does not name its log"),
		}
	}
	return first.GetOrigin(), nil
}

// ReadVaults returns the newest record, other than a removal, of each vault that the cursor points
// to. An older cursor points to none, because older records have no mappings.
func ReadVaults(
	ctx context.Context, chainID uint64, cursor *event.Cursor, options ...kgo.Opt,
) (all []*event.Vault, err error) {
	for _, v := range cursor.GetVaults() {
		if v.GetRecordSeq() == 0 {
			continue
		}
		r, err := readNext(ctx, chainID, Position{Seq: v.GetRecordSeq() - 1, Offset: v.GetRecordOffset()}, options...)
		if r == nil && err == nil {
			err = fmt.Errorf("%s ends before seq %d", LogTopic(chainID), v.GetRecordSeq())
		}
		if err != nil {
			return nil, fmt.Errorf("read the record of vault 0x%x: %w", v.GetAddress(), err)
		}
		if !bytes.Equal(r.GetVault().GetAddress(), v.GetAddress()) {
			return nil, &CorruptError{Topic: LogTopic(chainID), Offset: v.GetRecordOffset(), Err: fmt.Errorf(
				"seq %d is not a record of vault 0x%x, although the cursor names it as one: restore both topics from the same "+
					"backup", v.GetRecordSeq(), v.GetAddress())}
		}
		all = append(all, r.GetVault())
	}
	return all, nil
}

// readNext returns the first committed record after a position, or nil if there is none.
func readNext(ctx context.Context, chainID uint64, after Position, options ...kgo.Opt) (found *Entry, err error) {
	enough := errors.New("one record is enough")
	err = ReadAfter(ctx, chainID, after, func(e Entry) error {
		found = &e
		return enough
	}, options...)
	if found != nil {
		return found, nil
	}
	return nil, err
}

// ReadCursor returns the newest committed cursor of the chain, or nil if there is none. The caller must fence the
// previous writer first, since a transaction in flight could otherwise still commit a newer cursor.
func ReadCursor(ctx context.Context, chainID uint64, options ...kgo.Opt) (*event.Cursor, error) {
	topic := CursorTopic(chainID)
	starts, ends, err := Committed(ctx, topic, options)
	if err != nil {
		return nil, err
	}
	first, _ := starts.Lookup(topic, 0)
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(first.Offset)}}
	var newest *kgo.Record
	err = ReadUpTo(ctx, from, ends, func(in *kgo.Record) (stop bool, err error) {
		if !in.Attrs.IsControl() {
			newest = in
		}
		return false, nil
	}, options...)
	if err != nil || newest == nil {
		return nil, err
	}
	cursor := new(event.Cursor)
	if err := proto.Unmarshal(newest.Value, cursor); err != nil {
		return nil, &CorruptError{Topic: topic, Offset: newest.Offset, Err: err}
	}
	if cursor.GetChainId() != chainID {
		return nil, &CorruptError{
			Topic: topic, Offset: newest.Offset, Err: fmt.Errorf("it is of chain %d, not %d", cursor.GetChainId(), chainID),
		}
	}
	return cursor, nil
}

// ReadUpTo calls visit with the committed records and the markers of partitions from the given offsets up to ends,
// until visit stops in a partition. It reads markers because the last offset is one: without them the end is never
// reached.
func ReadUpTo(ctx context.Context, from map[string]map[int32]kgo.Offset, ends kadm.ListedOffsets,
	visit func(*kgo.Record) (stop bool, err error), options ...kgo.Opt) error {
	left, open := map[string]map[int32]kgo.Offset{}, 0
	ends.Each(func(end kadm.ListedOffset) {
		if start, wanted := from[end.Topic][end.Partition]; wanted && start.EpochOffset().Offset < end.Offset {
			if left[end.Topic] == nil {
				left[end.Topic] = map[int32]kgo.Offset{}
			}
			left[end.Topic][end.Partition] = start
			open++
		}
	})
	if open == 0 {
		return nil
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.ConsumePartitions(left), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxBytes(fetchBytes),
	}, options...)...)
	if err != nil {
		return fmt.Errorf("create a Kafka reader of %v: %w", slices.Sorted(maps.Keys(left)), err)
	}
	defer client.Close()
	for open > 0 {
		fetches, err := fetch(ctx, client)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, e := range fetches.Errors() {
			return fmt.Errorf("read partition %d of %s: %w", e.Partition, e.Topic, Explain(e.Err))
		}
		if err != nil {
			return fmt.Errorf("read %v: %w", slices.Sorted(maps.Keys(left)), Explain(err))
		}
		for _, r := range fetches.Records() {
			if _, needed := left[r.Topic][r.Partition]; !needed {
				continue
			}
			end, _ := ends.Lookup(r.Topic, r.Partition)
			stop := r.Offset >= end.Offset
			if !stop {
				if stop, err = visit(r); err != nil {
					return err
				}
			}
			if stop || r.Offset+1 >= end.Offset {
				delete(left[r.Topic], r.Partition)
				open--
			}
		}
	}
	return nil
}

// Settle waits until no transaction is open that was open in a chain's topics at the call. A commit is written to each
// partition separately, so for a moment one topic shows a transaction that another does not show yet. If a writer left
// a transaction open, Settle waits for its timeout. It returns ctx's error if ctx ends first.
func Settle(ctx context.Context, chainID uint64, options ...kgo.Opt) error {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	written, err := listEnds(ctx, adm.ListEndOffsets, Topics(chainID))
	if err != nil {
		return err
	}
	for {
		committed, err := listEnds(ctx, adm.ListCommittedOffsets, Topics(chainID))
		if err != nil || !uncommitted(committed, written) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settlePause):
		}
	}
}

const settlePause = 10 * time.Millisecond

// uncommitted reports whether one of the partitions is committed less far than written.
func uncommitted(committed, written kadm.ListedOffsets) (is bool) {
	written.Each(func(w kadm.ListedOffset) {
		c, _ := committed.Lookup(w.Topic, w.Partition)
		is = is || c.Offset < w.Offset
	})
	return is
}

// Committed returns the offset of the first record and the last stable offset of each partition of a topic.
func Committed(ctx context.Context, topic string, options []kgo.Opt) (starts, ends kadm.ListedOffsets, err error) {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, nil, fmt.Errorf("create a Kafka client: %w", err)
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	if starts, err = listEnds(ctx, adm.ListStartOffsets, []string{topic}); err == nil {
		ends, err = listEnds(ctx, adm.ListCommittedOffsets, []string{topic})
	}
	return starts, ends, err
}

// silence is how long the brokers may send no record, although there are committed ones, before fetch calls them.
// Over a slow network one fetch takes as long. Tests shorten it.
var silence = time.Minute

// fetch waits for committed records that exist. A Kafka client waits forever for brokers that went away, and reports
// nothing, so fetch fails if no broker responds either.
func fetch(ctx context.Context, client *kgo.Client) (kgo.Fetches, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, silence)
		fetches := client.PollRecords(limited, readAtOnce)
		cancel()
		if ctx.Err() != nil || !errors.Is(fetches.Err0(), context.DeadlineExceeded) {
			return fetches, fetchError(ctx, fetches)
		}
		if err := client.Ping(ctx); err != nil {
			return nil, fmt.Errorf("no broker responds: %w", err)
		}
	}
}

func fetchError(ctx context.Context, fetches kgo.Fetches) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, e := range fetches.Errors() {
		return e.Err
	}
	return nil
}
