package query

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

var errPanicked = errors.New("the handler panicked")

const (
	// waitForRoom is how long a request waits for its turn before it is sent
	// away.
	waitForRoom = 2 * time.Second
	// waitingFor each that is being answered is how many may wait.
	waitingFor = 16
)

// room bounds how many requests are being answered at once, so that a crowd
// makes a queue and not a heap: what the engines are asked, and what memory
// holds, does not grow with it. Those that would wait too long are answered
// 503 at once. Answers out of the cache and the health endpoints need no room.
type room struct {
	places  chan struct{}
	waiting atomic.Int64
	refused func()
}

func newRoom(places int, refused func()) *room {
	return &room{places: make(chan struct{}, places), refused: refused}
}

// enter waits for a place; leave gives it back.
func (r *room) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-r.places }
	select {
	case r.places <- struct{}{}:
		return leave, nil
	default:
	}
	if r.waiting.Add(1) > int64(waitingFor*cap(r.places)) {
		r.waiting.Add(-1)
		return nil, r.full()
	}
	defer r.waiting.Add(-1)
	patience := time.NewTimer(waitForRoom)
	defer patience.Stop()
	select {
	case r.places <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, unavailable("The answer took too long.", ctx.Err())
	case <-patience.C:
		return nil, r.full()
	}
}

func (r *room) full() error {
	r.refused()
	return &failure{status: http.StatusServiceUnavailable, code: codeUnavailable, message: "Too many requests are being answered. Retry-After says when to come back.", retry: time.Second, crowd: true}
}
