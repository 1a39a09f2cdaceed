package access

import (
	"net/netip"
	"sync"
	"time"

	"github.com/navlog/navlog/query/serve"
)

// window is the length of the windows of all limits. A window begins with the first request after the previous one
// ended, and grants the limit however its requests are spread.
const window = time.Minute

// aging is a map that forgets: no request ever pays for a scan. There are two maps, and whenever some time has passed,
// or earlier if there are very many keys, the older one is dropped as a whole. Under an attack from more addresses than
// are remembered, those seen longest ago are dropped first.
type aging[K comparable, V any] struct {
	every   time.Duration // an entry is kept for at least this long, if there are few
	maxKeys int           // total of both maps

	recent map[K]V
	older  map[K]V // the previous recent map
	turned time.Time
}

func (a *aging[K, V]) get(key K) V {
	if v, ok := a.recent[key]; ok {
		return v
	}
	return a.older[key]
}

// turn makes room for new entries.
func (a *aging[K, V]) turn(now time.Time) {
	if now.Sub(a.turned) >= a.every || len(a.recent) >= a.maxKeys/2 {
		a.older, a.recent, a.turned = a.recent, make(map[K]V), now
	}
}

// limiter counts requests per key in windows. A key whose window has ended needs no entry.
//
// The limit applies to this process only, for requests counted by IP address. A partner's limit is shared by all
// instances: see lease.go.
type limiter[K comparable] struct {
	mu     sync.Mutex
	used   aging[K, use]
	window time.Duration // length of a window
}

// use is how much of a window has been used.
type use struct {
	end  time.Time // of the window
	used int
}

func newLimiter[K comparable](maxKeys int, window time.Duration) *limiter[K] {
	return &limiter[K]{used: aging[K, use]{every: window, maxKeys: maxKeys}, window: window}
}

// takeOf takes one request of an address, which also counts against its prefixes. The quota returned is that of the
// address, or of the prefix that is exhausted.
func takeOf(l *limiter[netip.Prefix], client netip.Addr, most serve.Widths, now time.Time) (of quota) {
	for i, prefix := range serve.Prefixes(client) {
		q := l.take(prefix, most.Of(prefix), now)
		if i == 0 || !q.ok {
			of = q
		}
		if !q.ok {
			break
		}
	}
	return of
}

// quota is the state of a key under its limit.
type quota struct {
	ok        bool
	limit     int           // requests per window
	remaining int           // requests that would be granted right now
	reset     time.Duration // until the window ends
	retry     time.Duration // until the next request is granted; 0 when ok
}

// take takes one request of a key that may make most requests per window.
func (l *limiter[K]) take(key K, most int, now time.Time) quota {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.used.get(key)
	if !now.Before(u.end) {
		u = use{end: now.Add(l.window)}
	}
	granted := u.used < most
	if granted {
		u.used++
		l.used.turn(now)
		l.used.recent[key] = u
	}
	return u.quota(most, granted, now)
}

func (u use) quota(limit int, granted bool, now time.Time) quota {
	q := quota{ok: granted, limit: limit, remaining: max(0, limit-u.used), reset: max(0, u.end.Sub(now))}
	if !granted {
		q.retry = q.reset
	}
	return q
}
