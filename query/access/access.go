// Package access decides who may ask, and how much: API keys, the limits of partners and
// of addresses. It knows PostgreSQL only.
//
//	public route:   address ─▶ limiter of this process
//	partner route:  address ─▶ too many failed keys? ─▶ key ─▶ partner ─▶ limit of the partner over all instances
//
// What the registry said of a key counts for a second; with PostgreSQL gone partner
// routes are 503. Whatever is wrong with a key, the answer is the same. Only failed keys
// count against an address, and one that sent too many of them is refused before its key
// is looked at.
package access

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// failedKeysPerMinute is how often one IP address may come with no key or
	// a wrong one.
	failedKeysPerMinute = 60
	// webhookPostsPerMinute is how often a partner may change its URL or have
	// it called for a test.
	webhookPostsPerMinute = 10
	// keyTrustedFor is how long an answer of the registry about a key counts.
	keyTrustedFor = time.Second
	// maxKeys bounds what is remembered of addresses, partners and keys each.
	maxKeys = 100_000
	// MaxRateLimit, in requests a minute, keeps the interval between two requests above
	// a microsecond.
	MaxRateLimit = 1_000_000
)

// Access knows who may ask how much.
type Access struct {
	PublicRateLimit  int            // requests a minute per address; 0: any number
	PartnerRateLimit int            // requests a minute of a partner for whom the registry has no other number
	Proxies          []netip.Prefix // whose X-Forwarded-For is believed
	Now              func() time.Time

	db        *db.Queries
	keys      keyCache
	byIP      *limiter[netip.Addr]
	byFailure *limiter[netip.Addr]
	leases    leases

	limited      *prometheus.CounterVec // limit
	authFailures prometheus.Counter
}

// New makes an Access that knows of nobody yet.
func New(pool *pgxpool.Pool, reg prometheus.Registerer) *Access {
	a := &Access{
		Now: time.Now, db: db.New(pool), keys: keyCache{entries: make(map[[32]byte]keyEntry)},
		byIP: newLimiter[netip.Addr](maxKeys), byFailure: newLimiter[netip.Addr](maxKeys), leases: leases{held: make(map[rateKey]lease)},
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "navlog_query_rate_limited_total", Help: "Requests refused by a limit: public, partner, webhooks or failed-keys.",
		}, []string{"limit"}),
		authFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "navlog_query_auth_failures_total", Help: "Requests with no key or an invalid one.",
		}),
	}
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
		return a.charge(r, "public", a.byIP.take(r.Client, a.PublicRateLimit, a.Now()))
	}
	partner, err := a.authenticate(r)
	if err != nil {
		return err
	}
	r.Partner = partner
	use, err := a.spend(r.Context, rateKey{partner.ID, "partner"}, partner.RateLimit)
	if err != nil {
		return err
	}
	if err := a.charge(r, "partner", use); err != nil {
		return err
	}
	if e.Calls && r.HTTP.Method == http.MethodPost {
		if use, err = a.spend(r.Context, rateKey{partner.ID, "webhooks"}, webhookPostsPerMinute); err != nil {
			return err
		}
		return a.charge(r, "webhooks", use)
	}
	return nil
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

// authenticate finds the partner of x-api-key. Whatever is wrong with a key,
// the answer is the same.
func (a *Access) authenticate(r *httpapi.Request) (*httpapi.Partner, error) {
	if failed := a.byFailure.look(r.Client, failedKeysPerMinute, a.Now()); !failed.ok {
		a.limited.WithLabelValues("failed-keys").Inc()
		return nil, &httpapi.Failure{Status: http.StatusTooManyRequests, Code: httpapi.CodeRateLimited,
			Message: "Too many requests without a valid key. Retry-After says when to come back.", Retry: max(failed.retry, time.Second)}
	}
	entry, err := a.lookUp(r.Context, r.HTTP.Header.Get("x-api-key"))
	if err != nil {
		return nil, err
	}
	if !entry.known {
		a.byFailure.take(r.Client, failedKeysPerMinute, a.Now())
		a.authFailures.Inc()
		return nil, &httpapi.Failure{Status: http.StatusUnauthorized, Code: httpapi.CodeUnauthorized, Message: "A valid API key is needed in the header x-api-key."}
	}
	if entry.disabled {
		return nil, &httpapi.Failure{Status: http.StatusForbidden, Code: httpapi.CodeForbidden, Message: "This partner account is disabled."}
	}
	return &entry.partner, nil
}

// keyEntry is what the registry said about a key.
type keyEntry struct {
	partner  httpapi.Partner
	known    bool
	disabled bool
	until    time.Time
}

// lookUp asks the registry, or remembers for a second what it said.
func (a *Access) lookUp(ctx context.Context, key string) (keyEntry, error) {
	if !registry.WellFormedKey(key) {
		return keyEntry{}, nil
	}
	hash := [32]byte(registry.HashKey(key))
	now := a.Now()
	if entry, ok := a.keys.get(hash, now); ok {
		return entry, nil
	}
	entry := keyEntry{until: now.Add(keyTrustedFor)} // from before the question: never older than it says
	row, err := a.db.PartnerByKey(ctx, hash[:])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return keyEntry{}, httpapi.RegistryFailure(err)
	}
	if err == nil {
		entry.known, entry.disabled = true, row.Disabled
		entry.partner = httpapi.Partner{ID: uint32(row.ID), Name: row.Name, RateLimit: a.PartnerRateLimit}
		if row.RateLimit != nil {
			entry.partner.RateLimit = min(int(*row.RateLimit), MaxRateLimit)
		}
	}
	a.keys.put(hash, entry, now)
	return entry, nil
}

// keyCache remembers keys, good and bad, by their hash.
type keyCache struct {
	mu      sync.Mutex
	entries map[[32]byte]keyEntry
}

func (c *keyCache) get(hash [32]byte, now time.Time) (keyEntry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[hash]
	return entry, ok && now.Before(entry.until)
}

func (c *keyCache) put(hash [32]byte, entry keyEntry, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxKeys {
		for h, e := range c.entries {
			if !now.Before(e.until) {
				delete(c.entries, h)
			}
		}
		if len(c.entries) >= maxKeys {
			clear(c.entries)
		}
	}
	c.entries[hash] = entry
}

// clientIP is the address that a request came from: that of the connection,
// or behind trusted proxies the last one in X-Forwarded-For that is not
// theirs. IPv6 addresses count by their /64, which is one customer's.
func (a *Access) clientIP(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	ip := at.Addr().Unmap()
	if a.trusted(ip) {
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(hops) - 1; i >= 0 && a.trusted(ip); i-- {
			hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
			if err != nil {
				break
			}
			ip = hop.Unmap()
		}
	}
	if ip.Is6() {
		if prefix, err := ip.WithZone("").Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return ip
}

func (a *Access) trusted(ip netip.Addr) bool {
	for _, p := range a.Proxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
