// Package telemetry traces what the programs do, from a block to the webhook about it, with OpenTelemetry.
//
// It is off unless a standard OTEL_ variable names a collector (Start). While it is off, every function returns at
// once: no span is created, no header is written, nothing is allocated.
//
// A trace begins with the blocks of one transaction of ingest, or with a request to serve. It crosses Kafka in the
// record header traceparent (schemas/chainlog) and PostgreSQL in the column delivery.traceparent, so that an attempt
// days later belongs to the trace of its block. A batch with records of several traces has its own trace with links.
//
// A span never holds a secret, and therefore no text that may contain one: no URL of a node or a webhook, no SQL and no
// parameter, no error message. The message is in the log, in a line with the same trace_id. The provider is not
// OpenTelemetry's global one, because libraries would send their own spans, which were not checked for secrets.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Header is the name of the record header that carries a trace context, as W3C Trace Context writes it.
const Header = "traceparent"

// maxLinks is the number of traces that one span links to: the default limit of OpenTelemetry.
const maxLinks = 128

// Span is a span of OpenTelemetry.
type Span = trace.Span

// Kinds of spans, for callers that import nothing else from OpenTelemetry.
const (
	Internal = trace.SpanKindInternal
	Client   = trace.SpanKindClient
	Producer = trace.SpanKindProducer
	Consumer = trace.SpanKindConsumer
)

// running creates the spans; nil while tracing is off.
var running atomic.Pointer[tracing]

type tracing struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
}

var (
	none     Span = noop.Span{}
	protocol      = propagation.TraceContext{}
)

// Use creates spans with a provider until restore is called.
func Use(provider trace.TracerProvider) (restore func()) {
	before := running.Swap(&tracing{provider, provider.Tracer("github.com/navlog/navlog")})
	return func() { running.Store(before) }
}

// Enabled reports whether tracing is on.
func Enabled() bool { return running.Load() != nil }

// Begin starts a child of the span of ctx, or the first span of a trace.
func Begin(ctx context.Context, kind trace.SpanKind, name string) (context.Context, Span) {
	return Continue(ctx, "", kind, name)
}

// Current returns the span of ctx.
func Current(ctx context.Context) Span { return trace.SpanFromContext(ctx) }

// Child starts a child of the span of ctx, and none if ctx has none: work that repeats forever, such as polling, starts
// no traces.
func Child(ctx context.Context, kind trace.SpanKind, name string) (context.Context, Span) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, none
	}
	return Begin(ctx, kind, name)
}

// Continue starts a child of the span that parent names, or what Begin starts if parent is empty. It links to the span
// of ctx if that belongs to another trace.
func Continue(ctx context.Context, parent string, kind trace.SpanKind, name string) (context.Context, Span) {
	t := running.Load()
	if t == nil {
		return ctx, none
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(kind)}
	before, above := trace.SpanContextFromContext(ctx), parse(parent)
	if before.IsValid() && above.IsValid() && before.TraceID() != above.TraceID() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: before}))
	}
	if above.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, above)
	}
	return t.tracer.Start(ctx, name, options...)
}

// Gather starts the span of a batch: a child if parents names only one span, otherwise the first span of a trace, with
// links to all of them.
func Gather(ctx context.Context, parents []string, kind trace.SpanKind, name string) (context.Context, Span) {
	t := running.Load()
	switch {
	case t == nil:
		return ctx, none
	case len(parents) <= 1:
		return Continue(ctx, first(parents), kind, name)
	}
	var links []trace.Link
	for _, parent := range parents[:min(len(parents), maxLinks)] {
		if above := parse(parent); above.IsValid() {
			links = append(links, trace.Link{SpanContext: above})
		}
	}
	return t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithNewRoot(), trace.WithLinks(links...))
}

func first(parents []string) string {
	if len(parents) == 0 {
		return ""
	}
	return parents[0]
}

// Parents adds a parent to those of a batch, each once, and at most as many as a span can link to.
func Parents(parents []string, parent string) []string {
	if parent == "" || len(parents) == maxLinks || slices.Contains(parents, parent) {
		return parents
	}
	return append(parents, parent)
}

