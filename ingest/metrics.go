package ingest

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	head, indexed, final, referral, seq  prometheus.Gauge
	frozen, proven, disproven, differing prometheus.Gauge
	logs, referrals, samples             *prometheus.CounterVec
	transactions, reorgs, omitted        prometheus.Counter
	appended                             atomic.Uint64 // logs, without retractions

	disagreements *prometheus.CounterVec // by endpoint
	reorgDepth    prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "navlog", Subsystem: "ingest", Name: name, Help: help})
	}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "navlog", Subsystem: "ingest", Name: name, Help: help}
	}
	m := &metrics{
		head:      gauge("head_block", "Newest block at the node."),
		indexed:   gauge("indexed_block", "Newest block in the log."),
		final:     gauge("final_block", "Highest block that can no longer change."),
		referral:  gauge("referral_block", "Last block whose referrals were written to the referral topics."),
		seq:       gauge("seq", "Seq of the last record in the log."),
		frozen:    gauge("frozen", "1 while nothing is appended until an operator acts."),
		proven:    gauge("proven_block", "Block up to which the logs of every vault were compared with the headers of their blocks or, with chain.receiptsEvery, proven by their receipts."),
		disproven: gauge("disproven", "1 after the log was found to contradict the chain; the status names the block."),
		differing: gauge("vaults_differing", "Vaults about which chain.vaults and the log disagree; the status names them."),
		logs:      prometheus.NewCounterVec(counter("logs_total", "Logs appended, without retractions."), []string{"vault", "event"}),
		samples: prometheus.NewCounterVec(counter("samples_total", "Samples of NAV: taken, or unanswered because the contract "+
			"reverts or does not return one word. Retractions are not counted."), []string{"vault", "result"}),
		referrals:    prometheus.NewCounterVec(counter("referrals_total", "Referrals written."), []string{"kind"}),
		transactions: prometheus.NewCounter(counter("transactions_total", "Committed Kafka transactions.")),
		omitted:      prometheus.NewCounter(counter("logs_without_data_total", "Logs appended with the length and the hash of their data, which is too large for a record.")),
		reorgs:       prometheus.NewCounter(counter("reorgs_total", "Reorganisations of the chain.")),
		reorgDepth: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "navlog", Subsystem: "ingest", Name: "reorg_depth_blocks", Help: "Blocks lost in a reorganisation.",
			Buckets: []float64{1, 2, 3, 5, 8, 16, 32, 64, 128, 256, 1024},
		}),
		disagreements: prometheus.NewCounterVec(counter("disagreements_total", "Polls in which another endpoint contradicted a block at the head, by that endpoint."), []string{"endpoint"}),
	}
	reg.MustRegister(m.disagreements, m.head, m.indexed, m.final, m.referral, m.seq, m.frozen, m.proven, m.disproven, m.differing, m.logs, m.samples, m.referrals, m.transactions, m.omitted, m.reorgs, m.reorgDepth)
	return m
}
