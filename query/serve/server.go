package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/telemetry"
)

// Route is a path of the API and its handlers.
type Route struct {
	Path    string
	Get     Handler
	Post    Handler
	Partner bool // needs a key
	// PartnerIf decides from the parameters of each request whether the route is a partner route, if not all requests are
	// the same; then everything works as on a partner route: key, limit, headers and cache. nil: never.
	PartnerIf func(url.Values) bool
	// PostLimit is the limit that Post counts against, in addition to the limit of all the partner's requests; empty:
	// none.
	PostLimit Policy
	// MaxBody is the largest body of Post in bytes, whole KiB; 0: 16 KiB.
	MaxBody int
	// Uncached responses can change although the read models do not.
	Uncached bool
	// Live responses continue until the client disconnects.
	Live bool
	// AsFile routes return lists that can also be downloaded whole, as CSV or Parquet: see Whole.
	AsFile bool
	// IsFile responses are themselves files of any length, and are sent like those.
	IsFile bool
	// Expensive reports, from the parameters, whether a request takes so much engine time that it needs an expensive
	// slot (engine.go); nil: never.
	Expensive func(url.Values) bool
	// Proves reports whether the request also calls the node of the chain; nil: never.
	Proves func(url.Values) bool
	// FirstSync responses are made from events only, so they are available while the first generation is being built.
	FirstSync bool
}

// Policy names a partner's limit for requests that cost more than a read.
type Policy string

const (
	Registrations Policy = "webhooks" // of a webhook URL
	Sends         Policy = "sends"    // tests and replays, which make dispatch call the URL
)

// Probe is a path outside the API that reports the state of the program. It needs no slot of ClickHouse.
type Probe struct {
	Path    string
	Get     Handler
	Limited bool // counts against the limits like a public request
	Reads   bool // from PostgreSQL: it needs one of maxReading slots
}

// maxReading is how many probes read PostgreSQL at once: few, so that most of its connections are left for partners.
const maxReading = 2

// File is a document that is served unchanged. One at the path of a probe is for clients that accept HTML.
type File struct {
	Path string
	Kind string // Content-Type
	Body []byte
	// Immutable files get another path when their content changes.
	Immutable bool
}

// Server turns routes into an HTTP handler.
type Server struct {
	Watcher        *state.Watcher
	Admit          func(*Request, *Route) error // admits a request, or returns why it is rejected
	Log            *slog.Logger
	Now            func() time.Time
	RequestTimeout time.Duration // for making one answer
	WriteTimeout   time.Duration // from the header of a request to the end of its response
	FileTimeout    time.Duration // the same for a file
	Patience       time.Duration // how long the reader of a long response may read nothing, or less than MinRate
	Heartbeat      time.Duration // the longest silence of a live response

	FileRows int // rows read at once for a file

	cache   *cache
	slots   *engine
	streams *slots // the long responses, streamed or not, which use memory until the client has received them
	lives   *slots // the live responses
	// catchUps are those of them that use memory until the client has received what they read (Live.CatchUp).
	catchUps *slots
	ending   context.Context
	end      context.CancelFunc // of the live responses
	files    *slots             // the files, which take longest: no other request waits for them
	posts    *slots             // the POSTs, which use only PostgreSQL and may wait for DNS: they need no engine slot
	reading  *slots             // the probes that read PostgreSQL
	metrics  metrics
}

// New returns a server that handles concurrency cheap requests at once, a quarter more for partners, and a quarter of
// that for expensive ones; 0 means the default. It caches up to cacheBytes of responses. The caller sets the
// other fields.
func New(concurrency, cacheBytes int, reg prometheus.Registerer) *Server {
	s := &Server{Now: time.Now, Patience: streamPatience, Heartbeat: heartbeat, FileRows: fileRows,
		cache: newCache(cacheBytes)}
	s.metrics = newMetrics(reg, s.cache.len)
	refused := s.metrics.refused.Inc
	s.slots = newEngine(orDefault(concurrency), s.metrics)
	s.streams, s.files = newSlots(maxStreams, 0, refused), newSlots(maxFiles, forPartners(maxFiles), refused)
	s.streams.share, s.files.share = longShares, longShares
	s.posts = newSlots(maxPosts, forPartners(maxPosts), refused)
	s.posts.share.partner = postsPerPartner
	s.reading = newSlots(maxReading, 0, refused)
	s.lives, s.catchUps = newSlots(maxLive, 0, refused), newSlots(maxCatchUps, 0, refused)
	s.lives.share, s.catchUps.share, s.catchUps.patience = liveShares, catchUpShares, waitForExpensive
	s.ending, s.end = context.WithCancel(context.Background())
	return s
}

