package query

import (
	"context"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// The state machine of how long a look may wait.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		name                           string
		listening, missed, heard, same bool
		want                           time.Duration
		after                          bool // missed
	}{
		{"nobody to hear", false, false, false, true, lookEvery, false},
		{"nobody to hear, and something new", false, false, false, false, lookEvery, true},
		{"nothing said, nothing new", true, false, false, true, lookRarely, false},
		{"something new that was said", true, false, true, false, lookRarely, false},
		{"something new that nobody said", true, false, false, false, lookEvery, true},
		{"still nothing said", true, true, false, true, lookEvery, true},
		{"said again", true, true, true, false, lookRarely, false},
		{"said late", true, true, true, true, lookRarely, false},
	} {
		l := listener{every: lookEvery, rarely: lookRarely, missed: c.missed}
		l.listening.Store(c.listening)
		if got := l.pause(c.heard, c.same); got != c.want || l.missed != c.after {
			t.Errorf("%s: %s, missed %v", c.name, got, l.missed)
		}
	}
}

// What project announces of the live generation is heard; after the connection
// was lost it is heard again, and meanwhile known not to be.
func TestListener(t *testing.T) {
	w := newFixture(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.listen(ctx) }()
	hears := func(generation int32) bool {
		select {
		case <-w.listener.notified:
		default:
		}
		if err := registry.AnnounceWritten(ctx, w.pool, generation); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.listener.notified:
			return true
		case <-time.After(time.Second):
			return false
		}
	}
	eventually(t, "it listens", w.listener.listening.Load)
	eventually(t, "it hears", func() bool { return hears(w.gen) })
	eventually(t, "another generation's word is not heard, nor one of before", func() bool { return !hears(w.gen + 1_000_000) })
	w.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%%'`)
	eventually(t, "it knows that it hears nothing", func() bool { return !w.listener.listening.Load() })
	eventually(t, "it hears again", func() bool { return w.listener.listening.Load() && hears(w.gen) })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A server shows what was announced without waiting for its next look.
func TestAnnouncedIsShown(t *testing.T) {
	w := newFixture(t)
	w.listener.every, w.listener.rarely = time.Hour, time.Hour
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go w.listen(ctx)
	go w.follow(ctx, w.conn)
	eventually(t, "it listens", w.listener.listening.Load)
	for block := uint64(12); block < 20; block++ {
		w.ledger.append(fact{kind: aBlock, block: block})
		w.ledger.insert(t, w.writer, w.database())
		eventually(t, "the block is shown", func() bool {
			if err := registry.AnnounceWritten(ctx, w.pool, w.gen); err != nil {
				t.Error(err)
			}
			return w.snapshot.Load().block == block
		})
	}
}
