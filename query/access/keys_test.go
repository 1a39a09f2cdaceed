package access

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// fakeRegistry responds to queries about keys when the test lets it.
type fakeRegistry struct {
	partners map[string]int64 // by key
	asked    chan [][]byte
	answer   chan error
}

func newFakeRegistry(partners map[string]int64) (*fakeRegistry, *keys) {
	f := &fakeRegistry{partners: partners, asked: make(chan [][]byte), answer: make(chan error)}
	return f, &keys{ask: f.ask, now: time.Now, defaultLimit: 120, questionTimeout: time.Minute,
		live: make(map[keyHash]keyEntry)}
}

func (f *fakeRegistry) ask(ctx context.Context, hashes [][]byte) (rows []db.PartnersByKeysRow, err error) {
	f.asked <- hashes
	if err := <-f.answer; err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		for key, id := range f.partners {
			if keyHash(hash) == keyHash(registry.HashKey(key)) {
				rows = append(rows, db.PartnersByKeysRow{Hash: hash, ID: id})
			}
		}
	}
	return rows, nil
}

// waiting returns how many keys the next query is about.
func (k *keys) waiting() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next == nil {
		return 0
	}
	return len(k.next.hashes)
}

// TestFloodOfUnknownKeysIsOneQuery: while one key is queried, all others wait, and a single second query covers
// them all.
func TestFloodOfUnknownKeysIsOneQuery(t *testing.T) {
	valid := registry.NewAPIKey(true)
	f, k := newFakeRegistry(map[string]int64{valid: 7})
	var group sync.WaitGroup
	lookUp := func(key string, want uint32) {
		group.Go(func() {
			entry, err := k.lookUp(t.Context(), key)
			if err != nil || (entry != nil) != (want != 0) || entry != nil && entry.partner.ID != want {
				t.Errorf("%+v, %v; should be of partner %d", entry, err, want)
			}
		})
	}
	lookUp(registry.NewAPIKey(true), 0)
	first := <-f.asked
	const flood = 500
	for range flood {
		lookUp(registry.NewAPIKey(true), 0)
	}
	for range 3 {
		lookUp(valid, 7)
	}
	wait.For(t, "all requests wait", func() bool { return k.waiting() == flood+1 })
	f.answer <- nil
	second := <-f.asked
	f.answer <- nil
	// Further requests with the valid key may arrive while the second query runs.
	over := make(chan struct{})
	go func() { group.Wait(); close(over) }()
	for waits := true; waits; {
		select {
		case third := <-f.asked:
			if len(third) != 1 {
				t.Errorf("%d keys are looked up again", len(third))
			}
			f.answer <- nil
		case <-over:
			waits = false
		}
	}
	if len(first) != 1 || len(second) != flood+1 {
		t.Errorf("%d keys and then %d keys are looked up", len(first), len(second))
	}
	// A live key is cached for a second; the others are not kept.
	if entry, err := k.lookUp(t.Context(), valid); err != nil || entry == nil || entry.partner.RateLimit != 120 {
		t.Errorf("%+v, %v", entry, err)
	}
	if len(k.live) != 1 {
		t.Errorf("%d keys are cached", len(k.live))
	}
	for _, key := range []string{"", "guess", valid[:len(valid)-1] + "!"} { // no query is sent
		if entry, err := k.lookUp(t.Context(), key); err != nil || entry != nil {
			t.Errorf("%q: %+v, %v", key, entry, err)
		}
	}
}

// TestRevokedKeysAreDropped: a revoked key is dropped as soon as it is looked up again.
func TestRevokedKeysAreDropped(t *testing.T) {
	valid := registry.NewAPIKey(true)
	f, k := newFakeRegistry(map[string]int64{valid: 7})
	now := time.Now()
	k.now = func() time.Time { return now }
	answer := func(err error) { <-f.asked; f.answer <- err }
	go answer(nil)
	if entry, err := k.lookUp(t.Context(), valid); err != nil || entry == nil {
		t.Fatalf("%+v, %v", entry, err)
	}
	now = now.Add(keyTrustedFor)
	go answer(errors.New("down")) // an expired entry is not used
	var failure *serve.Failure
	if entry, err := k.lookUp(t.Context(), valid); !errors.As(err, &failure) || failure.Status != 503 {
		t.Errorf("%+v, %v", entry, err)
	}
	clear(f.partners)
	go answer(nil)
	if entry, err := k.lookUp(t.Context(), valid); err != nil || entry != nil || len(k.live) != 0 {
		t.Errorf("%+v, %v, %d cached", entry, err, len(k.live))
	}
	// A client that disconnects does not cancel the query for the others.
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := k.lookUp(gone, valid); left <- err }()
	<-f.asked
	leave()
	if err := <-left; !errors.As(err, &failure) {
		t.Errorf("a client that disconnected: %v", err)
	}
	f.answer <- nil
	wait.For(t, "the query has ended", k.turn.TryLock)
}
