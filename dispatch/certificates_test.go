package dispatch

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/certs/certstest"
	"github.com/navlog/navlog/schemas/registry"
)

// clients records the client certificates of a receiver's requests.
type clients struct {
	mu    sync.Mutex
	names []string
}

func (c *clients) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) == 0 {
		return ""
	}
	return c.names[len(c.names)-1]
}

// mutual is a receiver with a certificate of an authority, that demands client certificates of the same authority.
func (f *fixture) mutual(ca *certstest.Authority) (*receiver, *clients) {
	f.Helper()
	seen := &clients{}
	r := f.receiverWith(ok, func(s *httptest.Server) {
		serve := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen.mu.Lock()
			seen.names = append(seen.names, r.TLS.PeerCertificates[0].Subject.CommonName)
			seen.mu.Unlock()
			serve.ServeHTTP(w, r)
		})
		s.TLS = ca.Server()
	})
	f.caFiles = nil // dispatch trusts the authority only if it is set for the URL
	return r, seen
}

func (f *fixture) setCertificates(d *Dispatch, partner int64, url string, texts certs.Texts) {
	f.Helper()
	given, err := texts.Parse()
	f.check(err)
	_, err = registry.SetCertificates(f.Context(), f.pool, registry.Author{Name: "test"}, f.sealer, partner, url, given)
	f.check(err)
	if d != nil {
		f.readEndpoints(d)
	}
}

// lastError returns the error of the newest attempt; "" if it got a response.
func (f *fixture) lastError() string {
	f.Helper()
	return f.text("SELECT coalesce((SELECT coalesce(error, '') FROM attempt ORDER BY started_at DESC LIMIT 1), 'none')")
}

// The certificates of a partner's URL are used without a restart: when they are set, renewed, and when the partner
// changes its URL. Until they are right, the error of each attempt names the problem.
func TestCertificatesOfAPartner(t *testing.T) {
	f := newFixture(t)
	ca, other := certstest.New(t), certstest.New(t)
	r, seen := f.mutual(ca)
	f.partner(7, r.url)
	d := f.start(nil)
	f.deposits(7, 1, 2)
	f.eventually("an attempt without certificates", func() bool {
		return f.lastError() == "the receiver's certificate is signed by an unknown authority"
	})
	f.setCertificates(d, 7, "", certs.Texts{Authorities: other.PEM()})
	f.eventually("failed without the right certificates", f.in(registry.Failed, 1))

	f.setCertificates(d, 7, "", certs.Texts{Authorities: ca.PEM()})
	f.replayAll(7)
	f.eventually("an attempt without a client certificate", func() bool {
		return strings.Contains(f.lastError(), "client certificate, and navlog has none for this URL")
	})
	if got := seen.last(); got != "" {
		t.Fatalf("the receiver got the client certificate %q", got)
	}
	first := ca.Texts(ca.Client("first"))
	f.setCertificates(d, 7, "", certs.Texts{Client: first.Client, Key: first.Key})
	f.deposits(7, 2, 3)
	f.eventually("delivered with the client certificate", func() bool { return seen.last() == "first" })

	second := ca.Texts(ca.Client("second"))
	f.setCertificates(d, 7, "", certs.Texts{Client: second.Client, Key: second.Key})
	f.deposits(7, 3, 4)
	f.eventually("delivered with the renewed certificate", func() bool { return seen.last() == "second" })
	measured := func(authority, client float64) func() bool {
		return func() bool {
			d.measure(t.Context())
			return testutil.ToFloat64(d.metrics.certificates.WithLabelValues("authority")) == authority &&
				testutil.ToFloat64(d.metrics.certificates.WithLabelValues("client")) == client
		}
	}
	expiry := float64(ca.Certificate.NotAfter.Unix()) // of both
	f.eventually("the expiries are measured", measured(expiry, expiry))

	// Another receiver of the same authority gets no certificate: none was set for its URL.
	next, nextSeen := f.mutual(ca)
	f.setURL(7, next.url)
	f.readEndpoints(d)
	f.eventually("the certificates of another URL do not count", measured(math.Inf(1), math.Inf(1)))
	f.deposits(7, 4, 5)
	f.eventually("an attempt at the other URL", func() bool {
		return f.lastError() == "the receiver's certificate is signed by an unknown authority"
	})
	f.setCertificates(d, 7, next.url, ca.Texts(ca.Client("third")))
	f.replayAll(7)
	f.eventually("delivered to the other URL", func() bool { return nextSeen.last() == "third" })
	if got := seen.last(); got != "second" {
		t.Errorf("the first URL got the client certificate %q", got)
	}
}

// replayAll replays a partner's failed events.
func (f *fixture) replayAll(partner int64) {
	f.Helper()
	f.exec("UPDATE delivery SET state = 'pending', attempts = 0, due_at = now(), finished_at = NULL WHERE partner_id = "+
		"$1 AND state = 'failed'", partner)
}

// A dispatcher without the key of one client certificate leaves that partner to others and sends to all others. When
// the key is sealed again with a key that it has, it sends without a restart.
func TestClientKeyThatCannotBeOpened(t *testing.T) {
	f := newFixture(t)
	ca := certstest.New(t)
	r, seen := f.mutual(ca)
	plain := f.receiver(ok)
	f.partner(7, r.url)
	f.partner(8, plain.url)
	f.setCertificates(nil, 7, "", ca.Texts(ca.Client("acme")))
	const otherKey = "OTg3NjU0MzIxMDk4NzY1NDMyMTA5ODc2NTQzMjEwOTg="
	lost, err := registry.NewSealer(otherKey)
	f.check(err)
	key := ca.Texts(ca.Client("acme"))
	f.exec("UPDATE endpoint_certificates SET client_key = $1", lost.SealClientKey(7, r.url, key.Key))
	f.exec("UPDATE endpoint_certificates SET client = $1", key.Client)
	f.start(func(d *Dispatch) { d.shared.Leases.Period = 3 * time.Second }) // how long the partner is left to others
	f.deposits(7, 1, 2)
	f.deposits(8, 2, 3)
	f.eventually("the other partner's event is delivered", f.in(registry.Delivered, 1))
	f.eventually("the log has the reason", func() bool {
		return strings.Contains(f.logged.String(), "the key of the client certificate of partner 7, sealed with key")
	})
	if got := seen.last(); got != "" || f.states()[registry.Pending] != 1 {
		t.Errorf("sent without the key: %q, %v", got, f.states())
	}
	f.exec("UPDATE endpoint_certificates SET client_key = $1", f.sealer.SealClientKey(7, r.url, key.Key))
	f.eventually("delivered with the key", f.in(registry.Delivered, 2))
}
