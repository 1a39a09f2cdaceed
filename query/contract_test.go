package query

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/navlog/navlog/query/partner"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
)

// TestDocumentAndRoutes: every path and method that is served is in the document, and vice versa.
func TestDocumentAndRoutes(t *testing.T) {
	var served, documented []string
	q := &Query{webhooks: partner.NewWebhooks(nil, nil, nil)}
	for _, e := range q.routes() {
		if e.Get != nil {
			served = append(served, "GET "+e.Path)
		}
		if e.Post != nil {
			served = append(served, "POST "+e.Path)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/status", "/.well-known/navlog-statements", "/openapi.json",
		"/openapi.yaml", "/docs"} {
		served = append(served, "GET "+path)
	}
	for path, item := range readtest.TheContract().Doc.Paths.Map() {
		for method, op := range item.Operations() {
			documented = append(documented, method+" "+path)
			needsKey := op.Security != nil && len(*op.Security) > 0
			if needsKey != (strings.HasPrefix(path, "/api/v1/partner/") || path == "/api/v1/explain") {
				// the route of partner/stats
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

// TestFilteredListsAreExpensive: a list of deliveries or logs with a filter that no index serves may read all of them.
func TestFilteredListsAreExpensive(t *testing.T) {
	q := &Query{webhooks: partner.NewWebhooks(nil, nil, nil)}
	routes := q.routes()
	for path, list := range map[string]struct {
		cheap     []string
		expensive int
	}{
		webhooksPath + "/deliveries": {[]string{"page", "pageSize", "after", "format"}, 5},
		"/api/v1/events":             {[]string{"before", "pageSize", "format", "asOfBlock", "retracted", "user", "tx"}, 4},
	} {
		at := slices.IndexFunc(routes, func(e serve.Route) bool { return e.Path == path })
		filters := 0
		for _, p := range readtest.TheContract().Doc.Paths.Value(path).Get.Parameters {
			filter := p.Value.In == "query" && !slices.Contains(list.cheap, p.Value.Name)
			if filter {
				filters++
			}
			if expensive := routes[at].Expensive; expensive == nil || expensive(url.Values{p.Value.Name: {"x"}}) != filter {
				t.Errorf("%s: %s: expensive should be %v", path, p.Value.Name, filter)
			}
		}
		if filters != list.expensive {
			t.Errorf("%s has %d filters", path, filters)
		}
	}
}

// listsWithoutFiles are the lists that are not available as a file, and why.
var listsWithoutFiles = map[string]string{
	"explain": "its pages are what makes one number, with the sum up to each log; the lists of these logs have files",
	"pullEvents": "its items are the bytes of the webhooks as they were signed, which no other format has; what became " +
		"of them is in the file of deliveries",
}

// TestEveryListHasAFile: every route that returns a list, an array, pages, or the points of a series, also returns it
// as CSV and Parquet, and no other route does.
func TestEveryListHasAFile(t *testing.T) {
	asFile := make(map[string]bool)
	q := &Query{webhooks: partner.NewWebhooks(nil, nil, nil)}
	for _, e := range q.routes() {
		asFile[e.Path] = e.AsFile
	}
	lists := 0
	for path, item := range readtest.TheContract().Doc.Paths.Map() {
		if item.Get == nil {
			continue
		}
		answer := item.Get.Responses.Status(200).Value
		has := func(name string) bool {
			return slices.ContainsFunc(item.Get.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == name })
		}
		list := has("page") || has("pageSize") || has("limit")
		if json := answer.Content.Get("application/json"); json != nil {
			if data := json.Schema.Value.Properties["data"]; data != nil {
				list = list || data.Value.Type.Is("array") || data.Value.Properties["points"] != nil
			}
		}
		if _, excepted := listsWithoutFiles[item.Get.OperationID]; excepted && !list {
			t.Errorf("%s is not a list, so it needs no exception", path)
		} else if excepted {
			list = false
		}
		if list {
			lists++
		}
		for what, there := range map[string]bool{
			"text/csv":                       answer.Content["text/csv"] != nil,
			"application/vnd.apache.parquet": answer.Content["application/vnd.apache.parquet"] != nil,
			"the parameter format":           has("format"),
			"the header Content-Disposition": answer.Headers["Content-Disposition"] != nil,
			"the route's AsFile":             asFile[path],
		} {
			if there != list && item.Get.OperationID != "getStatement" { // it is itself a file
				t.Errorf("%s is a list: %t, has %s: %t", path, list, what, there)
			}
		}
	}
	if lists < 18 {
		t.Errorf("only %d lists are found", lists)
	}
}

// TestContractDetectsFaults: the contract detects a wrong body, a missing header, an undocumented header or status, and
// a request that should have been rejected.
func TestContractDetectsFaults(t *testing.T) {
	good := func() *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		rec.Header().Set("Content-Type", "application/json; charset=utf-8")
		rec.Header().Set("X-Request-Id", "a")
		rec.Header().Set("ETag", `"`+strings.Repeat("0", 32)+`"`)
		rec.Header().Set("Cache-Control", "no-store")
		rec.Header().Set("Vary", "Accept-Encoding")
		rec.Header().Set("X-Content-Type-Options", "nosniff")
		rec.Header().Set("Date", "x")
		rec.Header().Set("Access-Control-Allow-Origin", "*")
		rec.Header().Set("Access-Control-Expose-Headers", "*, ETag")
		return rec
	}
	judge := func(path string, rec *httptest.ResponseRecorder) int {
		counter := &countingTB{TB: t}
		readtest.TheContract().Judge(counter, httptest.NewRequest("GET", path, nil), nil, rec)
		return counter.errors
	}
	rec := good()
	rec.WriteString(`{"ok":true,"data":{"status":"ok"}}`)
	if n := judge("/healthz", rec); n != 0 {
		t.Errorf("a valid response has %d faults", n)
	}
	for name, body := range map[string]string{"field": `{"ok":true,"data":{"status":"ok"},"more":1}`,
		"value": `{"ok":true,"data":{"status":"fine"}}`, "constant": `{"ok":false,"data":{"status":"ok"}}`,
		"type": `{"ok":true,"data":[]}`, "null": `{"ok":true,"data":null}`, "missing": `{"ok":true}`, "no JSON": `ok`} {
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
		t.Error("a response without a documented header is accepted")
	}
	rec = good()
	rec.Header().Set("X-Content-Type-Options", "sniff")
	rec.WriteString(`{"ok":true,"data":{"status":"ok"}}`)
	if judge("/healthz", rec) == 0 {
		t.Error("a header with another value than the documented constant is accepted")
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
	for _, name := range []string{"X-Indexed-Block", "X-Indexed-Seq", "X-Generation"} {
		rec.Header().Set(name, "1")
	}
	rec.Header().Set("X-Chain-State", "unknown")
	rec.WriteString(`{"ok":true,"data":[]}`)
	if judge("/api/v1/vaults", rec) != 0 || judge("/api/v1/vaults?asOfBlock=-1", rec) == 0 {
		t.Error("a request that the document forbids is accepted, or one that it allows is rejected")
	}
}

// countingTB counts the contract's errors instead of failing.
type countingTB struct {
	testing.TB
	errors int
}

func (c *countingTB) Helper()               {}
func (c *countingTB) Errorf(string, ...any) { c.errors++ }
