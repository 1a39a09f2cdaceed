package httpapi

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// waitForSlot is how long a request waits for its turn before it is sent
	// away.
	waitForSlot = 2 * time.Second
	// waitersPerSlot each that is being answered is how many may wait.
	waitersPerSlot = 16
)

// slots bound how many requests are being answered at once, so that a crowd
// makes a queue and not a heap: what the engines are asked, and what memory
// holds, does not grow with it. Those that would wait too long are answered
// 503 at once. Answers out of the cache and the health endpoints need none.
type slots struct {
	taken   chan struct{}
	waiting atomic.Int64
	refused func()
}

func newSlots(n int, refused func()) *slots {
	return &slots{taken: make(chan struct{}, n), refused: refused}
}

// acquire waits for a slot; release gives it back.
func (s *slots) acquire(ctx context.Context) (release func(), err error) {
	release = func() { <-s.taken }
	select {
	case s.taken <- struct{}{}:
		return release, nil
	default:
	}
	if s.waiting.Add(1) > int64(waitersPerSlot*cap(s.taken)) {
		s.waiting.Add(-1)
		return nil, s.full()
	}
	defer s.waiting.Add(-1)
	patience := time.NewTimer(waitForSlot)
	defer patience.Stop()
	select {
	case s.taken <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		return nil, tooLong(ctx.Err())
	case <-patience.C:
		return nil, s.full()
	}
}

func (s *slots) full() error {
	s.refused()
	return &Failure{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, Message: "Too many requests are being answered. Retry-After says when to come back.", Retry: time.Second, Crowd: true}
}

func tooLong(cause error) *Failure { return Unavailable("The answer took too long.", cause) }
