package wiring

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestServicesStopInReverseOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := NewServices(slog.New(slog.NewTextHandler(io.Discard, nil)))
	var mu sync.Mutex
	var stopped []string
	for _, name := range []string{"first", "second", "third"} {
		s.Start(ctx, name, func(ctx context.Context) error {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			stopped = append(stopped, name)
			return ctx.Err()
		})
	}
	cancel() // a signal does not stop any service by itself
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"third", "second", "first"}; !slices.Equal(stopped, want) {
		t.Errorf("stopped %v, want %v", stopped, want)
	}
}

func TestServiceThatEndsByItselfIsAFailure(t *testing.T) {
	s := NewServices(slog.New(slog.NewTextHandler(io.Discard, nil)))
	s.Start(t.Context(), "broken", func(context.Context) error { return errors.New("no disk") })
	if err := <-s.Failed; err == nil || !strings.Contains(err.Error(), "broken: no disk") {
		t.Errorf("got %v", err)
	}
	s.Start(t.Context(), "quiet", func(context.Context) error { return nil })
	if err := <-s.Failed; err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("got %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("a reported failure is reported again: %v", err)
	}
}

// Two programs fail at the same broken engine: the user needs the error of the first.
func TestStopAfterAFailureIsSilent(t *testing.T) {
	stop := func(fails, received bool) error {
		s := NewServices(slog.New(slog.NewTextHandler(io.Discard, nil)))
		if fails {
			s.Start(t.Context(), "first", func(context.Context) error { return errors.New("no broker") })
			err := <-s.Failed
			if !received {
				s.Failed <- err
			}
		}
		s.Start(t.Context(), "second", func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("no broker either")
		})
		return s.Stop()
	}
	if err := stop(true, true); err != nil {
		t.Errorf("after a failure: %v", err)
	}
	if err := stop(true, false); err == nil || err.Error() != "first: no broker" {
		t.Errorf("after an unobserved failure: %v", err)
	}
	if err := stop(false, false); err == nil || !strings.Contains(err.Error(), "stop second: no broker either") {
		t.Errorf("without one: %v", err)
	}
}
