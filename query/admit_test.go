package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/registry"
)

func TestKeys(t *testing.T) {
	w := newFixture(t)
	seven := w.partner(7, "Seven")
	second := w.key(7)
	eight := w.partner(8, "Eight")
	revoked := w.key(8)
	w.exec(`UPDATE api_key SET revoked_at = now() WHERE last4 = '%s'`, revoked[len(revoked)-4:])
	const path = "/api/v1/partner/stats"

	for _, key := range []string{seven, second} {
		if data := w.get(path, "x-api-key", key).data(t).(object); fmt.Sprint(data["partnerId"]) != "7" {
			t.Errorf("a key of partner 7 is that of %v", data["partnerId"])
		}
	}
	wellFormed := registry.NewAPIKey(false)
	messages := map[string]bool{}
	for name, key := range map[string]string{"missing": "", "malformed": "secret", "unknown": wellFormed, "revoked": revoked, "mistyped": seven[:len(seven)-1] + "!"} {
		r := w.get(path, "x-api-key", key)
		r.failed(t, 401, "UNAUTHORIZED")
		messages[decode(t, r.Body.Bytes())["error"].(object)["message"].(string)] = true
		if r.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
	}
	if len(messages) != 1 {
		t.Errorf("what is wrong with a key should not be told: %v", messages)
	}
	for _, e := range w.endpoints() { // no partner route may be open
		for _, method := range e.methods() {
			if e.partner && method != http.MethodHead {
				w.do(method, strings.Replace(e.path, "{address}", vaultA.Hex(), 1), nil).failed(t, 401, "UNAUTHORIZED")
				w.do(method, strings.Replace(e.path, "{address}", "x", 1)+"?page=x", nil).failed(t, 401, "UNAUTHORIZED") // the key comes before validation
			}
		}
	}
	if n := testutil.ToFloat64(w.metrics.authFailures); n < 10 {
		t.Errorf("auth_failures_total is %v", n)
	}

	// Within a second the registry is not asked again, after it is.
	w.get(path, "x-api-key", eight).data(t)
	w.exec(`UPDATE partner SET disabled = true WHERE id = 8`)
	w.get(path, "x-api-key", eight).data(t)
	w.clock.add(time.Second)
	w.get(path, "x-api-key", eight).failed(t, 403, "FORBIDDEN")
	w.exec(`UPDATE partner SET disabled = false WHERE id = 8`)
	w.exec(`UPDATE api_key SET revoked_at = now() WHERE partner_id = 8`)
	w.clock.add(time.Second)
	w.get(path, "x-api-key", eight).failed(t, 401, "UNAUTHORIZED")

	for _, secret := range []string{seven, second, eight, revoked, wellFormed} {
		if strings.Contains(w.log.String(), secret) {
			t.Error("a key is in the log")
		}
	}
}

func TestPartnersSeeOnlyTheirOwn(t *testing.T) {
	w := newFixture(t)
	keys := map[uint32]string{7: w.partner(7, "Seven"), 8: w.partner(8, "Eight"), 9: w.partner(9, "Nine")}
	w.deliveries()
	o := w.ledger.at(w.ledger.seq(), 1<<62)
	for id, key := range keys {
		same(t, "deposits", w.get("/api/v1/partner/deposits", "x-api-key", key).data(t), o.depositsNewestFirst(func(e entry) bool { return e.partner == id }))
		for _, path := range []string{"/api/v1/partner/webhooks", "/api/v1/partner/webhooks/deliveries", "/api/v1/partner/events"} {
			if body := w.get(path, "x-api-key", key).Body.String(); id != 7 && strings.Contains(body, "seven.example") || id != 8 && strings.Contains(body, `"partnerId":8`) {
				t.Errorf("partner %d sees what is not its own: %s", id, body)
			}
		}
	}
}

func TestPartnerRateLimit(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.PartnerRateLimit = 5 })
	first, other := w.partner(7, "Seven"), w.partner(8, "Eight")
	second := w.key(7)
	w.exec(`UPDATE partner SET rate_limit = 2 WHERE id = 8`)
	const path = "/api/v1/partner/router"
	for n := 4; n >= 0; n-- { // all keys of a partner together
		r := w.get(path, "x-api-key", []string{first, second}[n%2])
		for name, want := range map[string]string{
			"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": fmt.Sprint(n), "RateLimit-Policy": `"partner";q=5;w=60`,
			"RateLimit": fmt.Sprintf(`"partner";r=%d;t=%d`, n, 12*(5-n)), "X-RateLimit-Reset": fmt.Sprint(w.clock.now().Add(time.Duration(12*(5-n)) * time.Second).Unix()),
		} {
			if got := r.Header().Get(name); r.Code != 200 || got != want {
				t.Errorf("%d: %s is %q, should be %q", r.Code, name, got, want)
			}
		}
	}
	r := w.get(path+"?page=x", "x-api-key", first)
	r.failed(t, 429, "RATE_LIMITED")
	if r.Header().Get("Retry-After") != "12" || r.Header().Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("429 with %v", r.Header())
	}
	if n := testutil.ToFloat64(w.metrics.limited.WithLabelValues("partner")); n != 1 {
		t.Errorf("rate_limited_total is %v", n)
	}
	w.get(path, "x-api-key", other).data(t) // its own override, its own bucket
	w.get(path, "x-api-key", other).data(t)
	w.get(path, "x-api-key", other).failed(t, 429, "RATE_LIMITED")
	w.clock.add(12 * time.Second)
	w.get(path, "x-api-key", first).data(t)
	w.get(path, "x-api-key", first).failed(t, 429, "RATE_LIMITED")
	w.get("/api/v1/vaults").data(t) // the public limit is off in this world
}