// SetBudget charges the time for which requests hold engine slots to their addresses. Partners are not charged: their
// limits are those of the registry.
func (s *Server) SetBudget(b Budget) { s.slots.budget = b }

// Handler returns the handler for all paths.
func (s *Server) Handler(routes []Route, probes []Probe, files []File) http.Handler {
	r := mux.NewRouter().SkipClean(true).UseEncodedPath()
	handle := func(path string, h http.HandlerFunc) { r.Handle(path, s.measure(path, h)) }
	for _, route := range routes {
		handle(route.Path, s.serve(route))
	}
	pages := make(map[string]File, len(files))
	for _, file := range files {
		pages[file.Path] = file
	}
	for _, probe := range probes {
		page, both := pages[probe.Path]
		if both {
			handle(probe.Path, s.getOnly(byAccept(serveFile(http.StatusOK, page, varyByAccept), s.probe(probe, varyByAccept))))
			delete(pages, probe.Path)
		} else {
			handle(probe.Path, s.getOnly(s.probe(probe, vary)))
		}
	}
	for path, file := range pages {
		handle(path, s.getOnly(serveFile(http.StatusOK, file, vary)))
	}
	r.NotFoundHandler = s.measure("none", s.nowhere(files))
	return s.outermost(r)
}

var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// nosniff, like every value that many responses share, is never modified.
var nosniff = []string{"nosniff"}

// outermost keeps the connection open while the request is handled, gives the request an id, and turns a panic into
// an error. A panic of a response that has begun to be sent is handled by cutOff.
func (s *Server) outermost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answering(r.Context())
		id := r.Header.Get(headerRequestID)
		if !requestID.MatchString(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		w.Header()[headerRequestID] = []string{id}
		telemetry.Text(telemetry.Current(r.Context()), telemetry.RequestID, id)
		w.Header()["X-Content-Type-Options"] = nosniff
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.panicked(r.Context(), id, v)
			s.fail(w, r, Internal(fmt.Errorf("panic: %v", v)))
		}()
		next.ServeHTTP(w, r)
	})
}

// panicked logs and counts a panic, with the stack of its origin.
func (s *Server) panicked(ctx context.Context, id string, v any) {
	stack := debug.Stack()
	if part, ok := v.(*ask.Panic); ok {
		stack = part.Stack
	}
	s.metrics.panics.Inc()
	s.Log.ErrorContext(ctx, "request panicked", "request_id", id, "panic", fmt.Sprint(v), "stack", string(stack))
}

// cutOff, deferred while a response is sent, ends the connection after a panic: an error can no longer be sent, and a
// regular end would make the partial response look complete.
func (s *Server) cutOff(r *Request) {
	v := recover()
	if v == nil {
		return
	}
	if v != http.ErrAbortHandler {
		s.panicked(r.Context, r.Header.Get(headerRequestID), v)
	}
	panic(http.ErrAbortHandler)
}

func (e *Route) methods() []string {
	var methods []string
	if e.Get != nil {
		methods = append(methods, http.MethodGet, http.MethodHead)
	}
	if e.Post != nil {
		methods = append(methods, http.MethodPost)
	}
	if !e.Partner {
		methods = append(methods, http.MethodOptions)
	}
	return methods
}

// header returns the headers of every response of a route.
func (e *Route) header() http.Header {
	varies := vary
	if e.AsFile {
		varies = varyByAccept
	}
	if e.Partner {
		return http.Header{"Cache-Control": {"private, no-cache"}, "Vary": {varies + ", x-api-key"}}
	}
	h := http.Header{"Cache-Control": {"public, no-cache"}, "Vary": {varies}}
	allowAnyOrigin(h)
	return h
}

func (s *Server) serve(e Route) http.HandlerFunc {
	if e.PartnerIf == nil {
		return s.serveAll(e)
	}
	partner := e
	partner.Partner = true
	forAll, forPartners := s.serveAll(e), s.serveAll(partner)
	return func(w http.ResponseWriter, r *http.Request) {
		if e.PartnerIf(r.URL.Query()) {
			forPartners(w, r)
		} else {
			forAll(w, r)
		}
	}
}

