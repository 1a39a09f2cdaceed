package lane

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics holds the Prometheus metrics of sending.
type Metrics struct {
	Attempts   *prometheus.CounterVec // by outcome
	seconds    prometheus.Histogram
	phases     *prometheus.HistogramVec // by phase
	failed     prometheus.Counter       // events, not test events
	parked     prometheus.Counter
	LostLeases prometheus.Counter
}

// NewMetrics returns metrics that are registered with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	const namespace, subsystem = "navlog", "dispatch"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	f := promauto.With(reg)
	m := &Metrics{
		Attempts: f.NewCounterVec(counter("attempts_total", "POSTs to partners, by outcome."), []string{"outcome"}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "attempt_seconds", Help: "Duration of POSTs to partners.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 12},
		}),
		phases: f.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "phase_seconds",
			Help: "Duration of the phases of POSTs: dns, connect and tls of new connections, " +
				"and first_byte from the start of the POST.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"phase"}),
		failed: f.NewCounter(counter("failed_total",
			"Events that became failed, because all attempts to send them have failed; test events do not count.")),
		parked: f.NewCounter(counter("parked_total",
			"Deliveries parked because a breaker was open or an operator had parked the partner.")),
		LostLeases: f.NewCounter(counter("lost_leases_total",
			"Partners that another dispatcher took over while this one was sending, "+
				"or that were left at shutdown with results that could not be written.")),
	}
	for _, o := range outcomes {
		m.Attempts.WithLabelValues(o)
	}
	return m
}

// attempt counts a POST.
func (m *Metrics) attempt(r Result) {
	m.Attempts.WithLabelValues(r.Outcome).Inc()
	m.seconds.Observe(r.Took.Seconds())
	for phase, d := range map[string]time.Duration{
		"dns": r.Phases.DNS, "connect": r.Phases.Connect, "tls": r.Phases.TLS, "first_byte": r.Phases.FirstByte,
	} {
		if d >= 0 {
			m.phases.WithLabelValues(phase).Observe(d.Seconds())
		}
	}
}
