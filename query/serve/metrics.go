package serve

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	requests *prometheus.CounterVec   // route, method, status
	seconds  *prometheus.HistogramVec // route
	panics   prometheus.Counter
	refused  prometheus.Counter
	live     prometheus.Gauge
	cut      *prometheus.CounterVec // why
	engine   *prometheus.CounterVec // class
}

func newMetrics(reg prometheus.Registerer, cached func() int) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "navlog_query_requests_total", Help: "HTTP requests, by route, method and status.",
		}, []string{"route", "method", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "navlog_query_request_seconds", Help: "Response times, by route.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
		}, []string{"route"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "navlog_query_panics_total",
			Help: "Requests that ended in a panic: they got a 500, or their response was cut off.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "navlog_query_refused_total", Help: "Requests rejected with 503 because too many were in progress.",
		}),
	}
	m.live = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "navlog_query_open_streams", Help: "Streams of events that are open.",
	})
	m.cut = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "navlog_query_cut_off_total",
		Help: "Long responses that ended early, by reason: slow (the client read too slowly), late (too long), left (the " +
			"client disconnected) or error.",
	}, []string{"why"})
	m.engine = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "navlog_query_slot_seconds_total",
		Help: "Time that requests held a slot of the engine, by class: cheap or expensive; or, proving, a place to wait " +
			"for proofs.",
	}, []string{"class"})
	for _, why := range []string{"slow", "late", "left", "error"} {
		m.cut.WithLabelValues(why)
	}
	kept := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "navlog_query_cached_answers", Help: "Finished responses about the newest state in the cache.",
	}, func() float64 { return float64(cached()) })
	reg.MustRegister(kept, m.requests, m.seconds, m.panics, m.refused, m.live, m.cut, m.engine)
	return m
}
