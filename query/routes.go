package query

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// endpoint is what can be done at one path of the API.
type endpoint struct {
	path    string
	partner bool // needs a key
	get     handler
	post    handler
	calls   bool // post makes us call the partner's URL, or keep it: few a minute
	// uncached answers are made of more than the read models.
	uncached bool
	// streamed answers may be long, and are sent while they are made.
	streamed bool
}

func (q *Query) endpoints() []endpoint {
	return []endpoint{
		{path: "/api/v1/vaults", get: q.listVaults},
		{path: "/api/v1/vaults/{address}", get: q.getVault},
		{path: "/api/v1/vaults/{address}/nav", get: q.listNavs},
		{path: "/api/v1/users", get: q.listUsers},
		{path: "/api/v1/users/{address}", get: q.getUser},
		{path: "/api/v1/users/{address}/deposits", get: q.listUserDeposits},
		{path: "/api/v1/users/{address}/withdrawals", get: q.listUserWithdrawals},
		{path: "/api/v1/queues/withdrawals", get: q.listQueuedWithdrawals},
		{path: "/api/v1/queues/deposits", get: q.listUnsweptDeposits, streamed: true},
		{path: "/api/v1/settlement/summary", get: q.settlementSummary},

		{path: "/api/v1/partner/vaults", partner: true, get: q.listVaults},
		{path: "/api/v1/partner/vaults/{address}/nav", partner: true, get: q.listNavs},
		{path: "/api/v1/partner/webhooks", partner: true, get: q.getWebhook, post: q.setWebhook, calls: true, uncached: true},
		{path: "/api/v1/partner/webhooks/test", partner: true, post: q.sendTest, calls: true},
		{path: "/api/v1/partner/webhooks/deliveries", partner: true, get: q.listDeliveries, uncached: true},
		{path: "/api/v1/partner/webhooks/deliveries/{eventId}/replay", partner: true, post: q.replay},
		{path: "/api/v1/partner/events", partner: true, get: q.listEvents, uncached: true},
		{path: "/api/v1/partner/stats", partner: true, get: q.partnerStats},
		{path: "/api/v1/partner/deposits", partner: true, get: q.listPartnerDeposits, uncached: true},
		{path: "/api/v1/partner/router", partner: true, get: q.getRouter, uncached: true},
	}
}

// Handler answers every path of the program. Before Run has made a snapshot,
// questions to the read models are answered 503.
func (q *Query) Handler() http.Handler {
	r := mux.NewRouter().SkipClean(true).UseEncodedPath()
	handle := func(path string, h http.HandlerFunc) { r.Handle(path, q.measure(path, h)) }
	for _, e := range q.endpoints() {
		handle(e.path, q.serve(e))
	}
	handle("/healthz", q.getOnly(q.healthz))
	handle("/readyz", q.getOnly(q.readyz))
	handle("/status", q.getOnly(q.status))
	handle("/metrics", q.getOnly(promhttp.HandlerFor(q.gatherer, promhttp.HandlerOpts{}).ServeHTTP))
	for path, f := range docs() {
		handle(path, q.getOnly(q.serveFile(f)))
	}
	r.NotFoundHandler = q.measure("none", func(w http.ResponseWriter, r *http.Request) {
		q.fail(w, r, notFound("There is nothing at this path."))
	})
	return q.outermost(r)
}

var requestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// nosniff, like every value that many answers share, is never changed.
var nosniff = []string{"nosniff"}

// outermost names the request and turns a panic into an error.
func (q *Query) outermost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(headerRequestID)
		if !requestID.MatchString(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		w.Header()[headerRequestID] = []string{id}
		w.Header()["X-Content-Type-Options"] = nosniff
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			q.metrics.panics.Inc()
			q.log.Error("request panicked", "request_id", id, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			q.fail(w, r, internal(fmt.Errorf("panic: %v", v)))
		}()
		next.ServeHTTP(w, r)
	})
}

// methods are what Allow says of an endpoint.
func (e endpoint) methods() []string {
	var methods []string
	if e.get != nil {
		methods = append(methods, http.MethodGet, http.MethodHead)
	}
	if e.post != nil {
		methods = append(methods, http.MethodPost)
	}
	if !e.partner {
		methods = append(methods, http.MethodOptions)
	}
	return methods
}

