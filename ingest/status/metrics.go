package status

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of a running ingest, except those of the endpoints (rpc).
type Metrics struct {
	Head, Indexed, Final, Referral, Seq  prometheus.Gauge
	Frozen, Proven, Disproven, Differing prometheus.Gauge
	Logs, Referrals, Samples             *prometheus.CounterVec
	Transactions, Reorgs, Omitted        prometheus.Counter
	Appended                             atomic.Uint64 // logs, without retractions

	Disagreements *prometheus.CounterVec // by endpoint
	ReorgDepth    prometheus.Histogram

	gauges []prometheus.Gauge // all of them
}

func newMetrics(reg prometheus.Registerer) *Metrics {
	var gauges []prometheus.Gauge
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "navlog", Subsystem: "ingest", Name: name, Help: help})
		reg.MustRegister(g)
		gauges = append(gauges, g)
		return g
	}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "navlog", Subsystem: "ingest", Name: name, Help: help}
	}
	m := &Metrics{
		Head:     gauge("head_block", "Newest block at the node."),
		Indexed:  gauge("indexed_block", "Newest block in the log."),
		Final:    gauge("final_block", "Highest block that can no longer change."),
		Referral: gauge("referral_block", "Last block whose referrals were written to the referral topics."),
		Seq:      gauge("seq", "Seq of the last record in the log."),
		Frozen:   gauge("frozen", "1 while nothing is appended until an operator acts."),
		Proven: gauge("proven_block",
			"Block up to which the logs of every vault were compared with the headers of their blocks or, with "+
				"chain.receiptsEvery, proven by their receipts."),
		Disproven: gauge("disproven", "1 while the log is found to contradict the chain; the status names the block."),
		Differing: gauge("vaults_differing", "Vaults about which chain.vaults and the log disagree; the status names them."),
		Logs: prometheus.NewCounterVec(counter("logs_total",
			"Logs appended, without retractions; the event is Unknown if the mapping of the vault has none for the log."),
			[]string{"vault", "event"}),
		Samples: prometheus.NewCounterVec(counter("samples_total",
			"Samples of NAV: taken, or unanswered because the contract "+
				"reverts or does not return one word. Retractions are not counted."), []string{"vault", "result"}),
		Referrals:    prometheus.NewCounterVec(counter("referrals_total", "Referrals written."), []string{"kind"}),
		Transactions: prometheus.NewCounter(counter("transactions_total", "Committed Kafka transactions.")),
		Omitted: prometheus.NewCounter(counter("logs_without_data_total",
			"Logs appended with the length and the hash of their data, which is too large for a record.")),
		Reorgs: prometheus.NewCounter(counter("reorgs_total", "Reorganisations of the chain.")),
		ReorgDepth: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "navlog", Subsystem: "ingest", Name: "reorg_depth_blocks", Help: "Blocks lost in a reorganisation.",
			Buckets: []float64{1, 2, 3, 5, 8, 16, 32, 64, 128, 256, 1024},
		}),
		Disagreements: prometheus.NewCounterVec(counter("disagreements_total",
			"Polls in which another endpoint contradicted a block at the head, by that endpoint."), []string{"endpoint"}),
	}
	m.gauges = gauges
	reg.MustRegister(m.Disagreements, m.Logs, m.Samples, m.Referrals, m.Transactions, m.Omitted, m.Reorgs, m.ReorgDepth)
	return m
}