// serveAll returns the handler of a route that is a partner route for all requests or for none.
func (s *Server) serveAll(e Route) http.HandlerFunc {
	allow, always := strings.Join(e.methods(), ", "), e.header()
	return func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), always)
		var h Handler
		switch {
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			h = e.Get
		case r.Method == http.MethodPost:
			h = e.Post
		case r.Method == http.MethodOptions && !e.Partner:
			preflight(w, allow)
			return
		}
		if h == nil {
			s.fail(w, r, wrongMethod(w, allow))
			return
		}
		if err := s.answer(w, r, &e, h); err != nil {
			s.fail(w, r, err)
		}
	}
}

// answer takes one request through the checks, always in this order: key, rate limit, body, parameters, look-up.
func (s *Server) answer(w http.ResponseWriter, hr *http.Request, e *Route, h Handler) error {
	began := time.Now()
	end, limit := began.Add(s.WriteTimeout), began.Add(s.RequestTimeout)
	r := s.request(w, hr)
	var malformed error // reported after the checks that come first
	r.query, malformed = url.ParseQuery(hr.URL.RawQuery)
	r.partial, r.asFile = e.FirstSync, e.AsFile
	if e.AsFile {
		r.format = r.formatOf()
	}
	r.class = e.class(r)
	// The queries of PostgreSQL, those of uncached partner routes, are not ended, and a POST is always completed.
	if hr.Method != http.MethodPost && !(e.Uncached && e.Partner) {
		r.Context, h = withClient(r.Context, hr.Context()), whileConnected(h)
	}
	file := e.IsFile || r.format != ""
	if e.Partner || file { // the others only wait for their slot and for the work that create limits
		ctx, cancel := context.WithDeadline(r.Context, limit)
		defer cancel()
		r.Context = ctx
	}
	r.Header[headerChainState] = []string{s.Watcher.ChainState()}
	if at := r.snapshot; at != nil {
		maps.Copy(r.Header, position(at.Generation, at.Seq, at.Block))
	}
	if err := s.Admit(r, e); err != nil {
		return err
	}
	if err := r.readBody(cmp.Or(e.MaxBody, maxBody)); err != nil {
		return err
	}
	if malformed != nil && hr.Method != http.MethodPost { // a POST has no parameters
		return InvalidParameter(Fault{"query", "must be name=value pairs joined by & and percent-encoded"})
	}
	var f *finished
	var err error
	switch {
	case e.Live:
		return s.live(w, r, h)
	case file:
		f, err = s.stream(w, r, h, s.files, s.FileTimeout)
	case hr.Method == http.MethodPost:
		f, err = s.inPlace(s.posts, r, h)
	case e.Uncached:
		f, err = s.uncached(r, h)
	default:
		f, err = s.cached(r, h)
	}
	if errors.Is(err, errStreamed) {
		ctx, cancel := context.WithDeadline(r.Context, limit)
		defer cancel()
		r.Context = ctx
		f, err = s.stream(w, r, h, s.streams, s.WriteTimeout)
	}
	if err != nil || f == nil { // nil: it is sent
		return err
	}
	return s.deliver(w, r, f, end)
}

func (s *Server) request(w http.ResponseWriter, r *http.Request) *Request {
	return &Request{Context: r.Context(), HTTP: r, Header: w.Header(), server: s, vars: unescaped(mux.Vars(r)),
		snapshot: s.Watcher.Snapshot()}
}

// Vary of a response that is compressed on request, and of one that may also be a page.
const (
	vary         = "Accept-Encoding"
	varyByAccept = "Accept, Accept-Encoding"
)

func (s *Server) probe(p Probe, vary string) http.HandlerFunc {
	return func(w http.ResponseWriter, hr *http.Request) {
		r := s.request(w, hr)
		r.Header.Set("Vary", vary)
		var f *finished
		var err error
		if p.Limited {
			err = s.Admit(r, &Route{})
		}
		switch {
		case err != nil:
		case p.Reads:
			f, err = s.inPlace(s.reading, r, p.Get)
		default:
			f, err = s.create(r, p.Get)
		}
		if err != nil {
			s.fail(w, hr, err)
			return
		}
		send(w, hr, f, nil)
	}
}

// inPlace handles a request in one of some places, without an engine slot.
func (s *Server) inPlace(places *slots, r *Request, h Handler) (*finished, error) {
	release, err := places.acquire(r.Context, r.holder())
	if err != nil {
		return nil, err
	}
	defer release()
	return s.create(r, h)
}

