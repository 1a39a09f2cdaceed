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

// leases are the requests that this instance has drawn and not used, and the limits that are used up.
type leases struct {
	mu      sync.Mutex
	held    map[rateKey]lease
	drawing map[rateKey]chan struct{} // contains an element while a request draws
}

func newLeases() leases {
	return leases{held: make(map[rateKey]lease), drawing: make(map[rateKey]chan struct{})}
}

type lease struct {
	limit  int
	tokens int // 0 if the limit is used up: then nothing is drawn until the lease ends
	use    use // of the window, as of the last draw: including these tokens
	until  time.Time
}

// spend takes one request from a limit of perMinute requests. One request at a time draws, because PostgreSQL would
// handle them one after the other anyway: the others wait here, and not on connections that other partners need.
func (a *Access) spend(ctx context.Context, k rateKey, perMinute int) (quota, error) {
	if q, ok := a.leases.take(k, perMinute, a.Now()); ok {
		return q, nil
	}
	drawing := a.leases.drawingOf(k)
	select {
	case drawing <- struct{}{}:
		defer func() { <-drawing }()
	case <-ctx.Done():
		return quota{}, serve.RegistryFailure(ctx.Err())
	}
	now := a.Now()
	if q, ok := a.leases.take(k, perMinute, now); ok { // another request has drawn
		return q, nil
	}
	drawn, err := a.draw(ctx, k, perMinute, max(1, perMinute/leasesPerMinute), now)
	if err != nil {
		return quota{}, serve.RegistryFailure(err)
	}
	end := time.Unix(0, drawn.WindowEnd)
	l := lease{
		limit: perMinute, tokens: int(drawn.Tokens), use: use{end, int(drawn.Used)},
		until: now.Add(min(leaseFor, end.Sub(now))), // of the monotonic clock: the other one may be set back meanwhile
	}
	granted := l.tokens > 0
	if granted {
		l.tokens--
	}
	if !granted || l.tokens > 0 { // only this request draws, so nothing else is held that could still be used
		a.leases.mu.Lock()
		defer a.leases.mu.Unlock()
		a.leases.held[k] = l
	}
	return l.quota(granted, now), nil
}

func (a *Access) draw(ctx context.Context, k rateKey, perMinute, want int, now time.Time) (db.DrawTokensRow, error) {
	args := db.DrawTokensParams{At: now.UnixNano(), PartnerID: int64(k.partner), Policy: k.policy, Want: int64(want),
		Quota: int64(perMinute), WindowNs: int64(window)}
	row, err := a.db.DrawTokens(ctx, args)
	if errors.Is(err, pgx.ErrNoRows) {
		if err := a.db.CreateBucket(ctx, db.CreateBucketParams{PartnerID: args.PartnerID, Policy: k.policy}); err != nil {
			return db.DrawTokensRow{}, err
		}
		row, err = a.db.DrawTokens(ctx, args)
	}
	return row, err
}

// take uses one request of a held lease, or refuses it if the lease has none. ok is false if nothing is held.
func (l *leases) take(k rateKey, perMinute int, now time.Time) (q quota, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, ok := l.held[k]
	if !ok || held.limit != perMinute || !now.Before(held.until) {
		return quota{}, false
	}
	if held.tokens == 0 {
		return held.quota(false, now), true
	}
	if held.tokens--; held.tokens > 0 {
		l.held[k] = held
	} else { // the limit may grant more
		delete(l.held, k)
	}
	return held.quota(true, now), true
}

// drawingOf returns the channel that the request that draws on a limit puts an element in.
func (l *leases) drawingOf(k rateKey) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drawing[k] == nil {
		l.drawing[k] = make(chan struct{}, 1)
	}
	return l.drawing[k]
}

// quota returns the partner's state under the limit: tokens still held do not count as used.
func (l lease) quota(granted bool, now time.Time) quota {
	u := l.use
	u.used -= l.tokens
	return u.quota(l.limit, granted, now)
}
