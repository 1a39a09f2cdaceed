package projections

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/navlog/navlog/projections/write"
)

// metrics of one generation, which is a label of each metric. Counters start at 0 with the process; records that are
// folded again after a restart are counted again.
type metrics struct {
	own     *prometheus.Registry
	batches prometheus.Counter
	rows    *prometheus.CounterVec
	inserts *prometheus.CounterVec
	audits  *prometheus.CounterVec
	repairs *prometheus.CounterVec
	seq     prometheus.Gauge
	lag     prometheus.Gauge
	foreign prometheus.Gauge
	// openTransaction is how long a transaction has been seen open in the log.
	openTransaction prometheus.Gauge
	// impossibleLogs are the logs that contradict the state, by contract event.
	impossibleLogs  *prometheus.CounterVec
	quarantinedLogs prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	name := func(n string) string { return prometheus.BuildFQName("navlog", "projections", n) }
	own := prometheus.NewRegistry()
	f := promauto.With(own)
	m := &metrics{
		own: own,
		batches: f.NewCounter(prometheus.CounterOpts{Name: name("batches_total"),
			Help: "Batches that were committed."}),
		rows: f.NewCounterVec(prometheus.CounterOpts{Name: name("rows_total"), Help: "Rows inserted."},
			[]string{"table"}),
		inserts: f.NewCounterVec(prometheus.CounterOpts{Name: name("inserts_total"),
			Help: "Compare-and-swap inserts by outcome: ok; failed (sent again); absent (acknowledged but missing: alarm); " +
				"fenced (another writer); given_up."}, []string{"table", "outcome"}),
		audits: f.NewCounterVec(prometheus.CounterOpts{Name: name("audits_total"),
			Help: "Audits while the generation is written, by outcome: sound; failed (could not run: alarm). A broken " +
				"generation is marked bad and no longer written."}, []string{"outcome"}),
		repairs: f.NewCounterVec(prometheus.CounterOpts{Name: name("repairs_total"),
			Help: "Searches for broken parts of ClickHouse, made after a full disk or an unreadable part, by outcome: none " +
				"(no part is broken); done (replaced by the parts that they were merged from); lost (the generation is bad: " +
				"alarm); failed (the search failed: alarm)."}, []string{"outcome"}),
		seq: f.NewGauge(prometheus.GaugeOpts{Name: name("seq"),
			Help: "Seq up to which both tables are written; NaN if this instance does not write the generation."}),
		lag: f.NewGauge(prometheus.GaugeOpts{Name: name("lag_records"),
			Help: "Log offsets after the last written record, including transaction markers while records are missing, and " +
				"everything behind an open transaction. NaN if this instance does not write the generation."}),
		foreign: f.NewGauge(prometheus.GaugeOpts{Name: name("vaults_without_known_events"),
			Help: "Vaults that have logs, but none of a known event; the status names them. NaN if this instance does not " +
				"write the generation, or another one is live."}),
		openTransaction: f.NewGauge(prometheus.GaugeOpts{Name: name("open_transaction_seconds"),
			Help: "How long the oldest open transaction of the log has been seen; 0 without one. Nothing behind it can be " +
				"read."}),
		impossibleLogs: f.NewCounterVec(prometheus.CounterOpts{Name: name("impossible_logs_total"),
			Help: "Logs that contradict the state and change nothing (a claim of an unknown request, a second claim, a sweep " +
				"of no range)."}, []string{"event"}),
		quarantinedLogs: f.NewCounter(prometheus.CounterOpts{Name: name("quarantined_logs_total"),
			Help: "Logs and samples of NAV that cannot be decoded or summed and are in no total: alarm."}),
	}
	// Start at 0: otherwise the series would begin with the first failure, and an alert would see no increase.
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
	reg.MustRegister(own)
	return m
}

// ListMetrics registers the metrics of a generation with reg, for a list of all metrics: New registers none, because
// the generations that a projector writes are known only once it runs.
func ListMetrics(reg prometheus.Registerer) { newMetrics(withGenerationLabel(reg, 0)) }

func withGenerationLabel(reg prometheus.Registerer, generation int32) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"generation": fmt.Sprint(generation)}, reg)
}

func (k *keeper) counts() write.Counts {
	m := k.metrics
	return write.Counts{
		Batch:       m.batches.Inc,
		Rows:        func(table string, n int) { m.rows.WithLabelValues(table).Add(float64(n)) },
		Insert:      func(table, outcome string) { m.inserts.WithLabelValues(table, outcome).Inc() },
		Impossible:  func(event string) { m.impossibleLogs.WithLabelValues(event).Inc() },
		Quarantined: func(n int) { m.quarantinedLogs.Add(float64(n)) },
	}
}
