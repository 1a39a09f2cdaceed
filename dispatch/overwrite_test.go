package dispatch

import (
	"net/http"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// The URL and the secret change between two attempts: the retry uses the new ones.
func TestOverwriteWhileRetrying(t *testing.T) {
	f := newFixture(t)
	before, after := f.receiver(func(w http.ResponseWriter, _, _ int) {
		<-f.released
		w.WriteHeader(http.StatusInternalServerError)
	}), f.receiver(ok)
	f.partner(7, before.url)
	f.start(func(d *Dispatch) { d.shared.Timing.Retries = []time.Duration{2 * endpointsAge} })
	f.deposits(7, 1, 2)
	f.eventually("first attempt", func() bool { return len(before.got()) == 1 })
	secret := registry.NewSigningSecret()
	f.exec(
		"UPDATE endpoint SET url = $1, secret = $2, version = version + 1 WHERE partner_id = 7", after.url,
		f.sealer.Seal(7, secret),
	)
	f.release()
	f.eventually("delivered", f.in(registry.Delivered, 1))
	if len(before.got()) != 1 || len(after.got()) != 1 {
		t.Fatalf("%d requests to the old URL, %d to the new one", len(before.got()), len(after.got()))
	}
	f.verify(before.got()[0], testSecret)
	f.verify(after.got()[0], secret)
}

// URL and secret change a thousand times, or 300 with -short, while events fail once and are retried: each
// request has the secret that belongs to its URL.
func TestOverwriteWhileRetryingAThousandTimes(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 12
	}
	const changes, events = 25, 10 // an odd number of changes, so that the rounds end at either URL
	f := newFixture(t)
	failOnce := func(w http.ResponseWriter, _, ofEvent int) {
		if ofEvent == 1 {
			w.WriteHeader(http.StatusNotFound)
		}
	}
	places := []*receiver{f.receiver(failOnce), f.receiver(failOnce)}
	secrets := []string{testSecret, registry.NewSigningSecret()}
	f.partner(7, places[0].url)
	d := f.start(nil)
	for round := range rounds {
		// The retries of the previous round meet these changes.
		now := 0
		for n := range changes {
			now = (round*changes + n) % 2
			f.exec("UPDATE endpoint SET url = $1, secret = $2, version = version + 1 WHERE partner_id = 7",
				places[now].url, f.sealer.Seal(7, secrets[now]))
			f.readEndpoints(d) // otherwise only one change a second would take effect
		}
		before := len(places[now].got())
		f.deposits(7, round*events, (round+1)*events)
		f.eventually("a request to the newest URL", func() bool { return len(places[now].got()) > before })
	}
	f.eventually("delivered", f.in(registry.Delivered, rounds*events))
	for i, r := range places {
		calls := r.got()
		for _, c := range calls {
			f.verify(c, secrets[i])
		}
		if len(calls) < rounds*events/10 {
			t.Errorf("only %d requests came to URL %d", len(calls), i)
		}
	}
	if n := f.number("SELECT count(DISTINCT endpoint_version) FROM attempt"); n < int64(rounds/2) {
		t.Errorf("attempts saw %d versions", n)
	}
}
