package access

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// leasesPerMinute is how often an instance asks PostgreSQL for more of a
	// large limit. A limit up to this many requests a minute is asked for one
	// by one, and then its headers are exact on every instance.
	leasesPerMinute = 600
	// leaseFor is how long an instance may keep what it has not used.
	leaseFor = time.Second
)

// rateKey names a partner's limit by one policy, shared by all instances. The
// bucket itself is a row in PostgreSQL; an instance draws requests out of it before it
// grants them, a few at a time where the limit is large:
//
//	rate_bucket (PostgreSQL) ──draw n──▶ lease of this instance ──one by one──▶ requests
//
// So all instances together never grant more than the limit. What an instance
// has drawn and not used within leaseFor is lost to the partner: at most a
// tenth of a second of its limit.
type rateKey struct {
	partner uint32
	policy  string
}

// leases are what this instance has drawn and not used.
type leases struct {
	mu   sync.Mutex
	held map[rateKey]lease
}

type lease struct {
	limit  int
	tokens int64
	full   time.Time // when the bucket would be full again, as of the last draw
	until  time.Time
}

// spend asks for one request by a limit of perMinute.
func (a *Access) spend(ctx context.Context, k rateKey, perMinute int) (quota, error) {
	now := a.Now()
	if l, ok := a.leases.use(k, perMinute, now); ok {
		return l.quota(now, true), nil
	}
	want := int64(max(1, perMinute/leasesPerMinute))
	drawn, err := a.draw(ctx, k, perMinute, want, now)
	if err != nil {
		return quota{}, httpapi.RegistryFailure(err)
	}
	l := lease{limit: perMinute, tokens: drawn.Tokens, full: time.Unix(0, drawn.FullAt), until: now.Add(leaseFor)}
	if l.tokens == 0 {
		return l.quota(now, false), nil
	}
	l.tokens--
	if l.tokens > 0 {
		a.leases.put(k, l, now)
	}
	return l.quota(now, true), nil
}

func (a *Access) draw(ctx context.Context, k rateKey, perMinute int, want int64, now time.Time) (db.DrawTokensRow, error) {
	interval := time.Minute / time.Duration(perMinute)
	args := db.DrawTokensParams{At: now.UnixNano(), PartnerID: int64(k.partner), Policy: k.policy, Want: want,
		BurstNs: int64(interval) * int64(perMinute), IntervalNs: int64(interval)}
	row, err := a.db.DrawTokens(ctx, args)
	if errors.Is(err, pgx.ErrNoRows) {
		if err := a.db.CreateBucket(ctx, db.CreateBucketParams{PartnerID: args.PartnerID, Policy: k.policy}); err != nil {
			return db.DrawTokensRow{}, err
		}
		row, err = a.db.DrawTokens(ctx, args)
	}
	return row, err
}

// use takes one request out of what is held.
func (l *leases) use(k rateKey, perMinute int, now time.Time) (lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, ok := l.held[k]
	if !ok || held.tokens == 0 || held.limit != perMinute || !now.Before(held.until) {
		return lease{}, false
	}
	held.tokens--
	l.held[k] = held
	return held, true
}

// put keeps a lease, on top of what is held.
func (l *leases) put(k rateKey, drawn lease, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, ok := l.held[k]; ok && held.limit == drawn.limit && now.Before(held.until) {
		drawn.tokens += held.tokens
	}
	l.held[k] = drawn
}

// quota is where the partner stands.
func (l lease) quota(now time.Time, ok bool) quota {
	interval := time.Minute / time.Duration(l.limit)
	burst := interval * time.Duration(l.limit)
	used := max(0, l.full.Sub(now))
	q := quota{ok: ok, limit: l.limit, reset: used, remaining: max(0, int((burst-used)/interval)) + int(l.tokens)}
	if !ok {
		q.retry = used + interval - burst
	}
	return q
}
