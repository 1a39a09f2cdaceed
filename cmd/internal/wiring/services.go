package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
)

// Services are goroutines that are stopped in the reverse order of their
// start, each one only when the one before it has returned. That is what makes
// Ctrl-C orderly: traffic stops before ingest, ingest before the read models,
// everything before the engines.
type Services struct {
	log     *slog.Logger
	running []*service
	// Failed gets the first error of a service that ended by itself. What others say after it mostly follows from it, and
	// is only logged.
	Failed chan error
	failed atomic.Bool
}

type service struct {
	name   string
	cancel context.CancelFunc
	done   chan error
}

func NewServices(log *slog.Logger) *Services {
	return &Services{log: log, Failed: make(chan error, 1)}
}

// Start runs a service with a context of its own, so that a signal does not
// reach it before its turn.
func (s *Services) Start(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &service{name, cancel, make(chan error, 1)}
	s.running = append(s.running, one)
	go func() {
		err := run(ctx)
		if ctx.Err() == nil { // nobody asked it to stop
			if err == nil {
				err = errors.New("it ended by itself")
			}
			s.failed.Store(true)
			select {
			case s.Failed <- fmt.Errorf("%s: %w", name, err):
			default:
				s.log.Error("a service failed after another", "service", name, "error", err)
			}
			err = nil // told already
		}
		one.done <- err
	}()
}

// Stop ends all services, the last started first, and gives their errors; where one had failed before, only that one's, if
// nobody has heard it.
func (s *Services) Stop() error {
	var faults []error
	for _, one := range slices.Backward(s.running) {
		one.cancel()
		if err := <-one.done; err != nil && !errors.Is(err, context.Canceled) {
			if s.failed.Load() {
				s.log.Error("a service failed after another", "service", one.name, "error", err)
			} else {
				faults = append(faults, fmt.Errorf("stop %s: %w", one.name, err))
			}
		}
		s.log.Info("stopped", "service", one.name)
	}
	s.running = nil
	select {
	case err := <-s.Failed: // that nobody has heard
		faults = append(faults, err)
	default:
	}
	return errors.Join(faults...)
}
