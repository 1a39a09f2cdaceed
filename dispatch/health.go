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
	faults map[fault]error // by what was attempted
	noted  map[fault]error // the same, of what readiness does not depend on
	proven time.Time       // when the consumer last read the topics and wrote what it read; zero: not since it began
}

// fault is something that was attempted and failed.
type fault struct {
	what string // completes "cannot ..."
	of   string // which of several that attempt the same at a time; "" if one does
}

func newHealth(log *slog.Logger) *health {
	return &health{log: log, faults: map[fault]error{}, noted: map[fault]error{}}
}

// set records how an attempt of something went. err must not hold a secret.
func (h *health) set(what string, err error) { h.put(h.faults, fault{what: what}, err) }

// setOf does the same for something that several attempt at a time, lanes for instance: the success of one says nothing
// about the failure of another.
func (h *health) setOf(what, of string, err error) { h.put(h.faults, fault{what, of}, err) }

// keep forgets the faults of all but these of several.
func (h *health) keep(what string, of map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.faults {
		if f.what == what && !of[f.of] {
			h.forget(h.faults, f)
		}
	}
}

// note does what set does for something that we can do without.
func (h *health) note(what string, err error) { h.put(h.noted, fault{what: what}, err) }

// put logs a failure that nobody else has at the moment, and the end of the last one.
func (h *health) put(faults map[fault]error, f fault, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.forget(faults, f)
		return
	}
	known := false
	for other, before := range faults {
		known = known || other.what == f.what && before.Error() == err.Error()
	}
	faults[f] = err
	if !known {
		h.log.Warn("cannot "+f.what+", trying again", "error", err)
	}
}

// forget is called under mu.
func (h *health) forget(faults map[fault]error, f fault) {
	if faults[f] == nil {
		return
	}
	delete(faults, f)
	for other := range faults {
		if other.what == f.what {
			return
		}
	}
	h.log.Info("works again", "what", f.what)
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
	for f, err := range h.faults {
		return fmt.Errorf("cannot %s: %w", f.what, err)
	}
	if h.proven.IsZero() {
		return errors.New("the referral topics are not read yet")
	}
	if age := time.Since(h.proven); age > proof {
		return fmt.Errorf("the referral topics were last read %s ago: look whether Kafka and PostgreSQL answer", age.Round(time.Second))
	}
	return nil
}
