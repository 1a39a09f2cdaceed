package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// MinRate is how many bytes a second the client of a long answer must take. A client
	// that takes less holds memory here that others wait for.
	MinRate = 13 << 10
	// streamPatience is how long a client may take nothing. The operating systems of both
	// sides report nothing until a part of their buffers is free: a reader of 15 KB/s was
	// seen to be silent for 26 s, and to have taken 400 KB after it.
	streamPatience = 30 * time.Second
	// lastBytes is what the operating system may hold of an answer that is written.
	lastBytes = 4 << 20
)

// patientWriter sends to a client that must take MinRate on average. What counts is what the
// client has acknowledged, not what was written: the operating system takes megabytes at
// once, and then nothing for minutes. So while a write blocks, the writer looks at the
// acknowledged bytes, and moves the deadline with them. A connection that does not
// know them counts what was written.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	acked   func() (uint64, bool)
	window  time.Duration
	end     time.Time // the last deadline; zero: none

	mu    sync.Mutex
	debt  time.Duration // how long the client would need at MinRate for what it did not take in time
	since time.Time     // debt is of this time
	known uint64        // acknowledged bytes then
	timer *time.Timer   // nil: nothing is being written
	err   error         // of a write
	late  bool          // the answer was not over at end
}

// patient makes the writer of an answer that must be over at end; zero: it goes on.
func (s *Server) patient(w http.ResponseWriter, r *Request, end time.Time) *patientWriter {
	p := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), window: s.Patience, end: end}
	p.acked = func() (uint64, bool) { return 0, false }
	if conn, ok := r.HTTP.Context().Value(connKey{}).(interface{ Acked() (uint64, bool) }); ok {
		p.acked = conn.Acked
	}
	return p
}

// connKey is the key of the connection in the context of its requests.
type connKey struct{}

// ConnContext is for http.Server.ConnContext. Without it, the pace of a client is judged by
// what the operating system takes.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// Write implements io.Writer.
func (p *patientWriter) Write(b []byte) (written int, err error) {
	for piece := range slices.Chunk(b, StreamChunk) {
		p.begin()
		n, err := p.ResponseWriter.Write(piece)
		p.done(n, err)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// Flush sends what is buffered.
func (p *patientWriter) Flush() error {
	p.begin()
	err := p.control.Flush()
	if errors.Is(err, http.ErrNotSupported) { // nothing is buffered that could be sent sooner
		err = nil
	}
	p.done(0, err)
	return err
}

// begin sets the deadline of a write, and has it moved while the write blocks.
func (p *patientWriter) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
	if n, ok := p.acked(); ok {
		p.pay(n - p.known)
		p.known = n
	}
	p.deadline()
	p.timer = time.AfterFunc(p.window/8, p.look)
}

// look takes into account what the client took while a write blocks.
func (p *patientWriter) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		return
	}
	if n, ok := p.acked(); ok {
		p.wait()
		p.pay(n - p.known)
		p.known = n
		p.deadline()
	}
	p.timer.Reset(p.window / 8)
}

// done ends a write of n bytes.
func (p *patientWriter) done(n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.timer = nil
	p.wait()
	if acked, ok := p.acked(); ok {
		p.pay(acked - p.known)
		p.known = acked
	} else {
		p.pay(uint64(n))
	}
	if err != nil && p.err == nil {
		p.err, p.late = err, !p.end.IsZero() && !time.Now().Before(p.end)
	}
}

// wait adds the time of a write to the debt.
func (p *patientWriter) wait() {
	now := time.Now()
	p.debt += now.Sub(p.since)
	p.since = now
}

// pay takes bytes off the debt.
func (p *patientWriter) pay(bytes uint64) {
	p.debt = max(0, p.debt-time.Duration(min(bytes, lastBytes))*time.Second/MinRate)
}

// deadline lets a write block until the debt is the whole window.
func (p *patientWriter) deadline() {
	at := time.Now().Add(p.window - p.debt)
	if !p.end.IsZero() && p.end.Before(at) {
		at = p.end
	}
	_ = p.control.SetWriteDeadline(at) // a recorder of a test has none
}

// finish gives the end of the answer, which net/http writes, the time of what the operating
// system still holds.
func (p *patientWriter) finish() {
	at := time.Now().Add(p.window + lastBytes/MinRate*time.Second)
	if !p.end.IsZero() && p.end.Before(at) {
		at = p.end
	}
	_ = p.control.SetWriteDeadline(at)
}

// cut logs why an answer ends before its end, and counts it. A client that left is counted
// only.
func (s *Server) cut(r *Request, out *patientWriter, err error) {
	why := "error"
	switch {
	case out.late:
		why = "late"
	case errors.Is(out.err, os.ErrDeadlineExceeded):
		why = "slow"
	case out.err != nil || r.HTTP.Context().Err() != nil:
		why = "left"
	}
	s.metrics.cut.WithLabelValues(why).Inc()
	log := s.Log.Info
	switch why {
	case "left":
		return
	case "error":
		log = s.Log.Error
	}
	log("answer cut off", "why", why, "request_id", r.Header.Get(headerRequestID), "route", routeOf(r.HTTP), "error", err)
}