// serveFile serves a file. A page must not load anything from another host.
func serveFile(status int, file File, vary string) http.HandlerFunc {
	h := http.Header{}
	allowAnyOrigin(h)
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "public, no-cache")
	if file.Immutable {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if status != http.StatusOK {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Vary", vary)
	f, err := (&Answer{Status: status, Raw: file.Body, Kind: file.Kind}).finish(h)
	if err != nil {
		panic(err) // bytes cannot fail to encode
	}
	return func(w http.ResponseWriter, r *http.Request) { send(w, r, f, nil) }
}

// byAccept serves the page to browsers that open it, and the probe to all other clients: programs that accept
// anything, or state no preference, still get JSON.
func byAccept(page, probe http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if acceptsHTML(r.Header) {
			page(w, r)
		} else {
			probe(w, r)
		}
	}
}

// getOnly restricts the methods of paths outside the API.
func (s *Server) getOnly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		const allow = "GET, HEAD, OPTIONS"
		allowAnyOrigin(w.Header())
		switch r.Method {
		case http.MethodGet, http.MethodHead:
		case http.MethodOptions:
			preflight(w, allow)
			return
		default:
			s.fail(w, r, wrongMethod(w, allow))
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		h(w, r)
	}
}

// statusClientGone appears only in metrics.
const statusClientGone = 499

// fail sends an error response, and logs the error if it is the server's. A client that has left may still read the
// response: net/http also ends the context of a client that only closed its own side.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil { // whatever the request waited for
		err = clientLeft(r.Context())
	}
	f, h := failure(err), w.Header()
	if rec, ok := w.(*statusRecorder); ok {
		rec.left = errors.Is(f, errClientLeft)
	}
	maps.Copy(h, f.position)
	id := h.Get(headerRequestID)
	if f.Status >= 500 && !f.Crowd {
		s.Log.ErrorContext(r.Context(), "request failed", "request_id", id, "method", r.Method, "route", routeOf(r), "status",
			f.Status, "error", f.Error())
	}
	body, err := Encode(errorEnvelope{Error: errorBody{Code: f.Code, Message: f.Message, RequestID: id,
		TraceID: telemetry.Sampled(r.Context()), Details: f.Details}})
	if err != nil {
		body = []byte(`{"ok":false,"error":{"code":"INTERNAL_ERROR","message":"The error could not be encoded.","requestId":"` + id + `"}}`)
	}
	if f.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.Retry.Seconds()))))
	}
	if f.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `ApiKey realm="navlog", header="x-api-key"`)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", jsonKind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(f.Status)
	_, _ = w.Write(body)
}

func wrongMethod(w http.ResponseWriter, allow string) *Failure {
	w.Header().Set("Allow", allow)
	return &Failure{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed,
		Message: "This path answers only to " + allow + "."}
}

// routeOf returns the template of the path, which is safe for logs and metric labels.
func routeOf(r *http.Request) string {
	if route := mux.CurrentRoute(r); route != nil {
		if path, err := route.GetPathTemplate(); err == nil {
			return path
		}
	}
	return "none"
}

func (s *Server) measure(route string, next http.HandlerFunc) http.Handler {
	requests := s.metrics.requests.MustCurryWith(prometheus.Labels{"route": route})
	seconds := s.metrics.seconds.WithLabelValues(route)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if span := telemetry.Current(r.Context()); span.IsRecording() {
			span.SetName(methodOf(r) + " " + route)
			telemetry.Text(span, telemetry.Route, route)
		}
		start := s.Now()
		rec := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		returned := false
		defer func() {
			switch { // whatever was sent before the handler panicked
			case rec.left, !returned && r.Context().Err() != nil:
				rec.status = statusClientGone
			case !returned:
				rec.status = http.StatusInternalServerError
			}
			requests.WithLabelValues(methodOf(r), strconv.Itoa(rec.status)).Inc()
			seconds.Observe(s.Now().Sub(start).Seconds())
		}()
		next(rec, r)
		returned = true
	})
}

// methodOf keeps methods invented by a client out of the metrics.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions, http.MethodPut, http.MethodPatch,
		http.MethodDelete:
		return r.Method
	}
	return "other"
}

type statusRecorder struct {
	http.ResponseWriter
	status int
	left   bool // the error is that the client has left
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController access to the underlying writer.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
