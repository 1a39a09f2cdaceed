package serve

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/registry"
)

// Request is an API request that is being handled.
type Request struct {
	Context context.Context
	HTTP    *http.Request
	Header  http.Header // of the response
	Params  *Params
	Partner *Partner   // that the key belongs to; nil on public routes
	Client  netip.Addr // whose limits the request counts against

	server   *Server
	vars     map[string]string // of the path
	query    url.Values        // the parameters as the client sent them
	body     []byte
	snapshot *state.Snapshot // nil: there is none yet
	about    *ask.Validity   // of the answer, once it is pinned
	asFile   bool            // the list can be requested as a file
	format   files.Format    // of the requested file; empty: none
	class    class           // of the slots that it needs
	partial  bool            // may be answered from the first generation while it is built
}

// Partner is the partner that a request's key belongs to.
type Partner struct {
	ID        uint32
	Name      string
	RateLimit int // requests per minute
}

// Handler handles one kind of request. It does not write the response itself; it returns an answer or an error.
type Handler func(*Request) (*Answer, error)

// Path returns a variable of the path.
func (r *Request) Path(name string) string { return r.vars[name] }

// PathAddress parses {address} in the path.
func (r *Request) PathAddress() common.Address { return r.Params.Address("address", r.Path("address")) }

// unescaped returns the variables of a path without their percent-encoding.
func unescaped(vars map[string]string) map[string]string {
	out := make(map[string]string, len(vars))
	for name, value := range vars {
		out[name], _ = url.PathUnescape(value) // empty if it is malformed
	}
	return out
}

// Pinned makes an answer about one state: that of the newest block, or of the one in asOfBlock. A handler reads its
// parameters before it calls Pinned, which reports all that are invalid. answer may be called again, with another
// pin.
func (r *Request) Pinned(answer func(context.Context, *ask.Pin) (*Answer, error)) (*Answer, error) {
	block := r.Params.asOfBlock(r.snapshot)
	if err := r.ready(); err != nil {
		return nil, err
	}
	return r.pinned(block, answer)
}

// ready returns an error if a parameter is invalid, or if there is no snapshot yet from which the request may be
// answered.
func (r *Request) ready() error {
	if err := r.Params.Err(); err != nil {
		return err
	}
	if !r.accepts(r.snapshot) {
		return notYet(r.server.Watcher)
	}
	return nil
}

// accepts reports whether the request may be answered from a snapshot, which may be nil.
func (r *Request) accepts(s *state.Snapshot) bool { return s != nil && (!s.Partial || r.partial) }

// WithVault is Pinned for an answer about a vault, or 404 if there is no such vault.
func (r *Request) WithVault(address common.Address,
	answer func(context.Context, *ask.Pin, *state.Vault) (*Answer, error)) (*Answer, error) {
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*Answer, error) {
		v, known := p.Vault(address)
		if !known {
			return nil, NoSuchVault()
		}
		return answer(ctx, p, v)
	})
}

// PinnedToFinal is Pinned to the newest indexed block that is final. ingest reports which one that is in the
// registry, where only its login may write that row (roles.sql). The handler gets the report, too.
//
// Beyond that the row is not trusted. It must be about the log of the served generation. The read models must contain
// all of the log that it covers, because ingest may have retracted blocks that they still contain; while they are
// behind, an earlier report is used. And the block is at least depth below the newest one of the read models,
// whatever the row contains. A report only counts while ingest sees that the chain continues the log: when ingest
// is frozen, a final block is no longer part of the chain, and a starting one still reports what it knew earlier.
func (r *Request) PinnedToFinal(depth uint64,
	answer func(context.Context, *ask.Pin, *registry.ProgramStatus) (*Answer, error)) (*Answer, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	programs := r.server.Watcher.Registry()
	newest := programs.Report(registry.Ingest, r.server.Watcher.Now())
	if newest == nil || newest.State != registry.Following && newest.State != registry.Backfilling ||
		newest.FinalBlock < r.snapshot.First {
		return nil, Unavailable("Which blocks are final is not known at the moment.", nil)
	}
	if newest.LogID == "" || newest.LogID != programs.LogOf(r.snapshot.Generation) {
		return nil, Unavailable(
			"Which blocks are final is not known: ingest reports on another log than the one of the read models.", nil)
	}
	ingest := programs.IngestUpTo(r.snapshot.Seq, r.server.Watcher.Now())
	if ingest == nil { // the snapshot may be older than the report
		if s, err := r.server.Watcher.Newer(r.Context, r.snapshot); err == nil && r.accepts(s) {
			r.snapshot = s
		}
		ingest = programs.IngestUpTo(r.snapshot.Seq, r.server.Watcher.Now())
	}
	if ingest == nil || ingest.FinalBlock < r.snapshot.First {
		return nil, Unavailable("The read models are behind the log: which of their blocks are final is not known at the "+
			"moment.", nil)
	}
	if r.snapshot.Block < r.snapshot.First+depth {
		return nil, Unavailable(fmt.Sprintf("No indexed block is %d blocks below the newest one yet.", depth), nil)
	}
	block := min(ingest.FinalBlock, r.snapshot.Block-depth)
	return r.pinned(&block, func(ctx context.Context, p *ask.Pin) (*Answer, error) { return answer(ctx, p, ingest) })
}

// Following makes a live answer, which starts at the end of the newest complete unit or at the client's position. It
// reports all invalid parameters.
func (r *Request) Following(answer func(newest uint64) *Answer) (*Answer, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	return answer(r.snapshot.Seq), nil
}

