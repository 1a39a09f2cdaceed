package dispatch

import (
	"net/http"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// The life of a breaker: it opens, its partner's events are parked without losing attempts, probes run one at a time,
// and after a probe gets a response everything drains within the permits.
func TestBreakerLife(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(status(http.StatusServiceUnavailable))
	d := f.start(nil)
	f.deposits(7, 0, 30)
	f.eventually("parked", func() bool { return f.states()[registry.Parked] == 30 })
	attempts := f.number("SELECT sum(attempts) FROM delivery")
	r.script(status(http.StatusServiceUnavailable)) // restarts the count
	before := len(r.got())
	f.deposits(7, 30, 60)
	f.eventually("all are parked, and one is probed",
		func() bool { return f.states()[registry.Parked] == 60 && len(r.got()) >= before+5 })
	if n := r.maxConcurrent(); n > 1 {
		t.Errorf("%d probes at a time", n)
	}
	probed := map[string]bool{}
	for _, c := range r.got()[before : before+5] {
		probed[c.id()] = true
	}
	if len(probed) != 5 {
		t.Errorf("5 probes took %d events", len(probed))
	}
	if n := f.number("SELECT sum(attempts) FROM delivery"); n != attempts {
		t.Errorf("the attempts of parked events changed from %d to %d", attempts, n)
	}
	if n := f.number("SELECT count(*) FROM breaker WHERE partner_id = 7 AND url = $1", r.url); n != 1 {
		t.Error("the open breaker is not in PostgreSQL")
	}
	f.eventually("the metric shows it", func() bool {
		d.measure(t.Context())
		return testutil.ToFloat64(d.metrics.openBreakers) == 1 &&
			testutil.ToFloat64(d.metrics.deliveries.WithLabelValues(registry.Parked)) == 60
	})

	r.script(ok)
	f.eventually("drained", f.in(registry.Delivered, 60))
	if n := r.maxConcurrent(); n > DefaultConfig().PerPartnerConcurrency {
		t.Errorf("%d requests at a time while draining", n)
	}
	f.eventually("closed", func() bool { return f.number("SELECT count(*) FROM breaker") == 0 })
	if n := f.number("SELECT count(*) FROM attempt"); n != int64(len(r.got())) {
		t.Errorf("%d attempts in the log, %d on the wire", n, len(r.got()))
	}
}

// A probe that hangs ends at the deadline and does not block the rest forever.
func TestBreakerLifeHangingProbe(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(status(http.StatusServiceUnavailable))
	f.start(func(d *Dispatch) { d.shared.Timing.Deadline = time.Second })
	f.deposits(7, 0, 30)
	f.eventually("parked", f.in(registry.Parked, 30))
	hung := make(chan struct{}, 1)
	r.script(func(http.ResponseWriter, int, int) {
		select {
		case hung <- struct{}{}:
		default:
		}
		<-f.released
	})
	f.eventually("a probe hangs", func() bool { return len(hung) == 1 })
	r.script(ok)
	f.eventually("drained", f.in(registry.Delivered, 30))
}

// A breaker belongs to a URL: registering the same URL again, or another secret, does not
// close it, neither at once nor after a restart, and the dispatcher is ready meanwhile. Another URL starts with a
// closed breaker.
func TestBreakerLifeBelongsToItsURL(t *testing.T) {
	f := newFixture(t)
	r, elsewhere := f.receiver(status(http.StatusServiceUnavailable)), f.receiver(ok)
	f.partner(7, r.url)
	long := func(d *Dispatch) { d.shared.Timing.OpenMin, d.shared.Timing.OpenMax = time.Hour, time.Hour }
	first := f.dispatcher(long)
	stop := f.run(first)
	f.deposits(7, 0, 30)
	f.eventually("parked", f.in(registry.Parked, 30))
	before, events := len(r.got()), 30
	staysOpen := func(d *Dispatch, what string) {
		t.Helper()
		f.readEndpoints(d)
		f.deposits(7, events, events+10)
		events += 10
		f.eventually(what+": all are parked", f.in(registry.Parked, events))
		if n := len(r.got()); n != before {
			t.Errorf("%s: %d requests while the breaker was open", what, n-before)
		}
	}
	f.setURL(7, r.url)
	staysOpen(first, "registered again")
	secret := db.SetSecretParams{PartnerID: 7, Secret: f.sealer.Seal(7, registry.NewSigningSecret())}
	_, err := f.queries.SetSecret(t.Context(), secret)
	f.check(err)
	staysOpen(first, "another secret")
	stop()
	_, err = f.queries.SetSecret(t.Context(), secret)
	f.check(err)
	again := f.start(long)
	staysOpen(again, "another secret and a restart")
	f.eventually("ready", func() bool { return again.Ready() == nil })

	f.setURL(7, elsewhere.url)
	f.eventually("drained to the other URL", f.in(registry.Delivered, events))
	if n := f.number("SELECT count(*) FROM breaker"); n != 0 || len(r.got()) != before {
		t.Errorf("%d breakers, %d requests to the old URL", n, len(r.got())-before)
	}
}

// A partner is disabled while its events are parked: they end, and its breaker no longer
// counts in the metric, nor does that of a URL that has changed since.
func TestDisabledWhileParked(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(status(http.StatusServiceUnavailable))
	d := f.dispatcher(func(d *Dispatch) { d.shared.Timing.OpenMin, d.shared.Timing.OpenMax = time.Hour, time.Hour })
	stop := f.run(d)
	breakers := func(what string, want float64) {
		t.Helper()
		f.eventually(what, func() bool {
			d.measure(t.Context())
			return testutil.ToFloat64(d.metrics.openBreakers) == want
		})
	}
	f.deposits(7, 0, 30)
	f.eventually("parked", f.in(registry.Parked, 30))
	breakers("its breaker is counted", 1)
	f.exec("UPDATE partner SET disabled = true WHERE id = 7")
	f.eventually("all end without an endpoint", f.in(registry.NoEndpoint, 30))
	breakers("the breaker of a disabled partner is not counted", 0)
	f.exec("UPDATE partner SET disabled = false WHERE id = 7")
	breakers("the breaker is counted again once the partner is enabled", 1)
	stop() // the partner has no lane, as after a long idle time
	f.setURL(7, r.url+"&v=2")
	breakers("the breaker of an older URL is not counted", 0)
	if n := f.number("SELECT count(*) FROM breaker"); n != 1 {
		t.Errorf("%d breakers are kept: the test proves nothing", n)
	}
}

// The process that sends the probe dies during it: the next process probes again, one event at a time, and no attempt
// is used up.
func TestBreakerLifeProbeDies(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	var process *exec.Cmd
	r := f.partner7(status(http.StatusServiceUnavailable))
	f.deposits(7, 0, 30)
	process = f.child()
	f.eventually("parked", f.in(registry.Parked, 30))
	attempts := f.number("SELECT sum(attempts) FROM delivery")
	killed := make(chan struct{})
	kill := sync.OnceFunc(func() {
		mu.Lock()
		defer mu.Unlock()
		_ = process.Process.Kill()
		close(killed)
	})
	r.script(func(w http.ResponseWriter, _, _ int) {
		kill()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	<-killed
	_ = process.Wait()
	r.script(status(http.StatusServiceUnavailable))
	before := len(r.got())
	f.start(nil)
	f.eventually("it is probed again", func() bool { return len(r.got()) >= before+3 })
	if n := r.maxConcurrent(); n > 1 {
		t.Errorf("%d probes at a time", n)
	}
	if n := f.number("SELECT sum(attempts) FROM delivery"); n != attempts {
		t.Errorf("the attempts of parked events changed from %d to %d", attempts, n)
	}
	r.script(ok)
	f.eventually("drained", f.in(registry.Delivered, 30))
}

// Two partners register the same URL. The receiver rejects one partner's secret, and later
// that partner's service is down; the other partner is not affected.
func TestBreakerLifeTwoPartnersOfOneURL(t *testing.T) {
	for _, code := range []int{http.StatusUnauthorized, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			f := newFixture(t)
			var r *receiver
			r = f.receiver(func(w http.ResponseWriter, n, _ int) {
				c := r.got()[n-1]
				if c.header.Get("X-Service-Signature") != signed(testSecret, c) {
					w.WriteHeader(code)
				}
			})
			f.partner(7, r.url)
			f.partner(8, r.url)
			f.exec("UPDATE endpoint SET secret = $1 WHERE partner_id = 8", f.sealer.Seal(8, registry.NewSigningSecret()))
			f.start(func(d *Dispatch) { d.shared.Timing.OpenMin, d.shared.Timing.OpenMax = time.Hour, time.Hour })
			f.deposits(8, 0, 30)
			end := registry.Failed // alive, but rejecting
			if code >= 500 {
				end = registry.Parked
			}
			f.eventually(end, f.in(end, 30))
			f.deposits(7, 30, 60)
			f.eventually("the other partner's events are delivered", f.in(registry.Delivered, 30))
			if n := f.number("SELECT count(*) FROM breaker WHERE partner_id = 7"); n != 0 {
				t.Error("the breaker of one partner opened for another")
			}
			if n := f.number("SELECT count(*) FROM attempt JOIN delivery USING (event_id) WHERE partner_id = 7"); n != 30 {
				t.Errorf("%d attempts for 30 events of the healthy partner", n)
			}
		})
	}
}
