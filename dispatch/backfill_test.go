package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
)

// Unknown partner ids in the chain cost no row, lease or lane, even while a dispatcher
// runs; known partners are served as usual.
func TestSpamOfUnknownPartners(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	first, second := f.start(nil), f.start(nil)
	const spam = 3000
	var values [][]byte
	for n := range spam {
		values = append(values, encode(t, deposit(t, uint32(1000+n), n)))
	}
	f.produce(chainlog.ReferralDeposits(testChain), values...)
	f.deposits(7, spam, spam+10)
	f.eventually("the partner's events are delivered", f.in(registry.Delivered, 10))
	f.eventually("all is read", func() bool {
		return first.recordCount(recordUnclaimed)+second.recordCount(recordUnclaimed) == spam
	})
	for _, table := range []string{"delivery", "stream", "job_lease", "adopted", "breaker", "dead_record"} {
		want := int64(map[string]int{"delivery": 10, "stream": 1, "job_lease": 2, "adopted": 1}[table])
		if n := f.number("SELECT count(*) FROM " + table); n != want {
			t.Errorf("%d rows of %s, want %d", n, table, want)
		}
	}
	if n := first.Status().Lanes + second.Status().Lanes; n > 1 {
		t.Errorf("%d lanes for one partner", n)
	}
}

// A new partner's earlier events are backfilled: listed, pulled and replayable like other
// deliveries without an endpoint. New events are sent automatically, and nothing is sent
// twice, even if several partners are created and the dispatcher ends in between.
func TestEarlierEventsOfANewPartner(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(ok)
	before := f.dispatcher(nil)
	stop := f.run(before)
	const earlier, partners = 700, 3
	for p := range uint32(partners) {
		f.deposits(p+1, int(p)*10_000, int(p)*10_000+earlier)
	}
	f.produce(chainlog.ReferralWithdrawals(testChain), encode(t, withdrawal(t, 1, 5000)))
	f.eventually("all are skipped", func() bool { return before.recordCount(recordUnclaimed) == partners*earlier+1 })
	if n := f.number("SELECT count(*) FROM delivery"); n != 0 {
		t.Fatalf("%d deliveries for unknown partners", n)
	}
	f.partner(1, r.url)
	stop()
	d := f.start(nil)
	for p := range uint32(partners) {
		if p > 0 {
			f.partner(int64(p)+1, r.url)
		}
		f.deposits(p+1, int(p)*10_000+earlier, int(p)*10_000+earlier+20) // possibly during the backfill
	}
	f.eventually("the earlier events exist, the new ones are delivered", func() bool {
		s := f.states()
		return s[registry.NoEndpoint] == partners*earlier+1 && s[registry.Delivered] == partners*20
	})
	f.contiguous(1, earlier+1+20)
	f.contiguous(2, earlier+20)
	f.eventually("all partners are backfilled",
		func() bool { return f.number("SELECT count(*) FROM adopted") == partners })
	f.exec("INSERT INTO command (partner_id, kind, first_sequence, last_sequence, only_state) VALUES (2, " +
		"'replay-range', 1, 100000, 'no_endpoint')")
	f.eventually("replayed", f.in(registry.Delivered, partners*20+earlier))
	var ids []string
	for _, c := range r.got() {
		ids = append(ids, c.id())
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) || n != partners*20+earlier {
		t.Errorf("%d requests of %d events", len(ids), n)
	}
	f.eventually("ready", func() bool { return d.Ready() == nil })
}

// An earlier event of a new partner that cannot become a delivery, here because its amount is too large, is a dead letter
// like any other: it is stored, counted and logged.
func TestEarlierEventsThatAreDeadLetters(t *testing.T) {
	f := newFixture(t)
	d := f.start(nil)
	f.produce(chainlog.ReferralDeposits(testChain), encode(t, deposit(t, 7, 1)),
		encode(t, referral(t, event.Referral_KIND_DEPOSIT, 7, 2, contracts.DepositAccepted{
			DepositID: big.NewInt(2), Owner: userAddress, PartnerID: 7, Sender: userAddress,
			Assets: new(big.Int).Lsh(big.NewInt(1), 191), Shares: big.NewInt(1),
		})))
	f.eventually("both are skipped", func() bool { return d.recordCount(recordUnclaimed) == 2 })
	f.partner(7, "")
	f.eventually("backfilled", func() bool { return f.number("SELECT count(*) FROM adopted") == 1 })
	if f.states()[registry.NoEndpoint] != 1 || f.number("SELECT count(*) FROM dead_record WHERE reason = $1",
		recordQuarantined) != 1 {
		t.Errorf("deliveries %v, %d dead records", f.states(), f.number("SELECT count(*) FROM dead_record"))
	}
	if n := d.recordCount(recordQuarantined); n != 1 || strings.Count(f.logged.String(), "see dead_record") != 1 {
		t.Errorf("%v dead letters are counted, and the log is\n%s", n, f.logged)
	}
}

