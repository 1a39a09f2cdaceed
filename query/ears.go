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

// ears hear from project that it has written, so that an answer need not wait
// for the next look, nor many looks find nothing new.
type ears struct {
	word      chan struct{} // that there is something new; it holds one
	listening atomic.Bool
	every     time.Duration // lookEvery and
	rarely    time.Duration // lookRarely
	surprised bool          // the last change was found without a word; follow's own
}

// hear leaves word.
func (e *ears) hear() {
	select {
	case e.word <- struct{}{}:
	default: // there is one already
	}
}

// patience is how long the next look may wait. heard says that there was word
// before the last one, and same that it found nothing new. A change that came
// without a word means that words get lost.
func (e *ears) patience(heard, same bool) time.Duration {
	if heard {
		e.surprised = false
	} else if !same {
		e.surprised = true
	}
	if e.listening.Load() && !e.surprised {
		return e.rarely
	}
	return e.every
}

// listen hears what project says until ctx ends.
func (q *Query) listen(ctx context.Context) error {
	for {
		err := registry.ListenWritten(ctx, q.pool, func() {
			q.ears.listening.Store(true)
			q.ears.hear() // of what was said before
		}, func(generation int32) {
			if live := q.registry.Load(); live != nil && live.generation == generation {
				q.ears.hear()
			}
		})
		if ctx.Err() != nil {
			return nil
		}
		if q.ears.listening.Swap(false) {
			q.log.Warn("project is not heard, the read models are looked at more often", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(listenAgain):
		}
	}
}
