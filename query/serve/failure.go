package serve

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/state"
)

// Codes of the error envelope; clients may rely on them.
const (
	CodeInvalidAddress    = "INVALID_ADDRESS"
	CodeInvalidParameter  = "INVALID_PARAMETER"
	CodeInvalidBody       = "INVALID_BODY"
	CodeInvalidWebhookURL = "INVALID_WEBHOOK_URL"
	CodeUnauthorized      = "UNAUTHORIZED"
	CodeForbidden         = "FORBIDDEN"
	CodeNotFound          = "NOT_FOUND"
	CodeMethodNotAllowed  = "METHOD_NOT_ALLOWED"
	CodePayloadTooLarge   = "PAYLOAD_TOO_LARGE"
	CodeUnsupportedMedia  = "UNSUPPORTED_MEDIA_TYPE"
	CodeRateLimited       = "RATE_LIMITED"
	CodeInternal          = "INTERNAL_ERROR"
	CodeUnavailable       = "UNAVAILABLE"
	CodeUnproven          = "UNPROVEN"
)

// Failure is an error response. Message and Details are sent to the client, Cause is only logged.
type Failure struct {
	Status  int
	Code    string
	Message string
	Details any
	Retry   time.Duration // Retry-After; 0: no header
	Cause   error
	// overload, or a limit of the client: counted, not logged individually, and not the error of equal requests
	Crowd bool

	position http.Header // headers of the state that it is about; nil: none
}

func (f *Failure) Error() string {
	if f.Cause != nil {
		return strings.TrimSuffix(f.Message, ".") + ": " + f.Cause.Error()
	}
	return f.Message
}

func (f *Failure) Unwrap() error { return f.Cause }

// Fault is an invalid field of a request.
type Fault struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// NotFound is 404.
func NotFound(message string) *Failure {
	return &Failure{Status: http.StatusNotFound, Code: CodeNotFound, Message: message}
}

// NoSuchVault reports that the vault in a path does not exist.
func NoSuchVault() error { return NotFound("There is no such vault.") }

// Unauthorized is 401, whatever is wrong with the key.
func Unauthorized() *Failure {
	return &Failure{Status: http.StatusUnauthorized, Code: CodeUnauthorized,
		Message: "A valid API key is needed in the header x-api-key."}
}

// Disabled is 403 for a partner that the operator has disabled.
func Disabled() *Failure {
	return &Failure{Status: http.StatusForbidden, Code: CodeForbidden, Message: "This partner account is disabled."}
}

// InvalidParameter is 400 with all invalid fields.
func InvalidParameter(faults ...Fault) *Failure {
	return &Failure{Status: http.StatusBadRequest, Code: CodeInvalidParameter,
		Message: "A parameter is not valid.", Details: faults}
}

// Unavailable is 503: the same request may succeed a little later.
func Unavailable(message string, cause error) *Failure {
	return &Failure{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, Message: message, Retry: time.Second,
		Cause: cause}
}

// Internal is 500: a fault of the server.
func Internal(cause error) *Failure {
	return &Failure{Status: http.StatusInternalServerError, Code: CodeInternal,
		Message: "Something went wrong here. The request id names it in our logs.", Cause: cause}
}

// RegistryFailure is the response to a failed PostgreSQL query.
func RegistryFailure(err error) *Failure {
	return Unavailable("The partner registry does not answer at the moment.", err)
}

// about adds the state that a failure is about, because something that does not exist at one block may exist at
// another.
func (f *Failure) about(p *ask.Pin) *Failure {
	out := *f
	out.position = position(p.Generation(), p.Seq, p.Block)
	return &out
}

// failure converts any error of a handler to a Failure.
func failure(err error) *Failure {
	var f *Failure
	var question *state.Error
	var block *ask.RangeError
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, ask.ErrRewritten):
		return Unavailable("The chain is being reorganised faster than an answer can be made.", err)
	case errors.As(err, &block):
		return InvalidParameter(Fault{asOfBlock, block.Reason})
	case errors.As(err, &question) && !question.Ours:
		return Unavailable("The read model does not answer at the moment.", err)
	}
	return Internal(err)
}
