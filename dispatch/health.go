package dispatch

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// health knows what does not work right now, and logs each change once.
type health struct {
	log    *slog.Logger
	mu     sync.Mutex
	faults map[string]error // by what was attempted
	noted  map[string]error // the same, of what readiness does not depend on
	proven time.Time        // when the consumer last read the topics and wrote what it read; zero: not since it began
}

func newHealth(log *slog.Logger) *health {
	return &health{log: log, faults: map[string]error{}, noted: map[string]error{}}
}

// set says how an attempt of something went. err must not hold a secret.
func (h *health) set(what string, err error) { h.put(h.faults, what, err) }

// note does the same for something that we can do without.
func (h *health) note(what string, err error) { h.put(h.noted, what, err) }

func (h *health) put(faults map[string]error, what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := faults[what]
	if err == nil {
		delete(faults, what)
		if before != nil {
			h.log.Info("works again", "what", what)
		}
		return
	}
	faults[what] = err
	if before == nil || before.Error() != err.Error() {
		h.log.Warn("cannot "+what+", trying again", "error", err)
	}
}

// prove says when the topics were read.
func (h *health) prove(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proven = at
}

// err is nil while everything works that readiness depends on. That the topics
// were read proves it for a while: something that hangs tells of no error.
func (h *health) err(proof time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for what, err := range h.faults {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	if h.proven.IsZero() {
		return errors.New("the referral topics are not read yet")
	}
	if age := time.Since(h.proven); age > proof {
		return fmt.Errorf("the referral topics were last read %s ago: look whether Kafka and PostgreSQL answer", age.Round(time.Second))
	}
	return nil
}
