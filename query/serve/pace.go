package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"time"
)

const (
	// MinRate is how many bytes per second the client of a long response must receive. A slower client would occupy
	// memory that others wait for.
	MinRate = 13 << 10
	// streamPatience is how long a client may appear to receive nothing. Its operating system accepts nothing more until
	// part of its buffers is free: a client reading at 15 KB/s was measured to receive nothing for 26 s, and then
	// 400 KB at once.
	streamPatience = 30 * time.Second
)

// patientWriter sends to a client that must receive MinRate on average. It measures what the operating system accepts,
// which is little more than what the client receives: see limitUnsent.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	window  time.Duration
	end     time.Time     // the last deadline; zero: none
	debt    time.Duration // the time that the client would need at MinRate to catch up
	begun   bool          // something was written
	err     error         // of a write
	late    bool          // the response was not complete at end
}

// patient returns the writer of a response that must be complete at end; zero means no end.
func (s *Server) patient(w http.ResponseWriter, end time.Time) *patientWriter {
	return &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), window: s.Patience, end: end}
}

// connKey is the key of the connection in the context of its requests.
type connKey struct{}

// ConnContext implements http.Server.ConnContext. Without it, a connection may be closed while its request is handled.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

func (p *patientWriter) Write(b []byte) (written int, err error) {
	for piece := range slices.Chunk(b, StreamChunk) {
		p.begun = true
		n, err := p.paced(func() (int, error) { return p.ResponseWriter.Write(piece) })
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

func (p *patientWriter) Flush() error {
	_, err := p.paced(func() (int, error) {
		err := p.control.Flush()
		if errors.Is(err, http.ErrNotSupported) { // there is no buffer to flush
			err = nil
		}
		return 0, err
	})
	return err
}

// paced runs a write, which may block until the debt reaches the window, and deducts its bytes from the debt.
func (p *patientWriter) paced(write func() (int, error)) (n int, err error) {
	begun := time.Now()
	p.deadline(p.window - p.debt)
	n, err = write()
	p.debt = max(0, p.debt+time.Since(begun)-time.Duration(n)*time.Second/MinRate)
	if err != nil && p.err == nil {
		p.err, p.late = err, !p.end.IsZero() && !time.Now().Before(p.end)
	}
	return n, err
}

func (p *patientWriter) deadline(left time.Duration) {
	at := time.Now().Add(left)
	if !p.end.IsZero() && p.end.Before(at) {
		at = p.end
	}
	_ = p.control.SetWriteDeadline(at) // a test's recorder does not support it
}

// again sets the deadline for what is sent last, whatever the time: that of the connection may have passed.
func (p *patientWriter) again() { _ = p.control.SetWriteDeadline(time.Now().Add(p.window)) }

// finish sets the deadline for the end of the response, which net/http writes.
func (p *patientWriter) finish() { p.deadline(p.window) }

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
	log(r.Context, "answer cut off", "why", why, "request_id", r.Header.Get(headerRequestID), "route", routeOf(r.HTTP),
		"error", err)
}
