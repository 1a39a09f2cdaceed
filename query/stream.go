package query

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxStreams is how many long answers are being sent at once, and
	// clientStreams how many of them to one address: who reads slowly must not
	// take the places of all others.
	maxStreams    = 8
	clientStreams = maxStreams / 2
	// streamChunk is what a client must take within streamPatience, or it is
	// cut off: a reader that is slower than that costs the others too much.
	streamChunk    = 64 << 10
	streamPatience = 5 * time.Second
)

// stream sends an answer while it is made. Until the first byte RequestTimeout
// holds, and for all of it WriteTimeout, however the client spreads its reading.
// An error after the first byte can only end the connection, which tells the
// client that the answer is not whole.
func (q *Query) stream(w http.ResponseWriter, x *exchange, h handler) error {
	end := time.Now().Add(q.cfg.WriteTimeout)
	x.params = newParams(x.request.URL.RawQuery)
	leave, err := q.readers.enter(x.ctx, q.clientIP(x.request))
	if err != nil {
		return err
	}
	defer leave()
	release, err := q.streams.acquire(x.ctx)
	if err != nil {
		return err
	}
	defer release()
	a, err := h(x)
	if err != nil {
		return err
	}
	if unchanged(w, x.request, a.tag) {
		return nil
	}
	x.header.Set("Content-Type", jsonKind)
	send, tag := a.stream, a.tag
	if acceptsGzip(x.request.Header) {
		send, tag = zipping(a.stream), a.tag+gzipSuffix
		x.header.Set("Content-Encoding", "gzip")
	}
	x.header["Etag"] = []string{`"` + tag + `"`}
	if x.request.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(x.ctx), end)
	defer cancel()
	x.ctx = ctx
	if err := send(patientWriter{w, http.NewResponseController(w), q.patience, end}); err != nil {
		if x.request.Context().Err() == nil {
			q.log.Error("answer cut off", "request_id", x.header.Get(headerRequestID), "route", routeOf(x.request), "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

// readers are the places for long answers that each address has, of those that wait
// for one or are being sent one.
type readers struct {
	refused func()
	mu      sync.Mutex
	of      map[netip.Addr]*reader
}

type reader struct {
	places *slots
	inside int // of its requests: those that have a place or wait for one
}

func newReaders(refused func()) *readers {
	return &readers{refused: refused, of: make(map[netip.Addr]*reader)}
}

// enter waits for one of the address's places; leave gives it back.
func (r *readers) enter(ctx context.Context, ip netip.Addr) (leave func(), err error) {
	r.mu.Lock()
	of := r.of[ip]
	if of == nil {
		of = &reader{places: newSlots(clientStreams, r.refused)}
		r.of[ip] = of
	}
	of.inside++
	r.mu.Unlock()
	gone := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if of.inside--; of.inside == 0 {
			delete(r.of, ip)
		}
	}
	release, err := of.places.acquire(ctx)
	if err != nil {
		gone()
		return nil, err
	}
	return func() { release(); gone() }, nil
}

// patientWriter gives each piece its own deadline, and none a later one than
// the end of the answer.
type patientWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	end      time.Time
}

func (w patientWriter) Write(b []byte) (int, error) {
	deadline := time.Now().Add(w.patience)
	if w.end.Before(deadline) {
		deadline = w.end
	}
	_ = w.control.SetWriteDeadline(deadline) // a recorder of a test has none
	return w.ResponseWriter.Write(b)
}
