package access

import (
	"context"
	"sync"
	"time"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// keyTrustedFor is how long an answer of the registry about a key counts.
	keyTrustedFor = time.Second
	// keyQuestionTimeout bounds one question about keys.
	keyQuestionTimeout = 5 * time.Second
)

// keys finds the partner of an API key. Whoever asks, and however often, PostgreSQL is
// asked little:
//
//   - What is not well-formed is no key of ours, and is not asked for.
//   - A live key is asked for once a second.
//   - The others wait for each other: there is one question at a time, on one connection,
//     about all keys that came during the one before. Made-up keys make that question
//     longer, and a partner's key that comes among them is found with them.
//
// So a key can be looked up before anything is held against the address that it came
// from. Only live keys are remembered: made-up ones take no room.
type keys struct {
	ask             func(ctx context.Context, hashes [][]byte) ([]db.PartnersByKeysRow, error)
	now             func() time.Time
	defaultLimit    int // requests a minute of a partner for whom the registry has no number
	questionTimeout time.Duration

	mu     sync.Mutex
	live   map[keyHash]keyEntry
	next   *keyQuestion // of the keys that wait; nil: none does
	asking bool
}

type keyHash [32]byte

// keyEntry is what the registry said about a live key.
type keyEntry struct {
	partner  httpapi.Partner
	disabled bool
	until    time.Time
}

// keyQuestion is one question to the registry, and its answer.
type keyQuestion struct {
	hashes map[keyHash]struct{}
	done   chan struct{} // closed when found or err is set
	found  map[keyHash]keyEntry
	err    error
}

// lookUp gives what the registry says of a key, at most keyTrustedFor ago; nil where it is
// none. The error is a *httpapi.Failure, 503.
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
		return nil, httpapi.RegistryFailure(ctx.Err())
	}
	if q.err != nil {
		return nil, httpapi.RegistryFailure(q.err)
	}
	if entry, ok = q.found[hash]; !ok {
		return nil, nil
	}
	return &entry, nil
}

// join adds a key to the next question, and has it asked. k.mu is held.
func (k *keys) join(hash keyHash) *keyQuestion {
	if k.next == nil {
		k.next = &keyQuestion{hashes: make(map[keyHash]struct{}), done: make(chan struct{})}
	}
	k.next.hashes[hash] = struct{}{}
	if !k.asking {
		k.asking = true
		go k.askAll()
	}
	return k.next
}

// askAll asks one question after the other until nobody waits.
func (k *keys) askAll() {
	for {
		k.mu.Lock()
		q := k.next
		k.next, k.asking = nil, q != nil
		k.mu.Unlock()
		if q == nil {
			return
		}
		k.put(q)
	}
}

// put puts a question to the registry. It is not bound to a request: many wait for it.
func (k *keys) put(q *keyQuestion) {
	defer close(q.done)
	ctx, cancel := context.WithTimeout(context.Background(), k.questionTimeout)
	defer cancel()
	hashes := make([][]byte, 0, len(q.hashes))
	for hash := range q.hashes {
		hashes = append(hashes, hash[:])
	}
	until := k.now().Add(keyTrustedFor) // from before the question: never older than it says
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
	partner := httpapi.Partner{ID: uint32(row.ID), Name: row.Name, RateLimit: k.defaultLimit}
	if row.RateLimit != nil {
		partner.RateLimit = min(int(*row.RateLimit), MaxRateLimit)
	}
	return keyEntry{partner: partner, disabled: row.Disabled, until: until}
}
