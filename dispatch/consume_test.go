package dispatch

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// reader returns a reader of a dispatcher, at the positions in PostgreSQL.
func (f *fixture) reader(d *Dispatch) *reader {
	f.Helper()
	r := &reader{d: d, admin: f.admin(), marks: d.marks}
	f.check(r.locate(f.Context()))
	f.check(r.open())
	f.Cleanup(r.client.Close)
	return r
}

// Errors that prevent reading are reported, and nothing counts as read, whether the positions cannot be created or
// cannot be read.
func TestReadReportsErrors(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	fails := func(want string) {
		t.Helper()
		limited, cancel := context.WithTimeout(t.Context(), *patience)
		defer cancel()
		if err := d.read(limited, nil); err == nil || !strings.Contains(err.Error(), want) || !d.health.proven.IsZero() {
			t.Errorf("%v, want: %s; last read at %s", err, want, d.health.proven)
		}
	}
	f.exec("ALTER TABLE position RENAME TO elsewhere")
	fails("create the positions of ")
	f.exec("ALTER TABLE elsewhere RENAME TO position")
	c := registry.DefaultConfig()
	c.URL, c.MaxConns = f.url, 1 // so that the next query uses the session without the table
	one, err := registry.Open(t.Context(), c)
	f.check(err)
	t.Cleanup(one.Close)
	d.queries = db.New(one)
	f.exec(`CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', 'nowhere', false); RETURN NULL; END $$`)
	f.exec("CREATE TRIGGER away AFTER INSERT ON position FOR EACH STATEMENT EXECUTE FUNCTION away()")
	fails("read the positions of ")
}

// Two dispatchers read the same records in turns: the slower one writes nothing, and reads again from the new position.
func TestSlowerReaderContinuesFromThePosition(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	f.partner(7, "")
	const events = 2*pollRecords + 100
	f.deposits(7, 0, events)
	ds := []*Dispatch{f.dispatcher(nil), f.dispatcher(nil)}
	readers := []*reader{f.reader(ds[0]), f.reader(ds[1])}
	name := chainlog.ReferralDeposits(testChain)
	at := func() int64 { return f.number("SELECT next_offset FROM position WHERE topic = $1", name) }
	for before := at(); at() <= 2*events; before = at() { // each record was also aborted once, plus two markers
		for i, r := range readers {
			was := r.next[place{name, 0}]
			f.eventually("records were read", func() bool { // a poll may end without any
				err := r.poll(t.Context())
				if errors.Is(err, errMoved) {
					r = f.reader(ds[i])
					readers[i], err = r, nil
				}
				f.check(err)
				return r.next[place{name, 0}] != was
			})
			if next := r.next[place{name, 0}]; next != at() || at() < before {
				t.Fatalf("the position moved from %d to %d, but reader %d continues at %d", before, at(), i, next)
			}
		}
	}
	if inserted, known := ds[0].recordCount(recordInserted)+ds[1].recordCount(recordInserted),
		ds[0].recordCount(recordKnown)+ds[1].recordCount(recordKnown); inserted != events || known != 0 {
		t.Errorf("%v inserted, and %v read twice", inserted, known)
	}
}

// If the start of a partition is unknown, a position out of range stays, and the error is reported.
func TestRewindWithoutAStart(t *testing.T) {
	t.Parallel()
	f, broker := newFixtureWithBroker(t)
	r := f.reader(f.dispatcher(nil))
	r.d.timing.database = time.Second // the client retries a rejected request for longer
	refuse, refused := refusesOffsets(broker)
	for _, whole := range []bool{false, true} {
		refuse(-2, whole)
		before := refused()
		err := r.rewind(t.Context(), place{chainlog.ReferralDeposits(testChain), 0})
		rewound := strings.Contains(f.logged.String(), "reading it from the start")
		if err == nil || !strings.Contains(err.Error(), "read the start of ") || refused() == before || rewound {
			t.Errorf("the whole request is rejected: %v; %v\n%s", whole, err, f.logged)
		}
	}
}

// If another dispatcher has moved a position that is out of range, the position stays, and nothing counts as lost.
func TestRewindOfAMovedPosition(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	r := f.reader(d)
	f.exec("UPDATE position SET next_offset = 5")
	at := place{chainlog.ReferralDeposits(testChain), 0}
	if err := r.rewind(t.Context(), at); !errors.Is(err, errMoved) || r.next[at] != 0 {
		t.Errorf("%v, and the reader continues at %d", err, r.next[at])
	}
	if n := f.number("SELECT count(*) FROM position WHERE next_offset <> 5"); n != 0 || f.logged.String() != "" {
		t.Errorf("%d positions were moved\n%s", n, f.logged)
	}
}

// If another dispatcher moves the positions while this one finds its own out of range, this one leaves them as they are,
// and reads again.
func TestPollAfterAMove(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	f.reader(d) // creates the positions
	f.exec("UPDATE position SET next_offset = 8")
	r := f.reader(d)
	f.exec("UPDATE position SET next_offset = 5")
	f.eventually("the reader notices it", func() bool {
		err := r.poll(t.Context())
		if err != nil && !errors.Is(err, errMoved) {
			t.Fatal(err)
		}
		return err != nil
	})
	if n := f.number("SELECT count(*) FROM position WHERE next_offset <> 5"); n != 0 || f.logged.String() != "" {
		t.Errorf("%d positions were moved, and it logged %s", n, f.logged)
	}
}