// A partner counts as backfilled only when all of its earlier events exist: if they cannot be
// read or written, the error is reported and the backfill is retried.
func TestBackfillThatFails(t *testing.T) {
	f := newFixture(t)
	before := f.dispatcher(nil)
	stop := f.run(before)
	f.deposits(7, 0, 50)
	f.eventually("all are skipped", func() bool { return before.recordCount(recordUnclaimed) == 50 })
	stop()
	f.partner(7, "")
	d := f.dispatcher(nil)
	const what = "backfill new partners"
	adopted := func() int64 { return f.number("SELECT count(*) FROM adopted") }
	fails := func(want string) {
		t.Helper()
		d.backfill(t.Context())
		if faults := d.health.noted[fault{what: what}]; faults == nil || !strings.Contains(faults.Error(), want) ||
			adopted() != 0 {
			t.Errorf("%v, want: %s; %d partners are backfilled", faults, want, adopted())
		}
		d.health.note(t.Context(), what, nil)
	}
	for want, column := range map[string]string{
		"read the positions of the referral topics": "position next_offset",
		"read from which log deliveries are made":   "position log_id",
		"earlier referrals: ERROR: column":          "delivery body", // as many as the first poll returns
	} {
		table, name, _ := strings.Cut(column, " ")
		f.exec("ALTER TABLE " + table + " RENAME COLUMN " + name + " TO away")
		fails(want)
		f.exec("ALTER TABLE " + table + " RENAME COLUMN away TO " + name)
	}
	d.config.ChainID = 1
	fails("does not exist yet")
	d.config.ChainID = testChain
	allow := f.refuse("INSERT ON adopted", "true")
	fails("mark 1 partner as backfilled")
	allow()
	ended, end := context.WithCancel(t.Context())
	end()
	if d.backfill(ended); d.health.noted[fault{what: what}] != nil {
		t.Errorf("cancellation counts as a fault: %v", d.health.noted[fault{what: what}])
	}
	for range 2 { // the second time, no partner is new, and nothing is read
		d.backfill(t.Context())
		if d.health.noted[fault{what: what}] != nil || adopted() != 1 || f.states()[registry.NoEndpoint] != 50 {
			t.Errorf(
				"in the end: %v, %d partners backfilled, deliveries %v", d.health.noted[fault{what: what}], adopted(), f.states(),
			)
		}
	}
	if n := strings.Count(f.logged.String(), "backfilled new partners"); n != 1 {
		t.Errorf("the topics were read %d times for one new partner", n)
	}
}

// If a broker does not report the start or the end of a partition, no partner counts as backfilled.
func TestBackfillWithoutOffsets(t *testing.T) {
	t.Parallel()
	f, broker := newFixtureWithBroker(t)
	f.onePartition()
	f.deposits(7, 0, 5)
	f.partner(7, "")
	d := f.dispatcher(nil)
	f.readUpTo(d, 1000)
	refuse, refused := refusesOffsets(broker)
	for what, timestamp := range map[string]int64{"starts": -2, "ends": -1} {
		for _, all := range []bool{false, true} {
			refuse(timestamp, all)
			before := refused()
			err := f.untilRefused(all, refused, d.backfillNew)
			if refused() == before || err == nil || !strings.Contains(err.Error(), "read the "+what+" of the referral topics") ||
				f.number("SELECT count(*) FROM adopted") != 0 {
				t.Errorf("without %s (the whole request: %v): rejected %d times, %v", what, all, refused()-before, err)
			}
		}
	}
	refuse(0, false)
	f.check(d.backfillNew(t.Context()))
	if n := f.states()[registry.NoEndpoint]; n != 5 {
		t.Errorf("%d earlier events in the end", n)
	}
}

// newFixtureWithBroker returns a fixture with its own broker, which its test can make refuse requests.
func newFixtureWithBroker(t *testing.T) (*fixture, *kfake.Cluster) {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return newFixtureOn(t, broker.ListenAddrs()), broker
}

// untilRefused runs something that the broker refuses. If the broker refuses whole requests, the client retries
// forever, so untilRefused cancels it after a refusal.
func (f *fixture) untilRefused(all bool, refused func() int64, try func(context.Context) error) error {
	f.Helper()
	if !all {
		return try(f.Context())
	}
	ctx, end := context.WithCancel(f.Context())
	defer end()
	before, ended := refused(), make(chan error, 1)
	go func() { ended <- try(ctx) }()
	f.eventually("the broker rejects it", func() bool { return refused() > before })
	end()
	return <-ended
}

