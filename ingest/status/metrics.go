package status

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those that a running ingest counts, except those of the endpoints (rpc). Its gauges show the status.
type Metrics struct {
	Logs, Referrals, Samples      *prometheus.CounterVec
	Transactions, Reorgs, Omitted prometheus.Counter
	Appended                      atomic.Uint64 // logs, without retractions

	Disagreements *prometheus.CounterVec // by endpoint
	ReorgDepth    prometheus.Histogram
}

func (t *Tracker) registerGauges(reg prometheus.Registerer) {
	gauge := func(name, help string, of func(*Status) uint64) {
		reg.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Namespace: "navlog", Subsystem: "ingest", Name: name, Help: help},
			func() (value float64) {
				t.Note(func(st *Status) { value = float64(of(st)) })
				return value
			}))
	}
	flag := func(name, help string, of func(*Status) bool) {
		gauge(name, help, func(st *Status) uint64 {
			if of(st) {
				return 1
			}
			return 0
		})
	}
	gauge("head_block", "Newest block at the node.", func(st *Status) uint64 { return st.HeadBlock })
	gauge("indexed_block", "Newest block in the log.", func(st *Status) uint64 { return st.IndexedBlock })
	gauge("final_block", "Highest block that can no longer change.", func(st *Status) uint64 { return st.FinalBlock })
	gauge("referral_block", "Last block whose referrals were written to the referral topics.",
		func(st *Status) uint64 { return st.ReferralBlock })
	gauge("seq", "Seq of the last record in the log.", func(st *Status) uint64 { return st.Seq })
	flag("frozen", "1 while nothing is appended until an operator acts.", func(st *Status) bool { return st.LogFrozen })
	gauge("proven_block", "Block up to which the logs of every vault were compared with the headers of their blocks or, "+
		"with chain.receiptsEvery, proven by their receipts.", func(st *Status) uint64 { return st.ProvenTo })
	flag("disproven", "1 while the log is found to contradict the chain; the status names the block.",
		func(st *Status) bool { return st.Disproven != "" })
	flag("receipts_failing", "1 while the proofs by receipts (chain.receiptsEvery) fail; the status shows why.",
		func(st *Status) bool { return st.ReceiptsWarning != "" })
	gauge("vaults_differing", "Vaults about which chain.vaults and the log disagree; the status names them.",
		func(st *Status) uint64 { return uint64(len(st.VaultWarnings)) })
}

func newMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "navlog", Subsystem: "ingest", Name: name, Help: help}
	}
	m := &Metrics{
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
	reg.MustRegister(m.Disagreements, m.Logs, m.Samples, m.Referrals, m.Transactions, m.Omitted, m.Reorgs, m.ReorgDepth)
	return m
}
