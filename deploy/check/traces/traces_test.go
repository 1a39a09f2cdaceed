// Package traces checks the traces of a live system with the receiver of the OpenTelemetry Collector. It is a separate
// module, because the collector would otherwise determine the versions of navlog's dependencies.
package traces

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// patience is how long a busy machine may take to start, to find a block final or to deliver.
const patience = 3 * time.Minute

// collector starts the collector's OTLP receiver and returns its address.
func collector(t *testing.T) (string, *consumertest.TracesSink) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().String()
	must(t, free.Close())
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	must(t, confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"http": map[string]any{"endpoint": address}},
	}).Unmarshal(config))
	sink := new(consumertest.TracesSink)
	receiver, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), config, sink)
	must(t, err)
	must(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { must(t, receiver.Shutdown(context.Background())) })
	return address, sink
}

// system is a running `navlog-dev up` with traces.
type system struct {
	bin, data string
	ready     struct {
		API, RPC, Postgres, Receiver string
		Partners                     []struct {
			ID                    int64
			APIKey, SigningSecret string
		}
	}
}

func start(t *testing.T, collector string) *system {
	t.Helper()
	dir, err := os.MkdirTemp("", "navlog-traces-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755)) // PostgreSQL started by root runs as another user
	s := &system{bin: filepath.Join(dir, "bin"), data: filepath.Join(dir, "data")}
	root, err := filepath.Abs("../../..")
	must(t, err)
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", s.bin+"/", "./cmd/navlog",
		"./cmd/navlog-dev")
	build.Dir = root
	out, err := build.CombinedOutput()
	must(t, err, string(out))

	file := filepath.Join(dir, "ready.json")
	up := exec.Command(filepath.Join(s.bin, "navlog-dev"), "up", "--data", s.data, "--listen", "127.0.0.1:0",
		"--interval", "200ms", "--ready-file", file)
	up.Dir = root
	up.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+collector, "OTEL_BSP_SCHEDULE_DELAY=200",
		"OTEL_SERVICE_NAME=navlog-of-the-test", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")
	var log bytes.Buffer
	up.Stdout, up.Stderr = &log, &log
	must(t, up.Start())
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("navlog-dev up: %v", err)
		}
		if t.Failed() {
			t.Logf("%s", log.Bytes())
		}
	})
	until(t, "navlog-dev up is ready", func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("navlog-dev up ended: %v\n%s", err, log.Bytes())
		default:
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &s.ready)
	})
	return s
}

// get sends a request with an id and returns the body of the response.
func (s *system) get(t *testing.T, path, id string, header ...string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.ready.API+path, nil)
	must(t, err)
	request.Header.Set("X-Request-Id", id)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return body
}

// span is a span that the collector received.
type span struct {
	ptrace.Span
	resource pcommon.Map
}

func (s span) attribute(key string) string {
	if value, is := s.Attributes().Get(key); is {
		return value.AsString()
	}
	return ""
}

// spans returns all spans that the collector has received so far, by id.
func spans(sink *consumertest.TracesSink) map[pcommon.SpanID]span {
	all := map[pcommon.SpanID]span{}
	for _, batch := range sink.AllTraces() {
		for _, of := range batch.ResourceSpans().All() {
			for _, scope := range of.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					all[s.SpanID()] = span{s, of.Resource().Attributes()}
				}
			}
		}
	}
	return all
}

// path returns the names of a span and its ancestors, up to the first one of the trace.
func path(all map[pcommon.SpanID]span, s span) []string {
	names := []string{s.Name()}
	for !s.ParentSpanID().IsEmpty() {
		above, received := all[s.ParentSpanID()]
		if !received || above.TraceID() != s.TraceID() {
			return append(names, "not received")
		}
		s = above
		names = append(names, s.Name())
	}
	return names
}

var (
	attempt = []string{"webhook attempt", "accept referral", "publish referral", "commit", "ingest blocks"}
	insert  = []string{"insert lists", "project batch", "commit", "ingest blocks"}
)

