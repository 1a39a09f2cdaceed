package dispatch

import (
	"context"
	"flag"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

func (d *Dispatch) recordCount(result string) float64 {
	return testutil.ToFloat64(d.metrics.records.WithLabelValues(result))
}

// contiguous checks that the partner's sequences are exactly 1 to n.
func (f *fixture) contiguous(partner, n int64) {
	f.Helper()
	if got := f.number(
		"SELECT count(*) FROM delivery WHERE partner_id = $1 AND sequence BETWEEN 1 AND $2", partner, n,
	); got != n {
		f.Errorf("partner %d has %d sequences within 1 to %d", partner, got, n)
	}
	if got := f.number("SELECT last_sequence FROM stream WHERE partner_id = $1", partner); got != n {
		f.Errorf("partner %d's counter is %d, want %d", partner, got, n)
	}
}

var replayEvents = flag.Int("replay-events", 500, "events of TestFullTopicReplay")

// Reading a topic again sends no event twice, whether from its start or after the topic
// was recreated with its records in another order and in other partitions.
func TestFullTopicReplay(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	events := *replayEvents
	stop := f.run(f.dispatcher(nil))
	f.delivers(0, events)
	stop()

	f.exec("UPDATE position SET next_offset = 0")
	d := f.start(nil)
	f.eventually("read again", func() bool { return d.recordCount(recordKnown) == float64(events) })
	f.eventually("positions at the end", func() bool { return d.Ready() == nil && d.Status().LagRecords == 0 })

	f.onePartition()
	var again [][]byte
	for n := events; n >= 0; n-- { // one more than before
		again = append(again, encode(t, deposit(t, 7, n)))
	}
	f.produce(chainlog.ReferralDeposits(testChain), again...)
	f.eventually("the new topic is read", func() bool {
		return d.recordCount(recordKnown) == float64(2*events) && d.recordCount(recordInserted) == 1
	})
	f.eventually("the new event is delivered", f.in(registry.Delivered, events+1))
	if n := len(r.got()); n != events+1 {
		t.Errorf("%d requests for %d events", n, events+1)
	}
	f.contiguous(7, int64(events)+1)
	if n := f.number("SELECT count(*) FROM delivery"); n != int64(events)+1 {
		t.Errorf("%d deliveries", n)
	}
}

// The topic ends before the position, as after a restored backup.
func TestPositionPastTheEnd(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	stop := f.run(f.dispatcher(nil))
	f.delivers(0, 5)
	stop()
	f.exec("UPDATE position SET next_offset = next_offset + 1000")
	d := f.start(nil)
	f.eventually("read again from the start", func() bool { return d.recordCount(recordKnown) == 5 })
	f.deposits(7, 5, 6)
	f.eventually("newer records are delivered", f.in(registry.Delivered, 6))
	if n := len(r.got()); n != 6 {
		t.Errorf("%d requests for 6 events", n)
	}
}

// The partitions are shorter than what was read of them, as after a restored backup, and empty. The position is moved
// back at once, so that nothing is skipped if they grow past it before a dispatcher reads the next record.
func TestPositionPastTheEndOfAnEmptyTopic(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	f.partner7(ok)
	stop := f.run(f.dispatcher(nil))
	f.eventually("the positions exist", func() bool { return f.number("SELECT count(*) FROM position") == 2 })
	stop()
	f.exec("UPDATE position SET next_offset = 8")
	stop = f.run(f.dispatcher(nil))
	f.eventually("both topics are noticed",
		func() bool { return strings.Count(f.logged.String(), "shorter than what was read") == 2 })
	stop()
	f.deposits(7, 0, 5) // offsets: five aborted records, their marker, five records, their marker
	f.start(nil)
	f.eventually("all are delivered", f.in(registry.Delivered, 5))
}

func TestRecordsDeletedUnread(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	f.partner7(ok)
	f.deposits(7, 0, 1) // offsets: an aborted record, its marker, the record, its marker
	ends, err := f.admin().ListEndOffsets(t.Context(), chainlog.ReferralDeposits(testChain))
	f.check(err)
	_, err = f.admin().DeleteRecords(t.Context(), ends.Offsets())
	f.check(err)
	d := f.dispatcher(nil)
	stop := f.run(d)
	f.eventually("the loss is counted", func() bool { return testutil.ToFloat64(d.metrics.lostRecords) == 4 })
	f.eventually("nothing is behind", func() bool { return d.Ready() == nil && d.Status().LagRecords == 0 })
	stop()
	d = f.start(nil)
	f.eventually("ready", func() bool { return d.Ready() == nil })
	if n := testutil.ToFloat64(d.metrics.lostRecords); n != 0 {
		t.Errorf("the next dispatcher counts the loss of %v records again", n)
	}
	f.deposits(7, 1, 2)
	f.eventually("later records are delivered", f.in(registry.Delivered, 1))
}

// Records that cannot become a delivery are stored, and do not block the others. They are counted and logged once,
// however often they are read.
func TestDeadRecords(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	d := f.start(nil)

	change := func(what func(*event.Referral)) []byte {
		x := deposit(t, 7, 50)
		what(x)
		return encode(t, x)
	}
	poison := map[string][]byte{
		"the record is not a referral":                                   {0xff, 0xff, 0xff},
		"the referral is of chain 1, not 31337":                          change(func(x *event.Referral) { x.ChainId = 1 }),
		"the referral has no complete log":                               change(func(x *event.Referral) { x.Log = nil }),
		"the record's kind is KIND_WITHDRAWAL, but its log is a deposit": change(func(x *event.Referral) { x.Kind = event.Referral_KIND_WITHDRAWAL }),
		"the referral names partner 8, but its log":                      change(func(x *event.Referral) { x.PartnerId = 8 }),
		"the referral's log is neither a deposit":                        change(func(x *event.Referral) { x.Log.Topics[0] = make([]byte, 32) }),
		"the referral's log cannot be decoded":                           change(func(x *event.Referral) { x.Log.Data = x.Log.Data[1:] }),
	}
	f.produce(chainlog.ReferralDeposits(testChain), slices.Concat(
		[][]byte{encode(t, deposit(t, 7, 1))}, slices.Collect(maps.Values(poison)), [][]byte{encode(t, deposit(t, 7, 2))},
	)...)
	f.eventually("the valid records are delivered", f.in(registry.Delivered, 2))
	f.eventually("the others are dead letters", func() bool { return d.recordCount(recordPoison) == float64(len(poison)) })
	for why, value := range poison {
		if f.number(`SELECT count(*) FROM dead_record WHERE reason = 'poison' AND value = $1 AND error LIKE $2 || '%' AND topic = 'chain.31337.referral.deposits'`, value, why) != 1 {
			t.Errorf("no dead record has the error %q", why)
		}
	}

	// The same event from the same block with another amount: one of the two is wrong.
	other := deposit(t, 7, 1)
	other.Log.BlockTime++
	f.produce(chainlog.ReferralDeposits(testChain), encode(t, other))
	f.eventually("the conflict is noticed", func() bool { return d.recordCount(recordConflict) == 1 })
	if f.number("SELECT count(*) FROM dead_record WHERE reason = 'conflict' AND value = $1", encode(t, other)) != 1 {
		t.Error("the conflict is not stored")
	}
	f.exec("UPDATE position SET next_offset = 0") // the reader notices it
	f.eventually("all is read again", func() bool { return d.recordCount(recordKnown) == float64(2+len(poison)+1) })
	if d.recordCount(recordPoison) != float64(len(poison)) || d.recordCount(recordConflict) != 1 ||
		strings.Count(f.logged.String(), "see dead_record") != len(poison)+1 {
		t.Errorf("dead letters that were read again count again: %v are poison, %v conflicts\n%s", d.recordCount(recordPoison),
			d.recordCount(recordConflict), f.logged)
	}
	if n := f.number("SELECT count(*) FROM delivery"); n != 2 || len(r.got()) != 2 {
		t.Errorf("%d deliveries, %d requests", n, len(r.got()))
	}
	f.contiguous(7, 2)
}

// The same event twice in one batch is one delivery.
func TestDoubleInOneBatch(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	one := encode(t, deposit(t, 7, 1))
	f.produce(chainlog.ReferralDeposits(testChain), one, one, one)
	d := f.start(nil)
	f.eventually("delivered", f.in(registry.Delivered, 1))
	f.eventually("all read", func() bool { return d.recordCount(recordKnown) == 2 })
	f.contiguous(7, 1)
}

// Deliveries of partners without an endpoint end as no_endpoint: visible and replayable,
// but not sent automatically when a URL is registered.
func TestNoEndpoint(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(ok)
	f.partner(1, "")
	f.partner(2, r.url)
	f.exec("UPDATE partner SET disabled = true WHERE id = 2")
	f.start(nil)
	f.deposits(1, 0, 1)
	f.deposits(2, 1, 2)
	f.deposits(3, 2, 3) // partner 3 is created later
	f.eventually("none is sent", f.in(registry.NoEndpoint, 2))
	f.partner(3, "")
	f.eventually("earlier events are backfilled", f.in(registry.NoEndpoint, 3))
	if n := f.number("SELECT count(*) FROM delivery WHERE finished_at IS NOT NULL"); n != 3 {
		t.Errorf("%d are finished", n)
	}

	f.setURL(1, r.url)
	f.deposits(1, 3, 4)
	f.eventually("the new one is sent", f.in(registry.Delivered, 1))
	if f.states()[registry.NoEndpoint] != 3 {
		t.Errorf("%v", f.states())
	}
	f.exec("INSERT INTO command (partner_id, kind, event_id) SELECT partner_id, 'replay', event_id FROM delivery WHERE " +
		"partner_id = 1 AND state = 'no_endpoint'")
	f.eventually("the old one is sent when replayed", f.in(registry.Delivered, 2))
	f.contiguous(1, 2)
}

// A partner is disabled while its deliveries are pending.
func TestDisabledWhileWaiting(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(status(500))
	f.start(func(d *Dispatch) { d.shared.Timing.Retries[0] = 5 * endpointsAge })
	f.deposits(7, 0, 10)
	f.eventually("tried", func() bool { return len(r.got()) == 10 })
	f.exec("UPDATE partner SET disabled = true WHERE id = 7")
	f.eventually("all end without an endpoint", f.in(registry.NoEndpoint, 10))
	if n := len(r.got()); n != 10 {
		t.Errorf("%d requests, but no retry was due before the partner was disabled", n)
	}
}

// No input makes the decoder panic, and every referral that it accepts is complete.
func TestDecodeNeverPanics(t *testing.T) {
	good := encode(t, deposit(t, 7, 1))
	for n := range good {
		for _, value := range [][]byte{good[:n], with(good, n, 0), with(good, n, 0xff), with(good, n, good[n]^1)} {
			a, err := decode(testChain, &kgo.Record{Value: value})
			if err == nil && (a.partner() == 0 || len(a.body) == 0 || a.Type == "" || a.ID == uuid.Nil) {
				t.Fatalf("byte %d changed gives %+v", n, a)
			}
		}
	}
}

func with(b []byte, n int, value byte) []byte {
	b = slices.Clone(b)
	b[n] = value
	return b
}

// dead inserts records that an older dispatcher could not read, and requests their retry.
func (f *fixture) dead(values ...[]byte) {
	f.Helper()
	for _, value := range values {
		f.exec(`INSERT INTO dead_record (topic_id, partition, "offset", topic, reason, error, value, retry_at)
			SELECT '00000000-0000-0000-0000-000000000001', 0, count(*), $1, 'poison', 'an older dispatcher cannot read it', $2::bytea, now()
			FROM dead_record`, chainlog.ReferralDeposits(testChain), value)
	}
}

// A dead record that an older dispatcher could not read becomes a delivery, with its
// partner's next sequence, when a retry is requested from a dispatcher that can read it.
// A record that still cannot be one stays, with the current reason; an event that was
// delivered meanwhile counts as known.
func TestDeadRecordsRetried(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	f.dead(encode(t, deposit(t, 7, 1)), encode(t, deposit(t, 7, 2)), encode(t, deposit(t, 7, 3)), []byte{0xff})
	older := f.dispatcher(func(d *Dispatch) { d.config.ChainID = 1 })
	stop := f.run(older)
	tried := func() bool {
		return f.number("SELECT count(*) FROM dead_record WHERE retry_at > coalesce(retried_at, '-infinity')") == 0
	}
	f.eventually("the older one retries without success", tried)
	if n := f.number("SELECT count(*) FROM dead_record WHERE resolved_at IS NULL AND reason = 'poison'"); n != 4 {
		t.Errorf("%d dead records after a dispatcher that cannot read them retried", n)
	}
	stop()

	f.deposits(7, 3, 5) // the third again
	newer := f.start(nil)
	f.start(nil) // and a second one, which must not retry twice
	f.eventually("newer events are delivered", f.in(registry.Delivered, 2))
	f.exec("UPDATE dead_record SET retry_at = clock_timestamp()")
	f.eventually("retried", tried)
	f.eventually("all are delivered", f.in(registry.Delivered, 4))
	if n := f.number("SELECT count(*) FROM dead_record WHERE resolved_at IS NOT NULL"); n != 3 {
		t.Errorf("%d are resolved, want 3", n)
	}
	if n := f.number("SELECT count(*) FROM dead_record WHERE resolved_at IS NULL AND error = 'the record is not a " +
		"referral'"); n != 1 {
		t.Errorf("%d dead records kept their reason", n)
	}
	if n := len(r.got()); n != 4 {
		t.Errorf("%d requests for 4 events", n)
	}
	f.contiguous(7, 4)
	f.eventually("ready", func() bool { return newer.Ready() == nil })
}

// A dead record that can be read now but still cannot become a delivery stays, with the
// new reason.
func TestDeadRecordsStillInvalid(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "")
	d := f.dispatcher(nil)
	f.check(d.accept(t.Context(), []readBatch{f.batch(0, encode(t, deposit(t, 7, 1)))}))
	other := deposit(t, 7, 1) // the same event with another body
	other.Log.BlockTime++
	tooMuch := referral(t, event.Referral_KIND_DEPOSIT, 7, 2, contracts.DepositAccepted{
		DepositID: big.NewInt(2), Owner: userAddress, PartnerID: 7, Sender: userAddress,
		Assets: new(big.Int).Lsh(big.NewInt(1), 191), Shares: big.NewInt(1),
	})
	abandoned := deposit(t, 7, 3)
	abandoned.LogId = []byte("an abandoned log")
	reasons := map[string]*event.Referral{recordConflict: other, recordQuarantined: tooMuch, recordPoison: abandoned}
	for _, r := range reasons {
		f.dead(encode(t, r))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if d.retryDead(ended); len(d.health.faults) != 0 {
		t.Errorf("cancellation counts as a fault: %v", d.health.faults)
	}
	for _, table := range []string{"position", "partner", "stream", "delivery"} { // each step needs one of them
		f.exec("ALTER TABLE " + table + " RENAME TO elsewhere")
		if d.retryDead(t.Context()); d.health.faults[fault{what: "retry dead records"}] == nil ||
			f.number("SELECT count(*) FROM dead_record WHERE resolved_at IS NOT NULL") != 0 {
			t.Errorf("without %s: faults %v, or a record counts as resolved", table, d.health.faults)
		}
		f.exec("ALTER TABLE elsewhere RENAME TO " + table)
	}
	d.retryDead(t.Context())
	f.check(d.health.faults[fault{what: "retry dead records"}])
	for reason, r := range reasons {
		if n := f.number("SELECT count(*) FROM dead_record WHERE value = $1 AND reason = $2 AND resolved_at IS NULL AND "+
			"retried_at >= retry_at", encode(t, r), reason); n != 1 {
			t.Errorf(
				"%d dead records with reason %s: %s", n, reason,
				f.text("SELECT string_agg(reason || ' ' || error, '; ') FROM dead_record"),
			)
		}
	}
	if n := f.number("SELECT count(*) FROM delivery"); n != 1 {
		t.Errorf("%d deliveries", n)
	}
}

// Retrying a dead record needs only one connection to PostgreSQL, since there may be no second.
func TestDeadRecordIsRetriedOnOneConnection(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "")
	c := registry.DefaultConfig()
	c.URL, c.MaxConns = f.url, 1
	one, err := registry.Open(t.Context(), c)
	f.check(err)
	t.Cleanup(one.Close)
	d := f.dispatcher(func(d *Dispatch) { d.pool, d.queries, d.timing.database = one, db.New(one), *patience })
	f.dead(encode(t, deposit(t, 7, 1)))
	if tried, err := d.retryOneDead(t.Context()); err != nil || !tried || f.states()[registry.NoEndpoint] != 1 {
		t.Errorf("retried %v, %v; deliveries %v", tried, err, f.states())
	}
}

