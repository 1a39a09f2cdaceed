package projections

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/mapping"
)

// metrics of one generation, which is a label of each. Counters start at 0 with the process; records
// that are folded again after a restart are counted again.
type metrics struct {
	batches prometheus.Counter
	rows    *prometheus.CounterVec
	inserts *prometheus.CounterVec
	audits  *prometheus.CounterVec
	repairs *prometheus.CounterVec
	seq     prometheus.Gauge
	lag     prometheus.Gauge
	foreign prometheus.Gauge
	// openTransaction is for how long one was seen open in the log.
	openTransaction prometheus.Gauge
	// Logs that cannot be, and logs that cannot be counted, by contract event.
	impossibleLogs, quarantinedLogs *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	name := func(n string) string { return prometheus.BuildFQName("navlog", "projections", n) }
	m := &metrics{
		batches:         prometheus.NewCounter(prometheus.CounterOpts{Name: name("batches_total"), Help: "Batches that count."}),
		rows:            prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("rows_total"), Help: "Rows inserted."}, []string{"table"}),
		inserts:         prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("inserts_total"), Help: "Compare-and-swap inserts by outcome: ok; failed (sent again); absent (acknowledged and not there: alarm); fenced (another writer); given_up."}, []string{"table", "outcome"}),
		audits:          prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("audits_total"), Help: "Audits beside the writer by outcome: sound; failed (could not be made: alarm). A broken generation is bad, and not written any more."}, []string{"outcome"}),
		repairs:         prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("repairs_total"), Help: "Searches for broken parts of ClickHouse, made after a full disk or an unreadable part, by outcome: none (no part is broken); done (replaced by those that they were merged from); lost (the generation is bad: alarm); failed (could not be made: alarm)."}, []string{"outcome"}),
		seq:             prometheus.NewGauge(prometheus.GaugeOpts{Name: name("seq"), Help: "Seq up to which both tables are written; NaN where this instance does not write the generation."}),
		lag:             prometheus.NewGauge(prometheus.GaugeOpts{Name: name("lag_records"), Help: "Log offsets after the last record written; transaction markers included while records are missing, and what lies behind an open transaction. NaN where this instance does not write the generation."}),
		foreign:         prometheus.NewGauge(prometheus.GaugeOpts{Name: name("vaults_without_known_events"), Help: "Vaults that have logs, and none of a known event; the status names them."}),
		openTransaction: prometheus.NewGauge(prometheus.GaugeOpts{Name: name("open_transaction_seconds"), Help: "For how long the oldest open transaction of the log was seen; 0 without one. Behind it nothing can be read."}),
		impossibleLogs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("impossible_logs_total"),
			Help: "Logs that cannot be and change nothing (a claim of an unknown request, a second claim, a sweep of no range)."}, []string{"event"}),
		quarantinedLogs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("quarantined_logs_total"),
			Help: "Logs that cannot be decoded or summed and are in no total: alarm."}, []string{"event"}),
	}
	// From 0 on: the first failure would otherwise be where the series begins, and no increase that an alert sees.
	for _, outcome := range []string{"sound", "failed"} {
		m.audits.WithLabelValues(outcome)
	}
	for _, outcome := range repairOutcomes {
		m.repairs.WithLabelValues(outcome)
	}
	for _, table := range write.Tables {
		for _, outcome := range write.Outcomes {
			m.inserts.WithLabelValues(table, outcome)
		}
	}
	for _, event := range mapping.Reference().Events() {
		m.quarantinedLogs.WithLabelValues(event.Name)
	}
	reg.MustRegister(m.collectors()...)
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.batches, m.rows, m.inserts, m.audits, m.repairs, m.seq, m.lag, m.foreign, m.openTransaction, m.impossibleLogs, m.quarantinedLogs}
}

// forget takes the metrics of a generation that is gone away.
func (m *metrics) forget(reg prometheus.Registerer) {
	for _, c := range m.collectors() {
		reg.Unregister(c)
	}
}

// counts are what a writer counts.
func (k *keeper) counts() write.Counts {
	m := k.metrics
	return write.Counts{
		Batch:       m.batches.Inc,
		Rows:        func(table string, n int) { m.rows.WithLabelValues(table).Add(float64(n)) },
		Insert:      func(table, outcome string) { m.inserts.WithLabelValues(table, outcome).Inc() },
		Impossible:  func(event string) { m.impossibleLogs.WithLabelValues(event).Inc() },
		Quarantined: func(event string) { m.quarantinedLogs.WithLabelValues(event).Inc() },
	}
}
