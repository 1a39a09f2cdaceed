package query

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/navlog/navlog/schemas/openapi"
)

// contract is the OpenAPI document as a judge. Every request of every test
// passes through it: see world.do.
type contract struct {
	doc    *openapi3.T
	router routers.Router
}

var theContract = sync.OnceValue(func() *contract {
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.FileBodyDecoder)
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML())
	if err != nil {
		panic(err)
	}
	for _, s := range doc.Components.Schemas {
		closeObjects(s)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return &contract{doc, router}
})

// closeObjects forbids the fields that the document does not name. Clients
// must ignore such fields; we must not send them.
func closeObjects(s *openapi3.SchemaRef) {
	if s == nil || s.Ref != "" || s.Value == nil {
		return
	}
	v := s.Value
	if v.Type.Is("object") && len(v.Properties) > 0 && v.AdditionalProperties.Has == nil && v.AdditionalProperties.Schema == nil {
		no := false
		v.AdditionalProperties.Has = &no
	}
	for _, p := range v.Properties {
		closeObjects(p)
	}
	closeObjects(v.Items)
}

// judge holds an answer against the document: a documented status, with the
// headers and the body of that status. What the service accepts, the document
// must allow.
func (c *contract) judge(t testing.TB, r *http.Request, body []byte, rec *httptest.ResponseRecorder) {
	t.Helper()
	fault := func(format string, args ...any) {
		t.Helper()
		t.Errorf("contract: %s %s: %d: %s\n%.400s", r.Method, r.URL, rec.Code, fmt.Sprintf(format, args...), rec.Body)
	}
	asked := r.Clone(r.Context()) // with a URL of its own
	if r.Method == http.MethodHead {
		asked.Method = http.MethodGet
	}
	if rec.Code < 400 {
		asked.URL.RawPath = "" // what is answered is judged by what its path says, however it is encoded
	}
	route, vars, err := c.router.FindRoute(asked)
	switch {
	case rec.Code == statusClientGone, strings.HasPrefix(r.URL.Path, "/docs/"): // parts of the page
		return
	case r.Method == http.MethodOptions && rec.Code == http.StatusNoContent:
		return
	case rec.Code == http.StatusMethodNotAllowed:
		if route != nil {
			fault("the document has this method")
			return
		}
		c.judgeResponse(fault, &openapi3filter.RequestValidationInput{Request: asked}, c.doc.Components.Responses["MethodNotAllowed"].Value, rec)
		return
	case errors.Is(err, routers.ErrPathNotFound) && rec.Code == http.StatusNotFound:
		c.judgeResponse(fault, &openapi3filter.RequestValidationInput{Request: asked}, c.doc.Components.Responses["NotFound"].Value, rec)
		return
	case err != nil:
		fault("the document has no such operation: %v", err)
		return
	}
	input := &openapi3filter.RequestValidationInput{Request: asked, PathParams: vars, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	documented := route.Operation.Responses.Status(rec.Code)
	if documented == nil {
		fault("the document has no such status here")
		return
	}
	c.judgeResponse(fault, input, documented.Value, rec)
	if rec.Code < 400 {
		c.judgeRequest(fault, input, body)
	}
}

func (c *contract) judgeResponse(fault func(string, ...any), input *openapi3filter.RequestValidationInput, documented *openapi3.Response, rec *httptest.ResponseRecorder) {
	header := rec.Header().Clone()
	content := rec.Body.Bytes()
	for name := range header {
		if !ofHTTP[name] && documentedHeader(documented, name) == nil {
			fault("the document has no header %s here", name)
		}
	}
	if header.Get("Content-Encoding") == "gzip" {
		content = gunzip(content)
		header.Del("Content-Encoding")
	}
	bare := input.Request.Method == http.MethodHead || rec.Code == http.StatusNotModified || len(content) == 0
	one := openapi3.NewResponses()
	one.Delete("default")
	one.Set(fmt.Sprint(rec.Code), &openapi3.ResponseRef{Value: documented})
	only := *input
	only.Route = &routers.Route{Spec: c.doc, Operation: &openapi3.Operation{Responses: one}}
	answer := &openapi3filter.ResponseValidationInput{RequestValidationInput: &only, Status: rec.Code, Header: header,
		Options: &openapi3filter.Options{ExcludeResponseBody: bare, IncludeResponseStatus: true, MultiError: true}}
	answer.SetBodyBytes(content)
	if err := openapi3filter.ValidateResponse(input.Request.Context(), answer); err != nil {
		fault("%v", err)
	}
}

// ofHTTP are the headers that say how a body is sent, which no document lists.
var ofHTTP = map[string]bool{"Content-Type": true, "Content-Length": true, "Content-Encoding": true, "Date": true}

// documentedHeader finds a header by its name, in whatever case.
func documentedHeader(documented *openapi3.Response, name string) *openapi3.HeaderRef {
	for candidate, header := range documented.Headers {
		if strings.EqualFold(candidate, name) {
			return header
		}
	}
	return nil
}

// judgeRequest asks the document about a request that was answered. What the
// document says in words is done first: empty parameters are absent, of
// repeated ones the first counts, and those that it does not name are ignored.
func (c *contract) judgeRequest(fault func(string, ...any), input *openapi3filter.RequestValidationInput, body []byte) {
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
		fault("the document forbids a request that was answered: %v", err)
	}
}

