package dispatch

import (
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/registry"
)

// The life of a breaker: it opens, its partner's events are parked without
// losing attempts, probes come one at a time and take turns, and when one is
// answered everything drains within the bound.
func TestBreakerLife(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(status(http.StatusServiceUnavailable))
	f.partner(7, r.url)
	d := f.start(nil)
	f.deposits(7, 0, 30)
	f.eventually("parked", func() bool { return f.states()[registry.Parked] == 30 })
	attempts := f.number("SELECT sum(attempts) FROM delivery")
	r.script(status(http.StatusServiceUnavailable)) // counts from here
	before := len(r.got())
	f.deposits(7, 30, 60)
	f.eventually("all are parked, and probed", func() bool { return f.states()[registry.Parked] == 60 && len(r.got()) >= before+5 })
	if n := r.mostAtOnce(); n > 1 {
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
		t.Errorf("parked events had %d attempts and have %d", attempts, n)
	}
	if n := f.number("SELECT count(*) FROM breaker WHERE partner_id = 7 AND url = $1", r.url); n != 1 {
		t.Error("the open breaker is not in PostgreSQL")
	}
	f.eventually("the metric shows it", func() bool {
		d.measure(t.Context())
		return testutil.ToFloat64(d.metrics.openBreakers) == 1 && testutil.ToFloat64(d.metrics.deliveries.WithLabelValues(registry.Parked)) == 60
	})

	r.script(ok)
	f.eventually("drained", f.in(registry.Delivered, 60))
	if n := r.mostAtOnce(); n > DefaultConfig().PerPartnerConcurrency {
		t.Errorf("%d requests at a time while draining", n)
	}
	f.eventually("closed", func() bool { return f.number("SELECT count(*) FROM breaker") == 0 })
	if n := f.number("SELECT count(*) FROM attempt"); n != int64(len(r.got())) {
		t.Errorf("%d attempts in the log, %d on the wire", n, len(r.got()))
	}
}

// A probe that hangs ends with the deadline and does not hold the rest for ever.
func TestHangingProbe(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(status(http.StatusServiceUnavailable))
	f.partner(7, r.url)
	f.start(func(d *Dispatch) { d.timing.deadline = time.Second })
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

// A restart does not forget an open breaker: the parked events stay parked, and
// no herd is let loose.
func TestBreakerSurvivesRestart(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(status(http.StatusServiceUnavailable))
	f.partner(7, r.url)
	long := func(d *Dispatch) { d.timing.openMin, d.timing.openMax = time.Hour, time.Hour }
	stop := f.run(f.dispatcher(long))
	f.deposits(7, 0, 30)
	f.eventually("parked", func() bool { return f.states()[registry.Parked] == 30 })
	stop()
	before := len(r.got())

	r.script(ok)
	d := f.start(long)
	f.deposits(7, 30, 40)
	f.eventually("all are parked", f.in(registry.Parked, 40))
	if n := len(r.got()); n != before {
		t.Errorf("%d requests while the breaker was open", n-before)
	}
	f.eventually("ready", func() bool { return d.Ready() == nil })

	// A new URL has a fresh breaker.
	f.setURL(7, r.url+"&v=2")
	f.eventually("drained", f.in(registry.Delivered, 40))
	if n := f.number("SELECT count(*) FROM breaker"); n != 0 {
		t.Error("the breaker of the old URL is still there")
	}
}

// A partner that is disabled while its events are parked.
func TestDisabledWhileParked(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(status(http.StatusServiceUnavailable))
	f.partner(7, r.url)
	f.start(func(d *Dispatch) { d.timing.openMin, d.timing.openMax = time.Hour, time.Hour })
	f.deposits(7, 0, 30)
	f.eventually("parked", f.in(registry.Parked, 30))
	f.exec("UPDATE partner SET disabled = true WHERE id = 7")
	f.eventually("given up", f.in(registry.NoEndpoint, 30))
}
