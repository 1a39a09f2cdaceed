package query

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/query/readtest"
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
		if data := w.get(path, "x-api-key", key).Data(t).(object); fmt.Sprint(data["partnerId"]) != "7" {
			t.Errorf("the key of partner 7 belongs to partner %v", data["partnerId"])
		}
	}
	wellFormed := registry.NewAPIKey(false)
	messages := map[string]bool{}
	for name, key := range map[string]string{"missing": "", "malformed": "secret", "unknown": wellFormed,
		"revoked": revoked, "mistyped": seven[:len(seven)-1] + "!"} {
		r := w.get(path, "x-api-key", key)
		r.Failed(t, 401, "UNAUTHORIZED")
		messages[readtest.Decode(t, r.Body.Bytes())["error"].(object)["message"].(string)] = true
		if r.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
	}
	if len(messages) != 1 {
		t.Errorf("the response reveals what is wrong with the key: %v", messages)
	}
	for _, e := range w.routes() { // no partner route may be public
		for _, method := range methods(e) {
			if e.Partner && method != http.MethodHead {
				w.Do(method, strings.Replace(e.Path, "{address}", vaultA.Hex(), 1), nil).Failed(t, 401, "UNAUTHORIZED")
				// the key comes first
				w.Do(method, strings.Replace(e.Path, "{address}", "x", 1)+"?page=x", nil).Failed(t, 401, "UNAUTHORIZED")
			}
		}
	}
	if n := w.metric("navlog_query_auth_failures_total"); n < 10 {
		t.Errorf("auth_failures_total is %v", n)
	}

	// The result of a lookup is cached for a second; after that the registry is queried again.
	w.get(path, "x-api-key", eight).Data(t)
	w.exec(`UPDATE partner SET disabled = true WHERE id = 8`)
	w.get(path, "x-api-key", eight).Data(t)
	w.clock.add(time.Second)
	w.get(path, "x-api-key", eight).Failed(t, 403, "FORBIDDEN")
	w.exec(`UPDATE partner SET disabled = false WHERE id = 8`)
	w.exec(`UPDATE api_key SET revoked_at = now() WHERE partner_id = 8`)
	w.clock.add(time.Second)
	w.get(path, "x-api-key", eight).Failed(t, 401, "UNAUTHORIZED")

	for _, secret := range []string{seven, second, eight, revoked, wellFormed} {
		if strings.Contains(w.logged.String(), secret) {
			t.Error("a key is in the log")
		}
	}
}

func TestPartnersSeeOnlyTheirOwn(t *testing.T) {
	w := newFixture(t)
	keys := map[uint32]string{7: w.partner(7, "Seven"), 8: w.partner(8, "Eight"), 9: w.partner(9, "Nine")}
	w.deliveries()
	for id, key := range keys {
		var own []string // of the live log, newest first
		for _, e := range slices.Backward(w.chain.Live(w.chain.Seq(), 1<<62)) {
			if e.Kind == readtest.Deposit && e.Fact.Partner == id {
				own = append(own, fmt.Sprintf("%s-%d", e.Tx.Hex(), e.Index))
			}
		}
		var shown []string
		for _, d := range w.get("/api/v1/partner/deposits", "x-api-key", key).Data(t).([]any) {
			shown = append(shown, d.(object)["id"].(string))
			same(t, "partner", d.(object)["partnerId"], id)
		}
		same(t, "deposits", shown, own)
		for _, path := range []string{"/api/v1/partner/webhooks", "/api/v1/partner/webhooks/deliveries",
			"/api/v1/partner/events"} {
			if body := w.get(path, "x-api-key", key).Body.String(); id != 7 && strings.Contains(body, "seven.example") ||
				id != 8 && strings.Contains(body, `"partnerId":8`) {
				t.Errorf("partner %d sees data of another partner: %s", id, body)
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
	for n := 4; n >= 0; n-- { // all keys of a partner share the limit
		r := w.get(path, "x-api-key", []string{first, second}[n%2])
		for name, want := range map[string]string{
			"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": fmt.Sprint(n), "RateLimit-Policy": `"partner";q=5;w=60`,
			"RateLimit":         fmt.Sprintf(`"partner";r=%d;t=60`, n),
			"X-RateLimit-Reset": fmt.Sprint(w.clock.now().Add(time.Minute + time.Second - 1).Unix()),
		} {
			if got := r.Header().Get(name); r.Code != 200 || got != want {
				t.Errorf("%d: %s is %q, should be %q", r.Code, name, got, want)
			}
		}
	}
	r := w.get(path+"?page=x", "x-api-key", first)
	r.Failed(t, 429, "RATE_LIMITED")
	if r.Header().Get("Retry-After") != "60" || r.Header().Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("429 with %v", r.Header())
	}
	if n := w.metric("navlog_query_rate_limited_total", "partner"); n != 1 {
		t.Errorf("rate_limited_total is %v", n)
	}
	w.get(path, "x-api-key", other).Data(t) // separate override, separate bucket
	w.get(path, "x-api-key", other).Data(t)
	w.get(path, "x-api-key", other).Failed(t, 429, "RATE_LIMITED")
	w.clock.add(59 * time.Second) // a minute grants five, however they are spread
	r = w.get(path, "x-api-key", first)
	r.Failed(t, 429, "RATE_LIMITED")
	reset, err := strconv.ParseInt(r.Header().Get("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.add(time.Unix(reset, 0).Sub(w.clock.now()))
	w.get(path, "x-api-key", first).Data(t)
	w.get("/api/v1/vaults").Data(t) // the public limit is off in this world
}

func TestPublicRateLimit(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.PublicRateLimit = 3 })
	for range 3 {
		w.get("/api/v1/vaults").Data(t)
	}
	r := w.get("/api/v1/vaults/x")
	r.Failed(t, 429, "RATE_LIMITED")
	if r.Header().Get("Retry-After") != "60" || r.Header().Get("RateLimit-Policy") != `"public";q=3;w=60` {
		t.Errorf("%v", r.Header())
	}
	w.get("/status").Failed(t, 429, "RATE_LIMITED")
	w.get("/healthz").Data(t)
	w.get("/readyz").Data(t)
	w.clock.add(time.Minute)
	w.get("/api/v1/vaults").Data(t)
}

// TestKeysBehindANoisyAddress: requests without a valid key are rejected after a while, but a partner at the same
// address is always served, whether or not its key is cached.
func TestKeysBehindANoisyAddress(t *testing.T) {
	w := newFixture(t)
	known, unknown := w.partner(7, "Seven"), w.partner(8, "Eight")
	const path = "/api/v1/partner/stats"
	w.get(path, "x-api-key", known).Data(t)
	for i := range 60 {
		w.get(path, "x-api-key", []string{"", "guess", registry.NewAPIKey(true)}[i%3]).Failed(t, 401, "UNAUTHORIZED")
	}
	for _, key := range []string{"", "guess", registry.NewAPIKey(true)} {
		r := w.get(path, "x-api-key", key)
		r.Failed(t, 429, "RATE_LIMITED")
		if r.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	w.get(path, "x-api-key", known).Data(t)
	w.get(path, "x-api-key", unknown).Data(t)
	if n := w.metric("navlog_query_rate_limited_total", "failed-keys"); n != 3 {
		t.Errorf("%v requests rejected because of failed keys", n)
	}
	w.clock.add(time.Minute)
	w.get(path, "x-api-key", "guess").Failed(t, 401, "UNAUTHORIZED")
}
