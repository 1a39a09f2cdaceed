package dispatch

import (
	"flag"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
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
	d.pool, d.queries = pool, db.New(pool)
	d.endpoints.queries, d.shared.Queries = d.queries, d.queries
	d.intakes.Queries, d.shared.Leases.Queries = d.queries, d.queries
}

// witness makes PostgreSQL record which dispatcher writes results, and whether it owned the partner at that time.
func (f *fixture) witness() {
	f.Helper()
	f.exec("CREATE TABLE written (by text, owned boolean)")
	f.exec(`CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO written SELECT current_setting('application_name'), EXISTS (
			SELECT FROM job_lease WHERE kind = 'partner' AND key = NEW.partner_id AND owner::text = current_setting('application_name'));
		RETURN NEW; END $$`)
	f.exec("CREATE TRIGGER witness BEFORE UPDATE ON delivery FOR EACH ROW EXECUTE FUNCTION witness()")
}

// steal moves every partner and the intake to another owner, without the knowledge of their
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
	f.witness()
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
