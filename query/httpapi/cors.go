package httpapi

import (
	"net/http"
	"strings"
)

// partnerPaths begin the paths of partners, which no web page may call: a key does not belong
// in the pages of others.
const partnerPaths = "/api/v1/partner"

// Headers of a public request that a page may send, and headers of the answer that it may
// read. A star stands for all. The names are for clients that know no star: what browsers,
// libraries and tracing tools add by themselves, and what navlog answers with.
var (
	sentByPages = strings.Join([]string{"*", "Accept", "Accept-Language", "Baggage", "Cache-Control", "Content-Language", "Content-Type",
		"If-Modified-Since", "If-None-Match", "Last-Event-ID", "Pragma", "Priority", "Range", "Sentry-Trace", "Traceparent", "Tracestate",
		headerRequestID, "X-Requested-With"}, ", ")
	readByPages = strings.Join([]string{"*", "Allow", "Content-Disposition", "Content-Encoding", "Content-Length", "Date", "Deprecation", "ETag", "Link",
		"RateLimit", "RateLimit-Policy", "Retry-After", "Sunset", headerChainState, headerGeneration, headerBlock, headerSeq,
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", headerRequestID}, ", ")
)

// allowAnyOrigin lets any web page read an answer and all its headers, for
// nothing on a public route depends on who asks.
func allowAnyOrigin(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", readByPages)
}

// preflight answers OPTIONS of a public path: which requests a page may make.
func preflight(w http.ResponseWriter, allow string) {
	h := w.Header()
	h.Set("Allow", allow)
	h.Set("Access-Control-Allow-Methods", "GET, HEAD")
	h.Set("Access-Control-Allow-Headers", sentByPages)
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

// apiPaths begin the paths of the API, which are JSON whoever asks.
const apiPaths = "/api"

// nowhere answers paths at which there is nothing, so that a page can read that. A browser that is to
// show something gets the front page, whose script says that there is no such page, with the status 404.
func (s *Server) nowhere(files []File) http.HandlerFunc {
	var page http.HandlerFunc
	for _, file := range files {
		if file.Path == "/" {
			page = serveFileAs(http.StatusNotFound, file, varyByAccept)
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

// within reports whether a path is at or below another one.
func within(path, top string) bool {
	rest, below := strings.CutPrefix(path, top)
	return below && (rest == "" || rest[0] == '/')
}
