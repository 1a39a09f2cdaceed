package state

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

const (
	// lookEvery is the pause between looks at the read models while there are no notifications of changes, lookRarely
	// while project sends them.
	lookEvery  = 100 * time.Millisecond
	lookRarely = time.Second
	// listenAgain is the pause before the listener reconnects to PostgreSQL.
	listenAgain = time.Second
)

// listener receives notifications from project that it has written, so that answers do not have to wait for the next
// look, and fewer looks find nothing new.
type listener struct {
	notified  chan struct{} // has room for one
	listening *atomic.Bool
	every     time.Duration // lookEvery, except in tests
	rarely    time.Duration // lookRarely, except in tests
	missed    bool          // the last change came without a notification; only follow uses it
}

func newListener() listener {
	return listener{notified: make(chan struct{}, 1), listening: new(atomic.Bool), every: lookEvery, rarely: lookRarely}
}

func (w *Watcher) notify() {
	select {
	case w.listener.notified <- struct{}{}:
	default: // a look is already pending
	}
}

// pause returns how long the next look may wait. notified means that the last look was triggered by a notification, and
// same that it found nothing new. A change without a notification means that notifications get lost.
func (l *listener) pause(notified, same bool) time.Duration {
	if notified {
		l.missed = false
	} else if !same {
		l.missed = true
	}
	if l.listening.Load() && !l.missed {
		return l.rarely
	}
	return l.every
}

// listen receives project's notifications until ctx ends.
func (w *Watcher) listen(ctx context.Context) {
	for {
		err := registry.ListenWritten(ctx, w.pool, func() {
			w.listener.listening.Store(true)
			w.notify() // for notifications that were missed before
		}, func(generation int32) {
			if w.registry.Load().served == generation {
				w.notify()
			}
		})
		if ctx.Err() != nil {
			return
		}
		if w.listener.listening.Swap(false) {
			w.log.Warn("notifications from project lost, polling the read models more often", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}