// TestDocumentAndRoutes: every path and method that is served is in the
// document, and the other way round.
func TestDocumentAndRoutes(t *testing.T) {
	var served, documented []string
	q := &Query{}
	for _, e := range q.endpoints() {
		if e.get != nil {
			served = append(served, "GET "+e.path)
		}
		if e.post != nil {
			served = append(served, "POST "+e.path)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/status", "/metrics", "/openapi.json", "/openapi.yaml", "/docs"} {
		served = append(served, "GET "+path)
	}
	for path, item := range theContract().doc.Paths.Map() {
		for method, op := range item.Operations() {
			documented = append(documented, method+" "+path)
			needsKey := op.Security != nil && len(*op.Security) > 0
			if needsKey != strings.HasPrefix(path, "/api/v1/partner/") {
				t.Errorf("%s %s: key needed: %v", method, path, needsKey)
			}
			for _, status := range []int{401, 403} {
				if (op.Responses.Status(status) != nil) != needsKey {
					t.Errorf("%s %s: %d", method, path, status)
				}
			}
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	if !slices.Equal(served, documented) {
		t.Errorf("served\n%s\ndocumented\n%s", strings.Join(served, "\n"), strings.Join(documented, "\n"))
	}
}

// TestTheJudgeCanFail: a wrong body, a missing header, a header or a status
// that is not documented, and a request that should have been refused.
func TestTheJudgeCanFail(t *testing.T) {
	good := func() *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		rec.Header().Set("Content-Type", "application/json; charset=utf-8")
		rec.Header().Set("X-Request-Id", "a")
		rec.Header().Set("ETag", `"`+strings.Repeat("0", 32)+`"`)
		rec.Header().Set("Cache-Control", "no-store")
		rec.Header().Set("Vary", "Accept-Encoding")
		rec.Header().Set("X-Content-Type-Options", "nosniff")
		rec.Header().Set("Date", "x")
		return rec
	}
	judge := func(path string, rec *httptest.ResponseRecorder) int {
		counter := &countingTB{TB: t}
		theContract().judge(counter, httptest.NewRequest("GET", path, nil), nil, rec)
		return counter.errors
	}
	rec := good()
	rec.WriteString(`{"ok":true,"data":{"status":"ok"}}`)
	if n := judge("/healthz", rec); n != 0 {
		t.Errorf("a good answer has %d faults", n)
	}
	for name, body := range map[string]string{"field": `{"ok":true,"data":{"status":"ok"},"more":1}`, "value": `{"ok":true,"data":{"status":"fine"}}`, "missing": `{"ok":true}`, "no JSON": `ok`} {
		rec := good()
		rec.WriteString(body)
		if judge("/healthz", rec) == 0 {
			t.Errorf("%s: accepted", name)
		}
	}
	rec = good()
	rec.Header().Del("X-Request-Id")
	rec.WriteString(`{"ok":true,"data":{"status":"ok"}}`)
	if judge("/healthz", rec) == 0 {
		t.Error("an answer without a documented header is accepted")
	}
	rec = good()
	rec.Header().Set("X-More", "1")
	rec.WriteString(`{"ok":true,"data":{"status":"ok"}}`)
	if judge("/healthz", rec) == 0 {
		t.Error("a header that is not documented is accepted")
	}
	rec = good()
	rec.WriteHeader(418)
	rec.WriteString(`{}`)
	if judge("/healthz", rec) == 0 {
		t.Error("a status that is not documented is accepted")
	}
	rec = good()
	for _, name := range []string{headerBlock, headerSeq, headerGeneration} {
		rec.Header().Set(name, "1")
	}
	rec.Header().Set(headerChainState, "unknown")
	allowAnyOrigin(rec.Header())
	rec.WriteString(`{"ok":true,"data":[]}`)
	if judge("/api/v1/vaults", rec) != 0 || judge("/api/v1/vaults?asOfBlock=-1", rec) == 0 {
		t.Error("a request that the document forbids is let through, or one that it allows is not")
	}
}

// countingTB counts the errors of a judgement instead of failing.
type countingTB struct {
	testing.TB
	errors int
}

func (c *countingTB) Helper()               {}
func (c *countingTB) Errorf(string, ...any) { c.errors++ }

func gunzip(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return b
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return b
	}
	return out
}
