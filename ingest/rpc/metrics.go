package rpc

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/schemas/registry"
)

type callMetrics struct {
	// Labels: endpoint and method.
	rpcErrors  *prometheus.CounterVec
	rpcSeconds *prometheus.HistogramVec
	// Label: endpoint.
	limited, announcements *prometheus.CounterVec
}

func newCallMetrics(reg prometheus.Registerer) *callMetrics {
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: "navlog", Subsystem: "ingest", Name: name, Help: help}
	}
	m := &callMetrics{
		rpcErrors: prometheus.NewCounterVec(counter("rpc_errors_total", "Failed calls to a node."),
			[]string{"endpoint", "method"}),
		limited: prometheus.NewCounterVec(counter("rpc_limited_total",
			"Calls that an endpoint rejected because of its rate limit."), []string{"endpoint"}),
		announcements: prometheus.NewCounterVec(counter("announcements_total",
			"Blocks that an endpoint announced over a WebSocket."), []string{"endpoint"}),
		rpcSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "navlog", Subsystem: "ingest", Name: "rpc_seconds",
			Help:    "Time from a request to the end of its response; a batch is one request.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 10),
		}, []string{"endpoint", "method"}),
	}
	reg.MustRegister(m.rpcErrors, m.limited, m.announcements, m.rpcSeconds)
	return m
}

// The bill and the state of each endpoint at the time of the scrape.
var (
	rpcCalls = ofMethod("calls", "Calls to a node; each call of a batch counts.")
	rpcBytes = ofMethod("bytes", "Bytes of responses, after decompression; over a WebSocket those of the results.")
	rpcUnits = ofMethod("units", "Price units of the calls to a node, at the prices of the endpoint.")

	endpointState     = endpointGauge("state", "1 for the state that the endpoint is in.", "state")
	endpointInUse     = endpointGauge("in_use", "1 for the endpoint in use for the head.")
	endpointHead      = endpointGauge("head_block", "Newest block that the endpoint returned.")
	endpointSubscribe = endpointGauge("subscribed", "1 while the endpoint announces new blocks over a WebSocket.")
)

func ofMethod(what, help string) *prometheus.Desc {
	return prometheus.NewDesc("navlog_ingest_rpc_"+what+"_total", help, []string{"endpoint", "method"}, nil)
}

func endpointGauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("navlog_ingest_endpoint_"+name, help, append([]string{"endpoint"}, labels...), nil)
}

// Describe implements prometheus.Collector.
func (p *Pool) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		rpcCalls, rpcBytes, rpcUnits, endpointState, endpointInUse, endpointHead, endpointSubscribe,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p *Pool) Collect(to chan<- prometheus.Metric) {
	for _, n := range p.all {
		for _, m := range n.spent.Calls() {
			to <- prometheus.MustNewConstMetric(rpcCalls, prometheus.CounterValue, float64(m.Calls), n.Name, m.Method)
			to <- prometheus.MustNewConstMetric(rpcBytes, prometheus.CounterValue, float64(m.Bytes), n.Name, m.Method)
			if m.Units > 0 {
				to <- prometheus.MustNewConstMetric(rpcUnits, prometheus.CounterValue, float64(m.Units), n.Name, m.Method)
			}
		}
	}
	for _, e := range p.Status() {
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{e.Name}, labels...)...)
		}
		for _, state := range registry.EndpointStates {
			gauge(endpointState, toFloat(e.State == state), state)
		}
		gauge(endpointInUse, toFloat(e.InUse))
		gauge(endpointSubscribe, toFloat(e.Subscribed))
		if e.HeadBlock > 0 {
			gauge(endpointHead, float64(e.HeadBlock))
		}
	}
}

func toFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Bill counts the calls to a node since the process began, by method. A call in a batch counts like a single one, and
// so does one that was rate-limited or failed, as on a provider's bill.
type Bill struct {
	Prices map[string]uint64 // units per call, by method

	mu       sync.Mutex
	byMethod map[string]*registry.MethodCalls
}

// Add counts calls.
func (s *Bill) Add(method string, questions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(method)
	m.Calls += uint64(questions)
	m.Units += s.Prices[method] * uint64(questions)
}

// Received counts the bytes of a response.
func (s *Bill) Received(method string, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(method).Bytes += uint64(bytes)
}

func (s *Bill) of(method string) *registry.MethodCalls {
	if s.byMethod == nil {
		s.byMethod = map[string]*registry.MethodCalls{}
	}
	if s.byMethod[method] == nil {
		s.byMethod[method] = &registry.MethodCalls{Method: method}
	}
	return s.byMethod[method]
}

// Calls returns the calls by method, the most called method first.
func (s *Bill) Calls() []registry.MethodCalls {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]registry.MethodCalls, 0, len(s.byMethod))
	for _, m := range s.byMethod {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b registry.MethodCalls) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Method, b.Method))
	})
	return all
}
