package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/state"
)

// Answer is the result of a handler.
type Answer struct {
	Status int // 0: 200
	Data   any
	Meta   any    // nil: none
	Raw    []byte // the whole body, if its bytes are passed through unchanged
	Kind   string // Content-Type; empty: JSON
	Name   string // the file name under which a streamed body is saved; empty: none
	// Stream writes a long body piece by piece. It is called once the answer is known to be exact. It reads in turns
	// (Request.Turn).
	Stream func(context.Context, io.Writer) error
	// Input is what the streamed bytes depend on besides the state, the request and the partner; empty: nothing. It is
	// part of the ETag.
	Input string
	// Live sends the body for as long as the client stays connected, on live routes. The connection ends when Live
	// returns, with or without an error.
	Live func(context.Context, *Live) error

	links    string // the header Link; empty: none
	untagged bool   // a streamed body has no ETag
}

// envelope is the body of every successful response.
type envelope struct {
	OK   bool `json:"ok"`
	Data any  `json:"data"`
	Meta any  `json:"meta,omitempty"`
}

type errorEnvelope struct {
	OK    bool      `json:"ok"`
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	RequestID string `json:"requestId"`
	TraceID   string `json:"traceId,omitempty"` // of a request whose trace is collected
	Details   any    `json:"details,omitempty"`
}

const (
	jsonKind = "application/json; charset=utf-8"
	// gzipSuffix marks the ETag of a compressed response, because a strong ETag identifies the exact bytes.
	gzipSuffix = "-gzip"
	// minZipped is the minimum length of a body that is compressed: a shorter one fits into one packet anyway.
	minZipped = 1024
)

// Encode returns JSON without HTML escapes.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return b.Bytes(), nil
}

// finished is a response ready to be sent, in each of its forms. It may be sent many times concurrently, so it is
// immutable.
type finished struct {
	status int
	header http.Header // headers of both forms
	tag    string      // hash of the plain body
	plain  form
	zipped func() form   // made on first use
	about  *ask.Validity // how long it holds; nil: it is not pinned
}

// position returns the headers with the state of a response: that of snapshot s if the answer holds there, otherwise
// the one at which it was made.
func (f *finished) position(s *state.Snapshot) http.Header {
	if f.about == nil || s == nil {
		return nil
	}
	return position(f.about.At(s))
}

// form is a body and the headers that describe its bytes.
type form struct {
	body   []byte
	header http.Header
}

// finish returns the bytes of a response. header has the headers set by the handler.
func (a *Answer) finish(header http.Header) (*finished, error) {
	body := a.Raw
	if body == nil {
		var err error
		if body, err = Encode(envelope{OK: true, Data: a.Data, Meta: a.Meta}); err != nil {
			return nil, Internal(err)
		}
	}
	sum := sha256.Sum256(body)
	all := http.Header{"Content-Type": {cmp.Or(a.Kind, jsonKind)}}
	maps.Copy(all, header)
	if a.links != "" {
		all.Set("Link", a.links)
	}
	f := &finished{status: cmp.Or(a.Status, http.StatusOK), header: all, tag: hex.EncodeToString(sum[:16])}
	f.plain = newForm(body, f.tag)
	f.zipped = sync.OnceValue(f.zip)
	return f, nil
}

func newForm(body []byte, tag string) form {
	return form{body, http.Header{"Content-Length": {strconv.Itoa(len(body))}, "Etag": {`"` + tag + `"`}}}
}

// zip compresses a response if that makes it shorter.
func (f *finished) zip() form {
	if len(f.plain.body) < minZipped {
		return f.plain
	}
	var b bytes.Buffer
	err := zipped(&b, func(w io.Writer) error { _, err := w.Write(f.plain.body); return err })
	if err != nil || b.Len() >= len(f.plain.body) {
		return f.plain
	}
	out := newForm(bytes.Clone(b.Bytes()), f.tag+gzipSuffix)
	out.header["Content-Encoding"] = []string{"gzip"}
	return out
}

// zippers are pooled, because each uses almost a megabyte.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func zipped(w io.Writer, write func(io.Writer) error) error {
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(w)
	if err := write(z); err != nil {
		return err
	}
	return z.Close()
}

// weight returns the quality value that a header like Accept gives to the first of names that it contains; names go
// from the most specific to the least specific (RFC 9110, 12.4.2 and 12.5.1). 0: the client does not accept it, or it
// is missing.
func weight(h http.Header, field string, names ...string) (of float64) {
	for _, line := range h[field] {
		for part := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(part, ";")
			i := slices.Index(names, strings.ToLower(strings.TrimSpace(name)))
			if i < 0 {
				continue
			}
			names, of = names[:i], 1
			for parameter := range strings.SplitSeq(parameters, ";") {
				if q, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(parameter)), "q="); ok {
					of, _ = strconv.ParseFloat(q, 64) // 0 if it is not a number
				}
			}
		}
	}
	return of
}

func acceptsGzip(h http.Header) bool {
	return weight(h, "Accept-Encoding", "gzip", "x-gzip", "*") > 0
}

// acceptsHTML reports whether a request accepts text/html explicitly, as a browser does when it opens a page.
func acceptsHTML(h http.Header) bool { return weight(h, "Accept", "text/html") > 0 }

// send sends a finished response with additional headers, in the form that the client accepts, or 304 if the client
// has it already.
func send(w http.ResponseWriter, r *http.Request, f *finished, beside http.Header) {
	h := w.Header()
	maps.Copy(h, f.header)
	maps.Copy(h, beside)
	if tag := f.known(r); tag != "" {
		notModified(w, tag)
		return
	}
	form := f.plain
	if acceptsGzip(r.Header) {
		form = f.zipped()
	}
	maps.Copy(h, form.header)
	if r.Method == http.MethodPost {
		delete(h, "Etag") // an ETag is only for responses that can be requested again
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(form.body) // a client that disconnected is not an error of the server
}

// bodyless reports whether the response to a request is sent without its body, because the client has it or requests
// only the header.
func (f *finished) bodyless(r *http.Request) bool {
	return r.Method == http.MethodHead || f.known(r) != ""
}

// known returns the entity tag by which the client has the response, or "" if the response must be sent.
func (f *finished) known(r *http.Request) string {
	if r.Method == http.MethodPost || f.status >= http.StatusBadRequest {
		return ""
	}
	return matchingTag(r, f.tag)
}

func notModified(w http.ResponseWriter, tag string) {
	w.Header().Set("ETag", tag)
	w.WriteHeader(http.StatusNotModified)
}

// matchingTag returns the entity tag of If-None-Match that identifies the body with this hash, compressed or not, or
// "" if none does.
func matchingTag(r *http.Request, tag string) string {
	for candidate := range strings.SplitSeq(strings.Join(r.Header["If-None-Match"], ","), ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		switch candidate {
		case `"` + tag + `"`, `"` + tag + gzipSuffix + `"`:
			return candidate
		case "*":
			return `"` + tag + `"`
		}
	}
	return ""
}
