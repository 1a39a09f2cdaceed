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

// nowhere answers paths at which there is nothing, so that a page can read that.
func (s *Server) nowhere(w http.ResponseWriter, r *http.Request) {
	if rest, partners := strings.CutPrefix(r.URL.Path, partnerPaths); !partners || rest != "" && rest[0] != '/' {
		allowAnyOrigin(w.Header())
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			preflight(w, "GET, HEAD, OPTIONS")
			return
		}
	}
	s.fail(w, r, NotFound("There is nothing at this path."))
}
