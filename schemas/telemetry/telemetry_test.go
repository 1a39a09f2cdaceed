package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/telemetry"
	"github.com/navlog/navlog/schemas/telemetry/telemetrytest"
)

// off makes all calls that occur in the handling of a block, a request or an attempt.
func off(ctx context.Context) {
	of, span := telemetry.Begin(ctx, telemetry.Internal, "ingest blocks")
	telemetry.Number(span, telemetry.BlockNumber, uint64(1))
	of, child := telemetry.Child(of, telemetry.Client, "ask")
	telemetry.Text(child, telemetry.Question, "users.row")
	_, next := telemetry.Continue(of, "", telemetry.Client, "webhook attempt")
	_, batch := telemetry.Gather(of, nil, telemetry.Consumer, "project batch")
	_ = telemetry.Parent(of) + telemetry.Sampled(of)
	for _, s := range []telemetry.Span{span, child, next, batch} {
		telemetry.End(s, context.Canceled)
	}
}

// TestOffCostsNothing checks that without a collector no span is created, nothing is allocated, and the HTTP handler is
// unchanged.
func TestOffCostsNothing(t *testing.T) {
	ctx := t.Context()
	if telemetry.Enabled() {
		t.Fatal("tracing is on")
	}
	if n := testing.AllocsPerRun(100, func() { off(ctx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	next := http.NewServeMux()
	if got := telemetry.Handler(next, nil); got != http.Handler(next) {
		t.Errorf("the handler is a %T", got)
	}
}

func BenchmarkOff(b *testing.B) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		off(ctx)
	}
}

// TestParents checks that a batch of one trace belongs to it, that a batch of several has its own trace with links, and
// that a late attempt belongs to the trace that it names.
func TestParents(t *testing.T) {
	spans := telemetrytest.Record(t)
	var parents, traces []string
	for range 3 {
		ctx, span := telemetry.Begin(t.Context(), telemetry.Producer, "commit")
		parent := telemetry.Parent(ctx)
		parents = telemetry.Parents(telemetry.Parents(parents, parent), parent)
		traces = append(traces, telemetry.TraceID(parent))
		telemetry.End(span, nil)
	}
	if len(parents) != 3 {
		t.Fatalf("the parents are %q", parents)
	}
	_, one := telemetry.Gather(t.Context(), parents[:1], telemetry.Consumer, "one")
	telemetry.End(one, nil)
	_, several := telemetry.Gather(t.Context(), parents, telemetry.Consumer, "several")
	telemetry.End(several, nil)
	ctx, outer := telemetry.Begin(t.Context(), telemetry.Consumer, "outer")
	_, late := telemetry.Continue(ctx, parents[1], telemetry.Client, "late")
	telemetry.End(late, nil)
	telemetry.End(outer, nil)
	_, odd := telemetry.Continue(t.Context(), "no trace context", telemetry.Client, "odd")
	telemetry.End(odd, nil)

	if got := spans.Named("one")[0]; got.TraceID() != traces[0] || len(got.Links()) != 0 {
		t.Errorf("a batch of one trace belongs to trace %s", got.TraceID())
	}
	got := spans.Named("several")[0]
	if got.Parent().IsValid() || len(got.Links()) != 3 {
		t.Errorf("a batch of three traces has %d links", len(got.Links()))
	}
	for i, link := range got.Links() {
		if link.SpanContext.TraceID().String() != traces[i] {
			t.Errorf("link %d is to trace %s", i, link.SpanContext.TraceID())
		}
	}
	if got := spans.Named("late")[0]; got.TraceID() != traces[1] || len(got.Links()) != 1 {
		t.Errorf("a late attempt belongs to trace %s, with %d links", got.TraceID(), len(got.Links()))
	}
	if got := spans.Named("odd"); len(got) != 1 || got[0].Parent().IsValid() {
		t.Errorf("an invalid header has %d spans", len(got))
	}
	if _, span := telemetry.Child(t.Context(), telemetry.Client, "separate"); span.IsRecording() {
		t.Error("work outside of a trace starts one")
	}
}

// TestErrorsKeepTheirText checks that spans have only the type of an error, which may contain a URL, SQL or a
// parameter; the log has the text.
func TestErrorsKeepTheirText(t *testing.T) {
	spans := telemetrytest.Record(t)
	_, span := telemetry.Begin(t.Context(), telemetry.Client, "failing")
	telemetry.End(span, fmt.Errorf("POST https://partner.example/hunter2: %w", errors.New("token=hunter2")))
	if text := spans.Text(); strings.Contains(text, "hunter2") || !strings.Contains(text, "errors.errorString") {
		t.Errorf("the span is %s", text)
	}
}

// TestLogsNameTheTrace checks that a log line whose context has a span has its ids, even after With, and that other
// lines have none.
func TestLogsNameTheTrace(t *testing.T) {
	telemetrytest.Record(t)
	var out bytes.Buffer
	log := slog.New(telemetry.Logs(slog.NewTextHandler(&out, nil))).With("program", "ingest")
	log.Info("without")
	ctx, span := telemetry.Begin(t.Context(), telemetry.Internal, "block")
	log.InfoContext(ctx, "within")
	lines := strings.Split(out.String(), "\n")
	want := "trace_id=" + telemetry.Sampled(ctx) + " span_id=" + span.SpanContext().SpanID().String()
	if strings.Contains(lines[0], "trace_id") || !strings.HasSuffix(lines[1], want) ||
		!strings.Contains(lines[1], "program=ingest") {
		t.Errorf("logged:\n%s", out.String())
	}
}

// TestClientsDoNotControlSampling checks that a client can neither have its request sampled nor choose its trace.
func TestClientsDoNotControlSampling(t *testing.T) {
	spans := telemetrytest.Record(t)
	server := httptest.NewServer(telemetry.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}), func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }))
	defer server.Close()
	for _, path := range []string{"/healthz", "/api/v1/users?token=hunter2"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		request.Header.Set("X-Api-Key", "hunter2")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	made := spans.Named("GET")
	if len(made) != 1 || made[0].Parent().IsValid() || len(made[0].Links()) != 1 ||
		made[0].Attribute("url.path") != "/api/v1/users" {
		t.Errorf("the spans of the requests are %s", spans.Text())
	}
	if strings.Contains(spans.Text(), "hunter2") {
		t.Errorf("a span contains data of the client: %s", spans.Text())
	}
}

