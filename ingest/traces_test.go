package ingest

import (
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/telemetry"
	"github.com/navlog/navlog/schemas/telemetry/telemetrytest"
)

// TestTraces: every record carries the trace of its block, and a referral that is published blocks later, by an ingest
// that has started since then, carries that of the same block. The log is the same as without traces.
func TestTraces(t *testing.T) {
	spans := telemetrytest.Record(t)
	r := newRig(t, enginetest.Kafka)
	r.config.RPC[0].URL += "/?key=hunter2"
	r.steps(20)
	first := r.follow()
	depositor := r.depositor()
	depositor.deposit(5, 7)
	first.caughtUp()
	first.halt()
	few := len(r.published())
	r.mine(20) // everything before is final now
	second := r.start()
	second.until("referral block", func(st status.Status) bool {
		return st.ReferralBlock >= st.FinalBlock && st.IndexedBlock == r.height()
	})
	r.verify()
	second.halt()
	if many := len(r.published()); many <= few {
		t.Fatalf("%d referrals at the start, %d at the end", few, many)
	}

	traces := map[uint64]string{} // by seq
	for _, k := range r.topic(chainlog.LogTopic(r.config.ID)) {
		record, err := chainlog.Decode(r.config.ID, k)
		r.must(err)
		traces[record.GetSeq()] = traceOf(t, k)
	}
	for _, topic := range []string{chainlog.ReferralDeposits(r.config.ID), chainlog.ReferralWithdrawals(r.config.ID)} {
		for _, k := range r.topic(topic) {
			referral := new(event.Referral)
			r.must(proto.Unmarshal(k.Value, referral))
			if got, want := traceOf(t, k), traces[referral.GetSeq()]; got != want {
				t.Errorf("the referral of seq %d is of trace %s, its record of %s", referral.GetSeq(), got, want)
			}
		}
	}
	r.spansOfABlock(spans, traces)
	read := map[string]bool{}
	for _, span := range spans.Named("read range") {
		read[span.TraceID()] = true
	}
	history := 0
	for _, span := range spans.Named("ingest ranges") {
		if !slices.Contains(slices.Collect(maps.Values(traces)), span.TraceID()) {
			continue // belongs to a parallel test
		}
		history++
		from := span.TraceID()
		for _, link := range span.Links() {
			from = link.SpanContext.TraceID().String()
		}
		if !read[from] {
			t.Errorf("the commit of a history has no link to the spans that read its ranges")
		}
	}
	if history == 0 {
		t.Error("no history was read")
	}
	telemetrytest.Without(t, spans, "hunter2", "key=", r.url)
}

// spansOfABlock checks that one trace has each step from a node to Kafka.
func (r *rig) spansOfABlock(spans *telemetrytest.Spans, traces map[uint64]string) {
	r.t.Helper()
	lacking := ""
	for _, trace := range traces {
		names := map[string]bool{}
		for _, span := range spans.Of(trace) {
			names[span.Name()] = true
		}
		lacking = ""
		for _, name := range []string{"ingest blocks", "read block", "eth_getLogs", "commit", "publish referral"} {
			if !names[name] {
				lacking += " " + name
			}
		}
		if lacking == "" {
			return
		}
	}
	r.t.Errorf("no trace has all steps of a block; the last one lacks%s", lacking)
}

// traceOf returns the id of the trace whose context a record carries.
func traceOf(t *testing.T, k *kgo.Record) string {
	t.Helper()
	id := telemetry.TraceID(chainlog.Parent(k))
	if id == "" {
		t.Fatalf("a record of %s carries no trace: %v", k.Topic, k.Headers)
	}
	return id
}
