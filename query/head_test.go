package query

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLazyIsReadOnce: by the first of many, and what fails is left to the next.
func TestLazyIsReadOnce(t *testing.T) {
	p := newLazy[int]()
	if _, err := p.get(t.Context(), func() (int, error) { return 0, errors.New("the engine is gone") }); err == nil {
		t.Fatal("the reader's error was lost")
	}
	const many = 50
	var asked, reads atomic.Int64
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			asked.Add(1)
			got, err := p.get(t.Context(), func() (int, error) {
				reads.Add(1)
				for asked.Load() < many { // so that the others come while it is read
					runtime.Gosched()
				}
				return 7, nil
			})
			if got != 7 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	group.Wait()
	same(t, "reads", reads.Load(), int64(1))
}

// TestLazyIsNotWaitedForTooLong: a request whose time is over does not wait for
// a slow reader, who goes on for the others.
func TestLazyIsNotWaitedForTooLong(t *testing.T) {
	p := newLazy[int]()
	reading, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.get(context.Background(), func() (int, error) {
			close(reading)
			<-goOn
			return 7, nil
		})
	}()
	<-reading
	over, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := p.get(over, func() (int, error) { t.Error("read twice"); return 0, nil })
	var f *failure
	if !errors.As(err, &f) || f.status != 503 {
		t.Errorf("waited for the reader and got %v", err)
	}
	close(goOn)
	<-done
	got, err := p.get(t.Context(), func() (int, error) { t.Error("read again"); return 0, nil })
	if got != 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// TestHeadIsPrepared: what requests wanted of a head is there in the next ones
// before they are served, and no longer when nobody has wanted it for long.
func TestHeadIsPrepared(t *testing.T) {
	w := newFixture(t)
	w.cfg.CacheBytes = 0
	block := uint64(12)
	next := func() *head {
		w.ledger.append(
			fact{kind: aDeposit, vault: vaultA, user: carol, other: carol, id: block, assets: 1, shares: 1, block: block, index: 0, tx: tx(byte(block))},
			fact{kind: aRequest, vault: vaultA, user: carol, other: carol, id: block, assets: 3, shares: 3, block: block, index: 1, tx: tx(byte(block))},
			fact{kind: aBlock, block: block})
		block++
		w.publish()
		return w.snapshot.Load().head
	}
	h := next()
	parts := []struct {
		name, path string
		known      func(*head) bool
	}{
		{"first", "/api/v1/vaults?asOfBlock=9", func(h *head) bool { return h.first.known() != 0 }},
		{"spans", "/api/v1/users?asOfBlock=9", func(h *head) bool { return h.spans.known() != nil }},
		{"users", "/api/v1/vaults/" + vaultA.Hex(), func(h *head) bool { return h.users.known() != nil }},
		{"queue", "/api/v1/queues/withdrawals", func(h *head) bool { return h.queue.known() != nil }},
		{"unswept", "/api/v1/settlement/summary", func(h *head) bool { return h.unswept.known() != nil }},
		{"sweeps", "/api/v1/users/" + alice.Hex() + "/deposits", func(h *head) bool { return h.sweeps.known() != nil }},
		{"list", "/api/v1/users?sortBy=totalWithdrawn", func(h *head) bool { return h.lists["totalWithdrawn"].known() != nil }},
	}
	prepared := func(h *head, should bool) (so bool) {
		so = true
		for _, p := range parts {
			so = so && p.known(h) == should
		}
		return so
	}
	same(t, "prepared before anybody asked", prepared(h, false), true)
	for _, p := range parts {
		w.get(p.path).data(t)
	}
	h = next()
	same(t, "all is prepared", prepared(h, true), true)
	same(t, "another list", h.lists["firstSeen"].known() == nil, true)
	settlement := func() {
		t.Helper()
		o := w.ledger.at(w.ledger.seq(), 1<<62)
		same(t, "settlement", w.get("/api/v1/settlement/summary").data(t), o.settlement())
	}
	settlement() // says what was prepared

	over, cancel := context.WithCancel(t.Context())
	cancel()
	late := newHead(w.snapshot.Load(), nil, w.scale)
	late.prepare(over, w.snapshot.Load(), time.Minute)
	same(t, "without time", prepared(late, false), true) // who wants it reads it

	for range demanded + 2 { // of which the last two are not what the news are about
		h = next()
	}
	same(t, "prepared for nobody", prepared(h, false), true)
	settlement()
	h = next()
	same(t, "what settlement wants is prepared", h.unswept.known() != nil && h.queue.known() != nil, true)
	same(t, "what settlement does not want", h.users.known() == nil && h.first.known() == 0, true)
}
