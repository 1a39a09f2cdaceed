package registry

import (
	"testing"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/telemetry"
	"github.com/navlog/navlog/schemas/telemetry/telemetrytest"
)

// TestQueriesOfATrace checks that a query within a trace is a span with the name of the query, that it holds neither
// SQL nor parameters, even if the query fails, and that a query outside of a trace has no span.
func TestQueriesOfATrace(t *testing.T) {
	spans := telemetrytest.Record(t)
	pool := open(t, migrated.Postgres(t))
	queries := db.New(pool)
	if _, err := queries.DeliveryOwner(t.Context(), uuid.New()); err == nil {
		t.Error("a missing event has an owner")
	}
	ctx, request := telemetry.Begin(t.Context(), telemetry.Internal, "request")
	if _, err := queries.PartnerByKey(ctx, HashKey("hunter2")); err == nil {
		t.Error("an unknown key has a partner")
	}
	if _, err := pool.Exec(ctx, "SELECT 'hunter2'::integer"); err == nil {
		t.Error("a text was converted to a number")
	}
	telemetry.End(request, nil)
	var names []string
	for _, span := range spans.Of(request.SpanContext().TraceID().String()) {
		names = append(names, span.Name())
	}
	if len(names) != 3 || names[0] != "PartnerByKey" || names[1] != "query" || len(spans.Named("DeliveryOwner")) != 0 {
		t.Errorf("the spans are %q", names)
	}
	telemetrytest.Without(t, spans, "hunter2", "SELECT", "postgres://")
}
