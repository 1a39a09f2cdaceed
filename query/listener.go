package query

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
	listening atomic.Bool
	every     time.Duration // lookEvery and
	rarely    time.Duration // lookRarely
	missed    bool          // nobody told of the last change; follow's own
}

// notify says that there is something new.
func (l *listener) notify() {
	select {
	case l.notified <- struct{}{}:
	default: // there is one already
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
func (q *Query) listen(ctx context.Context) error {
	for {
		err := registry.ListenWritten(ctx, q.pool, func() {
			q.listener.listening.Store(true)
			q.listener.notify() // of what was said before
		}, func(generation int32) {
			if live := q.registry.Load(); live != nil && live.generation == generation {
				q.listener.notify()
			}
		})
		if ctx.Err() != nil {
			return nil
		}
		if q.listener.listening.Swap(false) {
			q.log.Warn("project is not heard, the read models are looked at more often", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(listenAgain):
		}
	}
}
