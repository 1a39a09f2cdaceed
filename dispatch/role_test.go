package dispatch

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
)

// A dispatcher with only the rights of its role can do all of its work: deliver, retry, end
// and park deliveries, probe, run commands, retry dead records, backfill, prune and leave.
func TestDispatcherWorksAsItsRole(t *testing.T) {
	f := newFixture(t)
	f.check(registry.GrantRoles(t.Context(), f.pool))
	up := make(chan struct{})
	well := f.receiver(ok)
	down := f.receiver(func(w http.ResponseWriter, _, _ int) {
		select {
		case <-up:
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	refuses := f.receiver(status(http.StatusNotFound))
	f.partner(7, well.url)
	f.partner(8, down.url)
	f.partner(9, refuses.url)
	f.partner(10, "")
	old := uuid.New()
	f.exec("INSERT INTO delivery (event_id, partner_id, type, body, state, finished_at) VALUES ($1, 7, 'webhook.test', "+
		"'b', 'delivered', now() - interval '100 days')", old)
	f.exec("INSERT INTO command (partner_id, kind, done_at) VALUES (7, 'test', now() - interval '100 days')")
	f.exec("UPDATE retention SET until = now() - interval '93 days'")
	owner := f.url
	f.url += "&role=navlog_dispatch"
	d := f.dispatcher(nil)
	f.url = owner
	stop := f.run(d)
	f.deposits(11, 0, 5) // an unknown partner, for now
	f.deposits(7, 10, 20)
	f.deposits(8, 100, 140)
	f.deposits(9, 200, 202)
	f.deposits(10, 300, 301)
	f.produce("chain.31337.referral.deposits", []byte{0xff})
	f.eventually("delivered, parked, failed, without endpoint", func() bool {
		s := f.states()
		return s[registry.Delivered] >= 10 && s[registry.Parked] > 0 && s[registry.Failed] >= 2 && s[registry.NoEndpoint] == 1
	})
	close(up)
	f.eventually("drained", func() bool { s := f.states(); return s[registry.Parked]+s[registry.Pending] == 0 })
	f.exec("INSERT INTO command (partner_id, kind) VALUES (7, 'test')")
	f.exec("INSERT INTO command (partner_id, kind, first_sequence, last_sequence) VALUES (7, 'replay-range', 1, 10)")
	f.exec("UPDATE dead_record SET retry_at = clock_timestamp()")
	f.partner(11, well.url)
	f.eventually("commands run, dead records retried, earlier events backfilled", func() bool {
		return f.number("SELECT count(*) FROM command WHERE done_at IS NULL") == 0 &&
			f.number("SELECT count(*) FROM dead_record WHERE retried_at IS NULL") == 0 &&
			f.number("SELECT count(*) FROM delivery WHERE partner_id = 11") == 5
	})
	f.eventually("old details are pruned", func() bool {
		return f.number("SELECT count(*) FROM delivery WHERE event_id = $1", old) == 0 &&
			f.number("SELECT count(*) FROM command WHERE done_at < now() - interval '1 day'") == 0
	})
	f.eventually("measured, announced and ready", func() bool {
		return d.Ready() == nil && time.Since(d.Status().MeasuredAt) < time.Minute &&
			f.number("SELECT count(*) FROM dispatcher") == 1
	})
	stop()
	if n := f.number("SELECT count(*) FROM dispatcher") + f.number("SELECT count(*) FROM job_lease WHERE until > now()"); n != 0 {
		t.Errorf("%d rows list the dispatcher as running", n)
	}
	if f.number("SELECT count(*) FROM breaker") != 0 {
		t.Error("a breaker is left over")
	}
}