// TestTraces: the collector receives one trace that leads from a block to the insert and to the webhook about it, and
// one of a request with its queries.
func TestTraces(t *testing.T) {
	address, sink := collector(t)
	s := start(t, address)

	var delivered span
	until(t, "a trace from a block to the webhook", func() error {
		all, inserted := spans(sink), map[pcommon.TraceID]bool{}
		for _, s := range all {
			if slices.Equal(path(all, s), insert) {
				inserted[s.TraceID()] = true
			}
		}
		for _, s := range all {
			if s.Name() == "webhook attempt" && slices.Equal(path(all, s), attempt) && inserted[s.TraceID()] {
				delivered = s
				return nil
			}
		}
		return fmt.Errorf("%d spans, %d traces with an insert", len(all), len(inserted))
	})
	if got := delivered.attribute("http.response.status_code"); got != "200" && got != "204" {
		t.Errorf("the attempt was answered with %q", got)
	}
	for key, want := range map[string]string{"service.name": "navlog-of-the-test", "deployment.environment.name": "test"} {
		if got, is := delivered.resource.Get(key); !is || got.AsString() != want {
			t.Errorf("%s is not %q", key, want)
		}
	}

	// An operator finds the trace from the event's id.
	var shown struct{ TraceID string }
	must(t, json.Unmarshal(s.navlog(t, "webhook", "show", delivered.attribute("navlog.event.id"), "--json"), &shown))
	if want := delivered.TraceID().String(); shown.TraceID != want {
		t.Errorf("webhook show says trace %q, want %q", shown.TraceID, want)
	}

	// A client's own trace is linked, but is not the parent.
	const theirs = "4bf92f3577b34da6a3ce929d0e0e4736"
	s.get(t, "/api/v1/users?pageSize=3&token=hunter2", "a-list", "traceparent", "00-"+theirs+"-00f067aa0ba902b7-01")
	key := s.ready.Partners[0].APIKey
	s.get(t, "/api/v1/partner/webhooks/deliveries", "of-a-partner", "x-api-key", key)
	var refused struct{ Error struct{ TraceID string } }
	must(t, json.Unmarshal(s.get(t, "/api/v1/users/unknown", "an-error", "x-api-key", key), &refused))

	want := map[string][]string{"a-list": {"ask", "wait for a slot"}, "of-a-partner": {"ListDeliveries"}, "an-error": nil}
	until(t, "the requests", func() error {
		all := spans(sink)
		for id, below := range want {
			request, names := requestOf(all, id)
			if request.Name() == "" {
				return fmt.Errorf("no request %s", id)
			}
			for _, name := range below {
				if !slices.Contains(names, name) {
					return fmt.Errorf("%s has no %q: %q", id, name, names)
				}
			}
		}
		return nil
	})
	all := spans(sink)
	list, _ := requestOf(all, "a-list")
	if list.Name() != "GET /api/v1/users" || list.attribute("http.route") != "/api/v1/users" ||
		!list.ParentSpanID().IsEmpty() {
		t.Errorf("the request is %q of route %q", list.Name(), list.attribute("http.route"))
	}
	if list.Links().Len() != 1 || list.Links().At(0).TraceID().String() != theirs || list.TraceID().String() == theirs {
		t.Errorf("the client's trace is not a link")
	}
	if failed, _ := requestOf(all, "an-error"); refused.Error.TraceID != failed.TraceID().String() {
		t.Errorf("the error says trace %q, the collector %q", refused.Error.TraceID, failed.TraceID())
	}
	s.leaksNothing(t, sink)

	// The records carry trace contexts, and verify and backup still accept the log.
	backup := filepath.Join(filepath.Dir(s.data), "backup")
	s.navlog(t, "verify")
	s.navlog(t, "backup", backup)
	s.navlog(t, "backup", "--verify", backup)
}

// navlog runs an operator command and returns its output.
func (s *system) navlog(t *testing.T, args ...string) []byte {
	t.Helper()
	args = append(args, "--config", filepath.Join(s.data, "navlog.yaml"))
	command := exec.CommandContext(t.Context(), filepath.Join(s.bin, "navlog"), args...)
	var fault bytes.Buffer
	command.Stderr = &fault
	out, err := command.Output()
	must(t, err, strings.Join(args, " "), string(out), fault.String())
	return out
}

// requestOf returns the request with an id, and the names of the spans below it.
func requestOf(all map[pcommon.SpanID]span, id string) (request span, below []string) {
	request.Span = ptrace.NewSpan()
	for _, s := range all {
		if s.attribute("navlog.request.id") == id {
			request = s
		}
	}
	for _, s := range all {
		if s.TraceID() == request.TraceID() && s.SpanID() != request.SpanID() {
			below = append(below, s.Name())
		}
	}
	return request, below
}

// leaksNothing looks for secrets in everything that was sent.
func (s *system) leaksNothing(t *testing.T, sink *consumertest.TracesSink) {
	t.Helper()
	marshaler := new(ptrace.JSONMarshaler)
	schema := regexp.MustCompile(`"schemaUrl":"[^"]*"`)
	secrets := []string{"hunter2", "SELECT", "INSERT", "partners/", "?", "://"}
	for _, p := range s.ready.Partners {
		secrets = append(secrets, p.APIKey, p.SigningSecret)
	}
	for _, batch := range sink.AllTraces() {
		text, err := marshaler.MarshalTraces(batch)
		must(t, err)
		text = schema.ReplaceAll(text, nil)
		for _, secret := range secrets {
			if at := strings.Index(string(text), secret); at >= 0 {
				t.Fatalf("a span holds %q: %s", secret, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() error) {
	t.Helper()
	look, late := time.NewTicker(100*time.Millisecond), time.After(patience)
	defer look.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func must(t *testing.T, err error, more ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err, strings.Join(more, "\n"))
	}
}
