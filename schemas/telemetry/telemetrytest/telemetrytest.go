// Package telemetrytest records the spans of tests.
package telemetrytest

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/navlog/navlog/schemas/telemetry"
)

// Spans are the spans that have ended since Record, including those of tests that run at the same time.
type Spans struct{ recorder *tracetest.SpanRecorder }

// Span is an ended span.
type Span struct {
	sdktrace.ReadOnlySpan
}

// Record switches tracing on until the end of the test. Every trace is sampled.
func Record(t testing.TB) *Spans {
	t.Helper()
	s := &Spans{tracetest.NewSpanRecorder()}
	t.Cleanup(telemetry.Use(sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(s.recorder), sdktrace.WithSampler(sdktrace.AlwaysSample()),
	)))
	return s
}

// Of returns the spans of a trace.
func (s *Spans) Of(trace string) (all []Span) {
	for _, span := range s.recorder.Ended() {
		if span.SpanContext().TraceID().String() == trace {
			all = append(all, Span{span})
		}
	}
	return all
}

// Named returns the spans with a name.
func (s *Spans) Named(name string) (all []Span) {
	for _, span := range s.recorder.Ended() {
		if span.Name() == name {
			all = append(all, Span{span})
		}
	}
	return all
}

// TraceID returns the id of the span's trace.
func (s Span) TraceID() string { return s.SpanContext().TraceID().String() }

// Attribute returns the value of an attribute as text; empty if the span does not have it.
func (s Span) Attribute(key string) string {
	for _, a := range s.Attributes() {
		if a.Key == attribute.Key(key) {
			return a.Value.String()
		}
	}
	return ""
}

// Text returns everything that would be sent, for searching for forbidden content.
func (s *Spans) Text() string {
	var b strings.Builder
	for _, span := range s.recorder.Ended() {
		fmt.Fprintln(&b, span.Name(), span.Attributes(), span.Events(), span.Links(), span.Status(), span.Resource())
	}
	return b.String()
}

// Without fails the test if something that would be sent contains one of the secrets.
func Without(t testing.TB, s *Spans, secrets ...string) {
	t.Helper()
	text := s.Text()
	for _, secret := range secrets {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("a span holds %q: %s", secret, text[max(0, at-200):min(len(text), at+200)])
		}
	}
}

// Discard switches tracing on until restore is called, and discards the spans.
func Discard() (restore func()) {
	return telemetry.Use(sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter())))
}
