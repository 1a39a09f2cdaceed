package dispatch

import (
	"maps"
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Results of reading a referral record.
const (
	recordInserted = "inserted"
	recordKnown    = "known" // read again: nothing to do
	recordPoison   = "poison"
	recordConflict = "conflict" // another body for a known id: raises an alert
	// recordCorrected is a known event whose transaction was mined again.
	recordCorrected = "corrected"
	// recordQuarantined is counted in no read model, so its partner is not notified.
	recordQuarantined = "quarantined"
	// recordUnclaimed names an unknown partner; nothing is stored.
	recordUnclaimed = "unclaimed"
)

// metrics holds the package's Prometheus metrics; lane.Metrics has those of sending.
type metrics struct {
	records     *prometheus.CounterVec // by result
	lostRecords prometheus.Counter
	lag         prometheus.Gauge
	// openTransaction is how long the oldest open transaction of the referral topics has been seen.
	openTransaction prometheus.Gauge
	writes          prometheus.Histogram
	deliveries      *prometheus.GaugeVec // by state
	oldest          *prometheus.GaugeVec // by state
	measured        prometheus.Gauge
	openBreakers    prometheus.Gauge
	certificates    *prometheus.GaugeVec // by kind
	lanes           prometheus.Gauge
	writeRetries    prometheus.Counter
	failedTurns     prometheus.Counter     // failed runs of commands
	pruned          *prometheus.CounterVec // by kind of row

	mu   sync.Mutex
	last Status
}

func newMetrics(reg prometheus.Registerer) *metrics {
	const namespace, subsystem = "navlog", "dispatch"
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	f := promauto.With(reg)
	m := &metrics{
		records: f.NewCounterVec(counter("records_total",
			"Referral records read, by result. known was read before; conflict, poison and quarantined are stored in "+
				"dead_record; unclaimed names a partner that does not exist; corrected is a known event that was mined again "+
				"in another block."),
			[]string{"result"}),
		lostRecords: f.NewCounter(counter("lost_records_total",
			"Offsets of the referral topics that were deleted before they were read.")),
		lag: f.NewGauge(gauge("lag_records",
			"Offsets of the referral topics not read yet, including those behind an open transaction.")),
		openTransaction: f.NewGauge(gauge("open_transaction_seconds",
			"How long the oldest open transaction of the referral topics has been seen; 0 if there is none. "+
				"Records behind it cannot be read.")),
		writes: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "result_batch",
			Help:    "Results of POSTs written by one transaction.",
			Buckets: []float64{1, 2, 5, 10, 25, 50, 100, 250, 500},
		}),
		deliveries: f.NewGaugeVec(gauge("deliveries",
			"Undelivered deliveries, by state. failed and no_endpoint are kept forever and counted up to 10000."),
			[]string{"state"}),
		oldest: f.NewGaugeVec(gauge("oldest_seconds",
			"How long the oldest pending or parked delivery has been due, by state."), []string{"state"}),
		measured: f.NewGauge(gauge("measured_timestamp_seconds",
			"Unix time at which deliveries, oldest_seconds and open_breakers were last measured.")),
		openBreakers: f.NewGauge(gauge("open_breakers",
			"Open or half-open breakers of partners' current URLs, over all dispatchers, without disabled partners.")),
		certificates: f.NewGaugeVec(gauge("certificate_expiry_timestamp_seconds",
			"Unix time at which the first certificate for the webhook URL of any partner expires, by certificate: "+
				"authority or client; +Inf if there is none."), []string{"certificate"}),
		lanes: f.NewGauge(gauge("lanes", "Partners that this dispatcher sends to.")),
		writeRetries: f.NewCounter(counter("result_write_retries_total",
			"Retried writes of POST results.")),
		failedTurns: f.NewCounter(counter("command_failures_total",
			"Failed runs of test and replay commands; each retry that fails counts.")),
		pruned: f.NewCounterVec(counter("forgotten_total",
			"Rows pruned because they were older than webhooks.retentionDays. attempt, test and command were "+
				"deleted; attempt-detail lost its response body."), []string{"what"}),
	}
	for _, r := range []string{
		recordInserted, recordKnown, recordPoison, recordConflict, recordCorrected, recordQuarantined, recordUnclaimed,
	} {
		m.records.WithLabelValues(r)
	}
	m.showCertificates(nil)
	return m
}

// show sets the gauges and keeps the status for snapshot.
func (m *metrics) show(s Status, lanes int) {
	for state, n := range s.Deliveries {
		m.deliveries.WithLabelValues(state).Set(float64(n))
	}
	m.oldest.WithLabelValues(registry.Pending).Set(s.OldestPendingSeconds)
	m.oldest.WithLabelValues(registry.Parked).Set(s.OldestParkedSeconds)
	m.measured.Set(float64(s.MeasuredAt.UnixMilli()) / 1000)
	m.openBreakers.Set(float64(s.OpenBreakers))
	m.lanes.Set(float64(lanes))
	m.mu.Lock()
	defer m.mu.Unlock()
	s.LagRecords = m.last.LagRecords
	m.last = s
}

// showCertificates sets when the first certificate of each kind expires.
func (m *metrics) showCertificates(rows []db.CertificateExpiriesRow) {
	authority, client := math.Inf(1), math.Inf(1)
	for _, r := range rows {
		if r.AuthoritiesExpire != nil {
			authority = min(authority, float64(r.AuthoritiesExpire.Unix()))
		}
		if r.ClientExpires != nil {
			client = min(client, float64(r.ClientExpires.Unix()))
		}
	}
	m.certificates.WithLabelValues("authority").Set(authority)
	m.certificates.WithLabelValues("client").Set(client)
}

func (m *metrics) setLag(records int64) {
	m.lag.Set(float64(records))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last.LagRecords = records
}

func (m *metrics) snapshot() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.last
	s.Deliveries = maps.Clone(m.last.Deliveries)
	return s
}
