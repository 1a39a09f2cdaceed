package dispatch

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// laneMetrics is what Prometheus sees of sending.
type laneMetrics struct {
	attempts   *prometheus.CounterVec // by outcome
	seconds    prometheus.Histogram
	phases     *prometheus.HistogramVec // by phase
	parked     prometheus.Counter
	lostLeases prometheus.Counter
}

func newLaneMetrics(reg prometheus.Registerer) *laneMetrics {
	const namespace, subsystem = "navlog", "dispatch"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	m := &laneMetrics{
		attempts: prometheus.NewCounterVec(counter("attempts_total", "POSTs to partners, by outcome."), []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "attempt_seconds", Help: "Duration of POSTs to partners.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 12},
		}),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "phase_seconds",
			Help:    "Duration of the phases of POSTs: dns, connect and tls of new connections, and first_byte from the start of the POST.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"phase"}),
		parked:     prometheus.NewCounter(counter("parked_total", "Deliveries put aside because a breaker was open.")),
		lostLeases: prometheus.NewCounter(counter("lost_leases_total", "Partners taken over by another dispatcher while this one was sending.")),
	}
	for _, o := range outcomes {
		m.attempts.WithLabelValues(o)
	}
	reg.MustRegister(m.attempts, m.seconds, m.phases, m.parked, m.lostLeases)
	return m
}

// attempt counts a POST.
func (m *laneMetrics) attempt(r result) {
	m.attempts.WithLabelValues(r.outcome).Inc()
	m.seconds.Observe(r.took.Seconds())
	for phase, d := range map[string]time.Duration{"dns": r.phases.dns, "connect": r.phases.connect, "tls": r.phases.tls, "first_byte": r.phases.firstByte} {
		if d >= 0 {
			m.phases.WithLabelValues(phase).Observe(d.Seconds())
		}
	}
}