func TestPublicRateLimit(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.PublicRateLimit = 3 })
	for range 3 {
		w.get("/api/v1/vaults").data(t)
	}
	r := w.get("/api/v1/vaults/x")
	r.failed(t, 429, "RATE_LIMITED")
	if r.Header().Get("Retry-After") != "20" || r.Header().Get("RateLimit-Policy") != `"public";q=3;w=60` {
		t.Errorf("%v", r.Header())
	}
	w.get("/status").failed(t, 429, "RATE_LIMITED")
	w.get("/healthz").data(t)
	w.get("/readyz").data(t)
	w.clock.add(20 * time.Second)
	w.get("/api/v1/vaults").data(t)
}

func TestFailedKeysAreLimitedBeforeTheKey(t *testing.T) {
	w := newFixture(t)
	key := w.partner(7, "Seven")
	for range failedKeysPerMinute {
		w.get("/api/v1/partner/stats", "x-api-key", "guess").failed(t, 401, "UNAUTHORIZED")
	}
	r := w.get("/api/v1/partner/stats", "x-api-key", key)
	r.failed(t, 429, "RATE_LIMITED")
	if r.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	w.clock.add(time.Minute)
	w.get("/api/v1/partner/stats", "x-api-key", key).data(t)
}

func TestClientIP(t *testing.T) {
	q := &Query{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	for _, c := range []struct{ remote, forwarded, want string }{
		{"1.2.3.4:5", "", "1.2.3.4"},
		{"1.2.3.4:5", "9.9.9.9", "1.2.3.4"}, // not a proxy of ours
		{"10.0.0.1:5", "", "10.0.0.1"},
		{"10.0.0.1:5", "9.9.9.9", "9.9.9.9"},
		{"10.0.0.1:5", "6.6.6.6, 9.9.9.9", "9.9.9.9"}, // what the client made up counts not
		{"10.0.0.1:5", "9.9.9.9, 10.0.0.2", "9.9.9.9"},
		{"10.0.0.1:5", "garbage", "10.0.0.1"},
		{"10.0.0.1:5", "10.0.0.3,10.0.0.2", "10.0.0.3"},
		{"[::ffff:1.2.3.4]:5", "", "1.2.3.4"},
		{"[2001:db8:1:2:3:4:5:6]:5", "", "2001:db8:1:2::"},
		{"[fd00::1]:5", "2001:db8::9", "2001:db8::"},
		{"garbage", "", "invalid IP"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := q.clientIP(r).String(); got != c.want {
			t.Errorf("%s with %q is %s, should be %s", c.remote, c.forwarded, got, c.want)
		}
	}
}

// TestLimiterAgainstBucket compares the limiter with a leaky bucket that is
// counted out, request by request.
func TestLimiterAgainstBucket(t *testing.T) {
	l := newLimiter[string](10)
	now := time.Unix(1000, 0)
	const perMinute = 6 // one every 10 s
	level, last := time.Duration(0), now
	for i, pause := range []int{0, 0, 0, 0, 0, 0, 0, 3, 7, 0, 10, 25, 0, 0, 0, 61, 0, 0, 0, 0, 0, 0, 0, 9, 1} {
		now = now.Add(time.Duration(pause) * time.Second)
		level = max(0, level-now.Sub(last))
		last = now
		ok := level+10*time.Second <= time.Minute
		if ok {
			level += 10 * time.Second
		}
		got := l.take("k", perMinute, now)
		if got.ok != ok || got.remaining != int((time.Minute-level)/(10*time.Second)) || got.reset != level || got.limit != perMinute {
			t.Fatalf("request %d: %+v, should be ok %v with level %s", i, got, ok, level)
		}
		if !ok && (got.retry <= 0 || !l.look("k", perMinute, now.Add(got.retry)).ok || l.look("k", perMinute, now.Add(got.retry-1)).ok) {
			t.Fatalf("request %d: retry %s is not when the next one is granted", i, got.retry)
		}
	}
	for i := range 100 {
		l.take(fmt.Sprint(i), perMinute, now)
	}
	if len(l.full) > 10 {
		t.Errorf("%d keys remembered, should be 10 at most", len(l.full))
	}
	if q := l.take("odd", 7, now); !q.ok || q.remaining != 6 {
		t.Errorf("%+v", q)
	}
}

func TestKeyCacheIsBounded(t *testing.T) {
	c := keyCache{entries: map[[32]byte]keyEntry{}}
	now := time.Unix(1000, 0)
	hash := func(i int) [32]byte { return [32]byte{byte(i), byte(i >> 8), byte(i >> 16)} }
	for i := range maxKeys + 10 {
		c.put(hash(i), keyEntry{until: now.Add(time.Second)}, now)
	}
	if len(c.entries) > maxKeys {
		t.Errorf("%d entries", len(c.entries))
	}
	if _, ok := c.get(hash(maxKeys+9), now); !ok {
		t.Error("the newest entry is gone")
	}
}
