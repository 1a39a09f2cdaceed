package serve

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/navlog/navlog/query/state"
)

const (
	// maxLive is how many live responses are open at once.
	maxLive = 2000
	// maxCatchUps is how many live responses may hold what they read to catch up, of up to 0.75 MiB each. A client that
	// receives MinRate takes it within a minute.
	maxCatchUps = 32
	// heartbeat is the longest silence on a live connection: proxies close silent ones.
	heartbeat = 15 * time.Second
)

// Many browsers may be behind one address, but the shares are small enough that a few addresses cannot take all places.
var (
	liveShares    = shares{Widths: Widths{100, 200, 200, 400}}
	catchUpShares = shares{Widths: Widths{4, 6, 6, 8}}
)

// chunks are buffers in which pieces are joined. All streams send each block at the same time, but only some of them
// are writing at any moment.
var chunks = sync.Pool{New: func() any { return new([]byte) }}

// Live sends a response that continues until its client disconnects or the program ends.
type Live struct {
	server  *Server
	request *Request
	out     *patientWriter
	beat    *time.Timer
}

// Newest returns the newest snapshot, or nil if there is nothing to serve, and a channel that is closed when there is
// a newer one.
func (l *Live) Newest() (*state.Snapshot, <-chan struct{}) {
	changed := l.server.Watcher.Changed()
	s := l.server.Watcher.Snapshot()
	if !l.request.accepts(s) {
		s = nil
	}
	return s, changed
}

// CatchUp waits for one of a few places for responses that catch up. What such a response reads is its own, and uses
// memory until its client has received it: leave returns the place after that.
func (l *Live) CatchUp(ctx context.Context) (leave func(), err error) {
	return l.server.catchUps.acquire(ctx, l.request.holder())
}

// Work runs queries that this client chose, for example to catch up, and is charged to it: on an expensive slot, within
// RequestTimeout, and while the client stays connected.
func (l *Live) Work(ctx context.Context, work func(context.Context) error) error {
	return l.request.onExpensive(ctx, work)
}

// WorkForAll runs queries for all live responses. It is independent of the client whose response happens to run them:
// of that client's slots and of its disconnecting.
func (l *Live) WorkForAll(ctx context.Context, work func(context.Context) error) error {
	ctx = withClient(context.WithoutCancel(ctx), context.Background())
	return l.server.onSlot(ctx, holder{allLive: true}, l.server.slots.acquire, work)
}

// Send sends pieces of the response, each of which is complete for the client. A client that receives less than
// MinRate is cut off; Answer.Live must return the error.
func (l *Live) Send(pieces ...[]byte) error {
	chunk := chunks.Get().(*[]byte)
	defer chunks.Put(chunk)
	*chunk = (*chunk)[:0]
	for i, piece := range pieces {
		*chunk = append(*chunk, piece...)
		if len(*chunk) < StreamChunk && i < len(pieces)-1 {
			continue
		}
		if _, err := l.out.Write(*chunk); err != nil {
			return err
		}
		if err := l.out.Flush(); err != nil {
			return err
		}
		*chunk = (*chunk)[:0]
	}
	l.beat.Reset(l.server.Heartbeat)
	return nil
}

// Wait waits for happens, for at most the given time unless that is 0, and sends heartbeats meanwhile. The error is
// that of ctx, or of the connection to the client.
func (l *Live) Wait(ctx context.Context, happens <-chan struct{}, most time.Duration) error {
	var late <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-happens:
			return nil
		case <-late:
			return nil
		case <-l.beat.C:
			if err := l.Send([]byte(":\n\n")); err != nil {
				return err
			}
		}
	}
}

// live sends a live response. It is never compressed, because a compressor would use more memory than the rest of a
// connection. net/http has removed the deadline for reading; that for writing, which is meant for finite responses, is
// replaced by one for each piece.
func (s *Server) live(w http.ResponseWriter, r *Request, h Handler) error {
	r.readParams()
	release, err := s.lives.acquire(r.Context, r.holder())
	if err != nil {
		return err
	}
	defer release()
	a, err := h(r)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", a.Kind)
	r.Header.Set("Cache-Control", "no-store, no-transform")
	r.Header.Set("X-Accel-Buffering", "no")
	if r.HTTP.Method == http.MethodHead {
		return nil
	}
	defer s.cutOff(r)
	l := &Live{server: s, request: r, out: s.patient(w, time.Time{}), beat: time.NewTimer(s.Heartbeat)}
	defer l.beat.Stop()
	ctx, cancel := context.WithCancel(r.Context)
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	s.metrics.live.Inc()
	defer s.metrics.live.Dec()
	err = a.Live(ctx, l)
	switch {
	case s.ending.Err() != nil: // a clean end: the client reconnects to another instance
		l.out.again() // the deadline of the last piece may have passed
		return nil
	case err != nil:
		s.cut(r, l.out, err)
	}
	panic(http.ErrAbortHandler)
}

// EndLive ends all live responses, for good. Other responses are not affected.
func (s *Server) EndLive() { s.end() }
