package ingest

import (
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
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

// committed counts the contents of a transaction, and returns the logs that it appended without their data.
func (m *metrics) committed(c *change, due []referral, s *state) (omitted []*event.Log) {
	m.transactions.Inc()
	type label struct {
		vault common.Address
		event string
	}
	logs := map[label]int{}
	for _, unit := range c.units {
		for _, r := range unit {
			if sample := r.GetSample(); sample != nil && r.GetRetracts() == 0 {
				m.samples.WithLabelValues(common.BytesToAddress(sample.GetVault()).Hex(), "taken").Inc()
			}
			if log := r.GetLog(); log != nil && r.GetRetracts() == 0 {
				m.appended.Add(1)
				logs[label{mapping.VaultOf(log), eventOf(s.mapped, log)}]++
				if log.Omitted() {
					m.omitted.Inc()
					omitted = append(omitted, log)
				}
			}
		}
	}
	for l, n := range logs {
		m.logs.WithLabelValues(l.vault.Hex(), l.event).Add(float64(n))
	}
	for _, r := range due {
		kind := "deposit"
		if r.kind == event.Referral_KIND_WITHDRAWAL {
			kind = "withdrawal"
		}
		m.referrals.WithLabelValues(kind).Inc()
	}
	if c.ancestor != nil {
		m.reorgs.Inc()
		m.reorgDepth.Observe(float64(s.head.Number - *c.ancestor))
	}
	m.position(s)
	return omitted
}

// position shows the position of the log.
func (m *metrics) position(s *state) {
	if s.head != nil {
		m.indexed.Set(float64(s.head.Number))
	}
	m.final.Set(float64(s.final))
	m.referral.Set(float64(s.told))
	m.seq.Set(float64(s.seq))
	m.frozen.Set(0)
	if s.frozen != "" {
		m.frozen.Set(1)
	}
}
