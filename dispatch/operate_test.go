package dispatch

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// standardSignature returns a signature of Standard Webhooks.
func standardSignature(t *testing.T, secret, id, timestamp string, body []byte) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(secret[len("whsec_"):])
	if err != nil {
		t.Fatal(err)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + timestamp + "." + string(body)))
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// While a secret is rotated, the specified header is signed with the old secret and the
// additional header with the new one; afterwards only the new one signs. Each step is a new
// version of the endpoint.
func TestRotationWithOverlap(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	next := registry.NewSigningSecret()
	_, err := f.queries.RotateSecret(
		t.Context(), db.RotateSecretParams{PartnerID: 7, NextSecret: f.sealer.Seal(7, next), OverlapSeconds: 3600},
	)
	f.check(err)
	f.start(nil) // it reads the endpoints and caches them for a second
	f.delivers(0, 1)
	f.exec("UPDATE endpoint SET next_at = now()")
	versions := f.number("SELECT max(endpoint_version) FROM attempt")
	f.eventually("the change is known", func() bool {
		e, known, err := f.known(7)
		return err == nil && known && e.Secret == next && e.Next == "" && e.Version == versions+1
	})
	// A dispatcher may lag by endpointsAge.
	f.start(nil)
	f.eventually("signed with the new secret", func() bool {
		n := len(r.got())
		f.delivers(n, n+1)
		c := r.got()[n]
		return c.header.Get("X-Service-Signature") == signed(next, c)
	})

	calls := r.got()
	during, after := calls[0], calls[len(calls)-1]
	at := during.header.Get("X-Service-Timestamp")
	if got := during.header.Get("X-Service-Signature"); got != signed(testSecret, during) {
		t.Errorf("during the overlap the specified header is %s", got)
	}
	if got := during.header.Get("X-Service-Signature-Next"); got != signed(next, during) {
		t.Errorf("during the overlap the additional header is %s", got)
	}
	want := standardSignature(t, testSecret, during.id(), at, during.body) + " " + standardSignature(
		t, next, during.id(), at, during.body,
	)
	if got := during.header.Get("Webhook-Signature"); got != want || during.header.Get("Webhook-Id") != during.id() ||
		during.header.Get("Webhook-Timestamp") != at {
		t.Errorf("Standard Webhooks: %s, want %s", got, want)
	}
	if got := after.header.Get("X-Service-Signature-Next"); got != "" {
		t.Errorf("after the overlap there is still %s", got)
	}
	before := f.number("SELECT version FROM endpoint")
	_, err = f.queries.SetSecret(t.Context(), db.SetSecretParams{PartnerID: 7, Secret: f.sealer.Seal(7, testSecret)})
	f.check(err)
	if e, _, err := f.known(7); err != nil || e.Version != before+2 || e.Secret != testSecret {
		t.Errorf("after the next change: version %d, %v", e.Version, err)
	}
}

// known returns the endpoint that a newly started dispatcher would use for a partner.
func (f *fixture) known(partner int64) (lane.Endpoint, bool, error) {
	e := &endpoints{queries: f.queries, sealer: f.sealer}
	return e.get(context.WithoutCancel(f.Context()), partner)
}

// While the endpoints are read, no lock is held, and a caller waits only as long as its context allows. The read continues
// for the others.
func TestEndpointsAreReadWithoutALock(t *testing.T) {
	f := newFixture(t)
	f.partner(7, "https://acme.example/old")
	e := &endpoints{queries: f.queries, sealer: f.sealer}
	holder := f.hold("LOCK TABLE endpoint IN ACCESS EXCLUSIVE MODE")
	impatient, giveUp := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, _, err := e.get(impatient, 7); first <- err }()
	f.eventually("the read is in progress", func() bool {
		return f.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%name: "+
			"Endpoints %'") == 1
	})
	if !e.mu.TryLock() {
		t.Fatal("the read holds the lock")
	}
	e.mu.Unlock()
	giveUp()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled caller got %v", err)
	}
	second, failed := make(chan lane.Endpoint, 1), make(chan error, 1)
	go func() {
		got, _, err := e.get(t.Context(), 7)
		failed <- err
		second <- got
	}()
	_, err := holder.Exec(t.Context(), "UPDATE endpoint SET url = 'https://acme.example/new', version = version + 1")
	f.check(err)
	f.check(holder.Commit(t.Context()))
	f.check(<-failed)
	if got := <-second; got.URL != "https://acme.example/new" {
		t.Errorf("the endpoint is %s", got.URL)
	}
}

