package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// Services are goroutines that are stopped in the reverse order of their start, each only after the previous one has
// returned. So Ctrl-C ends everything in order: traffic stops before ingest, ingest before the read models, and
// everything before the engines.
type Services struct {
	log     *slog.Logger
	mu      sync.Mutex // engines start concurrently
	running []*service
	// Failed gets the first error of a service that ended by itself. The errors of others after it mostly follow from
	// it, and are only logged.
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

// Start runs a service with its own context, so that a signal does not stop it before its turn.
func (s *Services) Start(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &service{name, cancel, make(chan error, 1)}
	s.mu.Lock()
	s.running = append(s.running, one)
	s.mu.Unlock()
	go func() {
		err := run(ctx)
		if ctx.Err() == nil { // not because of Stop
			if err == nil {
				err = errors.New("it ended by itself")
			}
			s.failed.Store(true)
			select {
			case s.Failed <- fmt.Errorf("%s: %w", name, err):
			default:
				s.log.Error("a service failed after another", "service", name, "error", err)
			}
			err = nil // reported already
		}
		one.done <- err
	}()
}

// Own takes over something that runs already: end ends it when its turn comes.
func (s *Services) Own(ctx context.Context, name string, end func() error) {
	s.Start(ctx, name, func(ctx context.Context) error {
		<-ctx.Done()
		return end()
	})
}

// Stop ends all services, the last started first, and returns their errors; if one had failed before, it returns only
// that error, unless the caller has received it from Failed.
func (s *Services) Stop() error {
	var faults []error
	s.mu.Lock()
	defer s.mu.Unlock()
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
	case err := <-s.Failed: // the caller has not received it
		faults = append(faults, err)
	default:
	}
	return errors.Join(faults...)
}
