package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Referrals of another log than the one that deliveries were made of are refused
// with a sentence that says what to do; what is before them is delivered, in each
// partition. When an operator says so, the other log is gone on with, and what is
// in both is not told again.
func TestAnotherLogIsRefused(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(ok)
	f.partner(7, r.url)
	const other = "another log, new"
	of := func(log string, n int) []byte {
		x := deposit(t, 7, n)
		x.LogId = []byte(log)
		return encode(t, x)
	}
	d := f.start(nil)
	f.produce(chainlog.ReferralDeposits(testChain), of(testLog, 0))
	f.eventually("delivered", f.in(registry.Delivered, 1))
	var mixed [][]byte
	for n := 1; n < 10; n++ { // in every partition, one behind the other
		mixed = append(mixed, of(testLog, n))
	}
	for n := 5; n < 20; n++ { // some of them again
		mixed = append(mixed, of(other, n))
	}
	f.produce(chainlog.ReferralDeposits(testChain), mixed...)
	f.produce(chainlog.ReferralDeposits(testChain), []byte("poison behind it"))
	f.eventually("what is of the log is delivered", f.in(registry.Delivered, 10))
	f.eventually("the other is refused", func() bool {
		reason := d.Status().Reason
		return d.Ready() != nil && strings.Contains(reason, fmt.Sprintf("navlog webhook follow-log %x", other)) && strings.Contains(reason, fmt.Sprintf("made of the log %x", testLog))
	})
	if n := f.number("SELECT count(*) FROM position WHERE log_id <> $1", []byte(testLog)); n != 0 {
		t.Errorf("%d positions are of another log", n)
	}
	if n := f.number("SELECT count(*) FROM delivery"); n != 10 {
		t.Errorf("%d deliveries", n)
	}
	if _, err := f.queries.FollowLog(t.Context(), []byte(other)); err != nil {
		t.Fatal(err)
	}
	f.eventually("the rest is delivered", f.in(registry.Delivered, 20))
	f.eventually("ready", func() bool { return d.Ready() == nil })
	if n := len(r.got()); n != 20 {
		t.Errorf("%d requests for 20 events", n)
	}
	f.contiguous(7, 20)
	f.eventually("the poison is found", func() bool { return f.number("SELECT count(*) FROM dead_record") == 1 })
}

// Partners that are created later find what is in the log that is followed.
func TestEarlierEventsAreOfTheFollowedLog(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(ok)
	f.partner(8, r.url)
	f.start(nil)
	x := deposit(t, 7, 1)
	x.LogId = []byte("an abandoned log")
	f.produce(chainlog.ReferralDeposits(testChain), encode(t, x))
	f.eventually("read", func() bool { return f.number("SELECT count(*) FROM position WHERE log_id = $1", x.LogId) == 1 })
	if _, err := f.queries.FollowLog(t.Context(), []byte(testLog)); err != nil {
		t.Fatal(err)
	}
	f.deposits(7, 2, 4)
	f.deposits(8, 4, 5)
	f.eventually("gone on", f.in(registry.Delivered, 1))
	f.eventually("all is read", func() bool { return f.number("SELECT count(*) FROM position WHERE log_id = $1", []byte(testLog)) >= 1 })
	f.partner(7, r.url)
	f.eventually("found", func() bool { return f.number("SELECT count(*) FROM adopted WHERE partner_id = 7") == 1 })
	f.eventually("those of the followed log", func() bool { return f.number("SELECT count(*) FROM delivery WHERE partner_id = 7") == 2 })
	f.contiguous(7, 2)
}

// Two chains on one Kafka cluster never meet: each dispatcher reads its own chain's
// topics, and nothing of the other's is dead to it.
func TestTwoChainsOnOneCluster(t *testing.T) {
	brokers := enginetest.Kafka(t)
	one, two := newFixtureIn(t, brokers, enginetest.Postgres(t)), newFixtureIn(t, brokers, enginetest.Postgres(t))
	const secondChain = 1
	if err := chainlog.EnsureTopics(t.Context(), two.admin(), secondChain, two.kafka.Topology()); err != nil {
		t.Fatal(err)
	}
	events := map[*fixture]int{one: 20, two: 30}
	receivers := map[*fixture]*receiver{}
	for _, f := range slices.Collect(maps.Keys(events)) {
		receivers[f] = f.receiver(ok)
		f.partner(7, receivers[f].url)
	}
	one.start(nil)
	two.start(func(d *Dispatch) { d.config.ChainID = secondChain })
	one.deposits(7, 0, events[one])
	var values [][]byte
	for n := range events[two] {
		x := deposit(t, 7, n)
		x.ChainId, x.LogId = secondChain, []byte("the second's log")
		values = append(values, encode(t, x))
	}
	two.produce(chainlog.ReferralDeposits(secondChain), values...)
	for f, n := range events {
		f.eventually("its own are delivered", f.in(registry.Delivered, n))
		if dead := f.number("SELECT count(*) FROM dead_record"); dead != 0 || len(receivers[f].got()) != n {
			t.Errorf("%d dead records, %d requests for %d events", dead, len(receivers[f].got()), n)
		}
	}
}

