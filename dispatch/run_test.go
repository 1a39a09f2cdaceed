package dispatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
)

func TestConfigMistakes(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Config{PerPartnerConcurrency: 0, Concurrency: 1 << 20, LeaseSeconds: 2, CAFile: empty}.Validate()
	for _, key := range []string{"webhooks.perPartnerConcurrency is 0", "webhooks.concurrency is 1048576",
		"webhooks.leaseSeconds is 2", "webhooks.caFile"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%q is not in %v", key, err)
		}
	}
	if err := (Config{PerPartnerConcurrency: 1, Concurrency: 1, LeaseSeconds: 3,
		CAFile: empty + "x"}).Validate(); err == nil {
		t.Error("a missing caFile is accepted")
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

// A dispatcher that starts before ingest has created the topics waits and reports it.
func TestWaitsForTopics(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	_, err := f.admin().DeleteTopics(
		t.Context(), chainlog.ReferralDeposits(testChain), chainlog.ReferralWithdrawals(testChain),
	)
	f.check(err)
	d := f.dispatcher(nil)
	if d.Ready() == nil {
		t.Error("ready before it runs")
	}
	f.run(d)
	f.eventually("the dispatcher reports what it waits for", func() bool {
		s := d.Status()
		return s.State == "waiting" && strings.Contains(s.Reason, "does not exist yet")
	})
	f.makeTopics()
	f.delivers(0, 3)
	f.eventually("ready", func() bool { return d.Ready() == nil && d.Status().State == "reading" })
	f.eventually("the dispatcher's status is in the registry", func() bool {
		return f.number("SELECT count(*) FROM program_status WHERE program = 'dispatch' AND status->>'state' = 'reading'") == 1
	})
}

// Topics get more partitions, or are recreated, while they are read: records written
// afterwards arrive.
func TestTopicsChangeWhileTheyAreRead(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"more partitions": func(f *fixture) {
			_, err := f.admin().UpdatePartitions(
				t.Context(), 5, chainlog.ReferralDeposits(testChain), chainlog.ReferralWithdrawals(testChain),
			)
			f.check(err)
		},
		"recreated": func(f *fixture) { f.onePartition() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.onePartition()
			r := f.receiver(ok)
			for partner := range int64(12) { // some in each partition
				f.partner(7+partner, r.url)
			}
			f.start(nil)
			f.delivers(0, 3)
			change(f)
			for partner := range int64(12) {
				f.deposits(uint32(7+partner), 10, 12)
			}
			f.eventually("delivered after the change", f.in(registry.Delivered, 3+2*12))
		})
	}
}

// A batch whose transaction fails is read again as a whole; no position moves past it, not
// even for the records after it.
func TestOffsetPassesAFailedRecord(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	r := f.partner7(ok)
	allow := f.refuse("INSERT ON delivery", "NEW.event_id = '"+depositID+"'")
	d := f.start(nil)
	f.deposits(7, 100, 105)
	f.eventually("those before it are delivered", f.in(registry.Delivered, 5))
	ends, err := f.admin().ListEndOffsets(t.Context(), chainlog.ReferralDeposits(testChain))
	f.check(err)
	end, _ := ends.Lookup(chainlog.ReferralDeposits(testChain), 0)
	bad := end.Offset + 2 // after an aborted record and its marker
	f.deposits(7, 1, 2)   // depositID
	for from := range 5 { // each in its own transaction, and so in its own batch
		f.deposits(7, 2+10*from, 12+10*from)
	}
	f.eventually("the dispatcher reports the error",
		func() bool { return strings.Contains(d.Status().Reason, "write the deliveries") })
	if n := f.number("SELECT max(next_offset) FROM position"); n > bad {
		t.Errorf("the position is %d, but record %d is not written", n, bad)
	}
	allow()
	f.eventually("all delivered", f.in(registry.Delivered, 56))
	f.contiguous(7, 56)
	if n := len(r.got()); n != 56 {
		t.Errorf("%d requests for 56 events", n)
	}
}

// With Apache Kafka and its own abort markers everything arrives, and records that are read
// again are not sent again.
func TestApacheKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("races show with the embedded broker too, which starts faster")
	}
	f := newFixtureOn(t, enginetest.ApacheKafka(t))
	r := f.partner7(ok)
	stop := f.run(f.dispatcher(nil))
	f.delivers(0, 50)
	stop()
	f.exec("DELETE FROM position")
	f.start(nil)
	f.delivers(50, 60)
	f.contiguous(7, 60)
	if n := len(r.got()); n != 60 {
		t.Errorf("%d requests for 60 events", n)
	}
}

