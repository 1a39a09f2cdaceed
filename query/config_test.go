package query

import (
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/query/health"
)

func TestConfigReportsEveryMistake(t *testing.T) {
	good := DefaultConfig()
	good.Router = router.Hex()
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults and a router are refused: %v", err)
	}
	bad := Config{Listen: "8080", Router: "0x12", PublicRateLimit: -1, PartnerRateLimit: 0,
		TrustedProxies: []string{"10.0.0.0/8", "10.0.0.1", "::ffff:10.0.0.0/104"}, CacheBytes: -1, Concurrency: -1,
		ForwardedHeader:  "Via",
		PublicEngineTime: time.Millisecond, MaxConnections: 1, MaxConnectionsPerAddress: -1, ProofCallsPerDay: 1,
		RequestTimeout: time.Hour, ReadTimeout: 0, WriteTimeout: time.Second, FileTimeout: 2 * time.Hour,
		ShutdownTimeout: time.Second, Drain: time.Hour, ProofRPC: "node",
		Explorer: health.Explorer{Block: "https://explorer.example/"}}
	err := bad.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, path := range []string{"http.listen", "http.router", "http.publicRateLimit", "http.partnerRateLimit",
		`http.trustedProxies holds "10.0.0.1"`, `http.trustedProxies holds "::ffff:10.0.0.0/104"`,
		"http.requestTimeout is 1h",
		"http.fileTimeout is 2h0m0s and must be 100ms to 60m", "http.readTimeout", "http.cacheBytes", "http.concurrency",
		"longer than http.requestTimeout", "http.proofRpc is of (no URL)", "http.proofCallsPerSecond",
		"http.proofCallsPerDay", "http.publicEngineTime is 1ms", `http.forwardedHeader is "Via"`, "http.maxConnections is 1",
		"http.maxConnectionsPerAddress", "http.idleTimeout",
		"http.drain is 1h0m0s", "http.explorer.block must have {block} once"} {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("%s is not mentioned in: %v", path, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 22 {
		t.Errorf("%d mistakes reported, want 22: %v", n, err)
	}
}

// TestLongTimeouts: a request's timeout may be longer than the time limit of the engine's login for a query, for
// normal and for streamed responses.
func TestLongTimeouts(t *testing.T) {
	w := newFixture(t, func(c *Config) {
		c.RequestTimeout, c.WriteTimeout, c.CacheBytes = 9*time.Minute, 10*time.Minute,
			0
	})
	for _, path := range []string{"/api/v1/users", "/api/v1/queues/withdrawals", "/api/v1/queues/deposits",
		"/api/v1/settlement/summary?asOfBlock=9"} {
		w.get(path).Data(t)
	}
}