// An operator's word for another log moves no position, and what was read before it
// moves none either.
func TestFollowLogMovesNothing(t *testing.T) {
	f := newFixture(t)
	topic := uuid.New()
	f.exec("INSERT INTO position (topic_id, partition, topic, next_offset, log_id) VALUES ($1, 0, 't', 5, $2), ($1, 1, 't', 6, NULL)", topic, []byte(testLog))
	if n, err := f.queries.FollowLog(t.Context(), []byte("another log, new")); err != nil || n != 1 {
		t.Errorf("%d positions, %v", n, err)
	}
	id := f.number("SELECT count(*) FROM position WHERE partition = 0 AND log_id = $1 AND next_offset = 5", []byte("another log, new"))
	none := f.number("SELECT count(*) FROM position WHERE partition = 1 AND log_id IS NULL AND next_offset = 6")
	if id != 1 || none != 1 {
		t.Error("positions moved, or one of no log is of one now")
	}
	// What was read before the word is not accepted behind it.
	n, err := f.queries.MovePosition(t.Context(), db.MovePositionParams{TopicID: topic, Partition: 0, ReadOffset: 5, NextOffset: 9, LogID: []byte(testLog)})
	if err != nil || n != 0 {
		t.Errorf("a position was moved with the log before: %d, %v", n, err)
	}
}

// Positions are locked in one order, by those who move them (accept) and by those who ask how far they are (adopt):
// in two orders they would deadlock.
func TestPositionsAreLockedInOneOrder(t *testing.T) {
	f := newFixture(t)
	var parcels []parcel
	for i := range 40 { // the names in another order than the ids
		p := parcel{topic: fmt.Sprintf("t%02d", i/2), id: uuid.New(), partition: int32(40 - i)}
		if i%2 == 1 {
			p.id = parcels[i-1].id
		}
		parcels = append(parcels, p)
		f.exec("INSERT INTO position (topic_id, partition, topic, next_offset) VALUES ($1, $2, $3, 0)", p.id, p.partition, p.topic)
	}
	var ids []uuid.UUID
	for _, p := range parcels {
		ids = append(ids, p.id)
	}
	rows, err := f.queries.PositionsPassed(t.Context(), ids)
	f.check(err)
	slices.SortFunc(parcels, byPosition)
	if len(rows) != len(parcels) {
		t.Fatalf("%d positions of %d", len(rows), len(parcels))
	}
	for i, p := range parcels {
		if rows[i].TopicID != p.id || rows[i].Partition != p.partition {
			t.Fatalf("place %d: PostgreSQL locks partition %d of %s, and accept partition %d of %s", i, rows[i].Partition, rows[i].TopicID, p.partition, p.id)
		}
	}
}

// parcel is what was read of a partition whose position is at 0.
func (f *fixture) parcel(partition int32, values ...[]byte) parcel {
	f.Helper()
	name := chainlog.ReferralDeposits(testChain)
	p := parcel{topic: name, id: uuid.NewSHA1(uuid.Nil, []byte(name)), partition: partition, to: int64(len(values))}
	f.check(f.queries.CreatePositions(f.Context(), db.CreatePositionsParams{TopicID: p.id, Topic: name, Partitions: []int32{partition}}))
	for n, value := range values {
		p.records = append(p.records, &kgo.Record{Topic: name, Partition: partition, Offset: int64(n), Value: value})
	}
	return p
}

// accept moves positions in that order, in whatever order they were read: while it waits
// for the first it has locked no other.
func TestAcceptLocksInThatOrder(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	last, first := f.parcel(2), f.parcel(1)
	last.to, first.to = 20, 10
	holder := f.hold("SELECT FROM position WHERE partition = 1 FOR UPDATE")
	accepted := make(chan error, 1)
	go func() { accepted <- d.accept(context.WithoutCancel(t.Context()), []parcel{last, first}) }()
	f.eventually("it waits", func() bool {
		return f.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
	})
	if n := f.number("SELECT count(*) FROM (SELECT FROM position WHERE partition = 2 FOR UPDATE SKIP LOCKED) free"); n != 1 {
		t.Error("the last position is locked before the first")
	}
	f.check(holder.Rollback(t.Context()))
	f.check(<-accepted)
	if n := f.number("SELECT sum(next_offset) FROM position"); n != 30 {
		t.Errorf("the positions are at %d together", n)
	}
}

