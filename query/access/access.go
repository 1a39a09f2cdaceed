// Package access decides who may ask, and how much: API keys, the limits of partners and
// of addresses. It knows PostgreSQL only.
//
//	public route:   address ─▶ limiter of this process
//	partner route:  key ─▶ partner ─▶ limit of the partner over all instances
//	                 └ none of ours ─▶ address ─▶ limiter of this process ─▶ 401 or 429
//
// The key comes first: an address may be that of many, as behind a proxy or a carrier's
// NAT, and what others send from there must not keep a partner out. So only requests
// without a valid key count against an address. keys.go says why a flood of them costs
// PostgreSQL next to nothing.
//
// An address counts for its prefixes too (httpapi.Prefixes), so that a customer with many of
// them has no more than a multiple: of requests, of the engine's time (budget.go), and of a
// node's calls for proofs (proofs.go). Which address a request is of: client.go.
//
// What the registry said of a key counts for a second; with PostgreSQL gone partner
// routes are 503. Whatever is wrong with a key, the answer is the same.
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

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// failedKeysPerMinute is how often one IP address may come with no key or
	// a wrong one.
	failedKeysPerMinute = 60
	// maxAddresses bounds how many addresses each limit by address remembers.
	maxAddresses = 100_000
	// MaxRateLimit, in requests a minute, is the highest limit that there is.
	MaxRateLimit = 1_000_000
)

// postLimits are how often a minute a partner may do what costs more than an answer. Each test and
// replay leaves rows in PostgreSQL for as long as dispatch keeps details.
var postLimits = map[httpapi.Policy]int{httpapi.Registrations: 10, httpapi.Sends: 10}

// Access knows who may ask how much.
type Access struct {
	PublicRateLimit int            // requests a minute per address; 0: any number
	Proxies         []netip.Prefix // whose X-Forwarded-For is believed
	ForwardedHeader string         // that the proxies set: Forwarded; else X-Forwarded-For, and Forwarded if there is none
	Now             func() time.Time
	Log             *slog.Logger

	db        *db.Queries
	keys      *keys
	byIP      *limiter[netip.Prefix]
	byFailure *limiter[netip.Prefix]
	leases    leases

	// What is warned of once: a stranger that sends X-Forwarded-For, and a client that a
	// proxy does not name.
	forwarded, unreadable sync.Once

	limited      *prometheus.CounterVec // limit
	authFailures prometheus.Counter
}

// Limits as the metric names them, beside those that httpapi names.
const (
	limitPublic     = "public"
	limitPartner    = "partner"
	limitFailedKeys = "failed-keys"
	limitEngineTime = "engine-time"
	limitProofs     = "proofs"
)

// New makes an Access that knows of nobody yet. partnerRateLimit is in requests a minute,
// for partners for whom the registry has no other number.
func New(pool *pgxpool.Pool, partnerRateLimit int, reg prometheus.Registerer, log *slog.Logger) *Access {
	queries := db.New(pool)
	a := &Access{
		Now: time.Now, Log: log, db: queries,
		byIP: newLimiter[netip.Prefix](maxAddresses), byFailure: newLimiter[netip.Prefix](maxAddresses), leases: leases{held: make(map[rateKey]lease)},
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "navlog_query_rate_limited_total", Help: "Requests refused by a limit: public, partner, webhooks, sends, failed-keys, engine-time or proofs.",
		}, []string{"limit"}),
		authFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "navlog_query_auth_failures_total", Help: "Requests with no key or an invalid one.",
		}),
	}
	for _, limit := range []string{limitPublic, limitPartner, string(httpapi.Registrations), string(httpapi.Sends), limitFailedKeys, limitEngineTime, limitProofs} {
		a.limited.WithLabelValues(limit) // from 0 on: a series that begins with its first refusal has not risen
	}
	a.keys = &keys{ask: queries.PartnersByKeys, now: func() time.Time { return a.Now() }, defaultLimit: partnerRateLimit,
		questionTimeout: keyQuestionTimeout, live: make(map[keyHash]keyEntry)}
	reg.MustRegister(a.limited, a.authFailures)
	return a
}

// Admit lets a request through or says why not: for partner routes the key and
// the partner's limit, for public ones the limit of the IP address.
func (a *Access) Admit(r *httpapi.Request, e *httpapi.Route) error {
	r.Client = a.clientIP(r.HTTP)
	if !e.Partner {
		if a.PublicRateLimit == 0 {
			return nil
		}
		return a.charge(r, limitPublic, takeOf(a.byIP, r.Client, a.PublicRateLimit, a.Now()))
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

// chargePartner is charge by a limit that holds over all instances.
func (a *Access) chargePartner(r *httpapi.Request, policy string, perMinute int) error {
	use, err := a.spend(r.Context, rateKey{r.Partner.ID, policy}, perMinute)
	if err != nil {
		return err
	}
	return a.charge(r, policy, use)
}

// charge writes the limit that a request counts against into its answer.
func (a *Access) charge(r *httpapi.Request, policy string, use quota) error {
	h := r.Header
	h.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=60`, policy, use.limit))
	h.Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, policy, use.remaining, seconds(use.reset)))
	h.Set("X-RateLimit-Limit", strconv.Itoa(use.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(use.remaining))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(a.Now().Add(use.reset).Unix(), 10))
	if use.ok {
		return nil
	}
	a.limited.WithLabelValues(policy).Inc()
	return &httpapi.Failure{Status: http.StatusTooManyRequests, Code: httpapi.CodeRateLimited,
		Message: fmt.Sprintf("More than %d requests a minute. Retry-After says when to come back.", use.limit), Retry: max(use.retry, time.Second)}
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// authenticate finds the partner of x-api-key. A key is looked up whatever came from the
// address before, for others may be behind it; whatever is wrong with a key, the answer
// is the same.
func (a *Access) authenticate(r *httpapi.Request) (*httpapi.Partner, error) {
	entry, err := a.keys.lookUp(r.Context, r.HTTP.Header.Get("x-api-key"))
	switch {
	case err != nil:
		return nil, err
	case entry == nil:
		return nil, a.noKey(r.Client)
	case entry.disabled:
		return nil, &httpapi.Failure{Status: http.StatusForbidden, Code: httpapi.CodeForbidden, Message: "This partner account is disabled."}
	}
	return &entry.partner, nil
}

// noKey counts a request without a valid key against its address, and says what is
// answered.
func (a *Access) noKey(client netip.Addr) error {
	a.authFailures.Inc()
	if failed := takeOf(a.byFailure, client, failedKeysPerMinute, a.Now()); !failed.ok {
		a.limited.WithLabelValues(limitFailedKeys).Inc()
		return &httpapi.Failure{Status: http.StatusTooManyRequests, Code: httpapi.CodeRateLimited,
			Message: "Too many requests without a valid key. Retry-After says when to come back.", Retry: max(failed.retry, time.Second)}
	}
	return &httpapi.Failure{Status: http.StatusUnauthorized, Code: httpapi.CodeUnauthorized, Message: "A valid API key is needed in the header x-api-key."}
}
