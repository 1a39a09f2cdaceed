package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/navlog/navlog/query/state"
)

const (
	// maxLive is how many answers that go on are open at once. Many browsers may be behind
	// one address; nobody has so many that a few addresses take all.
	maxLive        = 2000
	livePerAddress = 100
	livePerSite    = 200
	livePerBlock   = 400
	// heartbeat is the longest silence of one: proxies close what says nothing.
	heartbeat = 15 * time.Second
)

// chunks are where pieces are put together. All streams are told of a block at once, and
// only some of them are writing at a time.
var chunks = sync.Pool{New: func() any { return new([]byte) }}

// Live sends an answer that goes on until its client leaves, or the program ends.
type Live struct {
	server  *Server
	request *Request
	out     *patientWriter
	beat    *time.Timer
}

// Newest is the newest snapshot, nil where there is nothing to serve, and a channel that
// is closed when there is another one.
func (l *Live) Newest() (*state.Snapshot, <-chan struct{}) {
	changed := l.server.Watcher.Changed()
	s := l.server.Watcher.Snapshot()
	if s != nil && s.Partial && !l.request.partial {
		s = nil
	}
	return s, changed
}

// Work asks the engine for what only this answer needs, as one that catches up does: on
// an expensive slot, within RequestTimeout, and for as long as the client stays.
func (l *Live) Work(ctx context.Context, work func(context.Context) error) error {
	h := l.request.holder()
	h.class = expensive
	return l.work(ctx, h, work)
}

// WorkForAll asks for all answers that go on together: neither the crowd of the client
// that happens to ask nor its leaving is theirs.
func (l *Live) WorkForAll(ctx context.Context, work func(context.Context) error) error {
	return l.work(withClient(context.WithoutCancel(ctx), context.Background()), allLive, work)
}

func (l *Live) work(ctx context.Context, h holder, work func(context.Context) error) error {
	release, err := l.server.slots.acquire(ctx, h)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, l.server.RequestTimeout)
	defer cancel()
	return work(ctx)
}

// Send sends pieces of the answer, each of which is whole for the client. A client that
// takes less than MinRate is cut off: the error is for Answer.Live to return.
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

// Wait waits until something happens, for at most a time where one is given, and has the
// connection say now and then that it lives. The error is that of ctx, or of the client.
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

// live sends an answer that goes on. It is never compressed: each compressor would hold
// more memory than all else of a connection. The deadlines of the connection, which are
// for answers that end, are lifted, and each piece has its own.
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
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // a recorder of a test has none
	l := &Live{server: s, request: r, out: s.patient(w, r, time.Time{}), beat: time.NewTimer(s.Heartbeat)}
	defer l.beat.Stop()
	ctx, cancel := context.WithCancel(r.Context)
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	s.metrics.live.Inc()
	defer s.metrics.live.Dec()
	err = a.Live(ctx, l)
	switch {
	case s.ending.Err() != nil: // a whole end: the client comes back to who is there then
		_ = control.SetWriteDeadline(time.Now().Add(s.Patience)) // that of the last piece may be over
		return nil
	case err != nil:
		s.cut(r, l.out, err)
	}
	panic(http.ErrAbortHandler)
}

// EndLive ends all answers that go on, for good. Others are not touched.
func (s *Server) EndLive() { s.end() }