// Where nothing but another log's referrals was read, that is refused too, and nothing is
// done about what is behind them: it is not read yet.
func TestNothingButAnotherLog(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	f.partner(7, "")
	f.check(d.accept(t.Context(), []parcel{f.parcel(0, encode(t, deposit(t, 7, 0)))}))
	x := deposit(t, 7, 1)
	x.LogId = []byte("another log, new")
	if err := d.accept(t.Context(), []parcel{f.parcel(1, encode(t, x), []byte("poison"), encode(t, deposit(t, 7, 2)))}); err == nil || !strings.Contains(err.Error(), "navlog webhook follow-log") {
		t.Errorf("another log is no mistake: %v", err)
	}
	mixed := f.parcel(2, encode(t, deposit(t, 7, 3)), encode(t, x), []byte("poison"), encode(t, deposit(t, 7, 4)))
	if err := d.accept(t.Context(), []parcel{mixed}); err == nil || !strings.Contains(err.Error(), "navlog webhook follow-log") {
		t.Errorf("another log behind ours is no mistake: %v", err)
	}
	at := f.text("SELECT string_agg(next_offset::text, ' ' ORDER BY partition) FROM position")
	if n, dead := f.number("SELECT count(*) FROM delivery"), f.number("SELECT count(*) FROM dead_record"); at != "1 0 1" || n != 2 || dead != 0 {
		t.Errorf("the positions are at %s, with %d deliveries and %d dead records", at, n, dead)
	}
}

// What was accepted wakes the lanes that have something to send, without another look
// for work; and so does what another dispatcher was faster with, for the lane may be here.
func TestWhatIsAcceptedWakesItsLane(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "https://receiver.invalid/hook")
	f.partner(8, "")
	d := f.dispatcher(nil)
	for _, p := range []int64{7, 8} {
		d.lanes[p] = lane.New(d.shared, p)
	}
	read := f.parcel(0, encode(t, deposit(t, 7, 0)), encode(t, deposit(t, 8, 1)))
	f.check(d.accept(t.Context(), []parcel{read}))
	if !d.lanes[7].Woken() || d.lanes[8].Woken() {
		t.Errorf("woken: the lane of 7 %v, that of 8, who has no URL, %v", d.lanes[7].Woken(), d.lanes[8].Woken())
	}
	slower := f.dispatcher(nil)
	f.check(slower.endpoints.check(t.Context()))
	slower.lanes[7] = lane.New(slower.shared, 7)
	if err := slower.accept(t.Context(), []parcel{read}); !errors.Is(err, errMoved) || !slower.lanes[7].Woken() {
		t.Errorf("the slower one's lane is woken: %v; %v", slower.lanes[7].Woken(), err)
	}
	if n := f.number("SELECT count(*) FROM delivery"); n != 2 {
		t.Errorf("%d deliveries", n)
	}
}

// A client that leaves out what is due, as one that did not go back when it was told to, moves no position.
func TestPositionsMoveOverNothing(t *testing.T) {
	r := &reader{
		topics: map[string]topic{"t": {uuid.New(), 2}},
		next:   map[string]map[int32]int64{"t": {0: 10, 1: 10}},
		ends:   map[string]map[int32]int64{}, given: map[string]map[int32]bool{},
	}
	fetched := func(partition int32, offsets ...int64) kgo.Fetches {
		p := kgo.FetchPartition{Partition: partition, HighWatermark: 100}
		for _, o := range offsets {
			p.Records = append(p.Records, &kgo.Record{Topic: "t", Partition: partition, Offset: o})
		}
		return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "t", Partitions: []kgo.FetchPartition{p}}}}}
	}
	marker := func(kind byte, fetches kgo.Fetches) kgo.Fetches { // the first record is one
		first := fetches[0].Topics[0].Partitions[0].Records[0]
		first.Attrs, first.Key = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true, Control: true}), []byte{0, 0, 0, kind}
		return fetches
	}
	for _, c := range []struct {
		what    string
		fetches kgo.Fetches
		to      int64 // 0: refused
	}{
		{"what is due", fetched(0, 10, 11), 12},
		{"what was given before", fetched(0, 8, 9), 10},
		{"what is not due yet", fetched(0, 12, 13), 0},
		{"behind the records of an aborted transaction its marker", marker(0, fetched(0, 12, 13)), 14},
		{"behind a committed one its marker", marker(1, fetched(0, 12, 13)), 0},
		{"a client's first", fetched(1, 13, 14), 15},
		{"after it", fetched(1, 15), 0}, // the position did not move here
	} {
		parcels, err := r.parcels(c.fetches)
		switch {
		case c.to == 0 && (err == nil || len(parcels) > 0 || !strings.Contains(err.Error(), "and not at its position 10")):
			t.Errorf("%s: %v, %v", c.what, parcels, err)
		case c.to > 0 && (err != nil || len(parcels) != 1 || parcels[0].from != 10 || parcels[0].to != c.to):
			t.Errorf("%s: %+v, %v", c.what, parcels, err)
		}
	}
}
