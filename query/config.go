package query

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/navlog/navlog/query/access"
	"github.com/navlog/navlog/query/explain"
	"github.com/navlog/navlog/query/health"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/vaults"
	"github.com/navlog/navlog/schemas/statement"
)

// Config is the section http of navlog.yaml.
type Config struct {
	// Listen is host:port, default 127.0.0.1:8080; port 0 chooses a free one, see Query.Addr.
	Listen string `yaml:"listen" env:"LISTEN"`
	// Router is the address of the deposit router that partners are given; empty: there is none, and its endpoint
	// responds with 404.
	Router string `yaml:"router" env:"ROUTER"`
	// Explorer is the explorer that the pages link to for transactions, addresses and blocks; default none.
	Explorer health.Explorer `yaml:"explorer" envPrefix:"EXPLORER_"`
	// Vaults are the operator's details of vaults: fees, a description and a link; default nothing.
	Vaults []vaults.About `yaml:"vaults" envPrefix:"VAULTS_"`
	// PublicRateLimit is the limit in requests per minute and IP address: 1 to 1,000,000, default 600; 0 disables it.
	PublicRateLimit int `yaml:"publicRateLimit" env:"PUBLIC_RATE_LIMIT"`
	// PublicEngineTime is how long the requests of an IP address may occupy the engine per minute: 1 s to 10 min,
	// default 30 s; 0 disables the limit. An IPv6 /56 has twice as much, a /48 and an IPv4 /24 four times.
	PublicEngineTime time.Duration `yaml:"publicEngineTime" env:"PUBLIC_ENGINE_TIME"`
	// PartnerRateLimit is the limit in requests per minute and partner, for partners without their own limit in the
	// registry: 1 to 1,000,000, default 120.
	PartnerRateLimit int `yaml:"partnerRateLimit" env:"PARTNER_RATE_LIMIT"`
	// PartnerRotation lets partners rotate their signing secret and API keys, and change the certificates for their
	// webhook URL, over the API: default false. It needs NAVLOG_SECRET_KEY and a login that has navlog_rotation.
	PartnerRotation bool `yaml:"partnerRotation" env:"PARTNER_ROTATION"`
	// TrustedProxies are the networks (CIDR) whose X-Forwarded-For is trusted; default loopback, for a proxy on this
	// machine.
	TrustedProxies []string `yaml:"trustedProxies" env:"TRUSTED_PROXIES"`
	// CacheBytes is the maximum size of the cache of responses: up to 1 GiB, default 32 MiB; 0 disables the cache.
	CacheBytes int `yaml:"cacheBytes" env:"CACHE_BYTES"`
	// ForwardedHeader is the header that these proxies set: X-Forwarded-For (default; Forwarded is used if it is
	// missing) or Forwarded.
	ForwardedHeader string `yaml:"forwardedHeader" env:"FORWARDED_HEADER"`
	// Concurrency is how many cheap requests are handled at once: 1 to 1000, or 0, the default, for two per processor
	// and at least 4. A quarter as many expensive ones are handled in addition, and a quarter more of both for
	// partners only. One address or partner can use half of them at most. Other requests wait, and those that would
	// wait too long fail with 503.
	Concurrency int `yaml:"concurrency" env:"CONCURRENCY"`
	// RequestTimeout limits the work for one response: 100 ms to 10 min, default 10 s. A single ClickHouse query may
	// take at most a minute of it.
	RequestTimeout time.Duration `yaml:"requestTimeout" env:"REQUEST_TIMEOUT"`
	// ReadTimeout limits the reading of a request, header and body together: 100 ms to 10 min, default 10 s.
	ReadTimeout time.Duration `yaml:"readTimeout" env:"READ_TIMEOUT"`
	// WriteTimeout limits a request from its header to the end of its response: 100 ms to 10 min, default 30 s;
	// longer than RequestTimeout.
	WriteTimeout time.Duration `yaml:"writeTimeout" env:"WRITE_TIMEOUT"`
	// FileTimeout is the WriteTimeout for a list that is sent whole, as CSV or Parquet, and for a statement: 100 ms
	// to 1 h, default 15 min; longer than RequestTimeout. After a switch, the old generation is kept for this long
	// before it is dropped.
	FileTimeout time.Duration `yaml:"fileTimeout" env:"FILE_TIMEOUT"`
	// IdleTimeout is how long a connection may wait for its next request: 100 ms to 10 min, default 2 min; less if
	// there are many connections.
	IdleTimeout time.Duration `yaml:"idleTimeout" env:"IDLE_TIMEOUT"`
	// MaxConnections is the maximum number of open connections: 16 to 1,000,000, default 4096, and never more than
	// the file descriptors of the process allow.
	MaxConnections int `yaml:"maxConnections" env:"MAX_CONNECTIONS"`
	// MaxConnectionsPerAddress is the maximum number of connections of an IP address that is not a trusted proxy: 1
	// to 1,000,000, default 256; 0 for unlimited. An IPv6 /56 or /48 has twice as many, an IPv4 /24 four times.
	MaxConnectionsPerAddress int `yaml:"maxConnectionsPerAddress" env:"MAX_CONNECTIONS_PER_ADDRESS"`
	// Drain is how long the program still accepts requests after a signal to end, while it is not ready, so that a
	// balancer sends no more of them: 0 to 1 min, default 0.
	Drain time.Duration `yaml:"drain" env:"DRAIN"`
	// ShutdownTimeout is how long open requests may take when the program ends: 100 ms to 10 min, default 10 s.
	ShutdownTimeout time.Duration `yaml:"shutdownTimeout" env:"SHUTDOWN_TIMEOUT"`
	// ProofRPC is the HTTP URL of the node that proofs of explain are made from; default none, which disables proofs.
	// It may contain a key.
	ProofRPC string `yaml:"proofRpc" env:"PROOF_RPC"`
	// ProofCallsPerSecond limits the calls to that node, of which a block needs two: 1 to 10,000, default 25.
	ProofCallsPerSecond int `yaml:"proofCallsPerSecond" env:"PROOF_CALLS_PER_SECOND"`
	// ProofCallsPerDay limits this instance's calls to that node per day: 40 to 1,000,000,000, default 20,000; 0 for
	// unlimited. Requests without a key can use half of them, and one address a twentieth.
	ProofCallsPerDay int `yaml:"proofCallsPerDay" env:"PROOF_CALLS_PER_DAY"`
	// ProofsForPartners restricts proofs to partners.
	ProofsForPartners bool `yaml:"proofsForPartners" env:"PROOFS_FOR_PARTNERS"`
	// StatementKey signs partners' statements: 32 bytes in base64, accepted only from the environment; default none,
	// which disables statements.
	StatementKey string `yaml:"-" env:"STATEMENT_KEY"`
	// StatementConfirmations is the minimum number of blocks from a statement's block to the newest indexed one,
	// whatever ingest reports as final: 0 to 1,000,000, default 32.
	StatementConfirmations int `yaml:"statementConfirmations" env:"STATEMENT_CONFIRMATIONS"`
}