// An event that the read models quarantine, because one of its numbers is too large, is not
// sent: its record is stored with the reason. One with the largest valid amount is sent.
func TestQuarantinedAmounts(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	d := f.start(nil)
	large := new(big.Int).Lsh(big.NewInt(1), 191)
	small := new(big.Int).Sub(large, big.NewInt(1))
	one, index := big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 64)
	dep := func(partner uint32, n int, id, assets, shares *big.Int) []byte {
		return encode(t, referral(t, event.Referral_KIND_DEPOSIT, partner, n, contracts.DepositAccepted{
			DepositID: id, Owner: userAddress, PartnerID: partner, Sender: userAddress, Assets: assets, Shares: shares,
		}))
	}
	wd := func(n int, id, shares, assets *big.Int) []byte {
		return encode(t, referral(t, event.Referral_KIND_WITHDRAWAL, 7, n, contracts.WithdrawalRequested{
			RequestIndex: id, Owner: userAddress, PartnerID: 7, Receiver: userAddress, Shares: shares, AssetsEstimate: assets,
		}))
	}
	quarantined := map[string][]byte{
		"assets is 31385508":        dep(7, 1, one, large, one),
		"shares is 31385508":        dep(7, 2, one, one, large),
		"depositId is 18446744":     dep(7, 3, index, one, one),
		"shares is 313855086":       wd(4, one, large, one),
		"assetsEstimate is 5789604": wd(5, one, one, new(big.Int).Lsh(large, 64)),
		"requestIndex is 184467":    wd(6, index, one, one),
	}
	f.produce(chainlog.ReferralDeposits(testChain), slices.Concat(slices.Collect(maps.Values(quarantined)), [][]byte{
		dep(7, 7, one, small, small), wd(8, one, small, small), dep(9, 9, one, large, one),
	})...)
	f.eventually("the valid ones are delivered", f.in(registry.Delivered, 2))
	f.eventually("the others are quarantined",
		func() bool { return d.recordCount(recordQuarantined) == float64(len(quarantined)) })
	for why, value := range quarantined {
		if n := f.number(
			"SELECT count(*) FROM dead_record WHERE reason = 'quarantined' AND value = $1 AND error LIKE $2 || '%'", value, why,
		); n != 1 {
			t.Errorf("%d dead records have the error %q", n, why)
		}
	}
	if n := f.number("SELECT count(*) FROM dead_record"); n != int64(len(quarantined)) {
		t.Errorf("%d dead records: one names an unknown partner", n)
	}
	for _, c := range r.got() {
		if !strings.Contains(string(c.body), `"`+small.String()+`"`) {
			t.Errorf("delivered: %s", c.body)
		}
	}
	f.contiguous(7, 2)
}

// A lane that a retried record woke runs as long as its dispatcher: the next delivery is
// sent without another findWork.
func TestRetriedRecordWakesItsLane(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	d := f.start(func(d *Dispatch) { d.timing.scan, d.shared.Timing.Scan = time.Hour, time.Hour })
	f.eventually("ready", func() bool { return d.Ready() == nil })
	f.dead(encode(t, deposit(t, 7, 1)))
	d.retryDead(t.Context())
	f.eventually("it is delivered", f.in(registry.Delivered, 1))
	if _, lasts := d.lane(7); !lasts || d.Ready() != nil {
		t.Errorf("the lane still runs: %v, ready: %v", lasts, d.Ready())
	}
}