// TestVariablesThatSwitchTracingOn checks that only the standard variables switch tracing on. A variable that is not
// supported leaves tracing off, with a warning.
func TestVariablesThatSwitchTracingOn(t *testing.T) {
	const here = "http://127.0.0.1:1"
	endpoint := func(key, value string) map[string]string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": here, key: value}
	}
	for _, c := range []struct {
		env map[string]string
		on  bool
		log string
	}{
		{nil, false, ""},
		{map[string]string{"OTEL_SERVICE_NAME": "navlog"}, false, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": here}, true, "tracing is on"},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": here}, true, "tracing is on"},
		{map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, "tracing is on"},
		{endpoint("OTEL_TRACES_EXPORTER", "none"), false, ""},
		{endpoint("OTEL_SDK_DISABLED", "TRUE"), false, ""},
		{endpoint("OTEL_TRACES_EXPORTER", "zipkin"), false, "OTEL_TRACES_EXPORTER"},
		{endpoint("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), false, "only http/protobuf"},
	} {
		t.Run(fmt.Sprint(c.env), func(t *testing.T) {
			for key, value := range c.env {
				t.Setenv(key, value)
			}
			var out bytes.Buffer
			stop := telemetry.Start(t.Context(), "navlog-test", "v0", slog.New(slog.NewTextHandler(&out, nil)))
			if telemetry.Enabled() != c.on || !strings.Contains(out.String(), c.log) || c.log == "" && out.Len() > 0 {
				t.Errorf("tracing is on: %t; logged: %s", telemetry.Enabled(), out.String())
			}
			if stop(); telemetry.Enabled() {
				t.Error("tracing is on after its end")
			}
		})
	}
}

// TestCollectorThatHangs checks that spans never wait for a collector, and the end of a program only briefly. The
// failure is logged once, without secrets from the address.
func TestCollectorThatHangs(t *testing.T) {
	released := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	defer hangs.Close()
	defer close(released)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", strings.Replace(hangs.URL, "http://", "http://user:hunter2@", 1))
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hunter2")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "50")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	out := make(lines, 1000)
	stop := telemetry.Start(t.Context(), "navlog-test", "v0", slog.New(slog.NewTextHandler(out, nil)))
	began := time.Now()
	for range 20_000 { // ten times the capacity of the queue
		_, span := telemetry.Begin(t.Context(), telemetry.Internal, "block")
		telemetry.End(span, nil)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("20,000 spans took %s", took)
	}
	var log []string
	for len(log) < 2 { // that tracing is on, and that spans are not sent
		log = append(log, <-out)
	}
	began = time.Now()
	stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the end took %s", took)
	}
	for len(out) > 0 {
		log = append(log, <-out)
	}
	all := strings.Join(log, "")
	if n := strings.Count(all, "spans not sent to the collector"); n != 1 || strings.Contains(all, "hunter2") {
		t.Errorf("logged %d times:\n%s", n, all)
	}
}

// lines receives the lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
