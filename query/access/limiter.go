package access

import (
	"sync"
	"time"
)

// limiter counts requests per key by the generic cell rate algorithm: for each
// key it keeps one time, that at which its bucket would be full again. A key
// whose time has passed needs no entry, so the memory is bounded by the keys
// of the last minute, and by maxKeys.
//
// It is the limit of this process, for what is counted by IP address. A
// partner's limit holds over all instances: see lease.go.
type limiter[K comparable] struct {
	mu      sync.Mutex
	full    map[K]time.Time
	maxKeys int
}

func newLimiter[K comparable](maxKeys int) *limiter[K] {
	return &limiter[K]{full: make(map[K]time.Time), maxKeys: maxKeys}
}

// quota is where a key stands.
type quota struct {
	ok        bool
	limit     int           // requests a minute, and the burst
	remaining int           // requests that would be granted at once now
	reset     time.Duration // until the whole burst is there again
	retry     time.Duration // until the next request is granted; 0 when ok
}

// take asks for one request of a key that may make perMinute of them.
func (l *limiter[K]) take(key K, perMinute int, now time.Time) quota {
	return l.use(key, perMinute, now, true)
}

// look tells what take would say and counts nothing.
func (l *limiter[K]) look(key K, perMinute int, now time.Time) quota {
	return l.use(key, perMinute, now, false)
}

func (l *limiter[K]) use(key K, perMinute int, now time.Time, count bool) quota {
	interval := time.Minute / time.Duration(perMinute)
	burst := interval * time.Duration(perMinute)
	l.mu.Lock()
	defer l.mu.Unlock()
	full, known := l.full[key]
	if !known || full.Before(now) {
		full = now
	}
	q := quota{limit: perMinute, ok: full.Add(interval).Sub(now) <= burst}
	if !q.ok {
		q.retry = full.Add(interval).Sub(now) - burst
	} else if count {
		full = full.Add(interval)
		l.makeRoom(key, now)
		l.full[key] = full
	}
	q.reset = full.Sub(now)
	q.remaining = max(0, int((burst-q.reset)/interval))
	return q
}

// makeRoom drops what says nothing any more when the map is at its limit, and
// then, under an attack from very many addresses, any key.
func (l *limiter[K]) makeRoom(key K, now time.Time) {
	if _, known := l.full[key]; known || len(l.full) < l.maxKeys {
		return
	}
	for k, full := range l.full {
		if full.Before(now) {
			delete(l.full, k)
		}
	}
	for k := range l.full {
		if len(l.full) < l.maxKeys {
			return
		}
		delete(l.full, k)
	}
}
