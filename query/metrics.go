package query

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests     *prometheus.CounterVec   // route, method, status
	seconds      *prometheus.HistogramVec // route
	limited      *prometheus.CounterVec   // limit
	authFailures prometheus.Counter
	panics       prometheus.Counter
	refused      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, q *Query) metrics {
	name := func(s string) string { return "navlog_query_" + s }
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("requests_total"), Help: "HTTP requests, by route, method and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name("request_seconds"), Help: "Time to answer, by route.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
		}, []string{"route"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name("rate_limited_total"), Help: "Requests refused by a limit: public, partner, webhooks or failed-keys.",
		}, []string{"limit"}),
		authFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: name("auth_failures_total"), Help: "Requests with no key or an invalid one.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: name("panics_total"), Help: "Requests that ended in a panic and were answered 500.",
		}),
	}
	m.refused = prometheus.NewCounter(prometheus.CounterOpts{
		Name: name("refused_total"), Help: "Requests answered 503 because too many were being answered.",
	})
	ofSnapshot := func(s, help string, value func(*snapshot) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name(s), Help: help}, func() float64 {
			if s := q.snapshot.Load(); s != nil {
				return value(s)
			}
			return 0
		})
	}
	pastRead := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: name("read_ahead"), Help: "1 once the checkpoints of the past are read; before, what needs one takes longer.",
	}, func() float64 {
		if q.pastRead.Load() {
			return 1
		}
		return 0
	})
	reg.MustRegister(pastRead, m.requests, m.seconds, m.limited, m.authFailures, m.panics, m.refused,
		ofSnapshot("indexed_seq", "Last seq of the log that answers are made of; 0 before the first snapshot.", func(s *snapshot) float64 { return float64(s.seq) }),
		ofSnapshot("indexed_block", "Newest indexed block.", func(s *snapshot) float64 { return float64(s.block) }),
		ofSnapshot("generation", "Generation that answers are made of.", func(s *snapshot) float64 { return float64(s.id) }),
		ofSnapshot("snapshot_age_seconds", "Time since the read models were last seen.", func(s *snapshot) float64 { return q.now().Sub(s.seen).Seconds() }),
	)
	return m
}
