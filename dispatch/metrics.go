package dispatch

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/schemas/registry"
)

// What became of a referral record.
const (
	recordInserted = "inserted"
	recordKnown    = "known" // a replay: nothing to do
	recordPoison   = "poison"
	recordConflict = "conflict" // another body under a known id: to be alarmed
	// recordCorrected tells what is true of a known event since its transaction was mined again.
	recordCorrected = "corrected"
	// recordQuarantined counts in no read model, so its partner is not told.
	recordQuarantined = "quarantined"
	// recordUnclaimed names a partner that does not exist: nothing is kept of it.
	recordUnclaimed = "unclaimed"
)

// metrics is what Prometheus sees, beside lane.Metrics.
type metrics struct {
	records     *prometheus.CounterVec // by what became of them
	lostRecords prometheus.Counter
	lag         prometheus.Gauge
	// openTransaction is for how long one was seen open in the referral topics.
	openTransaction prometheus.Gauge
	writes          prometheus.Histogram
	deliveries      *prometheus.GaugeVec // by state
	oldest          *prometheus.GaugeVec // by state
	measured        prometheus.Gauge
	openBreakers    prometheus.Gauge
	lanes           prometheus.Gauge
	writeRetries    prometheus.Counter
	failedTurns     prometheus.Counter     // of commands
	forgotten       *prometheus.CounterVec // by what was too old

	mu   sync.Mutex
	last Status
}

func newMetrics(reg prometheus.Registerer) *metrics {
	const namespace, subsystem = "navlog", "dispatch"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	m := &metrics{
		records:         prometheus.NewCounterVec(counter("records_total", "Referral records read, by what became of them. conflict, poison and quarantined are in dead_record; unclaimed name partners that do not exist; corrected were told, or waited, with another block."), []string{"result"}),
		lostRecords:     prometheus.NewCounter(counter("lost_records_total", "Offsets that a referral topic deleted before they were read.")),
		lag:             prometheus.NewGauge(gauge("lag_records", "Offsets of the referral topics that are not read yet, those behind an open transaction included.")),
		openTransaction: prometheus.NewGauge(gauge("open_transaction_seconds", "For how long the oldest open transaction of the referral topics was seen; 0 without one. Behind it nothing can be read.")),
		writes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "result_batch", Help: "Results of POSTs written by one transaction.",
			Buckets: []float64{1, 2, 5, 10, 25, 50, 100, 250, 500},
		}),
		deliveries:   prometheus.NewGaugeVec(gauge("deliveries", "Deliveries that are not delivered, by state. Of failed and no_endpoint, which are kept for ever, 10000 means that many or more."), []string{"state"}),
		oldest:       prometheus.NewGaugeVec(gauge("oldest_seconds", "How long the oldest waiting delivery has been due, by state."), []string{"state"}),
		measured:     prometheus.NewGauge(gauge("measured_timestamp_seconds", "When the queue was measured last, as Unix time. deliveries, oldest_seconds and open_breakers are as old.")),
		openBreakers: prometheus.NewGauge(gauge("open_breakers", "Breakers of partners' URLs that are open or half-open, over all dispatchers. Those of disabled partners and of older URLs do not count.")),
		lanes:        prometheus.NewGauge(gauge("lanes", "Partners that this dispatcher sends to.")),
		writeRetries: prometheus.NewCounter(counter("result_write_retries_total", "Results of POSTs that could not be written at once.")),
		failedTurns:  prometheus.NewCounter(counter("command_failures_total", "Tests and replays that failed and are tried again, counted at each try.")),
		forgotten:    prometheus.NewCounterVec(counter("forgotten_total", "Rows that were older than webhooks.retentionDays: attempt, test, command and unclaimed, a delivery that is no partner's, were taken out, attempt-detail lost the body of its answer."), []string{"what"}),
	}
	for _, r := range []string{recordInserted, recordKnown, recordPoison, recordConflict, recordCorrected, recordQuarantined, recordUnclaimed} {
		m.records.WithLabelValues(r)
	}
	reg.MustRegister(m.records, m.lostRecords, m.lag, m.openTransaction, m.writes,
		m.deliveries, m.oldest, m.measured, m.openBreakers, m.lanes, m.writeRetries, m.failedTurns, m.forgotten)
	return m
}

// show sets the gauges and keeps the status for snapshot.
func (m *metrics) show(s Status, lanes int) {
	for state, n := range s.Deliveries {
		m.deliveries.WithLabelValues(state).Set(float64(n))
	}
	m.oldest.WithLabelValues(registry.Pending).Set(s.OldestPendingSeconds)
	m.oldest.WithLabelValues(registry.Parked).Set(s.OldestParkedSeconds)
	m.measured.Set(float64(s.MeasuredAt.UnixMilli()) / 1000)
	m.openBreakers.Set(float64(s.OpenBreakers))
	m.lanes.Set(float64(lanes))
	m.mu.Lock()
	defer m.mu.Unlock()
	s.LagRecords = m.last.LagRecords
	m.last = s
}

func (m *metrics) setLag(records int64) {
	m.lag.Set(float64(records))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last.LagRecords = records
}

func (m *metrics) snapshot() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.last
	s.Deliveries = maps.Clone(m.last.Deliveries)
	return s
}
