package query

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

	"github.com/navlog/navlog/schemas/registry"
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
)

// caller is the partner whose key a request carries.
type caller struct {
	id        uint32
	name      string
	rateLimit int // requests a minute
}

// admit lets a request through or says why not: for partner routes the key and
// the partner's limit, for public ones the limit of the IP address.
func (q *Query) admit(x *exchange, e endpoint) error {
	ip := q.clientIP(x.request)
	if !e.partner {
		if q.cfg.PublicRateLimit == 0 {
			return nil
		}
		return q.charge(x, "public", q.byIP.take(ip, q.cfg.PublicRateLimit, q.now()))
	}
	c, err := q.authenticate(x, ip)
	if err != nil {
		return err
	}
	x.caller = c
	use, err := q.spend(x.ctx, rateKey{c.id, "partner"}, c.rateLimit)
	if err != nil {
		return err
	}
	if err := q.charge(x, "partner", use); err != nil {
		return err
	}
	if e.calls && x.request.Method == http.MethodPost {
		if use, err = q.spend(x.ctx, rateKey{c.id, "webhooks"}, webhookPostsPerMinute); err != nil {
			return err
		}
		return q.charge(x, "webhooks", use)
	}
	return nil
}

// charge writes the limit that a request counts against into its answer.
func (q *Query) charge(x *exchange, policy string, use quota) error {
	h := x.header
	h.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=60`, policy, use.limit))
	h.Set("RateLimit", fmt.Sprintf(`"%s";r=%d;t=%d`, policy, use.remaining, seconds(use.reset)))
	h.Set("X-RateLimit-Limit", strconv.Itoa(use.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(use.remaining))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(q.now().Add(use.reset).Unix(), 10))
	if use.ok {
		return nil
	}
	q.metrics.limited.WithLabelValues(policy).Inc()
	return &failure{status: http.StatusTooManyRequests, code: codeRateLimited,
		message: fmt.Sprintf("More than %d requests a minute. Retry-After says when to come back.", use.limit), retry: max(use.retry, time.Second)}
}

func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// authenticate finds the partner of x-api-key. Whatever is wrong with a key,
// the answer is the same.
func (q *Query) authenticate(x *exchange, ip netip.Addr) (*caller, error) {
	if failed := q.byFailure.look(ip, failedKeysPerMinute, q.now()); !failed.ok {
		q.metrics.limited.WithLabelValues("failed-keys").Inc()
		return nil, &failure{status: http.StatusTooManyRequests, code: codeRateLimited,
			message: "Too many requests without a valid key. Retry-After says when to come back.", retry: max(failed.retry, time.Second)}
	}
	entry, err := q.lookUp(x.ctx, x.request.Header.Get("x-api-key"))
	if err != nil {
		return nil, err
	}
	if !entry.known {
		q.byFailure.take(ip, failedKeysPerMinute, q.now())
		q.metrics.authFailures.Inc()
		return nil, &failure{status: http.StatusUnauthorized, code: codeUnauthorized, message: "A valid API key is needed in the header x-api-key."}
	}
	if entry.disabled {
		return nil, &failure{status: http.StatusForbidden, code: codeForbidden, message: "This partner account is disabled."}
	}
	return &entry.caller, nil
}

// keyEntry is what the registry said about a key.
type keyEntry struct {
	caller
	known    bool
	disabled bool
	until    time.Time
}

// lookUp asks the registry, or remembers for a second what it said.
func (q *Query) lookUp(ctx context.Context, key string) (keyEntry, error) {
	if !registry.WellFormedKey(key) {
		return keyEntry{}, nil
	}
	hash := [32]byte(registry.HashKey(key))
	now := q.now()
	if entry, ok := q.keys.get(hash, now); ok {
		return entry, nil
	}
	entry := keyEntry{until: now.Add(keyTrustedFor)} // from before the question: never older than it says
	row, err := q.db.PartnerByKey(ctx, hash[:])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return keyEntry{}, registryFailure(err)
	}
	if err == nil {
		entry.known, entry.disabled = true, row.Disabled
		entry.caller = caller{id: uint32(row.ID), name: row.Name, rateLimit: q.cfg.PartnerRateLimit}
		if row.RateLimit != nil {
			entry.rateLimit = min(int(*row.RateLimit), maxRateLimit)
		}
	}
	q.keys.put(hash, entry, now)
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
func (q *Query) clientIP(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	ip := at.Addr().Unmap()
	if q.trusted(ip) {
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(hops) - 1; i >= 0 && q.trusted(ip); i-- {
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

func (q *Query) trusted(ip netip.Addr) bool {
	for _, p := range q.proxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
