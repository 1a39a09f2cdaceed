package dispatch

import (
	"net/http"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/telemetry"
	"github.com/navlog/navlog/schemas/telemetry/telemetrytest"
)

// TestTraces: a delivery and each of its attempts, even by another dispatcher, belong to the trace that the record
// carries. A record without one, one whose trace context cannot be read, and a dead record that was retried are
// delivered as well, each in a separate trace. No span holds a secret of the partner, and the partner is sent no
// trace context.
func TestTraces(t *testing.T) {
	spans := telemetrytest.Record(t)
	f := newFixture(t)
	r := f.partner7(func(w http.ResponseWriter, n, ofEvent int) {
		if ofEvent < 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	ctx, block := telemetry.Begin(t.Context(), telemetry.Producer, "publish referral")
	telemetry.End(block, nil)
	parents := []string{telemetry.Parent(ctx), "", "nonsense"}
	f.depositsWithin(7, parents)

	acceptedSpans := func() (all []telemetrytest.Span) {
		for _, span := range spans.Named("accept referral") { // also those of parallel tests
			id := span.Attribute(telemetry.EventID)
			const ours = "SELECT count(*) FROM delivery WHERE event_id = $1 AND traceparent LIKE '%' || $2 || '%'"
			if f.number(ours, id, span.TraceID()) == 1 {
				all = append(all, span)
			}
		}
		return all
	}
	stop := f.run(f.dispatcher(nil))
	f.eventually("accepted", func() bool { return len(acceptedSpans()) == 3 }) // a span ends after its row is visible
	stop()
	f.dead(encode(t, deposit(t, 7, len(parents))))
	f.start(nil)
	f.eventually("delivered", f.in(registry.Delivered, 4))

	f.eventually("all accepted", func() bool { return len(acceptedSpans()) == 4 })
	accepted := acceptedSpans()
	carried := 0
	for _, span := range accepted {
		statuses := map[string]int{}
		for _, attempt := range spans.Of(span.TraceID()) {
			if attempt.Name() != "webhook attempt" {
				continue
			}
			got, want := attempt.Attribute(telemetry.EventID), span.Attribute(telemetry.EventID)
			if got != want || attempt.Parent().SpanID() != span.SpanContext().SpanID() {
				t.Errorf("an attempt of event %s is below event %s", got, want)
			}
			statuses[attempt.Attribute(telemetry.Status)]++
		}
		if statuses["503"] != 1 || statuses["200"] != 1 {
			t.Errorf("the trace of an event has attempts with %v", statuses)
		}
		if span.TraceID() == telemetry.TraceID(parents[0]) {
			carried++
		}
	}
	if carried != 1 {
		t.Errorf("%d deliveries are in the trace of the record that carries it", carried)
	}
	for _, call := range r.got() {
		for _, name := range []string{"Traceparent", "Tracestate", "Baggage"} {
			if value := call.header.Get(name); value != "" {
				t.Errorf("a partner is sent %s: %s", name, value)
			}
		}
	}
	telemetrytest.Without(t, spans, urlToken, testSecret, "/hook", "https:", "INSERT", "SELECT")
}

// depositsWithin produces a deposit for each trace context.
func (f *fixture) depositsWithin(partner uint32, parents []string) {
	f.Helper()
	client, err := kgo.NewClient(f.kafka.Options()...)
	f.check(err)
	defer client.Close()
	for n, parent := range parents {
		record := &kgo.Record{Topic: chainlog.ReferralDeposits(testChain), Value: encode(f.T, deposit(f.T, partner, n))}
		chainlog.Carry(record, parent)
		f.check(client.ProduceSync(f.Context(), record).FirstErr())
	}
}
