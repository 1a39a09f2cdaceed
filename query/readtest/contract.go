package readtest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/navlog/navlog/schemas/openapi"
)

// Contract checks responses against the OpenAPI document. Every request of every test passes through it: see
// Client.Do.
type Contract struct {
	Doc    *openapi3.T
	router routers.Router
}

var TheContract = sync.OnceValue(func() *Contract {
	for _, kind := range []string{"text/html", "text/csv", "text/event-stream", "application/vnd.apache.parquet"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.FileBodyDecoder)
	}
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML())
	if err != nil {
		panic(err)
	}
	for _, s := range doc.Components.Schemas {
		closeObjects(s)
	}
	if err := withoutJSONSchema(doc); err != nil {
		panic(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return &Contract{doc, router}
})

// closeObjects forbids fields that are not in the document. Clients must ignore such fields, but navlog must not send
// them.
func closeObjects(s *openapi3.SchemaRef) {
	if s == nil || s.Ref != "" || s.Value == nil {
		return
	}
	v := s.Value
	if v.Type.Is("object") && len(v.Properties) > 0 && v.AdditionalProperties.Has == nil &&
		v.AdditionalProperties.Schema == nil {
		no := false
		v.AdditionalProperties.Has = &no
	}
	for _, p := range v.Properties {
		closeObjects(p)
	}
	closeObjects(v.Items)
}

// withoutJSONSchema makes openapi3filter use the validator of openapi3, as it does for a document of OpenAPI 3.0. For a
// later one it compiles the JSON schema of each header, parameter and body for each response, which took a third of the
// time of query's tests. The validator of openapi3 ignores some keywords of 3.1: a const becomes an enum of one value,
// and any other is an error.
func withoutJSONSchema(doc *openapi3.T) error {
	doc.OpenAPI = "3.0.3"
	return doc.WalkSchemas(func(pointer string, s *openapi3.SchemaRef) error {
		if s.Value.Const != nil {
			s.Value.Enum, s.Value.Const = []any{s.Value.Const}, nil
		}
		encoded, err := json.Marshal(s.Value)
		if err != nil {
			return err
		}
		var keywords map[string]any
		if err := json.Unmarshal(encoded, &keywords); err != nil {
			return fmt.Errorf("%s: %w", pointer, err)
		}
		for _, ignored := range []string{"prefixItems", "contains", "patternProperties", "dependentSchemas", "propertyNames",
			"unevaluatedItems", "unevaluatedProperties", "if", "then", "else", "dependentRequired", "contentSchema"} {
			if _, used := keywords[ignored]; used {
				return fmt.Errorf("%s: responses are not checked against %s", pointer, ignored)
			}
		}
		return nil
	})
}