// During a key rotation one dispatcher has one key and the next has both: the first
// releases the partner whose current or next secret it cannot open, and keeps the other.
func TestSecretThatAnotherCanOpen(t *testing.T) {
	for _, column := range []string{"secret", "next_secret"} {
		t.Run(column, func(t *testing.T) {
			f := newFixture(t)
			r := f.partner7(ok)
			f.partner(8, r.url)
			f.exec("UPDATE endpoint SET next_at = now() + interval '1 hour', next_secret = secret WHERE partner_id = 7")
			f.exec("UPDATE endpoint SET "+column+" = $1 WHERE partner_id = 7", f.sealing(otherKey).Seal(7, testSecret))
			first := f.start(nil)
			f.deposits(7, 0, 1)
			f.deposits(8, 1, 2)
			f.eventually("the other partner's event is delivered", f.in(registry.Delivered, 1))
			f.eventually("the dispatcher had the partner", func() bool {
				return f.number("SELECT count(*) FROM job_lease WHERE kind = 'partner' AND key = 7 AND owner = $1",
					first.owner) == 1
			})
			f.start(func(d *Dispatch) { d.endpoints.sealer = f.sealing(otherKey + "," + partners.SealKey) })
			f.eventually("both are delivered", f.in(registry.Delivered, 2))
			if n := len(r.got()); n != 2 {
				t.Errorf("%d requests for 2 events", n)
			}
			f.eventually("the first dispatcher is ready", func() bool { return first.Ready() == nil })
		})
	}
}

// A dispatcher whose key opens no secret is not ready, and leaves the partners to one with
// the right key.
func TestWrongSealKeyForAll(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	f.partner(8, r.url)
	other := f.sealing(otherKey)
	wrong := f.start(func(d *Dispatch) { d.endpoints.sealer = other })
	f.eventually("the dispatcher reports the reason",
		func() bool { return strings.Contains(wrong.Status().Reason, "NAVLOG_SECRET_KEY") })
	f.deposits(7, 0, 1)
	f.deposits(8, 1, 2)
	f.eventually("the dispatcher has inserted the deliveries",
		func() bool { return f.number("SELECT count(*) FROM delivery") == 2 })
	f.eventually("the dispatcher holds no partner", func() bool {
		return f.number("SELECT count(*) FROM job_lease WHERE kind = 'partner' AND owner = $1", wrong.owner) == 2 &&
			f.number("SELECT count(*) FROM job_lease WHERE kind = 'partner' AND until > now()") == 0
	})
	right := f.start(nil)
	f.eventually("the other dispatcher delivers", f.in(registry.Delivered, 2))
	f.eventually("the other dispatcher is ready", func() bool { return right.Ready() == nil })
	if wrong.Ready() == nil {
		t.Error("ready with a wrong key")
	}
}

// otherKey sealed no partner of any fixture.
const otherKey = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="

func (f *fixture) sealing(keys string) *registry.Sealer {
	f.Helper()
	s, err := registry.NewSealer(keys)
	f.check(err)
	return s
}

// Partners are divided among the dispatchers that can take them. One that can open no secret, or has none of this
// dispatcher's keys, does not count, because the partners would come back. One that shares a key, or whose keys are
// unknown, counts.
func TestRebalanceCountsDispatchersWithKeys(t *testing.T) {
	const count = 10
	f := newFixture(t)
	url := f.receiver(ok).url
	d := f.dispatcher(func(d *Dispatch) { d.endpoints.sealer = f.sealing(otherKey + "," + partners.SealKey) })
	for id := range int64(count) {
		l := lane.New(d.shared, id+1)
		d.lanes[id+1] = l
		if !d.take(t.Context(), l) {
			t.Fatal("another owner has the lease")
		}
	}
	given := func() (n int) {
		f.exec("UPDATE job_lease SET until = now() + interval '1 hour' WHERE kind = 'partner'")
		f.exec("UPDATE dispatcher SET until = now() + interval '1 hour'")
		d.rebalance(t.Context())
		for _, l := range d.allLanes() {
			if l.Yielded() {
				n++
			}
		}
		return n
	}
	// All secrets are sealed with the newer key, and one dispatcher starts with only the older key.
	f.partner(1, url)
	f.exec("UPDATE endpoint SET secret = $1", f.sealing(otherKey).Seal(1, testSecret))
	f.dispatcher(nil).rebalance(t.Context())
	if n := given(); n != 0 {
		t.Errorf("%d of %d partners are given to a dispatcher that can open no secret", n, count)
	}
	// Each of the two can open another partner's secret.
	f.partner(2, url)
	d.endpoints.sealer = f.sealer
	f.readEndpoints(d)
	f.dispatcher(func(d *Dispatch) { d.endpoints.sealer = f.sealing(otherKey) }).rebalance(t.Context())
	if n := given(); n != 0 {
		t.Errorf("%d of %d partners are given to a dispatcher that cannot sign for them", n, count)
	}
	f.dispatcher(func(d *Dispatch) {
		d.endpoints.sealer = f.sealing(otherKey + "," +
			partners.SealKey)
	}).rebalance(t.Context())
	if n := given(); n != count-(count/2+1) {
		t.Errorf("%d of %d partners are given to a dispatcher with the right key and another", n, count)
	}
	f.exec("INSERT INTO dispatcher (owner, until) VALUES (gen_random_uuid(), now() + interval '1 hour')")
	if n := given(); n != count-(4+1) { // a third, 4, and one more
		t.Errorf("%d of %d partners are given to two dispatchers, one without key ids", n, count)
	}
}

