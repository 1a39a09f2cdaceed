package serve

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
	// MinRate is how many bytes per second the client of a long response must receive. A slower client would occupy
	// memory that others wait for.
	MinRate = 13 << 10
	// streamPatience is how long a client may appear to receive nothing. The operating systems of both sides report
	// no progress until part of their buffers is free: a client reading at 15 KB/s was measured to show no progress
	// for 26 s, and then 400 KB at once.
	streamPatience = 30 * time.Second
	// lastBytes is how much of a written response the operating system may still buffer.
	lastBytes = 4 << 20
)

// patientWriter sends to a client that must receive MinRate on average. It measures acknowledged bytes, not written
// ones, because the operating system accepts megabytes at once, and then nothing for minutes. So while a write
// blocks, the writer checks the acknowledged bytes, and extends the deadline accordingly. If a connection does not
// report them, written bytes count instead.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	acked   func() (uint64, bool)
	window  time.Duration
	end     time.Time // the last deadline; zero: none

	mu    sync.Mutex
	debt  time.Duration // the time that the client would need at MinRate to catch up
	since time.Time     // the time at which debt was computed
	known uint64        // acknowledged bytes at that time
	timer *time.Timer   // nil: no write is in progress
	err   error         // of a write
	late  bool          // the response was not complete at end
}

// patient returns the writer of a response that must be complete at end; zero means no end.
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

// ConnContext implements http.Server.ConnContext. Without it, the pace of a client is measured by what the operating
// system accepts.
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

// Flush sends buffered bytes.
func (p *patientWriter) Flush() error {
	p.begin()
	err := p.control.Flush()
	if errors.Is(err, http.ErrNotSupported) { // there is no buffer to flush
		err = nil
	}
	p.done(0, err)
	return err
}

// begin sets the deadline of a write, and a timer that extends it while the write blocks.
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

// look accounts for what the client received while a write blocks.
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

// wait adds the time since the last update to the debt.
func (p *patientWriter) wait() {
	now := time.Now()
	p.debt += now.Sub(p.since)
	p.since = now
}

// pay deducts received bytes from the debt.
func (p *patientWriter) pay(bytes uint64) {
	p.debt = max(0, p.debt-time.Duration(min(bytes, lastBytes))*time.Second/MinRate)
}

// deadline lets a write block until the debt reaches the window.
func (p *patientWriter) deadline() {
	at := time.Now().Add(p.window - p.debt)
	if !p.end.IsZero() && p.end.Before(at) {
		at = p.end
	}
	_ = p.control.SetWriteDeadline(at) // a test's recorder does not support it
}

// finish sets the deadline for the end of the response, which net/http writes, so that there is time for what the
// operating system still buffers.
func (p *patientWriter) finish() {
	at := time.Now().Add(p.window + lastBytes/MinRate*time.Second)
	if !p.end.IsZero() && p.end.Before(at) {
		at = p.end
	}
	_ = p.control.SetWriteDeadline(at)
}

// cut logs and counts why a response ended early. If the client disconnected, it is only counted.
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
	log := s.Log.InfoContext
	switch why {
	case "left":
		return
	case "error":
		log = s.Log.ErrorContext
	}
	log(r.Context, "answer cut off", "why", why, "request_id", r.Header.Get(headerRequestID), "route", routeOf(r.HTTP), "error", err)
}