// Brokers elect a replica without the last records, and others are written at their offsets before a reader looks there
// again: the partition is read from its start, because the position has moved past records that were not read. If the
// start cannot be looked up at first, the next reader finds the same.
func TestTruncatedPartition(t *testing.T) {
	t.Parallel()
	f, broker := newFixtureWithBroker(t)
	f.onePartition()
	f.partner(7, "")
	d := f.start(nil)
	f.deposits(7, 0, 3)
	f.eventually("accepted", f.in(registry.NoEndpoint, 3))
	broker.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		r := request.(*kmsg.OffsetForLeaderEpochRequest)
		answer := r.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		for _, topic := range r.Topics {
			t := kmsg.NewOffsetForLeaderEpochResponseTopic()
			t.Topic = topic.Topic
			for _, partition := range topic.Partitions {
				p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				p.Partition, p.LeaderEpoch, p.EndOffset = partition.Partition, partition.LeaderEpoch, 1
				t.Partitions = append(t.Partitions, p)
			}
			answer.Topics = append(answer.Topics, t)
		}
		return answer, nil, true
	})
	refuse, _ := refusesOffsets(broker)
	refuse(-2, false)
	broker.ShufflePartitionLeaders()
	f.eventually("the start is unknown", func() bool { return strings.Contains(f.logged.String(), "read the start of ") })
	refuse(0, false)
	f.eventually("all is read again", func() bool { return d.recordCount(recordKnown) == 3 })
	f.contiguous(7, 3)
}

// A reader begins with the epoch of a position only if this dispatcher has committed that position in that topic:
// another dispatcher may have read records of later epochs since, which would look truncated.
func TestFromACommittedPosition(t *testing.T) {
	id := uuid.New()
	r := &reader{
		marks:  map[source]mark{{id, 0}: {7, 3}, {uuid.New(), 1}: {7, 3}},
		topics: map[string]topic{"t": {id, 2}},
	}
	for _, c := range []struct {
		partition int32
		offset    int64
		epoch     int32
	}{{0, 7, 3}, {0, 9, -1}, {0, 5, -1}, {1, 7, -1}} {
		want := kgo.EpochOffset{Epoch: c.epoch, Offset: c.offset}
		if from := r.from(place{"t", c.partition}, c.offset).EpochOffset(); from != want {
			t.Errorf("partition %d: %+v, want %+v", c.partition, from, want)
		}
	}
}

// The lag counts only records that are written and not read yet: a partition whose end is before its position does not
// reduce the lag of the others.
func TestLag(t *testing.T) {
	r := &reader{
		ends: map[place]int64{{"t", 0}: 10, {"t", 1}: 5, {"u", 0}: 4},
		next: map[place]int64{{"t", 0}: 7, {"t", 1}: 9, {"u", 0}: 3},
	}
	if n := r.lag(); n != 4 {
		t.Errorf("%d are not read", n)
	}
}

// An abort marker is a control record of type 0.
func TestAborts(t *testing.T) {
	control, data := kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true, Control: true}),
		kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true})
	for _, c := range []struct {
		attrs kgo.RecordAttrs
		key   []byte
		want  bool
	}{
		{control, []byte{0, 0, 0, 0}, true},
		{control, []byte{0, 1, 0, 0, 9}, true},
		{data, []byte{0, 0, 0, 0}, false},
		{control, []byte{0, 0, 0, 1}, false},
		{control, []byte{0, 0, 1, 0}, false},
		{control, []byte{0, 0, 0}, false},
		{control, nil, false},
	} {
		if got := aborts(&kgo.Record{Attrs: c.attrs, Key: c.key}); got != c.want {
			t.Errorf("key %v, control %v: %v", c.key, c.attrs == control, got)
		}
	}
}

// Of several partitions that are read at once, each keeps its own state.
func TestBatchesOfSeveralPartitions(t *testing.T) {
	id := uuid.New()
	r := &reader{
		topics: map[string]topic{"t": {id, 2}}, next: map[place]int64{{"t", 0}: 10, {"t", 1}: 20},
		ends: map[place]int64{}, given: map[place]bool{},
	}
	fetch := kgo.FetchTopic{Topic: "t"}
	for partition, first := range []int64{10, 20} {
		marker := &kgo.Record{
			Topic: "t", Offset: first + 1, Attrs: kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true, Control: true}),
			Key: []byte{0, 0, 0, 1},
		}
		fetch.Partitions = append(fetch.Partitions, kgo.FetchPartition{
			Partition: int32(partition), HighWatermark: first + 7, Records: []*kgo.Record{{Topic: "t", Offset: first}, marker},
		})
	}
	batches, err := r.batches(kgo.Fetches{{Topics: []kgo.FetchTopic{fetch}}})
	if err != nil || len(batches) != 2 {
		t.Fatalf("%+v, %v", batches, err)
	}
	for n, p := range batches {
		at := place{"t", int32(n)}
		from := r.next[at]
		if p.place != at || p.id != id || p.from != from || p.to != from+2 || len(p.records) != 1 {
			t.Errorf("%+v", p)
		}
	}
	given := map[place]bool{{"t", 0}: true, {"t", 1}: true}
	if !maps.Equal(r.ends, map[place]int64{{"t", 0}: 17, {"t", 1}: 27}) || !maps.Equal(r.given, given) {
		t.Errorf("ends %v, given %v", r.ends, r.given)
	}
}