// A broker that reports no topic ids is rejected: nothing is read, and no position is stored
// under an id that all topics would share.
func TestTopicsWithoutIDs(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.MaxVersions(kversion.V2_7_0()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	f := newFixtureOn(t, broker.ListenAddrs())
	d := f.start(nil)
	f.eventually("the dispatcher reports the reason", func() bool { return strings.Contains(d.Status().Reason, "no id") })
	if n := f.number("SELECT count(*) FROM position"); n != 0 {
		t.Errorf("%d positions", n)
	}
}

// An idle lane ends and drops its lease; the next event starts another lane.
func TestIdleLaneEnds(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	d := f.start(func(d *Dispatch) { d.shared.Timing.Idle = 10 * time.Millisecond })
	for n := range 3 {
		f.delivers(n, n+1)
		f.eventually("the lane is gone", func() bool {
			return d.Status().Lanes == 0 &&
				f.number("SELECT count(*) FROM job_lease WHERE kind = 'partner' AND until > now()") == 0
		})
	}
}

// The key that seals the signing secrets is rotated while dispatchers run: one after another
// gets both keys, all secrets are resealed, and one after another loses the old key. Every
// event is signed with the partner's unchanged secret.
func TestSealKeyRotatedWhileSending(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	sent := 0
	send := func() {
		f.deposits(7, sent, sent+10)
		sent += 10
		f.eventually("delivered", f.in(registry.Delivered, sent))
	}
	with := func(s *registry.Sealer) (stop func()) {
		d := f.dispatcher(func(d *Dispatch) { d.endpoints.sealer = s })
		stop = f.run(d)
		f.eventually("the dispatcher announces its keys", func() bool {
			return f.number("SELECT count(*) FROM dispatcher WHERE owner = $1 AND key_ids = $2", d.owner, s.KeyIDs()) == 1
		})
		return stop
	}
	old, both, renewed := f.sealer, f.sealing(otherKey+","+partners.SealKey), f.sealing(otherKey)
	stopOld := with(old)
	send()
	stopBoth := with(both)
	stopOld()
	send()
	f.exec("UPDATE endpoint SET secret = $1 WHERE partner_id = 7", both.Seal(7, testSecret))
	send()
	with(renewed)
	stopBoth()
	send()
	for _, c := range r.got() {
		f.verify(c, testSecret)
	}
	if n := len(r.got()); n != sent {
		t.Errorf("%d requests for %d events", n, sent)
	}
}

// A transaction that stays open hides the records behind it without an error: the dispatcher counts them as unread, is
// not ready, and reports the position. When the transaction ends, all are read.
func TestHangingTransaction(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	f.partner7(ok)
	d := f.start(func(d *Dispatch) { d.timing.hanging = 300 * time.Millisecond })
	f.delivers(0, 1)
	f.eventually("ready", func() bool { return d.Ready() == nil && d.Status().LagRecords == 0 })
	client, err := kgo.NewClient(append(f.kafka.Options(), kgo.TransactionalID("hanging"))...)
	f.check(err)
	defer client.Close()
	f.check(client.BeginTransaction())
	f.check(client.ProduceSync(
		t.Context(), &kgo.Record{Topic: chainlog.ReferralDeposits(testChain), Value: encode(t, deposit(t, 7, 1))},
	).FirstErr())
	f.deposits(7, 2, 5) // committed, but behind it
	f.eventually("the dispatcher is not ready, and reports the position", func() bool {
		return strings.Contains(d.Status().Reason, "a transaction has been open at offset ") &&
			strings.Contains(d.Status().Reason, chainlog.ReferralDeposits(testChain))
	})
	f.eventually("the records behind it count as unread", func() bool { return d.Status().LagRecords >= 4 })
	if age := testutil.ToFloat64(d.metrics.openTransaction); age == 0 || !f.in(registry.Delivered, 1)() {
		t.Errorf("the transaction is open for %v s", age)
	}
	// A restart of the reader, for another reason, does not reset its age.
	open := func() float64 { return testutil.ToFloat64(d.metrics.openTransaction) }
	f.eventually("the transaction is open for a second", func() bool { return open() > 1 })
	_, err = f.admin().CreatePartitions(t.Context(), 1, chainlog.ReferralWithdrawals(testChain))
	f.check(err)
	f.eventually("the reader restarts", func() bool { return strings.Contains(d.Status().Reason, "got more partitions") })
	before := open()
	f.eventually("the ends are read again", func() bool { return open() != before })
	if open() < before {
		t.Errorf("the transaction is open for %v s, after %v before", open(), before)
	}
	f.check(chainlog.EndTransaction(t.Context(), client, kgo.TryCommit, chainlog.ReferralDeposits(testChain)))
	f.eventually("all are delivered", f.in(registry.Delivered, 5))
	f.eventually("ready", func() bool { return d.Ready() == nil && d.Status().LagRecords == 0 })
}
