package httpapi

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

// Answer is what a handler has to say.
type Answer struct {
	Status int // 0: 200
	Data   any
	Meta   any    // nil: none
	Raw    []byte // the whole body, where its bytes pass through untouched
	Kind   string // Content-Type; empty: JSON
	Name   string // of the file that what is streamed is to be saved as; empty: of none
	// Stream writes the body piece by piece, on routes whose answers may be long. It
	// is called once the answer is known to be exact: what it asks meanwhile must be checked
	// to be of the same state (Whole).
	Stream func(context.Context, io.Writer) error
	// Live sends the body for as long as the client stays, on routes that are so. An error
	// ends the connection, and so does nil.
	Live func(context.Context, *Live) error

	links    string // the header Link; empty: none
	untagged bool   // what is streamed has no ETag
	turns    bool   // Stream takes a slot of the engine for each of its questions by itself
}

// envelope is the body of every successful answer.
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
	Details   any    `json:"details,omitempty"`
}

const (
	jsonKind = "application/json; charset=utf-8"
	// gzipSuffix marks the ETag of a compressed answer: a strong ETag names bytes.
	gzipSuffix = "-gzip"
	// minZipped is the shortest body that is compressed: a shorter one fits into
	// one packet as it is.
	minZipped = 1024
)

// Encode gives JSON without the escapes that are for HTML.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return b.Bytes(), nil
}

// body is what an answer looks like on the wire.
func (a *Answer) body() ([]byte, error) {
	if a.Raw != nil {
		return a.Raw, nil
	}
	return Encode(envelope{OK: true, Data: a.Data, Meta: a.Meta})
}

// finished is an answer as it goes over the wire, in each of its forms. It may
// be sent many times at once, and nobody changes it.
type finished struct {
	status int
	header http.Header // what both forms say
	tag    string      // hash of the plain body
	plain  form
	zipped func() form   // made when it is first asked for
	about  *ask.Validity // until when it is right; nil: it was not pinned
}

// position says which state an answer to a request at a snapshot is made of: that of the
// snapshot where it holds there, too, else the one that it was made at.
func (f *finished) position(s *state.Snapshot) http.Header {
	if f.about == nil || s == nil {
		return nil
	}
	return position(f.about.At(s))
}

// form is a body and the header that goes with its bytes.
type form struct {
	body   []byte
	header http.Header
}

// finish makes the bytes of an answer. header are those that the handler set.
func (a *Answer) finish(header http.Header) (*finished, error) {
	body, err := a.body()
	if err != nil {
		return nil, Internal(err)
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

// zip compresses an answer, where that makes it shorter.
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

// zippers are kept, for each holds most of a megabyte.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// zipped compresses what is written.
func zipped(w io.Writer, write func(io.Writer) error) error {
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(w)
	if err := write(z); err != nil {
		return err
	}
	return z.Close()
}

// weight is how much a client wants what a header like Accept can name in several ways,
// the most special one first: the first of them that is there counts (RFC 9110, 12.4.2 and
// 12.5.1). 0: it is refused, or there is none.
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
					of, _ = strconv.ParseFloat(q, 64) // 0 where it is none
				}
			}
		}
	}
	return of
}

func acceptsGzip(h http.Header) bool {
	return weight(h, "Accept-Encoding", "gzip", "x-gzip", "*") > 0
}

// acceptsHTML tells whether a request names text/html, as that of a browser that opens a
// page does.
func acceptsHTML(h http.Header) bool { return weight(h, "Accept", "text/html") > 0 }

// send sends a finished answer, with headers beside its own, in the form that the client takes,
// or 304 when the client has it already.
func send(w http.ResponseWriter, r *http.Request, f *finished, beside http.Header) {
	h := w.Header()
	maps.Copy(h, f.header)
	maps.Copy(h, beside)
	if r.Method != http.MethodPost && f.status < http.StatusBadRequest && unchanged(w, r, f.tag) {
		return
	}
	form := f.plain
	if acceptsGzip(r.Header) {
		form = f.zipped()
	}
	maps.Copy(h, form.header)
	if r.Method == http.MethodPost {
		delete(h, "Etag") // a tag is of what can be asked for again
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(form.body) // a client that went away is not our error
}

// unchanged answers 304 when the client has the answer with this tag.
func unchanged(w http.ResponseWriter, r *http.Request, tag string) bool {
	known := r.Header["If-None-Match"]
	if len(known) == 0 {
		return false
	}
	matched := matchingTag(known, tag)
	if matched == "" {
		return false
	}
	w.Header().Set("ETag", matched)
	w.WriteHeader(http.StatusNotModified)
	return true
}

// matchingTag gives the entity tag among those of If-None-Match that names
// the body with this hash, compressed or not; empty when none does.
func matchingTag(lines []string, tag string) string {
	for candidate := range strings.SplitSeq(strings.Join(lines, ","), ",") {
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
