package ingest

import (
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
)

type metrics struct {
	head, indexed, final, referral, seq prometheus.Gauge
	frozen, proven, disproven           prometheus.Gauge
	logs, referrals                     *prometheus.CounterVec
	transactions, reorgs                prometheus.Counter
	appended                            atomic.Uint64 // logs, retractions not counted

	spent spending
	// By endpoint and method.
	rpcErrors, rpcCalls, rpcBytes, rpcUnits *prometheus.CounterVec
	rpcSeconds                              *prometheus.HistogramVec
	// By endpoint.
	limited, announcements, disagreements *prometheus.CounterVec
	reorgDepth                            prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "navlog", Subsystem: "ingest", Name: name, Help: help})
	}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "navlog", Subsystem: "ingest", Name: name, Help: help}
	}
	m := &metrics{
		head:         gauge("head_block", "Newest block at the node."),
		indexed:      gauge("indexed_block", "Newest block in the log."),
		final:        gauge("final_block", "Highest block that cannot change any more."),
		referral:     gauge("referral_block", "Last block whose referrals were told."),
		seq:          gauge("seq", "Seq of the last record in the log."),
		frozen:       gauge("frozen", "1 while nothing is appended until an operator acts."),
		proven:       gauge("proven_block", "Block up to which the logs of every vault were compared with the headers of their blocks."),
		disproven:    gauge("disproven", "1 when the log was found not to be what the chain has; the status says where."),
		logs:         prometheus.NewCounterVec(counter("logs_total", "Logs appended, retractions not counted."), []string{"vault", "event"}),
		referrals:    prometheus.NewCounterVec(counter("referrals_total", "Referrals written."), []string{"kind"}),
		transactions: prometheus.NewCounter(counter("transactions_total", "Committed Kafka transactions.")),
		reorgs:       prometheus.NewCounter(counter("reorgs_total", "Reorganisations of the chain.")),
		reorgDepth: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "navlog", Subsystem: "ingest", Name: "reorg_depth_blocks", Help: "Blocks lost in a reorganisation.",
			Buckets: []float64{1, 2, 3, 5, 8, 16, 32, 64, 128, 256, 1024},
		}),
		rpcErrors:     prometheus.NewCounterVec(counter("rpc_errors_total", "Calls of a node that failed."), []string{"endpoint", "method"}),
		rpcBytes:      prometheus.NewCounterVec(counter("rpc_bytes_total", "Bytes of answers, after decompression; over a WebSocket those of the results."), []string{"endpoint", "method"}),
		rpcCalls:      prometheus.NewCounterVec(counter("rpc_calls_total", "Questions that were sent to a node; each one of a batch counts."), []string{"endpoint", "method"}),
		rpcUnits:      prometheus.NewCounterVec(counter("rpc_units_total", "Those questions at the prices of chain.prices."), []string{"endpoint", "method"}),
		limited:       prometheus.NewCounterVec(counter("rpc_limited_total", "Calls that an endpoint put off because it is asked too often."), []string{"endpoint"}),
		announcements: prometheus.NewCounterVec(counter("announcements_total", "Blocks that an endpoint announced over a WebSocket."), []string{"endpoint"}),
		disagreements: prometheus.NewCounterVec(counter("disagreements_total", "Blocks at the head that another endpoint contradicted, by that endpoint."), []string{"endpoint"}),
		rpcSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "navlog", Subsystem: "ingest", Name: "rpc_seconds", Help: "Time from a question to the end of its answer; batches are one.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 10),
		}, []string{"endpoint", "method"}),
	}
	reg.MustRegister(m.rpcErrors, m.rpcCalls, m.rpcBytes, m.rpcUnits, m.limited, m.announcements, m.disagreements, m.rpcSeconds)
	reg.MustRegister(m.head, m.indexed, m.final, m.referral, m.seq, m.frozen, m.proven, m.disproven, m.logs, m.referrals, m.transactions, m.reorgs, m.reorgDepth)
	return m
}

