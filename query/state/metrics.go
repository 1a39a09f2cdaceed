package state

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers metrics about the state that answers are made from.
func (w *Watcher) Register(reg prometheus.Registerer) {
	gauge := func(name, help string, value func(*Snapshot) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "navlog_query_" + name, Help: help}, func() float64 {
			if s := w.Snapshot(); s != nil {
				return value(s)
			}
			return 0
		})
	}
	reg.MustRegister(
		gauge("indexed_seq", "Last seq of the log in the served read models; 0 before the first snapshot.",
			func(s *Snapshot) float64 { return float64(s.Seq) }),
		gauge("indexed_block", "Newest block in the served read models.",
			func(s *Snapshot) float64 { return float64(s.Block) }),
		gauge("generation", "Generation that is served.", func(s *Snapshot) float64 { return float64(s.Generation) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "navlog_query_snapshot_age_seconds",
			Help: "Time since the read models were last seen; 0 before the first time."}, func() float64 {
			if w.seen.Load() == 0 {
				return 0
			}
			seen, _ := w.Seen()
			return w.Now().Sub(seen).Seconds()
		}),
	)
	behind := func(name, help string, value func(blocks, seconds *uint64) *uint64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "navlog_query_" + name, Help: help}, func() float64 {
			chain := w.Chain()
			if v := value(chain.Lag(w.Snapshot())); v != nil {
				return float64(*v)
			}
			return math.NaN()
		})
	}
	reg.MustRegister(
		behind("lag_blocks", "Blocks from what is served to the head of the chain; NaN while that is not known.",
			func(blocks, _ *uint64) *uint64 { return blocks }),
		behind("lag_seconds", "Seconds from what is served to the head of the chain, by the times of the blocks; NaN "+
			"while that is not known.", func(_, seconds *uint64) *uint64 { return seconds }),
	)
	for _, state := range chainStates {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "navlog_query_chain_state",
			ConstLabels: prometheus.Labels{"state": state},
			Help:        "1 for the current state of the indexing, as in the header X-Chain-State, 0 for the other states."},
			func() float64 {
				if w.ChainState() == state {
					return 1
				}
				return 0
			}))
	}
}
