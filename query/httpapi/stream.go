package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/schemas/readmodel"
)

const (
	// maxStreams is how many long answers are being sent at once.
	maxStreams = 8
	// StreamChunk is what a client must take within streamPatience, or it is
	// cut off: a reader that is slower than that costs the others too much.
	StreamChunk    = 64 << 10
	streamPatience = 5 * time.Second
)

// stream sends an answer while it is made. Until the first byte RequestTimeout
// holds, and for all of it a limit, however the client spreads its reading.
// An error after the first byte can only end the connection, which tells the
// client that the answer is not whole.
func (s *Server) stream(w http.ResponseWriter, r *Request, h Handler, of *slots, limit time.Duration) error {
	end := time.Now().Add(limit)
	r.readParams()
	release, err := of.acquire(r.Context, r.holder())
	if err != nil {
		return err
	}
	defer release()
	a, err := h(r)
	if err != nil {
		return err
	}
	tag := r.stateTag()
	if !a.untagged && unchanged(w, r.HTTP, tag) {
		return nil
	}
	r.Header.Set("Content-Type", cmp.Or(a.Kind, jsonKind))
	if a.Name != "" {
		r.Header.Set("Content-Disposition", `attachment; filename="`+a.Name+`"`)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context), end)
	defer cancel()
	send := func(w io.Writer) error { return a.Stream(ctx, w) }
	if acceptsGzip(r.HTTP.Header) && r.format != files.Parquet { // which is compressed by itself
		plain := send
		send = func(w io.Writer) error { return zipped(w, plain) }
		tag += gzipSuffix
		r.Header.Set("Content-Encoding", "gzip")
	}
	if !a.untagged {
		r.Header["Etag"] = []string{`"` + tag + `"`}
	}
	if r.HTTP.Method == http.MethodHead {
		return nil
	}
	defer s.cutOff(r)
	out := patientWriter{w, http.NewResponseController(w), s.Patience, end}
	if err := send(out); err != nil {
		if r.HTTP.Context().Err() == nil {
			s.Log.Error("answer cut off", "request_id", r.Header.Get(headerRequestID), "route", routeOf(r.HTTP), "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	_ = out.control.SetWriteDeadline(time.Now().Add(s.Patience)) // what net/http keeps, and the end of the answer
	return nil
}

// stateTag names an answer by what it is made of, for its bytes are not known before
// they are sent. Two partners may ask by one address, and are two.
func (r *Request) stateTag() string {
	h := r.Header
	sum := sha256.Sum256([]byte(strings.Join([]string{readmodel.Schema(), h.Get(headerGeneration), h.Get(headerSeq), h.Get(headerBlock),
		r.HTTP.URL.EscapedPath(), r.Params.values.Encode(), string(r.format), Decimal(uint64(r.holder().partner))}, " ")))
	return hex.EncodeToString(sum[:16])
}

// patientWriter gives each piece its own deadline, and none a later one than
// the end of the answer, where it has one.
type patientWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	end      time.Time
}

func (w patientWriter) Write(b []byte) (written int, err error) {
	for piece := range slices.Chunk(b, StreamChunk) {
		deadline := time.Now().Add(w.patience)
		if !w.end.IsZero() && w.end.Before(deadline) {
			deadline = w.end
		}
		_ = w.control.SetWriteDeadline(deadline) // a recorder of a test has none
		n, err := w.ResponseWriter.Write(piece)
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}
