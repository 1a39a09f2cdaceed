package access

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// leasesPerMinute is how often an instance draws on a large limit in PostgreSQL. Limits up to this many requests
	// per minute are drawn one request at a time, so their headers are exact on every instance.
	leasesPerMinute = 600
	// leaseFor is how long an instance may keep requests that it has drawn and not used.
	leaseFor = time.Second
)

// rateKey names a partner's limit under one policy, shared by all instances. The use of its window is a row in
// PostgreSQL; an instance draws requests from it before it grants them, several at a time if the limit is large:
//
//	rate_bucket (PostgreSQL) ──draw n──▶ lease of this instance ──one by one──▶ requests
//
// So all instances together never grant more than the limit. Requests that an instance has drawn and not used within
// leaseFor are lost to the partner: at most a tenth of a second of its limit.
type rateKey struct {
	partner uint32
	policy  string
}

// leases are the requests that this instance has drawn and not used.
type leases struct {
	mu   sync.Mutex
	held map[rateKey]lease
}

type lease struct {
	limit  int
	tokens int
	use    use // of the window, as of the last draw: including these tokens
	until  time.Time
}

// spend takes one request from a limit of perMinute requests.
func (a *Access) spend(ctx context.Context, k rateKey, perMinute int) (quota, error) {
	now := a.Now()
	if l, ok := a.leases.take(k, perMinute, now); ok {
		return l.quota(true, now), nil
	}
	drawn, err := a.draw(ctx, k, perMinute, max(1, perMinute/leasesPerMinute), now)
	if err != nil {
		return quota{}, serve.RegistryFailure(err)
	}
	end := time.Unix(0, drawn.WindowEnd)
	l := lease{limit: perMinute, tokens: int(drawn.Tokens), use: use{end, int(drawn.Used)}, until: now.Add(leaseFor)}
	if end.Before(l.until) {
		l.until = end
	}
	if l.tokens == 0 {
		return l.quota(false, now), nil
	}
	l.tokens--
	if l.tokens > 0 {
		a.leases.put(k, l, now)
	}
	return l.quota(true, now), nil
}

func (a *Access) draw(ctx context.Context, k rateKey, perMinute, want int, now time.Time) (db.DrawTokensRow, error) {
	args := db.DrawTokensParams{At: now.UnixNano(), PartnerID: int64(k.partner), Policy: k.policy, Want: int64(want), Quota: int64(perMinute), WindowNs: int64(window)}
	row, err := a.db.DrawTokens(ctx, args)
	if errors.Is(err, pgx.ErrNoRows) {
		if err := a.db.CreateBucket(ctx, db.CreateBucketParams{PartnerID: args.PartnerID, Policy: k.policy}); err != nil {
			return db.DrawTokensRow{}, err
		}
		row, err = a.db.DrawTokens(ctx, args)
	}
	return row, err
}

// take uses one request of a held lease, if there is one.
func (l *leases) take(k rateKey, perMinute int, now time.Time) (lease, bool) {
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

// put adds a lease to what is held.
func (l *leases) put(k rateKey, drawn lease, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, ok := l.held[k]; ok && held.limit == drawn.limit && now.Before(held.until) {
		drawn.tokens += held.tokens
	}
	l.held[k] = drawn
}

// quota returns the partner's state under the limit: tokens still held do not count as used.
func (l lease) quota(granted bool, now time.Time) quota {
	u := l.use
	u.used -= l.tokens
	return u.quota(l.limit, granted, now)
}
