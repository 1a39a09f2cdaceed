package health

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

var navTime = prometheus.NewDesc("navlog_query_nav_timestamp_seconds",
	"Unix time of the newest NAV of a vault in the served read models, by the time of its block. A vault without a NAV "+
		"has no series.",
	[]string{"vault"}, nil)

// Describe implements prometheus.Collector.
func (h *Health) Describe(to chan<- *prometheus.Desc) { to <- navTime }

// Collect implements prometheus.Collector. The times are those of /status: they do not depend on what this process, or
// ingest, has seen since its start.
func (h *Health) Collect(to chan<- prometheus.Metric) {
	s := h.Watcher.Snapshot()
	if s == nil {
		return
	}
	times := h.navs.at(context.Background(), s)
	for _, v := range s.Vaults {
		if at := times[v.Address]; at > 0 {
			to <- prometheus.MustNewConstMetric(navTime, prometheus.GaugeValue, float64(at), v.Written)
		}
	}
}
