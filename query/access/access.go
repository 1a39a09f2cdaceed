// Package access authenticates and rate-limits requests: API keys, the limits of partners, and the limits of
// addresses. PostgreSQL is the only engine that it uses.
//
//	public route:   address ─▶ limiter of this process
//	partner route:  key ─▶ partner ─▶ limit of the partner across all instances
//	                 └ not valid ─▶ address ─▶ limiter of this process ─▶ 401 or 429
//
// The key is checked first: many clients may share an address, for example behind a proxy or a carrier's NAT, and the
// traffic of the others must not lock out a partner. So only requests without a valid key count against an address.
// keys.go explains why a flood of them costs PostgreSQL next to nothing.
//
// A request also counts against the prefixes of its address (serve.Prefixes), so that a customer with many
// addresses gets only a multiple of one address's share of requests, of engine time, and of node calls for proofs
// (budget.go). client.go decides which address a request comes from.
//
// The result of a key lookup is cached for one second. A change looks the key up again, under the lock of the partner
// (registry.RegisterURL and others). While PostgreSQL is down, partner routes respond with 503. The response is the
// same whatever is wrong with a key.
package access

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// failedKeysPerMinute is how many requests with a missing or invalid key one IP address may send.
	failedKeysPerMinute = 60
	// maxAddresses is how many addresses each per-address limit remembers.
	maxAddresses = 100_000
	// MaxRateLimit is the highest limit that can be configured, in requests per minute.
	MaxRateLimit = 1_000_000
)

// postLimits are a partner's limits per minute for requests that cost more than a read. Each test and replay leaves
// rows in PostgreSQL for as long as dispatch keeps delivery details.
var postLimits = map[serve.Policy]int{serve.Registrations: 10, serve.Sends: 10}

// Access decides which requests are admitted.
type Access struct {
	PublicRateLimit int            // requests per minute and address; 0: unlimited
	Proxies         []netip.Prefix // whose X-Forwarded-For is trusted
	// the header that the proxies set: Forwarded; otherwise X-Forwarded-For, or Forwarded if that is missing
	ForwardedHeader string
	Now             func() time.Time
	Log             *slog.Logger

	db        *db.Queries
	keys      *keys
	byIP      *limiter[netip.Prefix]
	byFailure *limiter[netip.Prefix]
	leases    leases

	// Conditions that are logged only once: an untrusted peer that sends X-Forwarded-For, and a trusted proxy that
	// does not name its client.
	forwarded, unreadable sync.Once

	limited      *prometheus.CounterVec // limit
	authFailures prometheus.Counter
}

// Names of limits in the metric, in addition to those of query/serve.
const (
	limitPublic     = "public"
	limitPartner    = "partner"
	limitFailedKeys = "failed-keys"
	limitEngineTime = "engine-time"
	limitProofs     = "proofs"
)

// New returns an Access with empty caches. partnerRateLimit, in requests per minute, applies to partners that have no
// limit of their own in the registry.
func New(pool *pgxpool.Pool, partnerRateLimit int, reg prometheus.Registerer, log *slog.Logger) *Access {
	queries := db.New(pool)
	a := &Access{
		Now: time.Now, Log: log, db: queries,
		byIP: newLimiter[netip.Prefix](maxAddresses, window), byFailure: newLimiter[netip.Prefix](maxAddresses, window),
		leases: newLeases(),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "navlog_query_rate_limited_total",
			Help: "Requests rejected by a limit: public, partner, webhooks, sends, failed-keys, engine-time or proofs.",
		}, []string{"limit"}),
		authFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "navlog_query_auth_failures_total", Help: "Requests with no key or an invalid one.",
		}),
	}
	for _, limit := range []string{limitPublic, limitPartner, string(serve.Registrations), string(serve.Sends),
		limitFailedKeys, limitEngineTime, limitProofs} {
		a.limited.WithLabelValues(limit) // initialised to 0: a counter that first appears with a value shows no increase
	}
	a.keys = &keys{ask: queries.PartnersByKeys, now: func() time.Time { return a.Now() }, defaultLimit: partnerRateLimit,
		questionTimeout: keyQuestionTimeout, live: make(map[keyHash]keyEntry)}
	reg.MustRegister(a.limited, a.authFailures)
	return a
}

// Admit checks a request's limits and returns an error if it is rejected. A partner route needs a valid key and
// counts against the partner's limit, a public route counts against the limit of the IP address.
func (a *Access) Admit(r *serve.Request, e *serve.Route) error {
	r.Client = a.clientIP(r.HTTP)
	if !e.Partner {
		if a.PublicRateLimit == 0 {
			return nil
		}
		return a.charge(r, limitPublic, takeOf(a.byIP, r.Client, requestsOf(a.PublicRateLimit), a.Now()))
	}
	partner, err := a.authenticate(r)
	if err != nil {
		return err
	}
	r.Partner = partner
	if err := a.chargePartner(r, limitPartner, partner.RateLimit); err != nil {
		return err
	}
	if e.PostLimit != "" && r.HTTP.Method == http.MethodPost {
		return a.chargePartner(r, string(e.PostLimit), postLimits[e.PostLimit])
	}
	return nil
}

// chargePartner is charge for a limit that all instances share.
func (a *Access) chargePartner(r *serve.Request, policy string, perMinute int) error {
	use, err := a.spend(r.Context, rateKey{r.Partner.ID, policy}, perMinute)
	if err != nil {
		return err
	}
	return a.charge(r, policy, use)
}

// charge writes the headers of the limit that a request counts against.
func (a *Access) charge(r *serve.Request, policy string, use quota) error {
	h := r.Header
	h.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=60`, policy, use.limit))
	h.Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, policy, use.remaining, seconds(use.reset)))
	h.Set("X-RateLimit-Limit", strconv.Itoa(use.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(use.remaining))
	end := a.Now().Add(use.reset + time.Second - time.Nanosecond) // a whole second, not before the end of the window
	h.Set("X-RateLimit-Reset", strconv.FormatInt(end.Unix(), 10))
	if use.ok {
		return nil
	}
	return a.refuse(policy, use.retry,
		fmt.Sprintf("More than %d requests a minute. Retry-After says when to come back.", use.limit))
}

// refuse counts and returns the rejection of a request by a limit. It is not the error of equal requests.
func (a *Access) refuse(limit string, retry time.Duration, message string) error {
	a.limited.WithLabelValues(limit).Inc()
	return &serve.Failure{Status: http.StatusTooManyRequests, Code: serve.CodeRateLimited, Message: message,
		Retry: max(retry, time.Second), Crowd: true}
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// authenticate finds the partner of x-api-key. The key is looked up even if other requests from the address failed,
// because many clients may share it: only a request without a valid key counts against the address. The response is the
// same whatever is wrong with the key.
func (a *Access) authenticate(r *serve.Request) (*serve.Partner, error) {
	entry, err := a.keys.lookUp(r.Context, r.HTTP.Header.Get("x-api-key"))
	switch {
	case err != nil:
		return nil, err
	case entry != nil && entry.disabled:
		return nil, serve.Disabled()
	case entry != nil:
		return &entry.partner, nil
	}
	a.authFailures.Inc()
	if failed := takeOf(a.byFailure, r.Client, requestsOf(failedKeysPerMinute), a.Now()); !failed.ok {
		return nil, a.refuse(limitFailedKeys, failed.retry,
			"Too many requests without a valid key. Retry-After says when to come back.")
	}
	return nil, serve.Unauthorized()
}