// asked counts an exchange with a node, of one or more questions.
func (m *metrics) asked(endpoint, method string, questions int, took time.Duration) {
	m.rpcSeconds.WithLabelValues(endpoint, method).Observe(took.Seconds())
	m.rpcCalls.WithLabelValues(endpoint, method).Add(float64(questions))
	if units := m.spent.add(method, questions); units > 0 {
		m.rpcUnits.WithLabelValues(endpoint, method).Add(float64(units))
	}
}

// answered counts the bytes of an answer.
func (m *metrics) answered(endpoint, method string, bytes int) {
	m.rpcBytes.WithLabelValues(endpoint, method).Add(float64(bytes))
	m.spent.received(method, bytes)
}

// committed counts what a transaction did.
func (m *metrics) committed(c *change, due []*event.Record, s *state) {
	m.transactions.Inc()
	type label struct {
		vault common.Address
		kind  contracts.Kind
	}
	logs := map[label]int{}
	for _, unit := range c.units {
		for _, r := range unit {
			if log := r.GetLog(); log != nil && r.GetRetracts() == 0 {
				m.appended.Add(1)
				logs[label{common.BytesToAddress(log.GetAddress()), kindOf(log)}]++
			}
		}
	}
	for l, n := range logs {
		m.logs.WithLabelValues(l.vault.Hex(), l.kind.String()).Add(float64(n))
	}
	for _, r := range due {
		kind := "deposit"
		if referralOf(r.GetLog()).kind == event.Referral_KIND_WITHDRAWAL {
			kind = "withdrawal"
		}
		m.referrals.WithLabelValues(kind).Inc()
	}
	if c.ancestor != nil {
		m.reorgs.Inc()
		m.reorgDepth.Observe(float64(s.head.Number - *c.ancestor))
	}
	m.position(s)
}

// position shows where the log is.
func (m *metrics) position(s *state) {
	if s.head != nil {
		m.indexed.Set(float64(s.head.Number))
	}
	m.final.Set(float64(s.final))
	m.referral.Set(float64(s.told))
	m.seq.Set(float64(s.seq))
	m.frozen.Set(oneIf(s.frozen != ""))
}

func kindOf(log *event.Log) contracts.Kind {
	if len(log.GetTopics()) == 0 {
		return contracts.KindUnknown
	}
	return contracts.KindOf(common.BytesToHash(log.GetTopics()[0]))
}

// What each endpoint is, at the moment of asking.
var (
	endpointState     = endpointGauge("state", "1 for the state that the endpoint is in.", "state")
	endpointInUse     = endpointGauge("in_use", "1 for the endpoint that is asked for the head.")
	endpointLatency   = endpointGauge("latency_seconds", "Moving average of the time to an answer.")
	endpointHead      = endpointGauge("head_block", "Newest block that the endpoint gave.")
	endpointSubscribe = endpointGauge("subscribed", "1 while the endpoint announces new blocks over a WebSocket.")
)

func endpointGauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("navlog_ingest_endpoint_"+name, help, append([]string{"endpoint"}, labels...), nil)
}

// Describe implements prometheus.Collector.
func (p *nodes) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{endpointState, endpointInUse, endpointLatency, endpointHead, endpointSubscribe} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p *nodes) Collect(to chan<- prometheus.Metric) {
	for _, e := range p.status() {
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{e.Name}, labels...)...)
		}
		for _, state := range registry.EndpointStates {
			gauge(endpointState, oneIf(e.State == state), state)
		}
		gauge(endpointInUse, oneIf(e.InUse))
		gauge(endpointSubscribe, oneIf(e.Subscribed))
		if e.LatencyMs != nil {
			gauge(endpointLatency, *e.LatencyMs/1000)
		}
		if e.HeadBlock > 0 {
			gauge(endpointHead, float64(e.HeadBlock))
		}
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
