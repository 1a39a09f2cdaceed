package registry

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/telemetry"
)

// tracer records a span for each query that belongs to a trace. The span has the name of the query, which sqlc puts
// into its first line, and neither SQL nor parameters.
type tracer struct{}

func (tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	ctx, span := telemetry.Child(ctx, telemetry.Client, queryName(q.SQL))
	telemetry.Text(span, telemetry.Database, "postgresql")
	return context.WithValue(ctx, spanKey{}, span)
}

func (tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	if span, ok := ctx.Value(spanKey{}).(telemetry.Span); ok {
		telemetry.End(span, q.Err)
	}
}

// spanKey is the key of the span that TraceQueryStart started: a query without one must not end the surrounding span.
type spanKey struct{}

func queryName(sql string) string {
	if name, ok := strings.CutPrefix(sql, "-- name: "); ok {
		if name, _, ok = strings.Cut(name, " "); ok {
			return name
		}
	}
	return "query"
}
