package status

import (
	"math"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

const (
	// paceOver is the period over which rates are measured, paceEvery the pause between measurements.
	paceOver  = 30 * time.Second
	paceEvery = 500 * time.Millisecond
)

// pace measures how fast final blocks are read. Each request of the status takes a measurement.
type pace struct {
	samples []sample // oldest first
}

type sample struct {
	at          time.Time
	block, logs uint64
}

// backfill returns how far the vaults, which start at from and are covered up to block, are from the final block, and
// the seconds until they reach it, which are nil while no rate is known. Once they have reached it, it returns nil.
func (p *pace) backfill(now time.Time, from, block, final, logs uint64) (*registry.BackfillStatus, *uint64) {
	if block >= final {
		p.samples = nil
		return nil, nil
	}
	st := &registry.BackfillStatus{FromBlock: from, Block: block, ToBlock: final, Logs: logs}
	first := p.sample(sample{now, block, logs})
	seconds := now.Sub(first.at).Seconds()
	if seconds <= 0 {
		return st, nil
	}
	st.BlocksPerSecond, st.LogsPerSecond = float64(block-first.block)/seconds, float64(logs-first.logs)/seconds
	if block == first.block {
		return st, nil
	}
	eta := uint64(math.Ceil(float64(final-block) / st.BlocksPerSecond))
	return st, &eta
}

// sample returns the oldest measurement of the last half minute. If another vault is further behind, it starts over.
func (p *pace) sample(s sample) sample {
	n := len(p.samples)
	if n > 0 && p.samples[n-1].block > s.block {
		p.samples, n = nil, 0
	}
	if n == 0 || s.at.Sub(p.samples[n-1].at) >= paceEvery {
		p.samples = append(p.samples, s)
	}
	for len(p.samples) > 2 && s.at.Sub(p.samples[1].at) >= paceOver {
		p.samples = p.samples[1:]
	}
	return p.samples[0]
}
