package query

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Codes of the error envelope; clients may rely on them.
const (
	codeInvalidAddress    = "INVALID_ADDRESS"
	codeInvalidParameter  = "INVALID_PARAMETER"
	codeInvalidBody       = "INVALID_BODY"
	codeInvalidWebhookURL = "INVALID_WEBHOOK_URL"
	codeUnauthorized      = "UNAUTHORIZED"
	codeForbidden         = "FORBIDDEN"
	codeNotFound          = "NOT_FOUND"
	codeMethodNotAllowed  = "METHOD_NOT_ALLOWED"
	codePayloadTooLarge   = "PAYLOAD_TOO_LARGE"
	codeUnsupportedMedia  = "UNSUPPORTED_MEDIA_TYPE"
	codeRateLimited       = "RATE_LIMITED"
	codeInternal          = "INTERNAL_ERROR"
	codeUnavailable       = "UNAVAILABLE"
)

// failure is an answer that is an error. Message and details go to the
// client, cause only to the log.
type failure struct {
	status  int
	code    string
	message string
	details any
	retry   time.Duration // Retry-After; 0: no such header
	cause   error
	crowd   bool // too many at once: counted, not logged one by one
}

func (f *failure) Error() string {
	if f.cause != nil {
		return strings.TrimSuffix(f.message, ".") + ": " + f.cause.Error()
	}
	return f.message
}

func (f *failure) Unwrap() error { return f.cause }

// fault is one bad field of a request.
type fault struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

func notFound(message string) *failure {
	return &failure{status: http.StatusNotFound, code: codeNotFound, message: message}
}

func invalidParameter(faults ...fault) *failure {
	return &failure{status: http.StatusBadRequest, code: codeInvalidParameter,
		message: "A query parameter is not valid.", details: faults}
}

func unavailable(message string, cause error) *failure {
	return &failure{status: http.StatusServiceUnavailable, code: codeUnavailable, message: message, retry: time.Second, cause: cause}
}

func internal(cause error) *failure {
	return &failure{status: http.StatusInternalServerError, code: codeInternal,
		message: "Something went wrong here. The request id names it in our logs.", cause: cause}
}

// Codes of ClickHouse exceptions that say "not now" and not "never".
const (
	exceptionUnknownTable    = 60
	exceptionUnknownDatabase = 81
	exceptionTimeout         = 159
	exceptionTooManyQueries  = 202
	exceptionMemoryLimit     = 241
	exceptionQueryCancelled  = 394
)

// readFailure says what a failed question to ClickHouse means: a mistake of
// ours (500), or an engine that is gone, busy or has just dropped the
// generation (503).
func readFailure(err error) *failure {
	var exception *clickhouse.Exception
	if errors.As(err, &exception) {
		switch exception.Code {
		case exceptionUnknownTable, exceptionUnknownDatabase, exceptionTimeout, exceptionTooManyQueries,
			exceptionMemoryLimit, exceptionQueryCancelled:
		default:
			return internal(err)
		}
	}
	return unavailable("The read model does not answer at the moment.", err)
}

// registryFailure is what a failed question to PostgreSQL means.
func registryFailure(err error) *failure {
	return unavailable("The partner registry does not answer at the moment.", err)
}
