package serve

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/schemas/readmodel"
)

const (
	// maxStreams is how many long responses are sent at once. Those that are finished first have up to 8 MiB.
	maxStreams = 12
	// longBody is the length of a finished body above which it is a long response. Connections are the limit for how
	// many shorter ones clients can make the program hold.
	longBody = 256 << 10
	// StreamChunk is the size of the pieces in which a long response is sent.
	StreamChunk = 64 << 10
)

// longShares are how many long responses, and how many files, are sent at once to a partner, an address or a prefix.
var longShares = shares{3, Widths{2, 3, 3, 4}}

// stream sends a response while it is made. RequestTimeout applies until the first byte, and limit to all of it,
// however the client spreads its reading. Once a piece was sent, an error can only be signalled by closing the
// connection, which tells the client that the response is incomplete.
//
// A response that is short, because the chain was reorganised since an earlier call of the handler, is returned and
// not sent.
func (s *Server) stream(
	w http.ResponseWriter, r *Request, h Handler, of *slots, limit time.Duration,
) (*finished, error) {
	end := time.Now().Add(limit)
	r.readParams()
	leave, err := of.acquire(r.Context, r.holder())
	if err != nil {
		return nil, err
	}
	defer leave()
	var a *Answer
	err = s.onSlot(r.Context, r.holder(), s.slots.acquire, func(context.Context) (err error) { a, err = h(r); return err })
	if err != nil {
		return nil, err
	}
	if a.Stream == nil {
		return a.finish(r.Header)
	}
	tag := r.stateTag(a)
	if known := matchingTag(r.HTTP, tag); !a.untagged && known != "" {
		notModified(w, known)
		return nil, nil
	}
	r.Header.Set("Content-Type", cmp.Or(a.Kind, jsonKind))
	if a.Name != "" {
		r.Header.Set("Content-Disposition", `attachment; filename="`+a.Name+`"`)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context), end)
	defer cancel()
	defer context.AfterFunc(r.HTTP.Context(), cancel)()
	send := func(w io.Writer) error { return a.Stream(ctx, w) }
	if acceptsGzip(r.HTTP.Header) && r.format != files.Parquet { // Parquet is compressed itself
		plain := send
		send = func(w io.Writer) error { return zipped(w, plain) }
		tag += gzipSuffix
		r.Header.Set("Content-Encoding", "gzip")
	}
	if !a.untagged {
		r.Header["Etag"] = []string{`"` + tag + `"`}
	}
	if r.HTTP.Method == http.MethodHead {
		return nil, nil
	}
	defer s.cutOff(r)
	out := s.patient(w, end)
	pieces := bufio.NewWriterSize(out, StreamChunk)
	if err = send(pieces); err == nil {
		err = pieces.Flush()
	}
	if err == nil {
		err = out.Flush()
	}
	switch {
	case err != nil && !out.begun: // pieces may hold some bytes, which are dropped
		for _, name := range []string{"Content-Disposition", "Content-Encoding", "Etag"} {
			r.Header.Del(name)
		}
		out.again()
		return nil, err
	case err != nil:
		s.cut(r, out, err)
		panic(http.ErrAbortHandler)
	}
	out.finish()
	return nil, nil
}

// deliver sends a finished response, until end. A long one uses memory until its client has received it, so it needs a
// place, and its client must receive MinRate. Only the work shows how long a response is, so the place is taken after
// it.
func (s *Server) deliver(w http.ResponseWriter, r *Request, f *finished, end time.Time) error {
	if len(f.plain.body) <= longBody || f.bodyless(r.HTTP) {
		send(w, r.HTTP, f, f.position(r.snapshot))
		return nil
	}
	leave, err := s.streams.acquire(r.Context, r.holder())
	if err != nil {
		return err
	}
	defer leave()
	out := s.patient(w, end)
	send(out, r.HTTP, f, f.position(r.snapshot))
	if out.err != nil { // Content-Length tells the client that the response is incomplete
		s.cut(r, out, out.err)
		return nil
	}
	out.finish()
	return nil
}

// stateTag returns an ETag made from the inputs of a response, because its bytes are not known before they are sent.
// Requests of two partners for the same URL get different tags.
func (r *Request) stateTag(a *Answer) string {
	h := r.Header
	sum := sha256.Sum256([]byte(strings.Join([]string{readmodel.Schema(), h.Get(headerGeneration), h.Get(headerSeq),
		h.Get(headerBlock), r.HTTP.URL.EscapedPath(), r.query.Encode(), string(r.format),
		Decimal(uint64(r.holder().partner)), a.Input}, " ")))
	return hex.EncodeToString(sum[:16])
}

// Turn runs queries of a response that is being sent, on an engine slot and within RequestTimeout. Between its turns
// such a response has one of the places for long responses, but no engine slot, however slowly its client reads. The
// error is ask.ErrRewritten if what was read does not belong to the state of the pin, unless that is nil: then it must
// not be sent.
func (r *Request) Turn(ctx context.Context, p *ask.Pin, work func(context.Context) error) error {
	return r.server.onSlot(ctx, r.holder(), r.server.slots.acquirePatiently, func(ctx context.Context) error {
		err := work(ctx)
		if err == nil && p != nil {
			err = p.Settled(ctx, r.server.Watcher)
		}
		return err
	})
}

// BeforeProofs runs the queries of a request that may wait for proofs afterwards. If it does, its own slot is only a
// place to wait, and the queries need an expensive slot.
func (r *Request) BeforeProofs(ctx context.Context, work func(context.Context) error) error {
	if r.class != proving {
		return work(ctx)
	}
	return r.onExpensive(ctx, work)
}

// onExpensive runs queries on an expensive slot, whatever the class of the request.
func (r *Request) onExpensive(ctx context.Context, work func(context.Context) error) error {
	h := r.holder()
	h.class = expensive
	return r.server.onSlot(ctx, h, r.server.slots.acquire, work)
}

// onSlot runs queries on an engine slot, which acquire takes. The context of work ends after RequestTimeout; work for a
// whole response has one of its own.
func (s *Server) onSlot(
	ctx context.Context, h holder, acquire func(context.Context, holder) (release func(error), err error),
	work func(context.Context) error,
) (err error) {
	release, err := acquire(ctx, h)
	if err != nil {
		return err
	}
	defer func() { release(err) }()
	ctx, cancel := context.WithTimeout(ctx, s.RequestTimeout)
	defer cancel()
	return work(ctx)
}
