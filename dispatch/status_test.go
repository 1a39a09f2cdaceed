package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/registry"
)

// Deliveries that are kept forever are counted only up to a limit.
func TestFailedIsCountedUpToALimit(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	f.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, finished_at)
		SELECT gen_random_uuid(), 7, n, 'deposit.referral', '{}', CASE WHEN n <= 3 THEN 'no_endpoint' ELSE 'failed' END, now()
		FROM generate_series(1, 2 * $1) n`, GivenUpCounted)
	d.measure(t.Context())
	got := d.Status().Deliveries
	if got[registry.Failed] != GivenUpCounted || got[registry.NoEndpoint] != 3 || got[registry.Pending] != 0 {
		t.Errorf("counted %v", got)
	}
	if n := testutil.ToFloat64(d.metrics.deliveries.WithLabelValues(registry.Failed)); n != GivenUpCounted {
		t.Errorf("the metric is %v", n)
	}
}

// A queue that cannot be measured does not make a dispatcher unready. The last figures stay,
// with their time, and the log has the reason.
func TestReadyWithoutMeasuring(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	d.health.setProven(time.Now()) // as if it had read
	d.measure(t.Context())
	f.exec("ALTER TABLE breaker RENAME TO breaker_elsewhere")
	before := d.Status().MeasuredAt
	d.measure(t.Context())
	if err := d.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if s := d.Status(); s.State != "reading" || !s.MeasuredAt.Equal(before) {
		t.Errorf("%+v", s)
	}
	if at := testutil.ToFloat64(d.metrics.measured); at != float64(before.UnixMilli())/1000 {
		t.Errorf("the metric dates the figures to %v, want %s", at, before)
	}
	if !strings.Contains(f.logged.String(), "cannot measure the queue") {
		t.Errorf("the log does not have the reason:\n%s", f.logged)
	}
	f.exec("ALTER TABLE breaker_elsewhere RENAME TO breaker")
	d.measure(t.Context())
	if s := d.Status(); !s.MeasuredAt.After(before) || !strings.Contains(f.logged.String(), "works again") {
		t.Errorf("%+v\n%s", s, f.logged)
	}
}
