package ingest

import (
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// count counts the contents of a transaction, and returns the logs that it appended without their data.
func (w *Writer) count(c *change, due []referral) (omitted []*event.Log) {
	m := w.status.metrics
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
				logs[label{mapping.VaultOf(log), eventOf(w.state.mapped, log)}]++
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
		m.reorgDepth.Observe(float64(w.state.head.Number - *c.ancestor))
	}
	return omitted
}

// report shows the position of the log in the status and in the metrics.
func (w *Writer) report() {
	s, m := w.state, w.status.metrics
	from, to := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for _, v := range s.indexed() {
		from, to = min(from, v.start), min(to, v.to)
	}
	w.status.note(func(st *Status) {
		st.LogID, st.Seq, st.FinalBlock, st.ReferralBlock = fmt.Sprintf("%x", s.logID), s.seq, s.final, s.told
		st.LogsWithoutData, st.sampling = s.withoutData, s.samplingWarnings()
		if s.head != nil {
			st.IndexedBlock, st.indexedTime = s.head.Number, s.head.Time
		}
		st.coveredFrom, st.coveredTo = from, to
	})
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
	if w.Committed != nil {
		w.Committed(s)
	}
}
