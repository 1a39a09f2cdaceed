package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

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
