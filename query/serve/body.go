package serve

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// MaxBody is the largest body of most routes, in bytes.
const MaxBody = 16 << 10

// JSONBody returns the body of a request, which must be sent as JSON and have at most this many bytes, whole KiB.
func (r *Request) JSONBody(most int) ([]byte, error) {
	if !plainJSON(r.HTTP.Header) {
		return nil, &Failure{
			Status: http.StatusUnsupportedMediaType, Code: CodeUnsupportedMedia,
			Message: "The body must be sent as Content-Type: application/json.",
		}
	}
	body, err := io.ReadAll(io.LimitReader(r.HTTP.Body, int64(most)+1))
	if err != nil {
		return nil, InvalidBody("The body could not be read to its end.")
	}
	if len(body) > most {
		return nil, &Failure{
			Status: http.StatusRequestEntityTooLarge, Code: CodePayloadTooLarge,
			Message: fmt.Sprintf("The body must not be longer than %d KiB.", most>>10),
		}
	}
	return body, nil
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
