package writer

import (
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// count counts a transaction in the metrics, and returns the logs that it appended without their data.
func (w *Writer) count(c *Change, due []referral) (omitted []*event.Log) {
	m := w.status.Metrics
	m.Transactions.Inc()
	type label struct {
		vault common.Address
		event string
	}
	logs := map[label]int{}
	for _, r := range c.records() {
		if r.GetRetracts() != 0 {
			continue
		}
		if sample := r.GetSample(); sample != nil {
			m.Samples.WithLabelValues(common.BytesToAddress(sample.GetVault()).Hex(), "taken").Inc()
		}
		if log := r.GetLog(); log != nil {
			m.Appended.Add(1)
			logs[label{mapping.VaultOf(log), eventOf(w.State.Mapped, log)}]++
			if log.Omitted() {
				m.Omitted.Inc()
				omitted = append(omitted, log)
			}
		}
	}
	for l, n := range logs {
		m.Logs.WithLabelValues(l.vault.Hex(), l.event).Add(float64(n))
	}
	for _, r := range due {
		kind := "deposit"
		if KindOf(r.effect) == event.Referral_KIND_WITHDRAWAL {
			kind = "withdrawal"
		}
		m.Referrals.WithLabelValues(kind).Inc()
	}
	if c.Ancestor != nil {
		m.Reorgs.Inc()
		m.ReorgDepth.Observe(float64(w.State.Head.Number - *c.Ancestor))
	}
	return omitted
}

// report shows the position of the log in the status.
func (w *Writer) report() {
	s := w.State
	from, to := uint64(math.MaxUint64), uint64(math.MaxUint64)
	for _, v := range s.Indexed() {
		from, to = min(from, v.Start), min(to, v.To)
	}
	w.status.Note(func(st *status.Status) {
		st.LogID, st.Seq, st.FinalBlock, st.ReferralBlock = fmt.Sprintf("%x", s.logID), s.Seq, s.Final, s.published
		st.LogsWithoutData, st.Sampling = s.withoutData, s.samplingWarnings()
		if s.Head != nil {
			st.IndexedBlock, st.IndexedTime = s.Head.Number, s.Head.Time
		}
		st.CoveredFrom, st.CoveredTo, st.LogFrozen = from, to, s.Frozen != ""
	})
	if w.Committed != nil {
		w.Committed(s)
	}
}