// refusesOffsets makes a broker refuse requests for one timestamp (-2: the starts, -1: the ends), as a whole or for
// each partition, and counts the refusals.
func refusesOffsets(broker *kfake.Cluster) (refuse func(timestamp int64, whole bool), refused func() int64) {
	var timestamp, refusals atomic.Int64
	var whole atomic.Bool
	broker.ControlKey(int16(kmsg.ListOffsets), func(request kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		r := request.(*kmsg.ListOffsetsRequest)
		if len(r.Topics) == 0 || r.Topics[0].Partitions[0].Timestamp != timestamp.Load() {
			return nil, nil, false
		}
		refusals.Add(1)
		if whole.Load() {
			return nil, errors.New("away"), true
		}
		answer := r.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, topic := range r.Topics {
			t := kmsg.NewListOffsetsResponseTopic()
			t.Topic = topic.Topic
			for _, partition := range topic.Partitions {
				p := kmsg.NewListOffsetsResponseTopicPartition()
				p.Partition, p.ErrorCode = partition.Partition, kerr.UnknownServerError.Code
				t.Partitions = append(t.Partitions, p)
			}
			answer.Topics = append(answer.Topics, t)
		}
		return answer, nil, true
	})
	return func(at int64, all bool) { timestamp.Store(at); whole.Store(all) }, refusals.Load
}

// readUpTo creates the positions of a dispatcher that has read the topics up to an offset.
func (f *fixture) readUpTo(d *Dispatch, offset int64) {
	f.Helper()
	r := &reader{d: d, admin: f.admin()}
	var err error
	r.topics, err = r.findTopics(f.Context())
	f.check(err)
	_, err = r.positions(f.Context())
	f.check(err)
	f.exec(
		"UPDATE position SET next_offset = $1, log_id = $2 WHERE topic = $3", offset, []byte(testLog),
		chainlog.ReferralDeposits(testChain),
	)
}

// The backfill ends at the position: accept handles the records after it. If a position is past the end of its
// partition, as after a restored backup, the backfill does not wait for it.
func TestBackfillEndsAtThePosition(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	f.partner(7, "")
	f.deposits(7, 0, 50) // at offsets 51 to 100, after an aborted transaction and its marker
	d := f.dispatcher(nil)
	for _, c := range []struct {
		position int64
		earlier  int
	}{{0, 0}, {51, 0}, {71, 20}, {72, 21}, {101, 50}, {1000, 50}} {
		f.exec("DELETE FROM adopted")
		f.exec("DELETE FROM delivery")
		f.readUpTo(d, c.position)
		f.check(d.backfillNew(t.Context()))
		if n := f.states()[registry.NoEndpoint]; n != c.earlier || f.number("SELECT count(*) FROM adopted") != 1 {
			t.Errorf("at position %d: %d earlier events, want %d", c.position, n, c.earlier)
		}
		if faults := fmt.Sprintf(
			"partners=1 events=%d", c.earlier,
		); !strings.HasSuffix(strings.TrimSpace(f.logged.String()), faults) {
			t.Errorf("at position %d the log lacks %s:\n%s", c.position, faults, f.logged)
		}
	}
}

// Reading all topics may take longer than the limit of one transaction: marking the partners has its own limit.
func TestBackfillThatTakesLong(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	f.partner(7, "")
	f.deposits(7, 0, 3*pollRecords)
	d := f.dispatcher(nil)
	d.timing.database = time.Second
	f.readUpTo(d, 1<<30)
	f.exec("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.4); RETURN NULL; " +
		"END $$")
	f.exec("CREATE TRIGGER slow BEFORE INSERT ON stream FOR EACH STATEMENT EXECUTE FUNCTION slow()") // once for each poll
	f.eventually("backfilled", func() bool { return d.backfillNew(t.Context()) == nil })
	if n := f.states()[registry.NoEndpoint]; n != 3*pollRecords {
		t.Errorf("%d earlier events", n)
	}
}

// A partner that was created with a URL before its first event gets that event, even if no
// dispatcher ran meanwhile.
func TestPartnerCreatedWithoutDispatcher(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	f.deposits(7, 0, 50)
	f.start(func(d *Dispatch) { d.timing.scan, d.shared.Timing.Scan = time.Hour, time.Hour }) // each scan runs only once
	f.eventually("delivered", f.in(registry.Delivered, 50))
	if n := len(r.got()); n != 50 {
		t.Errorf("%d requests", n)
	}
}

// While partners are created one after another during the reading of their events, no
// event is lost: accept or the backfill makes exactly one delivery of each.
func TestPartnerCreatedWhileItsEventsAreRead(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(status(http.StatusOK))
	f.start(nil)
	f.start(nil)
	const partners, each = 12, 60
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range each {
			values := make([][]byte, partners)
			for p := range values {
				values[p] = encode(t, deposit(t, uint32(p+1), 1000*p+n))
			}
			f.produce(chainlog.ReferralDeposits(testChain), values...)
		}
	}()
	for p := range int64(partners) {
		f.partner(p+1, r.url)
		f.eventually(fmt.Sprintf("partner %d is backfilled", p+1),
			func() bool { return f.number("SELECT count(*) FROM adopted WHERE partner_id = $1", p+1) == 1 })
	}
	<-done
	f.eventually("every event is a delivery", func() bool {
		s := f.states()
		return s[registry.NoEndpoint]+s[registry.Delivered] == partners*each
	})
	for p := range int64(partners) {
		f.contiguous(p+1, each)
	}
}