// Judge checks a response against the document: the status must be documented, and the headers and body must be those
// of that status. A request that the service accepts must be valid according to the document.
func (c *Contract) Judge(t testing.TB, r *http.Request, body []byte, rec *httptest.ResponseRecorder) {
	t.Helper()
	fault := func(format string, args ...any) {
		t.Helper()
		t.Errorf("contract: %s %s: %d: %s\n%.400s", r.Method, r.URL, rec.Code, fmt.Sprintf(format, args...), rec.Body)
	}
	asked := r.Clone(r.Context()) // with a separate URL
	if r.Method == http.MethodHead {
		asked.Method = http.MethodGet
	}
	if rec.Code < 400 {
		asked.URL.RawPath = "" // a successful request is matched by its decoded path, however it was encoded
	}
	route, vars, err := c.router.FindRoute(asked)
	input := &openapi3filter.RequestValidationInput{Request: asked, PathParams: vars, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	var documented *openapi3.ResponseRef
	page := route == nil && rec.Header().Get("Content-Security-Policy") != ""
	switch {
	case strings.HasPrefix(r.URL.Path, "/docs/"), // parts of the page
		page && rec.Code < 400,
		// a browser gets a page for an unknown path
		page && rec.Code == http.StatusNotFound && !strings.HasPrefix(r.URL.Path, "/api/"),
		r.Method == http.MethodOptions && rec.Code == http.StatusNoContent:
		return
	case rec.Code == http.StatusMethodNotAllowed && route != nil:
		fault("the document has this method")
		return
	case rec.Code == http.StatusMethodNotAllowed:
		documented = c.Doc.Components.Responses["MethodNotAllowed"]
	case errors.Is(err, routers.ErrPathNotFound) && rec.Code == http.StatusNotFound:
		documented = c.Doc.Components.Responses["NotFound"]
	case err != nil:
		fault("the document does not contain this operation: %v", err)
		return
	default:
		documented = route.Operation.Responses.Status(rec.Code)
	}
	if documented == nil {
		fault("the document does not contain this status")
		return
	}
	c.judgeResponse(fault, input, documented.Value, rec)
	if rec.Code < 400 {
		c.judgeRequest(fault, input, body)
	}
}

func (c *Contract) judgeResponse(fault func(string, ...any), input *openapi3filter.RequestValidationInput,
	documented *openapi3.Response, rec *httptest.ResponseRecorder) {
	header := rec.Header().Clone()
	content := rec.Body.Bytes()
	for name := range header {
		if !ofHTTP[name] && documentedHeader(documented, name) == nil {
			fault("the document has no header %s here", name)
		}
	}
	if header.Get("Content-Encoding") == "gzip" {
		content = Gunzip(content)
		header.Del("Content-Encoding")
	}
	bare := input.Request.Method == http.MethodHead || rec.Code == http.StatusNotModified || len(content) == 0
	one := openapi3.NewResponses()
	one.Delete("default")
	one.Set(fmt.Sprint(rec.Code), &openapi3.ResponseRef{Value: documented})
	only := *input
	only.Route = &routers.Route{Spec: c.Doc, Operation: &openapi3.Operation{Responses: one}}
	answer := &openapi3filter.ResponseValidationInput{RequestValidationInput: &only, Status: rec.Code, Header: header,
		Options: &openapi3filter.Options{ExcludeResponseBody: bare, IncludeResponseStatus: true, MultiError: true}}
	answer.SetBodyBytes(content)
	if err := openapi3filter.ValidateResponse(input.Request.Context(), answer); err != nil {
		fault("%v", err)
	}
}

// ofHTTP are the headers about the transfer of a body, which documents do not list.
var ofHTTP = map[string]bool{"Content-Type": true, "Content-Length": true, "Content-Encoding": true, "Date": true}

// documentedHeader finds a header by name, ignoring case.
func documentedHeader(documented *openapi3.Response, name string) *openapi3.HeaderRef {
	for candidate, header := range documented.Headers {
		if strings.EqualFold(candidate, name) {
			return header
		}
	}
	return nil
}

// judgeRequest checks a successful request against the document. It first applies the rules that the document only
// has in prose: empty parameters are absent, the first value of a repeated one counts, and unknown ones are ignored.
func (c *Contract) judgeRequest(fault func(string, ...any), input *openapi3filter.RequestValidationInput, body []byte) {
	values := input.Request.URL.Query()
	for name, given := range values {
		if given[0] == "" {
			delete(values, name)
		} else {
			values[name] = given[:1]
		}
	}
	input.QueryParams = values
	clean := *input.Request.URL
	clean.RawQuery = values.Encode()
	input.Request.URL = &clean
	input.Request.Body = io.NopCloser(bytes.NewReader(body))
	if err := openapi3filter.ValidateRequest(input.Request.Context(), input); err != nil {
		fault("the document forbids a request that was accepted: %v", err)
	}
}

// Gunzip decompresses a body, or returns it unchanged if it is not compressed.
func Gunzip(b []byte) []byte {
	if r, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
		if out, err := io.ReadAll(r); err == nil {
			return out
		}
	}
	return b
}
