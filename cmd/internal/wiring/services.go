package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// services are goroutines that are stopped in the reverse order of their
// start, each one only when the one before it has returned. That is what makes
// Ctrl-C orderly: traffic stops before ingest, ingest before the read models,
// everything before the engines.
type services struct {
	log     *slog.Logger
	running []*service
	// failed gets the first error of a service that ended by itself.
	failed chan error
}

type service struct {
	name   string
	cancel context.CancelFunc
	done   chan error
}

func newServices(log *slog.Logger) *services {
	return &services{log: log, failed: make(chan error, 1)}
}

// start runs a service with a context of its own, so that a signal does not
// reach it before its turn.
func (s *services) start(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &service{name, cancel, make(chan error, 1)}
	s.running = append(s.running, one)
	go func() {
		err := run(ctx)
		if ctx.Err() == nil { // nobody asked it to stop
			if err == nil {
				err = errors.New("it ended by itself")
			}
			select {
			case s.failed <- fmt.Errorf("%s: %w", name, err):
			default:
			}
			err = nil // told already
		}
		one.done <- err
	}()
}

// stop ends all services, the last started first, and gives their errors.
func (s *services) stop() error {
	var faults []error
	for _, one := range slices.Backward(s.running) {
		one.cancel()
		if err := <-one.done; err != nil && !errors.Is(err, context.Canceled) {
			faults = append(faults, fmt.Errorf("stop %s: %w", one.name, err))
		}
		s.log.Info("stopped", "service", one.name)
	}
	s.running = nil
	return errors.Join(faults...)
}
