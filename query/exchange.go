package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// exchange is one API request on its way through a handler.
type exchange struct {
	ctx      context.Context
	request  *http.Request
	vars     map[string]string // of the path
	header   http.Header       // of the answer
	params   *params           // nil until the handler's turn
	snapshot *snapshot         // nil: there is none yet
	caller   *caller           // the partner; nil on public routes
	sizes    sizes
}

// handler answers one kind of request. It writes nothing: what goes wrong, it
// returns.
type handler func(*exchange) (*answer, error)

// answer is what a handler has to say.
type answer struct {
	status int // 0: 200
	data   any
	meta   any                   // nil: none
	raw    []byte                // the whole body, where its bytes pass through untouched
	stream func(io.Writer) error // writes the body piece by piece, for one that may be long
	tag    string                // names the bytes of stream
	kind   string                // Content-Type; empty: JSON
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

// Headers that every API answer carries once there is something to serve.
const (
	headerBlock      = "X-Indexed-Block"
	headerSeq        = "X-Indexed-Seq"
	headerGeneration = "X-Generation"
	headerChainState = "X-Chain-State"
	headerRequestID  = "X-Request-Id"
)

// pathAddress reads {address} in the path.
func (x *exchange) pathAddress() common.Address {
	return x.params.pathAddress(x.vars)
}

// position says which state an answer is made of.
func position(g generation, seq, block uint64) http.Header {
	return http.Header{headerBlock: {decimal(block)}, headerSeq: {decimal(seq)}, headerGeneration: {strconv.Itoa(int(g.id))}}
}

// encode gives JSON without the escapes that are for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := newEncoder(&b).Encode(v); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return b.Bytes(), nil
}

func newEncoder(w io.Writer) *json.Encoder {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder
}

// body is what an answer looks like on the wire.
func (a *answer) body() ([]byte, error) {
	if a.raw != nil {
		return a.raw, nil
	}
	return encode(envelope{OK: true, Data: a.data, Meta: a.meta})
}

// write sends an answer, or 304 when the client has it already.
func (q *Query) write(w http.ResponseWriter, r *http.Request, a *answer) error {
	f, err := a.finish(http.Header{"Vary": {"Accept-Encoding"}})
	if err != nil {
		return err
	}
	q.send(w, r, f)
	return nil
}

// send sends a finished answer in the form that the client takes.
func (q *Query) send(w http.ResponseWriter, r *http.Request, f *finished) {
	h := w.Header()
	maps.Copy(h, f.header)
	if r.Method != http.MethodPost && unchanged(w, r, f.tag) {
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

// statusClientGone is never read by anyone but the metrics.
const statusClientGone = 499

// fail sends an error, and logs it when it is ours.
func (q *Query) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		w.WriteHeader(statusClientGone)
		return
	}
	var f *failure
	if !errors.As(err, &f) {
		f = internal(err)
	}
	h := w.Header()
	id := h.Get(headerRequestID)
	if f.status >= 500 && !f.crowd {
		q.log.Error("request failed", "request_id", id, "method", r.Method, "route", routeOf(r), "status", f.status, "error", f.Error())
	}
	body, err := encode(errorEnvelope{Error: errorBody{Code: f.code, Message: f.message, RequestID: id, Details: f.details}})
	if err != nil {
		body = []byte(`{"ok":false,"error":{"code":"INTERNAL_ERROR","message":"The error could not be encoded.","requestId":"` + id + `"}}`)
	}
	if f.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.retry.Seconds()))))
	}
	if f.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `ApiKey realm="navlog", header="x-api-key"`)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(f.status)
	_, _ = w.Write(body)
}

// pageMeta is meta on a list that comes in pages.
type pageMeta struct {
	Page        int   `json:"page"`
	PageSize    int   `json:"pageSize"`
	Total       int64 `json:"total"`
	TotalPages  int64 `json:"totalPages"`
	HasNextPage bool  `json:"hasNextPage"`
}

// list makes the answer of one page and its Link header. rows must not be nil.
func (x *exchange) list(rows any, p page, total int64) *answer {
	size := int64(p.size)
	meta := pageMeta{Page: p.number, PageSize: p.size, Total: total, TotalPages: (total + size - 1) / size}
	meta.HasNextPage = int64(p.number) < meta.TotalPages && (p.number+1)*p.size <= maxReach
	x.header.Set("Link", x.links(meta))
	return &answer{data: rows, meta: meta}
}

// links points to the other pages of a list, with the request's own filters.
// Parameters that the route does not know are left out: a header must not be as
// long as a client likes. A page beyond the reach of page x pageSize is not
// pointed to.
func (x *exchange) links(m pageMeta) string {
	var links []string
	add := func(rel string, number int64) {
		if number < 1 || number*int64(m.PageSize) > maxReach {
			return
		}
		values := make(map[string][]string, len(x.params.known)+2)
		for name, v := range x.params.known {
			values[name] = []string{v}
		}
		values["page"] = []string{strconv.FormatInt(number, 10)}
		values["pageSize"] = []string{strconv.Itoa(m.PageSize)}
		links = append(links, fmt.Sprintf(`<%s?%s>; rel="%s"`, x.request.URL.EscapedPath(), encodeQuery(values), rel))
	}
	add("first", 1)
	add("prev", min(int64(m.Page)-1, m.TotalPages))
	if m.HasNextPage {
		add("next", int64(m.Page)+1)
	}
	add("last", max(m.TotalPages, 1))
	return strings.Join(links, ", ")
}

// millis is a time in the API's form: ISO 8601, UTC, milliseconds.
func millis(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
