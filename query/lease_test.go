package query

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// another returns a second instance on the same engines and with the same clock.
func (w *world) another() *world {
	w.t.Helper()
	other := *w
	other.serve(func(c *Config) { *c = w.cfg })
	other.look()
	return &other
}

// TestLimitHoldsOverInstances: a partner's requests are counted together, whichever instance they reach, and the
// headers show it.
func TestLimitHoldsOverInstances(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.PartnerRateLimit = 5 })
	instances := []*world{w, w.another()}
	key := w.partner(7, "Seven")
	const path = "/api/v1/partner/router"
	for n := 4; n >= 0; n-- {
		r := instances[n%2].Get(path, "x-api-key", key)
		r.Data(t)
		same(t, "remaining", r.Header().Get("X-RateLimit-Remaining"), fmt.Sprint(n))
		same(t, "RateLimit", r.Header().Get("RateLimit"), fmt.Sprintf(`"partner";r=%d;t=60`, n))
	}
	for _, i := range instances {
		r := i.Get(path, "x-api-key", key)
		r.Failed(t, 429, "RATE_LIMITED")
		same(t, "Retry-After", r.Header().Get("Retry-After"), "60")
	}
	w.clock.add(time.Minute)
	instances[1].Get(path, "x-api-key", key).Data(t)

	// Requests that make navlog call an endpoint have a separate limit, also shared, and requests that change the
	// endpoint have another one.
	w.exec(`UPDATE partner SET rate_limit = 1000 WHERE id = 7`)
	w.clock.add(time.Minute)
	for n := range 10 + 1 {
		r := instances[n%2].Do("POST",
			webhooksPath+[]string{"/test", "/deliveries/00000000-0000-5000-8000-000000000001/replay"}[n/2%2], nil, "x-api-key",
			key)
		if n < 10 {
			r.Failed(t, 404, "NOT_FOUND") // there is no URL yet, and no such event
			continue
		}
		r.Failed(t, 429, "RATE_LIMITED")
		same(t, "RateLimit-Policy", r.Header().Get("RateLimit-Policy"), `"sends";q=10;w=60`)
	}
	register := w.Do("POST", webhooksPath, strings.NewReader(`{"url":"https://a.example"}`), "x-api-key", key,
		"Content-Type", "application/json")
	register.Data(t)
}

// TestRevocationReachesEveryInstance: a revoked key is rejected within a second of each instance's clock.
func TestRevocationReachesEveryInstance(t *testing.T) {
	w := newFixture(t)
	instances := []*world{w, w.another()}
	key := w.partner(7, "Seven")
	for _, i := range instances {
		i.Get("/api/v1/partner/router", "x-api-key", key).Data(t)
	}
	w.exec(`UPDATE api_key SET revoked_at = now() WHERE partner_id = 7`)
	w.clock.add(time.Second)
	for _, i := range instances {
		i.Get("/api/v1/partner/router", "x-api-key", key).Failed(t, 401, "UNAUTHORIZED")
	}
}