// Parent returns the trace context of ctx in the form of the header and the column; empty if there is none.
func Parent(ctx context.Context) string {
	if !Enabled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	protocol.Inject(ctx, carrier)
	return carrier[Header]
}

func parse(parent string) trace.SpanContext {
	if parent == "" {
		return trace.SpanContext{}
	}
	ctx := protocol.Extract(context.Background(), propagation.MapCarrier{Header: parent})
	return trace.SpanContextFromContext(ctx)
}

// TraceID returns the id of the trace that a header or a column names; empty if it names none.
func TraceID(parent string) string {
	if above := parse(parent); above.IsValid() {
		return above.TraceID().String()
	}
	return ""
}

// Collected returns the span context of ctx if its trace is sent to a collector, and otherwise an invalid one.
func Collected(ctx context.Context) trace.SpanContext {
	if Enabled() {
		if at := trace.SpanContextFromContext(ctx); at.IsSampled() {
			return at
		}
	}
	return trace.SpanContext{}
}

// Sampled returns the trace id of ctx if the trace is sent to a collector, where it can be found, and otherwise an
// empty text.
func Sampled(ctx context.Context) string {
	if at := Collected(ctx); at.IsValid() {
		return at.TraceID().String()
	}
	return ""
}

// Attributes of spans. Those of OpenTelemetry's conventions have the names given there.
const (
	BlockNumber = "navlog.block.number" // the last one, if there are several
	BlockHash   = "navlog.block.hash"
	Blocks      = "navlog.blocks"
	Seq         = "navlog.seq" // the last one
	Records     = "navlog.records"
	Generation  = "navlog.generation"
	EventID     = "navlog.event.id"
	EventType   = "navlog.event.type"
	Partner     = "navlog.partner.id"
	AttemptNo   = "navlog.attempt"
	Outcome     = "navlog.outcome"
	Question    = "navlog.question"
	RequestID   = "navlog.request.id"
	Route       = "http.route"
	Status      = "http.response.status_code"
	Server      = "server.address" // a host, never a URL
	Database    = "db.system.name"
	Collection  = "db.collection.name"
	Messaging   = "messaging.system"
	Topic       = "messaging.destination.name"
	RPCSystem   = "rpc.system"
	RPCMethod   = "rpc.method"
	Questions   = "navlog.rpc.questions" // number in a batch
)

// Text sets an attribute of a span.
func Text(span Span, key, value string) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String(key, value))
	}
}

// Number sets an attribute of a span.
func Number[N int | int32 | int64 | uint32 | uint64](span Span, key string, value N) {
	if span.IsRecording() {
		span.SetAttributes(attribute.Int64(key, int64(value)))
	}
}

// End ends a span, as failed if err is not nil. It records the type of the error, and never its text.
func End(span Span, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		Fail(span, typeOf(err))
	}
	span.End()
}

// Fail marks a span as failed, with a reason from a small fixed set.
func Fail(span Span, reason string) {
	if span.IsRecording() {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("error.type", reason))
	}
}

// typeOf returns the type of the innermost error.
func typeOf(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

// Handler starts a server span for each request that wanted accepts. The client's own trace context becomes a link, not
// the parent: the API is public, and a client must not decide what is sampled.
func Handler(next http.Handler, wanted func(*http.Request) bool) http.Handler {
	t := running.Load()
	if t == nil {
		return next
	}
	return otelhttp.NewHandler(next, "request", otelhttp.WithFilter(wanted),
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithMeterProvider(metricnoop.MeterProvider{}),
		otelhttp.WithPropagators(protocol), otelhttp.WithPublicEndpointFn(func(*http.Request) bool { return true }))
}

// Logs adds trace_id and span_id to the log lines whose context has a span.
func Logs(h slog.Handler) slog.Handler { return handler{h} }

type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if at := trace.SpanContextFromContext(ctx); at.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", at.TraceID().String()), slog.String("span_id", at.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
