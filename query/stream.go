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
	reader := q.clientIP(x.request)
	if !q.readers.enter(reader) {
		return q.streams.full()
	}
	defer q.readers.leave(reader)
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

// readers counts the long answers that each address waits for or is being sent.
type readers struct {
	mu    sync.Mutex
	count map[netip.Addr]int
}

// enter is false where the address has as many as one may have.
func (r *readers) enter(ip netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count[ip] >= clientStreams {
		return false
	}
	r.count[ip]++
	return true
}

func (r *readers) leave(ip netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count[ip]--; r.count[ip] == 0 {
		delete(r.count, ip)
	}
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
