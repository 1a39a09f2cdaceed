package access

import (
	"context"
	"sync"
	"time"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// keyTrustedFor is how long the registry's result for a key is cached.
	keyTrustedFor = time.Second
	// keyQuestionTimeout is the timeout of one registry query.
	keyQuestionTimeout = 5 * time.Second
)

// keys finds the partner of an API key. The load on PostgreSQL stays small however many keys are sent:
//
//   - Keys that are not well-formed are rejected without a query.
//   - A live key is queried at most once per second.
//   - All other keys are batched: one query runs at a time, on one connection, for all keys that arrived during the
//     previous one. Made-up keys make that query longer, and a partner's valid key in the same batch is found with
//     them.
//
// So a key can be looked up before its address is rate-limited. Only live keys are cached: made-up keys use no
// memory.
type keys struct {
	ask             func(ctx context.Context, hashes [][]byte) ([]db.PartnersByKeysRow, error)
	now             func() time.Time
	defaultLimit    int // requests per minute of a partner without a limit in the registry
	questionTimeout time.Duration

	turn sync.Mutex // of the query that runs
	mu   sync.Mutex
	live map[keyHash]keyEntry
	next *keyQuestion // the batch of waiting keys; nil: none waits
}

type keyHash [32]byte

// keyEntry is the registry's result for a live key.
type keyEntry struct {
	partner  serve.Partner
	disabled bool
	until    time.Time
}

// keyQuestion is one registry query and its result.
type keyQuestion struct {
	hashes map[keyHash]struct{}
	done   chan struct{} // closed when found or err is set
	found  map[keyHash]keyEntry
	err    error
}

// lookUp returns the registry's result for a key, at most keyTrustedFor old, or nil if the key is not valid. The
// error is a *serve.Failure with status 503.
func (k *keys) lookUp(ctx context.Context, key string) (*keyEntry, error) {
	if !registry.WellFormedKey(key) {
		return nil, nil
	}
	hash := keyHash(registry.HashKey(key))
	k.mu.Lock()
	entry, ok := k.live[hash]
	if ok && k.now().Before(entry.until) {
		k.mu.Unlock()
		return &entry, nil
	}
	q := k.join(hash)
	k.mu.Unlock()
	select {
	case <-q.done:
	case <-ctx.Done():
		return nil, serve.RegistryFailure(ctx.Err())
	}
	if q.err != nil {
		return nil, serve.RegistryFailure(q.err)
	}
	entry, ok = q.found[hash]
	if !ok {
		return nil, nil
	}
	return &entry, nil
}

// join adds a key to the next query and makes sure that it runs. k.mu is held.
func (k *keys) join(hash keyHash) *keyQuestion {
	if k.next == nil {
		k.next = &keyQuestion{hashes: make(map[keyHash]struct{}), done: make(chan struct{})}
		go k.put(k.next)
	}
	k.next.hashes[hash] = struct{}{}
	return k.next
}

// put runs the next query when it is its turn; further keys wait for the one after it. Its context is not that of a
// request, because many requests wait for it.
func (k *keys) put(q *keyQuestion) {
	defer close(q.done)
	k.turn.Lock()
	defer k.turn.Unlock()
	k.mu.Lock()
	k.next = nil
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), k.questionTimeout)
	defer cancel()
	hashes := make([][]byte, 0, len(q.hashes))
	for hash := range q.hashes {
		hashes = append(hashes, hash[:])
	}
	until := k.now().Add(keyTrustedFor) // taken before the query, so that an entry is never older than it claims
	rows, err := k.ask(ctx, hashes)
	if err != nil {
		q.err = err
		return
	}
	q.found = make(map[keyHash]keyEntry, len(rows))
	for _, row := range rows {
		q.found[keyHash(row.Hash)] = k.entry(row, until)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for hash := range q.hashes {
		if entry, ok := q.found[hash]; ok {
			k.live[hash] = entry
		} else {
			delete(k.live, hash)
		}
	}
}

func (k *keys) entry(row db.PartnersByKeysRow, until time.Time) keyEntry {
	partner := serve.Partner{ID: uint32(row.ID), Name: row.Name, RateLimit: k.defaultLimit}
	if row.RateLimit != nil {
		partner.RateLimit = min(int(*row.RateLimit), MaxRateLimit)
	}
	return keyEntry{partner: partner, disabled: row.Disabled, until: until}
}