// header is what every answer of an endpoint says.
func (e endpoint) header() http.Header {
	if e.partner {
		return http.Header{"Cache-Control": {"private, no-cache"}, "Vary": {"Accept-Encoding, x-api-key"}}
	}
	h := http.Header{"Cache-Control": {"public, no-cache"}, "Vary": {"Accept-Encoding"}}
	allowAnyOrigin(h)
	return h
}

// serve makes the HTTP handler of an endpoint.
func (q *Query) serve(e endpoint) http.HandlerFunc {
	allow, always := strings.Join(e.methods(), ", "), e.header()
	return func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), always)
		var h handler
		switch {
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			h = e.get
		case r.Method == http.MethodPost:
			h = e.post
		case r.Method == http.MethodOptions && !e.partner:
			w.Header().Set("Allow", allow)
			w.Header().Set("Access-Control-Allow-Methods", "GET, HEAD")
			w.Header().Set("Access-Control-Allow-Headers", "If-None-Match, X-Request-Id")
			w.Header().Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if h == nil {
			q.fail(w, r, wrongMethod(w, r, allow))
			return
		}
		if err := q.answer(w, r, e, h); err != nil {
			q.fail(w, r, err)
		}
	}
}

// answer takes one request through the checks, always in this order: key, rate
// limit, parameters, look-up.
func (q *Query) answer(w http.ResponseWriter, r *http.Request, e endpoint, h handler) error {
	x := &exchange{ctx: r.Context(), request: r, vars: mux.Vars(r), header: w.Header(), snapshot: q.snapshot.Load(), sizes: q.sizes}
	if e.partner || e.streamed { // the others wait for nothing but their turn, and for what make bounds
		ctx, cancel := context.WithTimeout(x.ctx, q.cfg.RequestTimeout)
		defer cancel()
		x.ctx = ctx
	}
	x.header[headerChainState] = []string{q.chainState()}
	if s := x.snapshot; s != nil {
		maps.Copy(x.header, s.position)
	}
	if err := q.admit(x, e); err != nil {
		return err
	}
	var f *finished
	var err error
	switch {
	case e.streamed:
		return q.stream(w, x, h)
	case e.uncached || r.Method == http.MethodPost || x.snapshot == nil || q.cfg.CacheBytes == 0:
		f, err = q.make(x, h)
	default:
		f, err = q.cached(x, e)
	}
	if err != nil {
		return err
	}
	q.send(w, r, f)
	return nil
}

// allowAnyOrigin lets any web page read an answer and all its headers, for
// nothing on a public route depends on who asks.
func allowAnyOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
}

func wrongMethod(w http.ResponseWriter, r *http.Request, allow string) *failure {
	w.Header().Set("Allow", allow)
	return &failure{status: http.StatusMethodNotAllowed, code: codeMethodNotAllowed, message: "This path answers only to " + allow + "."}
}

// getOnly guards the paths outside the API.
func (q *Query) getOnly(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			q.fail(w, r, wrongMethod(w, r, "GET, HEAD"))
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		h(w, r)
	}
}

// routeOf is the template of the path, which is safe to log and to count by.
func routeOf(r *http.Request) string {
	if route := mux.CurrentRoute(r); route != nil {
		if path, err := route.GetPathTemplate(); err == nil {
			return path
		}
	}
	return "none"
}

// encodeQuery is url.Values.Encode, which sorts by name.
func encodeQuery(values map[string][]string) string { return url.Values(values).Encode() }

// measure counts and times the requests of a route.
func (q *Query) measure(route string, next http.HandlerFunc) http.Handler {
	requests := q.metrics.requests.MustCurryWith(prometheus.Labels{"route": route})
	seconds := q.metrics.seconds.WithLabelValues(route)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := q.now()
		rec := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		returned := false
		defer func() {
			switch { // whatever was sent before a handler ended by a panic
			case returned:
			case r.Context().Err() != nil:
				rec.status = statusClientGone
			default:
				rec.status = http.StatusInternalServerError
			}
			requests.WithLabelValues(methodOf(r), strconv.Itoa(rec.status)).Inc()
			seconds.Observe(q.now().Sub(start).Seconds())
		}()
		next(rec, r)
		returned = true
	})
}

// methodOf keeps the made-up methods of a client out of the metrics.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return r.Method
	}
	return "other"
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (s *statusRecorder) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController through.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
