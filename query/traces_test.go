package query

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/navlog/navlog/schemas/telemetry"
	"github.com/navlog/navlog/schemas/telemetry/telemetrytest"
)

// TestTraces: a request is a trace with its queries, and both an error response and the log contain its id. No span
// holds SQL, parameters or what the client sent beside the path. Pages and probes make no traces.
func TestTraces(t *testing.T) {
	spans := telemetrytest.Record(t)
	w := newFixture(t)
	handler := w.Query.Handler()
	get := func(path string) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.Header.Set("X-Api-Key", "hunter2")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer
	}
	if answer := get("/api/v1/users?pageSize=3&search=hunter2"); answer.Code != http.StatusOK {
		t.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	get("/api/v1/users/" + alice.Hex())
	refused := get("/api/v1/users/hunter3")
	get("/healthz")
	get("/docs")

	for _, route := range []string{"/api/v1/users", "/api/v1/users/{address}"} {
		requests := spans.Named("GET " + route)
		if len(requests) == 0 {
			t.Fatalf("no request of %s: %s", route, spans.Text())
		}
		var asked []string
		for _, span := range spans.Of(requests[0].TraceID()) {
			if span.Name() == "ask" {
				asked = append(asked, span.Attribute(telemetry.Question))
			}
		}
		if len(asked) == 0 || strings.Contains(strings.Join(asked, ""), " ") {
			t.Errorf("%s runs the queries %q", route, asked)
		}
	}
	failed := spans.Named("GET /api/v1/users/{address}")
	if len(failed) != 2 || len(spans.Named("GET")) != 0 || len(spans.Named("GET none")) != 0 {
		t.Fatalf("the requests are %s", spans.Text())
	}
	if want := `"traceId":"` + failed[1].TraceID() + `"`; !strings.Contains(refused.Body.String(), want) {
		t.Errorf("the error lacks %s: %s", want, refused.Body)
	}
	telemetrytest.Without(t, spans, "hunter2", "SELECT", "?")
}

// BenchmarkRequest measures a request that is served from the cache, without and with a trace. Without one it costs
// as much as without the package telemetry.
func BenchmarkRequest(b *testing.B) {
	for _, traced := range []bool{false, true} {
		b.Run(map[bool]string{false: "off", true: "on"}[traced], func(b *testing.B) {
			if traced {
				b.Cleanup(telemetrytest.Discard())
			}
			handler := newFixture(b).Query.Handler()
			request := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/api/v1/vaults", nil)
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				if handler.ServeHTTP(answer, request); answer.Code != http.StatusOK {
					b.Fatalf("%d: %s", answer.Code, answer.Body)
				}
			}
		})
	}
}
