package dispatch

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry"
)

var rebalances = flag.Int(
	"rebalances", 4, "how often one dispatcher starts and another stops in TestRebalanceDuring10sPOSTs",
)

// named names a dispatcher's PostgreSQL sessions after its lease owner.
func (f *fixture) named(d *Dispatch) {
	f.Helper()
	c := f.pool.Config().Copy()
	c.ConnConfig.RuntimeParams["application_name"] = d.owner.String()
	pool, err := pgxpool.NewWithConfig(f.Context(), c)
	f.check(err)
	d.pool.Close()
	d.connect(pool)
}

// recordWriters makes PostgreSQL record which dispatcher writes results, and whether it owned the partner at that time.
func (f *fixture) recordWriters() {
	f.Helper()
	f.exec("CREATE TABLE written (by text, owned boolean)")
	f.exec(`CREATE FUNCTION record_writer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO written SELECT current_setting('application_name'), EXISTS (
			SELECT FROM job_lease WHERE kind = 'partner' AND key = NEW.partner_id AND owner::text = current_setting('application_name'));
		RETURN NEW; END $$`)
	f.exec("CREATE TRIGGER record_writer BEFORE UPDATE ON delivery FOR EACH ROW EXECUTE FUNCTION record_writer()")
}

// steal moves every partner and the intake to another owner, without notifying their
// dispatchers. It waits until no result is half written.
func (f *fixture) steal() {
	f.Helper()
	tx, err := f.pool.Begin(f.Context())
	f.check(err)
	_, err = tx.Exec(f.Context(), "LOCK TABLE delivery IN EXCLUSIVE MODE")
	f.check(err)
	_, err = tx.Exec(f.Context(), "UPDATE job_lease SET owner = gen_random_uuid(), fence = fence + 1, until = now()")
	f.check(err)
	f.check(tx.Commit(f.Context()))
}

// Dispatchers start, stop and lose their leases, while one POST in twenty hangs until its
// deadline: everything arrives, events that arrive twice were in flight when a lease was
// lost, and no dispatcher writes a result of a partner that it does not own. The deadline is
// shorter than the specified 10 s to keep the test short.
func TestRebalanceDuring10sPOSTs(t *testing.T) {
	const partners, perRound = 6, 60
	f := newFixture(t)
	f.recordWriters()
	var hung atomic.Int64
	r := f.receiver(func(w http.ResponseWriter, n, ofEvent int) {
		if n%20 == 0 && ofEvent == 1 {
			hung.Add(1)
			<-f.released
		}
		w.WriteHeader(http.StatusNoContent)
	})
	for p := range int64(partners) {
		f.partner(p+1, r.url)
	}
	start := func() (stop func()) {
		d := f.dispatcher(func(d *Dispatch) {
			d.shared.Timing.Deadline = 500 * time.Millisecond
			f.named(d)
		})
		end := f.run(d)
		stop = func() { end(); d.pool.Close() }
		f.Cleanup(stop)
		return stop
	}
	running := []func(){start(), start()}
	events, thefts := 0, 0
	for round := range *rebalances {
		for p := range partners {
			f.deposits(uint32(p+1), events, events+perRound/partners)
			events += perRound / partners
		}
		before := hung.Load()
		f.eventually("a POST hangs", func() bool { return hung.Load() > before || f.states()[registry.Delivered] == events })
		if round%2 == 0 {
			f.steal()
			thefts++
		}
		running = append(running, start())
		running[0]()
		running = running[1:]
	}
	f.eventually("all delivered", f.in(registry.Delivered, events))
	for p := range int64(partners) {
		f.contiguous(p+1, int64(*rebalances*perRound/partners))
	}
	bound := int(hung.Load()) + thefts*partners*DefaultConfig().PerPartnerConcurrency
	if extra := len(r.got()) - events; extra < int(hung.Load()) || extra > bound {
		t.Errorf("%d requests more than events; %d hung, and at most %d can have been in flight", extra, hung.Load(), bound)
	}
	if n := f.number("SELECT count(*) FROM written WHERE NOT owned"); n != 0 {
		t.Errorf("%d results were written by a dispatcher that was not the owner", n)
	}
	if n := f.number("SELECT count(DISTINCT by) FROM written"); n < 3 {
		t.Errorf("%d dispatchers wrote results", n)
	}
}

func TestClockFault(t *testing.T) {
	theirs := time.Now().Round(0) // as from PostgreSQL, without a monotonic reading
	for _, c := range []struct {
		before, after time.Duration // by this machine's clock, after theirs
		want          string        // empty: no fault
	}{
		{-time.Millisecond, time.Millisecond, ""},
		{time.Minute, time.Minute, ""},
		{-time.Minute, -time.Minute, ""},
		{-5 * time.Second, 90 * time.Second, ""}, // the response took long
		{-90 * time.Second, 5 * time.Second, ""},
		{61 * time.Second, 62 * time.Second, "1m0s ahead of PostgreSQL's"},
		{301 * time.Second, 500 * time.Second, "5m0s ahead of PostgreSQL's"},
		{-500 * time.Second, -301 * time.Second, "5m0s behind PostgreSQL's"},
		{-62 * time.Second, -61 * time.Second, "1m0s behind PostgreSQL's"},
	} {
		got := ""
		if err := clockFault(theirs.Add(c.before), theirs.Add(c.after), theirs); err != nil {
			got = err.Error()
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("requested %s and received %s after PostgreSQL's time: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

// postgresClock makes PostgreSQL's clock differ from this machine's, for pools that are opened from now on.
func (f *fixture) postgresClock(by string) {
	f.Helper()
	const path = "&search_path=skew,public,pg_catalog"
	f.exec("CREATE SCHEMA IF NOT EXISTS skew")
	for _, name := range []string{"now", "clock_timestamp"} {
		f.exec(fmt.Sprintf(
			"CREATE OR REPLACE FUNCTION skew.%s() RETURNS timestamptz LANGUAGE sql AS $$ SELECT pg_catalog.%[1]s() + "+
				"interval '%s' $$", name, by,
		))
	}
	f.url = strings.TrimSuffix(f.url, path) + path
}

// A dispatcher whose clock is wrong signs what receivers reject, so it is not ready until the clock is right again. It
// keeps its partners: the wrong clock may be PostgreSQL's.
func TestWrongClockIsAFault(t *testing.T) {
	f := newFixture(t)
	f.postgresClock("-2 minutes")
	d := f.dispatcher(nil)
	d.health.setProven(time.Now())
	l := f.lane7(d)
	d.rebalance(t.Context())
	const want = "cannot sign with the right time: this machine's clock is 2m0s ahead of PostgreSQL's: synchronise " +
		"both with NTP"
	if err := d.Ready(); err == nil || err.Error() != want {
		t.Errorf("with a wrong clock: %v", err)
	}
	if !l.Leased() || l.Yielded() {
		t.Error("the partner is released")
	}
	f.postgresClock("0")
	d.rebalance(t.Context())
	if err := d.Ready(); err != nil {
		t.Errorf("with the right clock: %v", err)
	}
}