// An operator parks a partner: nothing is sent and nothing is lost, even across a restart;
// then the partner is resumed.
func TestOperatorParksAndResumes(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	_, err := f.queries.HoldEndpoint(t.Context(), db.HoldEndpointParams{PartnerID: 7, Held: true})
	f.check(err)
	stop := f.run(f.dispatcher(nil))
	f.deposits(7, 0, 10)
	f.eventually("parked", f.in(registry.Parked, 10))
	stop()
	f.start(nil)
	f.deposits(7, 10, 20)
	f.eventually("parked", f.in(registry.Parked, 20))
	if n := len(r.got()); n != 0 || f.number("SELECT sum(attempts) FROM delivery") != 0 {
		t.Errorf("%d requests to a parked partner", n)
	}
	_, err = f.queries.HoldEndpoint(t.Context(), db.HoldEndpointParams{PartnerID: 7, Held: false})
	f.check(err)
	f.eventually("delivered", f.in(registry.Delivered, 20))
}

// A range is replayed with the same ids, only in the requested state, and the command
// reports how many deliveries were sent. One beyond the last sequence, even at the largest number, replays nothing.
func TestReplayRange(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	f.start(nil)
	f.delivers(0, 20)
	f.exec("UPDATE delivery SET state = 'failed' WHERE sequence IN (5, 6, 19)")
	failed := registry.Failed
	for _, p := range []db.CreateReplayRangeParams{
		{PartnerID: 7, FirstSequence: 2, LastSequence: 1 << 40, OnlyState: &failed},
		{PartnerID: 7, FirstSequence: math.MaxInt64 - 1, LastSequence: math.MaxInt64},
	} {
		_, err := f.queries.CreateReplayRange(t.Context(), p)
		f.check(err)
	}
	f.eventually("done", func() bool { return f.number("SELECT count(*) FROM command WHERE done_at IS NULL") == 0 })
	f.eventually("delivered", f.in(registry.Delivered, 20))
	if n := len(r.got()); n != 23 {
		t.Errorf("%d requests for 20 events and 3 replays", n)
	}
	if n := f.number("SELECT deliveries FROM command WHERE first_sequence = 2"); n != 3 {
		t.Errorf("the command reports %d", n)
	}
}

// The attempt log has the phases of the first POST on a connection, and omits those that a
// reused connection skips.
func TestPhases(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	f.start(nil)
	for n := range 2 {
		f.delivers(n, n+1)
	}
	const whole = " AND first_byte_us <= 1000 * (duration_ms + 1)" // microseconds of a POST of milliseconds
	const first, kept = "connect_us > 0 AND tls_us > 0 AND first_byte_us > tls_us" + whole,
		"connect_us IS NULL AND tls_us IS NULL AND first_byte_us > 0" + whole
	if f.number("SELECT count(*) FROM attempt WHERE dns_us IS NULL AND "+first) != 1 ||
		f.number("SELECT count(*) FROM attempt WHERE "+kept) != 1 {
		t.Error(f.text("SELECT json_agg(attempt)::text FROM attempt"))
	}
}

// A dispatcher that starts later gets its share of the partners, and nothing is sent twice because of it.
func TestPartnersAreDividedEvenly(t *testing.T) {
	f := newFixture(t)
	r := f.receiver(ok)
	const partners = 10
	for id := range int64(partners) {
		f.partner(id+1, r.url)
	}
	sent := 0
	send := func() {
		for id := range uint32(partners) {
			f.deposits(id+1, sent, sent+1)
			sent++
		}
	}
	first := f.start(nil)
	send()
	f.eventually("delivered", f.in(registry.Delivered, sent))
	second := f.start(nil)
	f.eventually("both have partners", func() bool {
		if len(second.allLanes()) < 3 {
			send()
			f.eventually("delivered", f.in(registry.Delivered, sent))
		}
		return len(second.allLanes()) >= 3 && len(first.allLanes()) >= 3
	})
	if n := len(r.got()); n != sent {
		t.Errorf("%d requests for %d events", n, sent)
	}
	if n := f.number("SELECT count(*) FROM dispatcher WHERE until > now()"); n != 2 {
		t.Errorf("%d dispatchers run", n)
	}
}

// When one partner registers a URL, the connections of the others stay open.
func TestRegistrationKeepsOtherConnections(t *testing.T) {
	f := newFixture(t)
	ours, others := f.receiver(ok), f.receiver(ok)
	f.partner(7, ours.url)
	f.partner(8, others.url)
	f.start(nil)
	f.deposits(7, 1, 2)
	f.deposits(8, 1, 2)
	f.eventually("both get their events", f.in(registry.Delivered, 2))
	f.setURL(7, ours.url+"&again")
	sent := 1
	f.eventually("the new URL is used", func() bool { // dispatchers notice it a little later
		calls := ours.got()
		if len(calls) == sent {
			sent++
			f.deposits(7, sent, sent+1)
		}
		return strings.HasSuffix(calls[len(calls)-1].path, "&again")
	})
	f.deposits(8, 2, 3)
	f.eventually("all are delivered", f.in(registry.Delivered, sent+2))
	if n := ours.accepted.Load(); n != 2 {
		t.Errorf("the partner that moved was reached over %d connections, want one for each URL", n)
	}
	if n := others.accepted.Load(); n != 1 {
		t.Errorf("the other partner was reached over %d connections, want 1", n)
	}
}
