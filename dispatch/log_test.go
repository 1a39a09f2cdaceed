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
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Referrals of another log than that of the earlier deliveries are rejected with an error
// that names the command to run; the records before them are delivered, in each partition.
// After an operator runs the command, the other log is followed, and events that are in
// both logs are not sent again.
func TestAnotherLogIsRejected(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
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
	for n := 1; n < 10; n++ { // in every partition, one after the other
		mixed = append(mixed, of(testLog, n))
	}
	for n := 5; n < 20; n++ { // some of them again
		mixed = append(mixed, of(other, n))
	}
	f.produce(chainlog.ReferralDeposits(testChain), mixed...)
	f.produce(chainlog.ReferralDeposits(testChain), []byte("poison after it"))
	f.eventually("the followed log is delivered", f.in(registry.Delivered, 10))
	f.eventually("the other log is rejected", func() bool {
		reason := d.Status().Reason
		return d.Ready() != nil && strings.Contains(reason, fmt.Sprintf("navlog webhook follow-log %x", other)) &&
			strings.Contains(reason, fmt.Sprintf("made of the log %x", testLog))
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

// A new partner's backfill finds its earlier events in the followed log only.
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
	f.eventually("the followed log is delivered", f.in(registry.Delivered, 1))
	f.eventually("all partitions are read",
		func() bool { return f.number("SELECT count(*) FROM position WHERE log_id = $1", []byte(testLog)) >= 1 })
	f.partner(7, r.url)
	f.eventually("backfilled", func() bool { return f.number("SELECT count(*) FROM adopted WHERE partner_id = 7") == 1 })
	f.eventually("those of the followed log",
		func() bool { return f.number("SELECT count(*) FROM delivery WHERE partner_id = 7") == 2 })
	f.contiguous(7, 2)
}

// Two chains on one Kafka cluster never mix: each dispatcher reads its own chain's topics,
// and the other chain causes no dead letter.
func TestTwoChainsOnOneCluster(t *testing.T) {
	brokers := enginetest.Kafka(t)
	one, two := newFixtureIn(t, brokers, registrytest.Postgres(t)), newFixtureIn(t, brokers, registrytest.Postgres(t))
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
		f.eventually("its own events are delivered", f.in(registry.Delivered, n))
		if dead := f.number("SELECT count(*) FROM dead_record"); dead != 0 || len(receivers[f].got()) != n {
			t.Errorf("%d dead records, %d requests for %d events", dead, len(receivers[f].got()), n)
		}
	}
}

// FollowLog moves no position, and neither does a batch that was read before it.
func TestFollowLogMovesNothing(t *testing.T) {
	f := newFixture(t)
	topic := uuid.New()
	f.exec("INSERT INTO position (topic_id, partition, topic, next_offset, log_id) VALUES ($1, 0, 't', 5, $2), ($1, 1, "+
		"'t', 6, NULL)", topic, []byte(testLog))
	if n, err := f.queries.FollowLog(t.Context(), []byte("another log, new")); err != nil || n != 1 {
		t.Errorf("%d positions, %v", n, err)
	}
	id := f.number(
		"SELECT count(*) FROM position WHERE partition = 0 AND log_id = $1 AND next_offset = 5", []byte("another log, new"),
	)
	none := f.number("SELECT count(*) FROM position WHERE partition = 1 AND log_id IS NULL AND next_offset = 6")
	if id != 1 || none != 1 {
		t.Error("positions moved, or one without a log has one now")
	}
	// A batch that was read before FollowLog is not accepted after it.
	n, err := f.queries.MovePosition(t.Context(), db.MovePositionParams{
		TopicID: topic, Partition: 0, ReadOffset: 5, NextOffset: 9, LogID: []byte(testLog),
	})
	if err != nil || n != 0 {
		t.Errorf("a position moved with the old log: %d, %v", n, err)
	}
}

// accept and the backfill lock positions in the same order; otherwise they could deadlock.
func TestPositionsAreLockedInOneOrder(t *testing.T) {
	f := newFixture(t)
	var batches []readBatch
	for i := range 40 { // the names sort differently from the ids
		p := readBatch{place: place{fmt.Sprintf("t%02d", i/2), int32(40 - i)}, id: uuid.New()}
		if i%2 == 1 {
			p.id = batches[i-1].id
		}
		batches = append(batches, p)
		f.exec(
			"INSERT INTO position (topic_id, partition, topic, next_offset) VALUES ($1, $2, $3, 0)", p.id, p.partition, p.topic,
		)
	}
	var ids []uuid.UUID
	for _, p := range batches {
		ids = append(ids, p.id)
	}
	rows, err := f.queries.PositionsPassed(t.Context(), ids)
	f.check(err)
	slices.SortFunc(batches, byPosition)
	if len(rows) != len(batches) {
		t.Fatalf("%d positions of %d", len(rows), len(batches))
	}
	for i, p := range batches {
		if rows[i].TopicID != p.id || rows[i].Partition != p.partition {
			t.Fatalf(
				"position %d: PostgreSQL locks partition %d of %s, but accept partition %d of %s", i, rows[i].Partition,
				rows[i].TopicID, p.partition, p.id,
			)
		}
	}
}

// batch returns what was read of a partition whose position is 0.
func (f *fixture) batch(partition int32, values ...[]byte) readBatch {
	f.Helper()
	name := chainlog.ReferralDeposits(testChain)
	p := readBatch{place: place{name, partition}, id: uuid.NewSHA1(uuid.Nil, []byte(name)), to: int64(len(values))}
	f.check(f.queries.CreatePositions(
		f.Context(), db.CreatePositionsParams{TopicID: p.id, Topic: name, Partitions: []int32{partition}},
	))
	for n, value := range values {
		p.records = append(p.records, &kgo.Record{Topic: name, Partition: partition, Offset: int64(n), Value: value})
	}
	return p
}

// accept locks positions in that order, for any order of its batches: while it waits for the first one it has locked no
// other.
func TestAcceptLocksInThatOrder(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	last, first := f.batch(2), f.batch(1)
	last.to, first.to = 20, 10
	holder := f.hold("SELECT FROM position WHERE partition = 1 FOR UPDATE")
	accepted := make(chan error, 1)
	go func() { accepted <- d.accept(context.WithoutCancel(t.Context()), []readBatch{last, first}) }()
	f.eventually("accept waits", func() bool {
		return f.number("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = "+
			"'Lock'") == 1
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

// A batch with only referrals of another log is rejected too, and the records after them stay unread.
func TestOnlyAnotherLog(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	f.partner(7, "")
	f.check(d.accept(t.Context(), []readBatch{f.batch(0, encode(t, deposit(t, 7, 0)))}))
	x := deposit(t, 7, 1)
	x.LogId = []byte("another log, new")
	if err := d.accept(
		t.Context(), []readBatch{f.batch(1, encode(t, x), []byte("poison"), encode(t, deposit(t, 7, 2)))},
	); err == nil || !strings.Contains(err.Error(), "navlog webhook follow-log") {
		t.Errorf("another log is accepted: %v", err)
	}
	mixed := f.batch(2, encode(t, deposit(t, 7, 3)), encode(t, x), []byte("poison"), encode(t, deposit(t, 7, 4)))
	if err := d.accept(
		t.Context(), []readBatch{mixed},
	); err == nil || !strings.Contains(err.Error(), "navlog webhook follow-log") {
		t.Errorf("another log after the followed one is accepted: %v", err)
	}
	at := f.text("SELECT string_agg(next_offset::text, ' ' ORDER BY partition) FROM position")
	if n, dead := f.number("SELECT count(*) FROM delivery"), f.number("SELECT count(*) FROM dead_record"); at != "1 0 1" ||
		n != 2 || dead != 0 {
		t.Errorf("the positions are at %s, with %d deliveries and %d dead records", at, n, dead)
	}
}

// accept wakes the lanes that have new deliveries, without waiting for findWork.
func TestAcceptWakesLanes(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "https://receiver.invalid/hook")
	f.partner(8, "")
	d := f.dispatcher(nil)
	for _, p := range []int64{7, 8} {
		d.lanes[p] = lane.New(d.shared, p)
	}
	read := f.batch(0, encode(t, deposit(t, 7, 0)), encode(t, deposit(t, 8, 1)))
	f.check(d.accept(t.Context(), []readBatch{read}))
	if !d.lanes[7].Woken() || d.lanes[8].Woken() {
		t.Errorf("woken: lane 7 %v, lane 8, without a URL, %v", d.lanes[7].Woken(), d.lanes[8].Woken())
	}
	if err := f.dispatcher(nil).accept(t.Context(), []readBatch{read}); !errors.Is(err, errMoved) {
		t.Errorf("a dispatcher that is slower: %v", err)
	}
	if n := f.number("SELECT count(*) FROM delivery"); n != 2 {
		t.Errorf("%d deliveries", n)
	}
}

// A client that skips due records moves no position.
func TestPositionsNeverSkipRecords(t *testing.T) {
	r := &reader{
		topics: map[string]topic{"t": {uuid.New(), 2}},
		next:   map[place]int64{{"t", 0}: 10, {"t", 1}: 10},
		ends:   map[place]int64{}, given: map[place]bool{},
	}
	fetched := func(partition int32, offsets ...int64) kgo.Fetches {
		p := kgo.FetchPartition{Partition: partition, HighWatermark: 100}
		for _, o := range offsets {
			p.Records = append(p.Records, &kgo.Record{Topic: "t", Partition: partition, Offset: o})
		}
		return kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: "t", Partitions: []kgo.FetchPartition{p}}}}}
	}
	marker := func(kind byte, fetches kgo.Fetches) kgo.Fetches { // makes the first record a marker
		first := fetches[0].Topics[0].Partitions[0].Records[0]
		first.Attrs, first.Key = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true, Control: true}), []byte{
			0, 0, 0, kind,
		}
		return fetches
	}
	for _, c := range []struct {
		what    string
		fetches kgo.Fetches
		to      int64 // 0: an error
	}{
		{"at the position", fetched(0, 10, 11), 12},
		{"before the position", fetched(0, 8, 9), 10},
		{"after the position", fetched(0, 12, 13), 0},
		{"an abort marker after the aborted records", marker(0, fetched(0, 12, 13)), 14},
		{"a commit marker after a gap", marker(1, fetched(0, 12, 13)), 0},
		{"a client's first records", fetched(1, 13, 14), 15},
		{"the next records", fetched(1, 15), 0}, // the position did not move here
	} {
		batches, err := r.batches(c.fetches)
		switch {
		case c.to == 0 && (err == nil || len(batches) > 0 || !strings.Contains(err.Error(), "instead of its position 10")):
			t.Errorf("%s: %v, %v", c.what, batches, err)
		case c.to > 0 && (err != nil || len(batches) != 1 || batches[0].from != 10 || batches[0].to != c.to):
			t.Errorf("%s: %+v, %v", c.what, batches, err)
		}
	}
}
