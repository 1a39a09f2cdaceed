package serve

import (
	"net/http"
	"strings"
)

// partnerPaths is the prefix of the paths of partners, which web pages must not call: a key does not belong in a web
// page.
const partnerPaths = "/api/v1/partner"

// Headers of a public request that a page may send, and headers of the response that it may read. A star stands for
// all. The names are for clients that do not support the star: headers that browsers, libraries and tracing tools
// add, and those of navlog's responses.
var (
	sentByPages = strings.Join([]string{"*", "Accept", "Accept-Language", "Baggage", "Cache-Control", "Content-Language",
		"Content-Type", "If-Modified-Since", "If-None-Match", "Last-Event-ID", "Pragma", "Priority", "Range", "Sentry-Trace",
		"Traceparent", "Tracestate",
		headerRequestID, "X-Requested-With"}, ", ")
	readByPages = strings.Join([]string{"*", "Allow", "Content-Disposition", "Content-Encoding", "Content-Length", "Date",
		"Deprecation", "ETag", "Link", "RateLimit", "RateLimit-Policy", "Retry-After", "Sunset", headerChainState,
		headerGeneration, headerBlock, headerSeq,
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", headerRequestID}, ", ")
)

// allowAnyOrigin lets any web page read a response and all its headers, because nothing on a public route depends on
// who sends the request.
func allowAnyOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", readByPages)
}

// preflight responds to OPTIONS on a public path with the requests that a page may make.
func preflight(w http.ResponseWriter, allow string) {
	h := w.Header()
	h.Set("Allow", allow)
	h.Set("Access-Control-Allow-Methods", "GET, HEAD")
	h.Set("Access-Control-Allow-Headers", sentByPages)
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

// apiPaths is the prefix of the paths of the API, which always respond with JSON.
const apiPaths = "/api"

// nowhere handles unknown paths: it responds with 404 in a form that a web page can read. A browser that opens such a
// path gets the front page with status 404, and its script reports that the page does not exist.
func (s *Server) nowhere(files []File) http.HandlerFunc {
	var page http.HandlerFunc
	for _, file := range files {
		if file.Path == "/" {
			page = serveFile(http.StatusNotFound, file, varyByAccept)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if !within(r.URL.Path, partnerPaths) {
			allowAnyOrigin(w.Header())
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				preflight(w, "GET, HEAD, OPTIONS")
				return
			}
		}
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if page != nil && reads && !within(r.URL.Path, apiPaths) {
			w.Header().Set("Vary", varyByAccept)
			if acceptsHTML(r.Header) {
				page(w, r)
				return
			}
		}
		s.fail(w, r, NotFound("There is nothing at this path."))
	}
}

// within reports whether a path is equal to or below another one.
func within(path, top string) bool {
	rest, below := strings.CutPrefix(path, top)
	return below && (rest == "" || rest[0] == '/')
}
