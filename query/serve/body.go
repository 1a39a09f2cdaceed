package serve

import (
	"io"
	"net/http"
	"strings"
)

// maxBody is the largest body of a POST, in bytes.
const maxBody = 16 << 10

// JSONBody returns the body of a request, which must be sent as JSON and have at most 16 KiB.
func (r *Request) JSONBody() ([]byte, error) {
	if !plainJSON(r.HTTP.Header) {
		return nil, &Failure{
			Status: http.StatusUnsupportedMediaType, Code: CodeUnsupportedMedia,
			Message: "The body must be sent as Content-Type: application/json.",
		}
	}
	body, err := io.ReadAll(io.LimitReader(r.HTTP.Body, maxBody+1))
	if err != nil {
		return nil, InvalidBody("The body could not be read to its end.")
	}
	if len(body) > maxBody {
		return nil, &Failure{
			Status: http.StatusRequestEntityTooLarge, Code: CodePayloadTooLarge,
			Message: "The body must not be longer than 16 KiB.",
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