// pinned makes an answer at a block, or at the newest one if block is nil. The request must be ready.
func (r *Request) pinned(block *uint64, answer func(context.Context, *ask.Pin) (*Answer, error)) (*Answer, error) {
	var out *Answer
	p, err := ask.Answer(r.Context, r.server.Watcher, r.snapshot, block,
		func(ctx context.Context, p *ask.Pin) (err error) {
			out, err = answer(ctx, p)
			return err
		})
	switch {
	case err != nil && p != nil:
		return nil, failure(err).about(p)
	case err != nil:
		return nil, err
	}
	r.about = p.Validity()
	maps.Copy(r.Header, position(p.Generation(), p.Seq, p.Block))
	return out, nil
}

// firstSyncRetry is Retry-After while the first generation is built, which takes a while.
const firstSyncRetry = 10 * time.Second

// notYet is the error while there is no read model: none is live, or the first is being built.
func notYet(w *state.Watcher) *Failure {
	f := Unavailable("The read model is not there yet.", nil)
	if progress := w.FirstSync(); progress != nil {
		f.Message = "The read model is being built. The details say how far it is."
		f.Details = map[string]any{"progress": progress}
		f.Retry = firstSyncRetry
	}
	return f
}

// Meta is the metadata of a paginated list.
type Meta struct {
	Page        int   `json:"page"`
	PageSize    int   `json:"pageSize"`
	Total       int64 `json:"total"`
	TotalPages  int64 `json:"totalPages"`
	HasNextPage bool  `json:"hasNextPage"`
}

// List returns the answer for one page, and sets its Link header. rows must not be nil.
func (r *Request) List(rows any, p Page, total int64) *Answer {
	size := int64(p.Size)
	meta := Meta{Page: p.Number, PageSize: p.Size, Total: total, TotalPages: (total + size - 1) / size}
	meta.HasNextPage = int64(p.Number) < meta.TotalPages && (p.Number+1)*p.Size <= maxReach
	return &Answer{Data: rows, Meta: meta, links: r.links(meta)}
}

// links returns links to the other pages of a list, with the request's own filters. Unknown parameters are left out,
// so that the client cannot make the header arbitrarily long, and so are pages beyond the limit of page x pageSize.
func (r *Request) links(m Meta) string {
	var links []string
	add := func(rel string, number int64) {
		if number < 1 || number*int64(m.PageSize) > maxReach {
			return
		}
		values := make(url.Values, len(r.Params.known)+2)
		for name, v := range r.Params.known {
			values[name] = []string{v}
		}
		values["page"] = []string{strconv.FormatInt(number, 10)}
		values["pageSize"] = []string{strconv.Itoa(m.PageSize)}
		links = append(links, fmt.Sprintf(`<%s?%s>; rel="%s"`, r.HTTP.URL.EscapedPath(), values.Encode(), rel))
	}
	add("first", 1)
	add("prev", min(int64(m.Page)-1, m.TotalPages))
	if m.HasNextPage {
		add("next", int64(m.Page)+1)
	}
	add("last", max(m.TotalPages, 1))
	return strings.Join(links, ", ")
}

// Headers of every API response once there is something to serve.
const (
	headerBlock      = "X-Indexed-Block"
	headerSeq        = "X-Indexed-Seq"
	headerGeneration = "X-Generation"
	headerChainState = "X-Chain-State"
	headerRequestID  = "X-Request-Id"
)

// position returns the headers with the state that an answer was made from.
func position(generation int32, seq, block uint64) http.Header {
	return http.Header{headerBlock: {Decimal(block)}, headerSeq: {Decimal(seq)},
		headerGeneration: {strconv.Itoa(int(generation))}}
}

const (
	// maxBody is the largest body of most routes, in bytes.
	maxBody = 16 << 10
	// maxPosts is how many POSTs are handled at once, plus a quarter for partners. Half of it is for the public, which
	// has none so far. Those that wait for a place, or whose body is being read, are bounded by the limits of their
	// partners (Route.PostLimit).
	maxPosts = 8
	// postsPerPartner leaves places to other partners while the DNS of one is slow.
	postsPerPartner = 2
)

// readBody reads the body of a request, of at most this many bytes, whole KiB. A client may send it slowly, or never:
// so it is read while the connection has its read deadline, and before the request takes a slot or a place. net/http
// would read the rest of it before it sends the header of the response.
func (r *Request) readBody(most int) error {
	if r.HTTP.ContentLength == 0 {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.HTTP.Body, int64(most)+1))
	if err != nil {
		return InvalidBody("The body could not be read to its end.")
	}
	if len(body) > most {
		return &Failure{
			Status: http.StatusRequestEntityTooLarge, Code: CodePayloadTooLarge,
			Message: fmt.Sprintf("The body must not be longer than %d KiB.", most>>10),
		}
	}
	r.body = body
	return nil
}

// HasBody reports whether the request has a body. An empty one, also if it was sent in chunks, is none.
func (r *Request) HasBody() bool { return len(r.body) > 0 }

// JSONBody returns the body of a request, which must be sent as JSON.
func (r *Request) JSONBody() ([]byte, error) {
	if !plainJSON(r.HTTP.Header) {
		return nil, &Failure{
			Status: http.StatusUnsupportedMediaType, Code: CodeUnsupportedMedia,
			Message: "The body must be sent as Content-Type: application/json.",
		}
	}
	return r.body, nil
}

// InvalidBody is 400 for a body that is not what the route takes.
func InvalidBody(message string) *Failure {
	return &Failure{Status: http.StatusBadRequest, Code: CodeInvalidBody, Message: message}
}

// plainJSON reports whether a request says that its body is plain JSON.
func plainJSON(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	encoding := h.Get("Content-Encoding")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json") &&
		(encoding == "" || strings.EqualFold(encoding, "identity"))
}
