package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// health holds the current faults, and logs each change once.
type health struct {
	log    *slog.Logger
	mu     sync.Mutex
	faults map[fault]error // by what was attempted
	noted  map[fault]error // the same for what readiness does not depend on
	// proven is when the topics were last read or, while another dispatcher reads them, could have been; zero: not
	// since the start.
	proven time.Time
}

// fault names something that was attempted and failed.
type fault struct {
	what string // completes "cannot ..."
	of   string // which of several concurrent attempts of it; "" if there is only one
}

func newHealth(log *slog.Logger) *health {
	return &health{log: log, faults: map[fault]error{}, noted: map[fault]error{}}
}

// set records the outcome of an attempt under ctx. err must not hold a secret. An error after the end of ctx is no
// fault: the attempt was cancelled.
func (h *health) set(ctx context.Context, what string, err error) {
	h.logChange(ctx, h.faults, fault{what: what}, err)
}

// setOf is set for something that several callers attempt at the same time, for instance lanes: the success of one does
// not clear the failure of another.
func (h *health) setOf(ctx context.Context, what, of string, err error) {
	h.logChange(ctx, h.faults, fault{what, of}, err)
}

// keepOnly drops the faults of all except these.
func (h *health) keepOnly(what string, of map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.faults {
		if f.what == what && !of[f.of] {
			h.clear(h.faults, f)
		}
	}
}

// note is set for something that readiness does not depend on.
func (h *health) note(ctx context.Context, what string, err error) {
	h.logChange(ctx, h.noted, fault{what: what}, err)
}

// logChange logs a failure that is not current yet, and the end of the last one.
func (h *health) logChange(ctx context.Context, faults map[fault]error, f fault, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.clear(faults, f)
		return
	}
	known := false
	for other, before := range faults {
		known = known || other.what == f.what && before.Error() == err.Error()
	}
	faults[f] = err
	if !known {
		h.log.Warn("cannot "+f.what+", retrying", "error", err)
	}
}

// clear drops a fault. mu is held.
func (h *health) clear(faults map[fault]error, f fault) {
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

// setProven records when the topics were last read, or could have been.
func (h *health) setProven(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proven = at
}

// err returns nil while everything that readiness depends on works. A successful read of the topics counts as proof
// only for a while, because a hanging operation reports no error.
func (h *health) err(proof time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f, err := range h.faults {
		return fmt.Errorf("cannot %s: %w", f.what, err)
	}
	if h.proven.IsZero() {
		return errors.New("the referral topics have not been read yet")
	}
	if age := time.Since(h.proven); age > proof {
		return fmt.Errorf("the referral topics were last read %s ago: check Kafka and PostgreSQL", age.Round(time.Second))
	}
	return nil
}