// DefaultConfig returns the defaults, without a router.
func DefaultConfig() Config {
	return Config{
		Listen:           "127.0.0.1:8080",
		PublicRateLimit:  600,
		PartnerRateLimit: 120,
		TrustedProxies:   []string{"127.0.0.0/8", "::1/128"},
		CacheBytes:       32 << 20,
		ForwardedHeader:  access.XForwardedFor,
		PublicEngineTime: 30 * time.Second,
		IdleTimeout:      2 * time.Minute,
		MaxConnections:   4096,
		RequestTimeout:   10 * time.Second,
		ReadTimeout:      10 * time.Second,
		WriteTimeout:     30 * time.Second,
		FileTimeout:      15 * time.Minute,
		ShutdownTimeout:  10 * time.Second,

		MaxConnectionsPerAddress: 256,

		ProofCallsPerSecond:    25,
		ProofCallsPerDay:       20_000,
		StatementConfirmations: 32,
	}
}

// Validate reports all mistakes at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		fault("http.listen is %q and must be host:port, for example 127.0.0.1:8080", c.Listen)
	}
	if c.Router != "" && !serve.IsAddress(c.Router) {
		fault("http.router is %q and must be the deposit router's address, 0x and 40 hex digits, or empty", c.Router)
	}
	if err := c.Explorer.Validate(); err != nil {
		faults = append(faults, err)
	}
	if err := vaults.CheckAbout(c.Vaults); err != nil {
		faults = append(faults, err)
	}
	for _, number := range []struct {
		name            string
		value           int
		lowest, highest int
		unit            string
		zero            string // what 0 means, if it is below the lowest
	}{
		{"publicRateLimit", c.PublicRateLimit, 1, access.MaxRateLimit, " requests a minute", "off"},
		{"partnerRateLimit", c.PartnerRateLimit, 1, access.MaxRateLimit, " requests a minute", ""},
		{"cacheBytes", c.CacheBytes, 1, 1 << 30, " bytes", "off"},
		{"concurrency", c.Concurrency, 1, 1000, " requests", "a number that suits the processors"},
		{"maxConnections", c.MaxConnections, 16, 1_000_000, "", ""},
		{"maxConnectionsPerAddress", c.MaxConnectionsPerAddress, 1, 1_000_000, "", "any number"},
		{"proofCallsPerSecond", c.ProofCallsPerSecond, 1, 10_000, "", ""},
		{"proofCallsPerDay", c.ProofCallsPerDay, 40, 1_000_000_000, "", "any number"},
		{"statementConfirmations", c.StatementConfirmations, 0, 1_000_000, " blocks", ""},
	} {
		switch within := number.value >= number.lowest && number.value <= number.highest; {
		case within, number.value == 0 && number.zero != "":
		case number.zero != "":
			fault("http.%s is %d and must be %d to %d%s, or 0 (%s)",
				number.name, number.value, number.lowest, number.highest, number.unit, number.zero)
		default:
			fault("http.%s is %d and must be %d to %d%s", number.name, number.value, number.lowest, number.highest, number.unit)
		}
	}
	if c.PublicEngineTime != 0 && (c.PublicEngineTime < time.Second || c.PublicEngineTime > 10*time.Minute) {
		fault("http.publicEngineTime is %s and must be 1s to 10m of each minute, or 0 (off)", c.PublicEngineTime)
	}
	if c.ForwardedHeader != access.XForwardedFor && c.ForwardedHeader != access.Forwarded {
		fault("http.forwardedHeader is %q and must be %s or %s", c.ForwardedHeader, access.XForwardedFor, access.Forwarded)
	}
	for _, proxy := range c.TrustedProxies {
		if prefix, err := netip.ParsePrefix(proxy); err != nil || prefix.Addr().Is4In6() { // clients have IPv4 addresses
			fault("http.trustedProxies holds %q, which is not a network such as 10.0.0.0/8", proxy)
		}
	}
	if c.ProofRPC != "" {
		if err := explain.CheckNodeURL(c.ProofRPC); err != nil {
			fault("http.proofRpc %w", err)
		}
	}
	if c.StatementKey != "" {
		if _, err := statement.Key(c.StatementKey); err != nil {
			faults = append(faults, err)
		}
	}
	if c.Drain < 0 || c.Drain > time.Minute {
		fault("http.drain is %s and must be 0s to 1m", c.Drain)
	}
	for _, timeout := range []struct {
		name           string
		value, longest time.Duration
	}{
		{"requestTimeout", c.RequestTimeout, 10 * time.Minute}, {"readTimeout", c.ReadTimeout, 10 * time.Minute},
		{"writeTimeout", c.WriteTimeout, 10 * time.Minute}, {"fileTimeout", c.FileTimeout, time.Hour},
		{"shutdownTimeout", c.ShutdownTimeout, 10 * time.Minute}, {"idleTimeout", c.IdleTimeout, 10 * time.Minute},
	} {
		if timeout.value < 100*time.Millisecond || timeout.value > timeout.longest {
			fault("http.%s is %s and must be 100ms to %.0fm", timeout.name, timeout.value, timeout.longest.Minutes())
		}
	}
	if c.WriteTimeout <= c.RequestTimeout {
		fault("http.writeTimeout is %s and must be longer than http.requestTimeout, %s: a slow answer could not be sent",
			c.WriteTimeout, c.RequestTimeout)
	}
	if c.FileTimeout <= c.RequestTimeout {
		fault("http.fileTimeout is %s and must be longer than http.requestTimeout, %s: a file could not be sent",
			c.FileTimeout, c.RequestTimeout)
	}
	return errors.Join(faults...)
}
