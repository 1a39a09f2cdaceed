package dispatch

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
)

// Whoever writes partner ids into the chain that nobody has costs no row, lease or
// lane for any of them, also while a dispatcher runs; partners are told as ever.
func TestSpamOfUnknownPartners(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(ok)
	f.partner(7, r.url)
	first, second := f.start(nil), f.start(nil)
	const spam = 3000
	var values [][]byte
	for n := range spam {
		values = append(values, encode(t, deposit(t, uint32(1000+n), n)))
	}
	f.produce(chainlog.ReferralDeposits(testChain), values...)
	f.deposits(7, spam, spam+10)
	f.eventually("the partner is told", f.in(registry.Delivered, 10))
	f.eventually("all is read", func() bool {
		return first.recordsWere(recordUnclaimed)+second.recordsWere(recordUnclaimed) == spam
	})
	for _, table := range []string{"delivery", "stream", "lease", "adopted", "breaker", "dead_record"} {
		want := int64(map[string]int{"delivery": 10, "stream": 1, "lease": 1, "adopted": 1}[table])
		if n := f.number("SELECT count(*) FROM " + table); n != want {
			t.Errorf("%d rows of %s, want %d", n, table, want)
		}
	}
	if n := first.Status().Lanes + second.Status().Lanes; n > 1 {
		t.Errorf("%d lanes for one partner", n)
	}
}

// A partner that comes to be later finds its earlier events: listed and pulled like
// any without endpoint, and sent when replayed. What comes from then on is sent by
// itself, and nothing is told twice; also while several partners are created, and
// when the dispatcher ends in between.
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
	f.eventually("all is passed over", func() bool { return before.recordsWere(recordUnclaimed) == partners*earlier+1 })
	if n := f.number("SELECT count(*) FROM delivery"); n != 0 {
		t.Fatalf("%d deliveries for nobody", n)
	}
	f.partner(1, r.url)
	stop()
	d := f.start(nil)
	for p := range uint32(partners) {
		if p > 0 {
			f.partner(int64(p)+1, r.url)
		}
		f.deposits(p+1, int(p)*10_000+earlier, int(p)*10_000+earlier+20) // while it may be looking
	}
	f.eventually("the earlier ones are there, the new ones delivered", func() bool {
		s := f.states()
		return s[registry.NoEndpoint] == partners*earlier+1 && s[registry.Delivered] == partners*20
	})
	f.contiguous(1, earlier+1+20)
	f.contiguous(2, earlier+20)
	f.eventually("they are new no more", func() bool { return f.number("SELECT count(*) FROM adopted") == partners })
	f.exec("INSERT INTO command (partner_id, kind, first_sequence, last_sequence, only_state) VALUES (2, 'replay-range', 1, 100000, 'no_endpoint')")
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

// A partner is new until all of its earlier events are there: where they cannot be read or written, they are looked for again.
func TestAdoptionThatFails(t *testing.T) {
	f := newFixture(t)
	before := f.dispatcher(nil)
	stop := f.run(before)
	f.deposits(7, 0, 50)
	f.eventually("all is passed over", func() bool { return before.recordsWere(recordUnclaimed) == 50 })
	stop()
	f.partner(7, "")
	d := f.dispatcher(nil)
	adopted := func() int64 { return f.number("SELECT count(*) FROM adopted") }
	for what, column := range map[string]string{
		"how far the topics were read":     "position next_offset",
		"which log is followed":            "position log_id",
		"where the deliveries are written": "delivery body",
	} {
		table, name, _ := strings.Cut(column, " ")
		f.exec("ALTER TABLE " + table + " RENAME COLUMN " + name + " TO away")
		if err := d.adoptNew(t.Context()); err == nil || adopted() != 0 {
			t.Errorf("%s is unknown: %v, and %d partners are adopted", what, err, adopted())
		}
		f.exec("ALTER TABLE " + table + " RENAME COLUMN away TO " + name)
	}
	if err := d.adoptNew(t.Context()); err != nil || adopted() != 1 || f.states()[registry.NoEndpoint] != 50 {
		t.Errorf("in the end: %v, %d partners adopted, deliveries %v", err, adopted(), f.states())
	}
}

// A partner that is there before its first event, and has a URL, is told of it: also
// when all dispatchers were away meanwhile.
func TestPartnerCreatedWhileNothingRuns(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(ok)
	f.partner(7, r.url)
	f.deposits(7, 0, 50)
	f.start(func(d *Dispatch) { d.timing.scan, d.shared.Timing.Scan = time.Hour, time.Hour }) // nothing is looked at but once
	f.eventually("told", f.in(registry.Delivered, 50))
	if n := len(r.got()); n != 50 {
		t.Errorf("%d requests", n)
	}
}

// While partners are created one after the other in the middle of the reading of
// their events, none is lost: each is a delivery once,
// whoever of accept and adopt found it.
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
		f.eventually(fmt.Sprintf("partner %d is adopted", p+1), func() bool { return f.number("SELECT count(*) FROM adopted WHERE partner_id = $1", p+1) == 1 })
	}
	<-done
	f.eventually("every event is there", func() bool {
		s := f.states()
		return s[registry.NoEndpoint]+s[registry.Delivered] == partners*each
	})
	for p := range int64(partners) {
		f.contiguous(p+1, each)
	}
}
