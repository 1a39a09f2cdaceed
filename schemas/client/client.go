// Package client is a client of the HTTP API: a method for each operation, and a type for each
// answer. It is generated from schemas/openapi by oapi-codegen, less what overlay.yaml says, and
// all that navlog's own commands ask the API goes through it (cmd/internal/api).
//
// [NewClientWithResponses] reads answers: JSON200 is one that was asked for, and JSONDefault says
// what went wrong. [NewClient] gives them as they come, for files (CSV, Parquet) and streams.
// Neither has a limit of its own: give one by the context, or an [http.Client] by [WithHTTPClient].
// Amounts are decimal strings in native units, as in the API; math/big reads them.
package client

import (
	"context"
	"net/http"
)

//go:generate oapi-codegen -config oapi-codegen.yaml ../openapi/openapi.yaml

// WithKey sends a partner's key with every request. The API never redirects: an [http.Client]
// that follows who does would take the key there, so let its CheckRedirect say no.
func WithKey(key string) ClientOption {
	return WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("x-api-key", key)
		return nil
	})
}
