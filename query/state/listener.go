package state

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

const (
	// lookEvery is the pause between looks at the read models while nobody says
	// when they change, lookRarely while project does.
	lookEvery  = 100 * time.Millisecond
	lookRarely = time.Second
	// listenAgain is the pause before PostgreSQL is listened to again.
	listenAgain = time.Second
)

// listener hears from project that it has written, so that an answer need not
// wait for the next look, nor many looks find nothing new.
type listener struct {
	notified  chan struct{} // holds one
	listening *atomic.Bool
	every     time.Duration // lookEvery and
	rarely    time.Duration // lookRarely
	missed    bool          // nobody told of the last change; follow's own
}

func newListener() listener {
	return listener{notified: make(chan struct{}, 1), listening: new(atomic.Bool), every: lookEvery, rarely: lookRarely}
}

// notify has the read models looked at now.
func (w *Watcher) notify() {
	select {
	case w.listener.notified <- struct{}{}:
	default: // that is to be done already
	}
}

// pause is how long the next look may wait. heard says that the last one was
// asked for, and same that it found nothing new. A change that nobody told of
// means that notifications get lost.
func (l *listener) pause(heard, same bool) time.Duration {
	if heard {
		l.missed = false
	} else if !same {
		l.missed = true
	}
	if l.listening.Load() && !l.missed {
		return l.rarely
	}
	return l.every
}

// listen hears what project says until ctx ends.
func (w *Watcher) listen(ctx context.Context) {
	for {
		err := registry.ListenWritten(ctx, w.pool, func() {
			w.listener.listening.Store(true)
			w.notify() // of what was said before
		}, func(generation int32) {
			if r := w.registry.Load(); r != nil && r.served == generation {
				w.notify()
			}
		})
		if ctx.Err() != nil {
			return
		}
		if w.listener.listening.Swap(false) {
			w.log.Warn("project is not heard, the read models are looked at more often", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}
